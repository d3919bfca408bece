"""The table of all objects that solve batches of systems, or multiply with them, for the tests of all of them.

A row of `TABLE` says how to make such an object from matrices (nm, N, N), which of their elements it takes, and which
systems it solves then.
"""

import inspect
from collections.abc import Callable, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse

import compactla as cla
from cases import BATCH, exhaustive, random, slow, there
from compactla import krylov, oracle

N, B, K = 12, 3, 4  # unknowns of a system; rows of its blocks, and how many blocks it has

ROW, COLUMN = np.indices((N, N))
FULL = np.ones((N, N), bool)
BLOCKS = abs(ROW // B - COLUMN // B) <= 1  # block tridiagonal
RING = BLOCKS | (abs(ROW // B - COLUMN // B) == K - 1)
TWO_LINES = (ROW // B % 2 == COLUMN // B % 2) | (ROW // 6 == COLUMN // 6)  # of two blocks each, which are coupled
SCATTERED = np.isin((5 * ROW + 7 * COLUMN) % 11, (0, 3)) | (ROW == COLUMN)  # not symmetric, and with fill


class Solver(NamedTuple):
    """A kind of object that solves systems of N equations, or multiplies with their matrices.

    Attributes
    ----------
    make : function
        ``make(a, queue, put, **options)`` returns the object, and a function that gives it other matrices. Arrays for
        constructors go through `put`.
    pattern : (N, N) ndarray of bool
        Elements that may be other than zero.
    weight : float
        Number to add to diagonals.
    matrix : function
        ``matrix(a)``: the matrices whose inverses the object applies.
    product : bool
        Whether it multiplies with these instead.
    shape : tuple of int
        Axes of a right-hand side: of a batch, (-1, ...), or of vectors in which systems follow each other, (-1,).
    casts : {"same_kind", "safe", None}
        Rule by which right-hand sides of other types are converted. None: all are, and results have the common type.
    info : function
        ``info(solver, k)``: the `info` of systems, (nm,) or None, and its value where row and column k are zeros.
    types : str
        Types to try, the first one always.
    options : dict
        Arguments for `make`.
    mark : function or None
        `slow` or `exhaustive` for a row that is not tried always.
    """

    make: Callable
    pattern: np.ndarray = FULL
    weight: float = 2 * N
    matrix: Callable = lambda a: a
    product: bool = False
    shape: tuple[int, ...] = (-1, N)
    casts: str | None = "safe"
    info: Callable = lambda solver, k: (solver.info, k + 1)
    types: str = "dFfD"
    options: Mapping[str, Any] = MappingProxyType({})
    mark: Callable | None = None


def blocks_of(a, periodic):
    """Lower, diagonal and upper blocks of lines."""
    a = a.reshape(-1, K, B, K, B).transpose(0, 1, 3, 2, 4)
    k = np.arange(K if periodic else K - 1)
    return a[:, (k + 1) % K, k], a[:, np.arange(K), np.arange(K)], a[:, k, (k + 1) % K]


def block_tridiagonal(a, queue, put, **options):
    def lines(a, put):
        return cla.BlockTridiag(*map(put, blocks_of(a, options.get("periodic"))), queue=queue, **options)

    T = lines(a, put)
    T.factor()

    def renew(a):
        other = lines(a, np.copy)
        for name in ("lower", "diag", "upper"):
            getattr(T, name)[...] = getattr(other, name)
        T.refactor()

    return T, renew


def block_diagonal(a):
    """A sparse matrix of all systems, one after the other."""
    nm, blocks = len(a), a.reshape(-1, K, B, K, B).transpose(0, 1, 3, 2, 4)
    kept = blocks.any((0, 3, 4)) | np.eye(K, dtype=bool)
    row, column = np.nonzero(kept)
    indices = (column + K * np.arange(nm)[:, None]).reshape(-1)
    indptr = np.append(0, np.tile(kept.sum(1), nm).cumsum())
    return scipy.sparse.bsr_array((blocks[:, row, column].reshape(-1, B, B), indices, indptr), shape=(nm * N,) * 2)


def sparse(kind, length):
    """A maker of preconditioners along lines of so many blocks."""

    def make(a, queue, put, **options):
        M = block_diagonal(a)
        if put is not np.copy:
            M.data.flags.writeable = False
        P = kind(M, np.arange(len(a) * K).reshape(-1, length), queue=queue, **options)
        return P, lambda a: P.update(block_diagonal(a))

    return make


def banded(kind, diagonals, factored=True):
    """A maker of band matrices, with factors, or of those that are factored on the way of each solve."""

    def make(a, queue, put, **options):
        given = [there(x, queue) if put is np.copy else put(x) for x in diagonals(a)]
        S = kind(*given, queue=queue, **options)

        def renew(a):
            for old, new in zip(given, diagonals(a), strict=True):
                old[...] = there(new, queue)
            if factored:
                S.factor()

        if factored:
            S.factor()
        return S, renew

    return make


def along(a, offset):
    """A diagonal of all matrices."""
    return np.ascontiguousarray(np.diagonal(a, offset, 1, 2))


def tridiagonals(a):
    return along(a, -1), along(a, 0), along(a, 1)


def of_rings(a):
    i = np.arange(N)
    return a[:, (i + 1) % N, i], along(a, 0), a[:, i, (i + 1) % N]


def in_band(kl, ku):
    """A function that stores matrices as SciPy stores bands, with NaN where they have nothing."""

    def stored(a):
        n = a.shape[1]
        ab = np.full((len(a), kl + ku + 1, n), np.nan, a.dtype)
        for k in range(max(-kl, 1 - n), min(ku, n - 1) + 1):
            ab[:, ku - k, max(k, 0) : n + min(k, 0)] = along(a, k)
        return (ab,)

    return stored


def within(kl, ku):
    return (ROW - COLUMN <= kl) & (COLUMN - ROW <= ku)


def csr(a, pattern, put=np.copy, queue=None):
    """A batch of sparse matrices of this pattern."""
    rows, columns = np.nonzero(pattern)
    return cla.BatchCSR((put(a[:, rows, columns]), columns, np.append(0, pattern.sum(1).cumsum())), queue=queue)


def of_batch(kind, pattern=SCATTERED, **options):
    """A maker of objects that follow a batch of sparse matrices."""

    def make(a, queue, put):
        A = csr(a, pattern, put, queue)
        return kind(A, **options), lambda a: A.update(a[:, pattern])

    return make


def incomplete(a):
    """The product of incomplete factors without fill, which leave out what is zero in all matrices."""
    kept, lu = a.any(0), a.astype(np.result_type(a, np.float64))
    for i in range(a.shape[1]):
        for k in range(i):
            if kept[i, k]:
                lu[:, i, k] /= lu[:, k, k]
                lu[:, i, k + 1 :] -= lu[:, i, k, None] * lu[:, k, k + 1 :] * kept[i, k + 1 :]
    return ((np.tril(lu, -1) + np.eye(a.shape[1])) @ np.triu(lu)).astype(a.dtype)


def approximate(a):
    """Inverses of the pattern of a, row by row: those of the small systems with the columns of the row."""
    inverses, kept = np.zeros_like(a), a.any(0)
    for i, row in enumerate(map(np.flatnonzero, kept)):
        unit = np.tile((row == i)[:, None].astype(a.dtype), (len(a), 1, 1))
        inverses[:, i, row] = np.linalg.solve(a[:, row[:, None], row].swapaxes(1, 2), unit)[..., 0]
    return inverses


def coupled(n, lines, b):
    """A mask of the blocks on the diagonal, and of those that couple neighbours on lines."""
    found = np.eye(-(-n // b))
    for line in lines:
        for i, j in pairwise(line):
            found[i, j] = found[j, i] = 1
    return np.kron(found, np.ones((b, b), np.float32))[:n, :n]


def gauss_seidel(a):
    """The matrices that one sweep solves with: the first line of two does not see the second."""
    return a * ~((ROW < 6) & (COLUMN >= 6))


def of_two_lines(S, k):
    info = S.info.reshape(-1, 2)
    assert not info[:, 1 - k // 6].any()
    return info[:, k // 6], k % 6 + 1


def of_ring(T, k):
    """Where a ring is singular, any pivot may be the one."""
    assert ((T.info >= 0) & (N >= T.info)).all()
    return np.minimum(T.info, 1), 1


ALONG = [3, 1, 0], [2]  # lines of blocks of a batch
LINES = {"pattern": BLOCKS, "shape": (-1, K, B), "casts": "same_kind"}
VECTORS = {"pattern": BLOCKS, "shape": (-1,), "casts": None}
BANDS = {"casts": "same_kind"}
NO_INFO = {"info": lambda solver, k: (None, 0)}

TABLE = {
    "BlockTridiag": Solver(block_tridiagonal, **LINES),
    "rings in parts": Solver(
        block_tridiagonal, options={"parts": 2, "periodic": True}, mark=slow, **{**LINES, "pattern": RING}
    ),
    "refined": Solver(
        block_tridiagonal, options={"storage": "bfloat16", "refine": 8}, mark=slow, **LINES
    ),
    "LinePreconditioner": Solver(sparse(cla.LinePreconditioner, K), types="FdDf", **VECTORS),
    "lines in parts": Solver(
        sparse(cla.LinePreconditioner, K), options={"parts": 2}, types="FdDf", mark=slow, **VECTORS
    ),
    "refined lines": Solver(
        sparse(cla.LinePreconditioner, K), options={"refine": 1, "pivoting": True}, mark=exhaustive, **VECTORS
    ),
    "LineRelaxation": Solver(
        sparse(cla.LineRelaxation, 2), matrix=gauss_seidel, info=of_two_lines, options={"scheme": "gauss-seidel"},
        **{**VECTORS, "pattern": TWO_LINES},
    ),
    "Tridiag": Solver(banded(cla.Tridiag, tridiagonals), within(1, 1), weight=0, types="FdDf", **BANDS),
    "Tridiag at once": Solver(
        banded(cla.Tridiag, tridiagonals, factored=False), within(1, 1), weight=0, mark=slow, **BANDS
    ),
    "ring": Solver(
        banded(cla.Tridiag, of_rings), within(1, 1) | (abs(ROW - COLUMN) == N - 1), weight=0, info=of_ring,
        options={"periodic": True}, mark=slow, **BANDS,
    ),
    "Banded": Solver(
        banded(lambda ab, **how: cla.Banded((2, 1), ab, **how), in_band(2, 1)), within(2, 1), weight=0, types="FdDf",
        mark=slow, **BANDS,
    ),
    "Banded at once": Solver(
        banded(lambda ab, **how: cla.Banded((2, 1), ab, **how), in_band(2, 1), factored=False), within(2, 1), weight=0,
        mark=exhaustive, **BANDS,
    ),
    "wide bands": Solver(
        banded(lambda ab, **how: cla.Banded((4, 6), ab, **how), in_band(4, 6)), within(4, 6), weight=0,
        mark=exhaustive, **BANDS,
    ),
    "BandedSPD": Solver(
        banded(cla.BandedSPD, in_band(0, 2)), within(2, 2), types="FdDf", mark=slow, **BANDS
    ),
    "lower triangles": Solver(
        banded(cla.BandedSPD, in_band(2, 0)), within(2, 2), options={"lower": True}, mark=exhaustive, **BANDS
    ),
    "BatchCSR": Solver(of_batch(lambda A: A), SCATTERED, product=True, types="FdDf", mark=slow, **NO_INFO),
    "BatchLU": Solver(
        of_batch(cla.BatchLU), SCATTERED, info=lambda F, k: (F.info, 1 + np.flatnonzero(F.perm == k)[0])
    ),
    "Identity": Solver(
        of_batch(krylov.Identity), SCATTERED, matrix=lambda a: np.eye(N, dtype=a.dtype) + 0 * a, mark=exhaustive,
        **NO_INFO,
    ),
    "Jacobi": Solver(
        of_batch(krylov.Jacobi), SCATTERED, matrix=lambda a: a * np.eye(N, dtype=bool), mark=slow, **NO_INFO
    ),
    "BlockJacobi": Solver(
        of_batch(krylov.BlockJacobi, b=5), SCATTERED, matrix=lambda a: a * (ROW // 5 == COLUMN // 5), types="FdDf",
        mark=exhaustive, **NO_INFO,
    ),
    "ILU0": Solver(of_batch(krylov.ILU0), SCATTERED, matrix=incomplete, types="FdDf", mark=slow),
    "ISAI": Solver(
        of_batch(krylov.ISAI), SCATTERED, matrix=approximate, product=True, mark=slow,
        info=lambda M, k: (M.info, 1 + np.flatnonzero(SCATTERED[:, k])[0]),
    ),
    "Lines": Solver(
        of_batch(krylov.Lines, lines=ALONG, b=B), SCATTERED, matrix=lambda a: a * (coupled(N, ALONG, B) > 0),
        types="FdDf", mark=slow,
    ),
}  # fmt: skip


def with_types(names=TABLE):
    """Solvers and types: the first of each is tried always, or as its row says; of the models the second is slow."""
    cases = []
    for name in names:
        mark, types = TABLE[name].mark, [np.dtype(char) for char in TABLE[name].types]
        cases.append((name, types[0]) if mark is None else mark(name, types[0]))
        cases += [(slow if mark is None and i == 0 else exhaustive)(name, kind) for i, kind in enumerate(types[1:])]
    return pytest.mark.parametrize(("name", "dtype"), cases, ids=str)


def each(names=TABLE):
    """Solvers, with their first types."""
    cases = [(name, np.dtype(TABLE[name].types[0])) for name in names]
    return pytest.mark.parametrize(
        ("name", "dtype"), [(TABLE[case[0]].mark or pytest.param)(*case) for case in cases], ids=str
    )


def matrices(name, rng, dtype, nm=BATCH):
    """Matrices that a solver has no trouble with."""
    row = TABLE[name]
    a = random(rng, (nm, N, N), dtype) * row.pattern
    if name in ("BandedSPD", "lower triangles"):
        a = (a + a.conj().swapaxes(1, 2)) / 2
    return (a + row.weight * np.eye(N)).astype(dtype)


def sides(name, rng, dtype, nm=BATCH, nrhs=()):
    """Right-hand sides, as the solver takes them; `nrhs` is () or (number,)."""
    return shaped(name, random(rng, (nm, N, *nrhs), dtype))


def shaped(name, a):
    """Vectors of systems (nm, N, ...) as the solver takes them."""
    axes = TABLE[name].shape
    return a.reshape((len(a) * N if len(axes) == 1 else len(a), *axes[1:], *a.shape[2:]))


def systems(a, nm):
    """Vectors as the solver takes them as those of systems (nm, N, nrhs)."""
    return a.reshape(nm, N, a.size // max(nm * N, 1))


def make(name, a, queue=None, put=np.copy):
    """A solver for these matrices, and a function that gives it others."""
    return TABLE[name].make(a, queue, put, **TABLE[name].options)


def solving(S):
    """The method that solves, or multiplies."""
    return S.multiply if isinstance(S, cla.BatchCSR) else S.solve


def has_out(S):
    return "out" in inspect.signature(solving(S)).parameters


def argument(S):
    """The name of right-hand sides."""
    return next(iter(inspect.signature(solving(S)).parameters))


def ratio(name, a, x, rhs, matrix=None):
    """The largest scaled residual of results for right-hand sides, in the sense of LAPACK's tests."""
    nm, eps = len(a), np.finfo(x.dtype).eps
    x, rhs = systems(x, nm), systems(rhs, nm)
    matrix, x, rhs = oracle.widen(TABLE[name].matrix(a) if matrix is None else matrix, x, rhs)
    if TABLE[name].product:
        found = oracle.ratio(abs(x - matrix @ rhs), N * eps * (abs(matrix) @ abs(rhs)))
    else:
        found = oracle.solve_ratio(matrix, x, rhs, eps)
    return found.max(initial=0)
