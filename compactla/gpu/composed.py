"""Functions on stacks of matrices, composed of routines on packs.

Each has the name of its `compactla.linalg.stacks.Stacked`. It takes packs, which it may overwrite, and the options; and
returns what the `Stacked` has as outputs, as packs or arrays, and an array of integers that are not 0 for matrices that
have no result, or None.
"""

import numpy as np

from compactla.dense.gemm import gemm
from compactla.dense.geqrf import geqrf
from compactla.dense.gesv import gesv
from compactla.dense.gesvd import gesvd
from compactla.dense.getrf import getrf
from compactla.dense.getri import getri
from compactla.dense.orgqr import orgqr
from compactla.dense.ormqr import ormqr
from compactla.dense.potrf import potrf
from compactla.dense.potrs import potrs
from compactla.dense.syev import syev
from compactla.dense.trsm import trsm
from compactla.gpu.arrays import empty
from compactla.gpu.ordinary import determinants, triangle
from compactla.layout import Pack


def solve(A, B):
    return [B], gesv(A, B)


def inv(A):
    ipiv, _ = factors(A)
    return [A], getri(A, ipiv)


def det(A):
    ipiv, _ = factors(A)
    return determinants(A, ipiv)[:1], None


def slogdet(A):
    ipiv, _ = factors(A)
    return determinants(A, ipiv, logarithm=True), None


def cholesky(A, uplo, **_):
    info = potrf(A, uplo)
    return [triangle(A, uplo)], info


def qr(A, mode):
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


def eigh(A, uplo):
    w, info = syev(A, uplo)
    return [w, A], info


def eigvalsh(A, uplo):
    w, info = syev(A, uplo, "N")
    return [w], info


def svd(A, **_):
    U, s, Vh, info = gesvd(A)
    return [U, s, Vh], info


def svdvals(A, **_):
    _, s, _, info = gesvd(A, False)
    return [s], info


def matmul(A, B):
    C = A.beside(A.m, B.n)
    return [gemm(A, B, C)], None


def solve_triangular(A, B, trans, uplo, diag):
    return [trsm(A, B, uplo=uplo, trans=trans, diag=diag)], None


def lu_factor(A):
    ipiv, _ = factors(A)
    return [A, ipiv], None


def cho_factor(A, uplo):
    info = potrf(A, uplo)
    return [A], info


def cho_solve(A, B, uplo):
    return [potrs(A, B, uplo)], None


def factors(A):
    """LU factorizations in place, for which nothing waits: pivots, and info on the device."""
    return getrf(A, info=empty((A.nm,), np.int32, A.queue))
