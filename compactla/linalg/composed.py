"""Functions on stacks of matrices, composed of routines on packs.

Each has the name of its `compactla.linalg.stacks.Stacked`. It takes packs, which it may overwrite, for inputs that are
numbers one, or an array of one for each matrix, and by their names sizes and options, of which it uses some. It returns
what the `Stacked` has as outputs, as packs or arrays, and an array of integers that are not 0 for matrices that have no
result, or None.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from compactla.cpu.fused.expm import PADE
from compactla.dense.axpy import axpy
from compactla.dense.chud import chud
from compactla.dense.geev import geev
from compactla.dense.gemm import gemm
from compactla.dense.geqrf import geqrf
from compactla.dense.gesv import gesv
from compactla.dense.gesvd import gesvd
from compactla.dense.getrf import getrf
from compactla.dense.getri import getri
from compactla.dense.getrs import getrs
from compactla.dense.hesv import hesv
from compactla.dense.hetrf import hetrf
from compactla.dense.nrm2 import nrm2
from compactla.dense.orgqr import orgqr
from compactla.dense.ormqr import ormqr
from compactla.dense.posv import posv
from compactla.dense.potrf import potrf
from compactla.dense.potrs import potrs
from compactla.dense.syev import syev
from compactla.dense.sygv import sygv
from compactla.dense.sysv import sysv
from compactla.dense.sytrf import sytrf
from compactla.dense.trsm import trsm
from compactla.dtypes import REAL
from compactla.gpu.arrays import constant, download, empty, flag_for, is_set, reused, upload
from compactla.gpu.linalg import expm as steps
from compactla.gpu.linalg.arrays import (
    cut,
    determinants,
    fill,
    ldl_factors,
    ordinary,
    pack,
    squares,
    tell,
    triangle,
    unpack,
    zeros_on_diagonal,
)
from compactla.integers import Integers
from compactla.layout import Pack

REFINEMENTS = 31  # at most, with the first solve


def solve(A, B, **_):
    return [B], gesv(A, B, info=info_of(A))


def solve_mixed(A, B, **_):
    """As `compactla.cpu.fused.solve_mixed`, with 2-norms and without the root of n."""
    single = np.dtype("F" if A.is_complex else "f")
    F, R, X = converted(A, single), B, None
    ipiv, info = getrf(F, info=info_of(F))
    with np.errstate(over="ignore"):
        size = np.linalg.norm(download(nrm2(A)), axis=1)
    unsure, former = download(info) != 0, np.full(B.nm, np.inf)
    working = ~unsure
    for _ in range(REFINEMENTS):
        D = converted(getrs(F, ipiv, converted(R, single)), A.dtype)
        if X is None:
            X = D
        else:
            axpy(working.astype(X.dtype), D, X)
        R = converted(B, B.dtype)
        gemm(A, X, R, alpha=-1, beta=1)
        with np.errstate(all="ignore"):
            rest, bound = download(nrm2(R)), download(nrm2(X)) * (size * 2.0**-53)[:, None]
            excess = np.where(rest <= bound, 0, rest / bound)
            worst = np.where(np.isfinite(bound), excess, np.inf).max(-1, initial=0)
        far = working & ~(worst <= 1)
        stalled = far & ~(worst < former / 2)
        unsure, working, former = unsure | stalled, far & ~stalled, worst
        if not working.any():
            break
    unsure |= working
    if not unsure.any():
        return [X], None
    info = gesv(A, B, info=info_of(A))
    steps.chosen(0, upload(unsure.astype(np.int32), A.queue), B, X)
    return [X], info


def converted(P, dtype):
    """A copy of packs in another type."""
    return pack(unpack(P), (P.nm,), dtype)


def solve_symmetric(A, B, assume_a, uplo, **_):
    routine = {"pos": posv, "her": hesv, "sym": sysv}[assume_a]
    return [B], routine(A, B, uplo, info=info_of(A))


def ldl(A, uplo, hermitian, **_):
    ipiv, _ = (hetrf if hermitian else sytrf)(A, uplo, info=info_of(A))
    return ldl_factors(A, ipiv, uplo, hermitian), None


def eig(A, **_):
    info = info_of(A)
    w, V, _ = geev(A, info=info)
    return [w, V], info


def eigvals(A, **_):
    info = info_of(A)
    w, _, _ = geev(A, False, info=info)
    return [w], info


def inv(A, **_):
    ipiv, _ = factors(A)
    return [A], getri(A, ipiv, info=info_of(A))


def det(A, **_):
    ipiv, _ = factors(A)
    return determinants(A, ipiv)[:1], None


def slogdet(A, **_):
    ipiv, _ = factors(A)
    return determinants(A, ipiv, logarithm=True), None


def cholesky(A, uplo, clean, **_):
    info = potrf(A, uplo, info=info_of(A))
    return [triangle(A, uplo) if clean == "yes" else A], info


def cholesky_update(C, X, uplo, downdate, **_):
    info = chud(C, X, uplo, downdate, info=info_of(C))
    return [triangle(C, uplo)], info


def qr(A, mode, **_):
    k = min(A.m, A.n)
    tau = geqrf(A)
    if mode == "raw":
        return [A.T, tau], None
    rows = A.m if mode == "complete" else k
    R = triangle(A[:rows, :], "U")
    if mode == "r":
        return [R], None
    if mode == "complete":
        Q = Pack.identity(A.nm, A.m, dtype=A.dtype, vlen=A.vlen, queue=A.queue)
        ormqr(A, tau, Q)
    else:
        Q = orgqr(A[:, :k], tau)
    return [Q, R], None


def eigh(A, UPLO, **_):
    w, info = syev(A, UPLO, info=info_of(A))
    return [w, A], info


def eigvalsh(A, UPLO, **_):
    w, info = syev(A, UPLO, "N", info=info_of(A))
    return [w], info


def eigh_of_pairs(B, A, UPLO, **_):
    w, info = sygv(A, B, UPLO, info=info_of(A))
    return [w, A], info


def eigvalsh_of_pairs(B, A, UPLO, **_):
    w, info = sygv(A, B, UPLO, "N", info=info_of(A))
    return [w], info


def svd(A, p, q, **_):
    U, s, Vh, info = gesvd(A, info=info_of(A))
    if p > U.n:
        U = completed(U)
    if q > Vh.m:
        Vh = completed(Vh.T).T
    return [U, s, Vh], info


def svdvals(A, **_):
    _, s, _, info = gesvd(A, False, info=info_of(A))
    return [s], info


def lstsq(A, B, rcond, **_):
    U, s, Vh, info = gesvd(A, info=info_of(A))
    C, X = A.beside(U.n, B.n), A.beside(Vh.n, B.n)
    gemm(U, B, C, transa="C")
    gemm(U, C, B, alpha=-1, beta=1)
    norms = nrm2(B)
    rank = cut(s, rcond, C)
    gemm(Vh, C, X, transa="C")
    return [X, squares(norms, rank, A.n), rank, s], info


lstsq_wide = lstsq


def pinv(A, rcond, **_):
    X = A.beside(A.n, A.m)
    U, s, Vh, info = gesvd(A, info=info_of(A))
    cut(s, rcond, Vh)
    return [gemm(Vh, U, X, transa="C", transb="C")], info


def matmul(A, B, **_):
    C = A.beside(A.m, B.n)
    return [gemm(A, B, C)], None


def expm(A, **_):
    A2, A4, A6, U, V, T = (A.beside(A.n, A.n) for _ in range(6))
    gemm(A, A, A2)
    gemm(A2, A2, A4)
    gemm(A2, A4, A6)
    s = steps.halved(A, A2, A4, A6)
    powers = A6, A4, A2
    for P, b in (U, PADE[::-2]), (V, PADE[-2::-2]):  # odd and even powers
        steps.combined(T, b[:3], powers)
        gemm(A6, T, P)
        steps.combined(P, b[3:6], powers, own=1, one=b[6])
    gemm(A, U, T)
    steps.combined(V, (-1,), (T,), own=1)
    steps.combined(T, (), (), own=2)
    gesv(V, T, info=info_of(A))
    steps.combined(T, (), (), own=1, one=1)
    for t in range(int(download(s).max(initial=0))):
        gemm(T, T, U)
        steps.chosen(t, s, U, T)
    return [T], None


def solve_triangular(A, B, trans, uplo, diag, **_):
    return [trsm(A, B, uplo=uplo, trans=trans, diag=diag)], None if diag == "U" else zeros_on_diagonal(A)


def lu_factor(A, **_):
    ipiv, info = factors(A)
    return [A, ipiv], info


def lu_solve(A, ipiv, B, trans, **_):
    return [getrs(A, ipiv, B, trans)], None


def cho_solve(A, B, uplo, **_):
    return [potrs(A, B, uplo)], None


def completed(U):
    """Unitary matrices of which these are the first columns."""
    same, Q = np.eye(U.n, dtype=U.dtype), Pack.identity(U.nm, U.m, dtype=U.dtype, vlen=U.vlen, queue=U.queue)
    same, W = constant(same, U.queue), U.beside(U.m, U.n)
    gemm(U, same, W)
    ormqr(W, geqrf(W), Q)
    gemm(U, same, Q[:, : U.n])
    return Q


def factors(A):
    """LU factorizations in place: pivots, and info."""
    return getrf(A, info=info_of(A))


def info_of(A):
    """An array on the device for info, so that nothing waits for it."""
    return empty((A.nm,), np.int32, A.queue, reused(A.view.buffer))


@dataclass(frozen=True)
class Composed:
    """Routines on packs for arrays of some types, shapes and strides.

    Attributes
    ----------
    compose : function
        A function of this module.
    inputs : dict
        Sizes of the inputs, by name, as of `compactla.linalg.stacks.Stacked`.
    fit : compactla.linalg.stacks.Fit
        Sizes and types.
    keywords : dict
        Sizes and options, by name.
    """

    compose: Callable
    inputs: dict[str, str]
    fit: Any
    keywords: dict[str, Any]

    def run(self, arrays, wait):
        """Compute results, and integers that are not 0 for matrices that failed, or None."""
        packs: list[Any] = []
        lead, computed = self.fit.lead, self.fit.computed
        for (name, letters), a in zip(self.inputs.items(), arrays, strict=True):
            if letters == "11":
                packs.append(one_each(a, lead, computed))
            elif len(letters) == 3:
                packs.append(integers(a, lead, packs[0], name))
            else:
                packs.append(pack(a, lead, computed))
        found, failed = self.compose(*packs, **self.keywords)
        allocator = arrays[0].allocator
        results = [ordinary(x, *made, allocator) for x, made in zip(found, self.fit.made, strict=True)]
        if failed is None:
            return results, None
        if wait:
            flag = flag_for(arrays[0].queue)
            tell(failed, flag.array)
            return results, download(failed) if is_set(flag) else None
        for result in results:
            fill(result, failed)
        return results, None


def one_each(a, lead, dtype):
    """A NumPy array of numbers (..., 1, 1) as one for each matrix of a stack, or as the number if there is one."""
    if a.size == 1:
        return float(REAL[dtype.char].type(a.item()))
    return np.broadcast_to(a[..., 0, 0], lead).astype(REAL[dtype.char]).reshape(-1)


def integers(a, lead, A, name):
    """An array of integers (..., k, 1) beside the packs of a stack; they are looked at."""
    k = a.shape[-2]
    return Integers.given(np.broadcast_to(a.get()[..., 0], (*lead, k)).reshape(A.nm, k), A, k, name)
