"""sytrf, sytrs, sysv and their Hermitian twins: pivots, failures, and the pack level."""

import functools

import numpy as np
import pytest
import scipy.linalg
from numba import njit

import compactla as cla
from cases import exhaustive, in_turns, random, same_bits
from compactla.cpu import hesv, hetrf, hetrs, matrix, sysv, sytrf, sytrs
from compactla.oracle import THRESHOLD, op, solve_ratio
from compactla.oracle import sytrf as oracle

NM = 21


def matrices(rng, n, dtype, trans):
    """Symmetric or Hermitian ones: some with a block of zeros, as of constraints, some definite, some graded."""
    a = random(rng, (NM, n, n), dtype)
    a = a + op(a, trans)
    a[::3, (n + 1) // 2 :, (n + 1) // 2 :] = 0
    a[1::3] = a[1::3] @ op(a[1::3], trans)
    scales = np.logspace(0, -4, n, dtype=np.finfo(dtype).dtype)
    a[5] *= scales[:, None] * scales
    a[7] *= scales[::-1, None] * scales[::-1]
    a[9] = 1 - np.eye(n)  # of equal elements the first is the pivot
    return a


def lapack(a, uplo, hermitian):
    """LAPACK's factors of matrices that are no larger than a block, and its pivots, from 0."""
    name = "hetrf" if hermitian and a.dtype.kind == "c" else "sytrf"
    (function,) = scipy.linalg.get_lapack_funcs([name], [a])
    found = [function(each, lower=uplo == "L") for each in a]
    pivots = np.array([p for _, p, _ in found])
    return np.array([lu for lu, *_ in found]), np.where(pivots < 0, pivots, pivots - 1)


def check(rng, n, dtype, uplo, hermitian, queue):
    trans = "C" if hermitian else "T"
    a = matrices(rng, n, dtype, trans)
    A = cla.pack(a, queue=queue)
    ipiv, info = (cla.hetrf if hermitian else cla.sytrf)(A, uplo)
    assert not info.any() or n == 1
    residual = oracle.residual((a,), (A.unpack(), np.asarray(ipiv)[:, :, None]), uplo, trans)
    assert residual.max() < THRESHOLD
    expected, pivots = lapack(a, uplo, hermitian)
    assert np.array_equal(np.asarray(ipiv), pivots)
    half = np.tril if uplo == "L" else np.triu
    assert np.allclose(
        half(A.unpack()), half(expected), rtol=0, atol=1e4 * np.finfo(dtype).eps * abs(half(expected)).max()
    )


@pytest.mark.parametrize(("n", "dtype"), in_turns([5, 11, 1, 8, 2, 33, 17], [5]), ids=str)
def test_factors_are_those_of_lapack(rng, n, dtype, queue):
    turns = [("L", True), ("U", False)] if n == 5 else [(uplo, he) for uplo in "LU" for he in (True, False)]
    for uplo, hermitian in turns:
        check(rng, n, dtype, uplo, hermitian, queue)


@pytest.mark.slow
def test_pivots_of_lapack_solve(rng, queue):
    """Factors of LAPACK, and pivots as an array."""
    for uplo in "LU":
        a, b = matrices(rng, 6, np.complex128, "C"), random(rng, (NM, 6, 2), np.complex128)
        lu, pivots = lapack(a, uplo, True)
        x = cla.hetrs(cla.pack(lu, queue=queue), pivots, cla.pack(b, queue=queue), uplo).unpack()
        assert solve_ratio(a, x, b, np.finfo(float).eps).max() < THRESHOLD
    for wrong in (pivots + 6, pivots - 7):
        with pytest.raises(ValueError, match=r"ipiv has entries from .*, must have entries from -6 to 5"):
            cla.hetrs(cla.pack(lu), wrong, cla.pack(b))


@pytest.mark.slow
@pytest.mark.parametrize("n", [4, exhaustive(12)])
def test_singular_matrices_and_nan_touch_no_other(rng, queue, n):
    a, b = matrices(rng, n, np.float64, "T"), random(rng, (NM, n, 1), np.float64)
    bad, spoiled = [2, 9, 10, 13], a.copy()
    spoiled[2] = 0
    spoiled[9, -1], spoiled[9, :, -1] = 0, 0
    spoiled[10, 1, 1] = np.nan
    spoiled[13] = np.outer(a[13, 0], a[13, 0])
    good = np.setdiff1d(np.arange(NM), bad)
    for uplo, last in ("L", n), ("U", 1):
        results = []
        for x in (a, spoiled):
            A, X = cla.pack(x, queue=queue), cla.pack(b, queue=queue)
            ipiv, info = cla.sytrf(A, uplo)
            cla.sytrs(A, ipiv, X, uplo)
            results.append([A.unpack(), np.asarray(ipiv), X.unpack(), info])
        for x, y in zip(*results, strict=True):
            same_bits(x[good], y[good])
        *_, info = results[1]
        assert info[2] == n + 1 - last and info[9] == n and info[10] > 0 and not info[good].any()
        X = cla.pack(b, queue=queue)
        assert np.array_equal(cla.sysv(cla.pack(spoiled, queue=queue), X, uplo), info)
        same_bits(X.unpack()[good], results[0][2][good])


@pytest.mark.slow
def test_extreme_scales(rng, queue):
    """Squares and products of elements would overflow, or underflow."""
    for dtype in (np.float32, np.complex128):
        for power in (-0.8, 0.8):
            scale = np.finfo(dtype).max ** power
            a = (matrices(rng, 7, dtype, "T")[:3] * scale).astype(dtype)
            b = random(rng, (3, 7, 1), dtype)
            X = cla.pack(b, queue=queue)
            assert not cla.sysv(cla.pack(a, queue=queue), X).any()
            assert solve_ratio(a / scale, X.unpack() * scale, b, np.finfo(dtype).eps).max() < THRESHOLD
        # Blocks of two, of numbers whose inverses overflow
        tiny = np.finfo(dtype).smallest_subnormal * 2**10
        a = np.kron(np.eye(2), np.array([[0, 1], [1, 0]])).astype(dtype)[None] * tiny
        X = cla.pack(a @ np.ones((4, 1), dtype), queue=queue)
        assert not cla.sysv(cla.pack(a, queue=queue), X).any()
        assert np.array_equal(X.unpack(), np.ones((1, 4, 1)))


@functools.cache
def all_three(V, hermitian, uplo, n=None, r=None):
    factor, solve, both = (hetrf, hetrs, hesv) if hermitian else (sytrf, sytrs, sysv)
    one = None if n is None else 1

    @njit(error_model="numpy")
    def kernel(a, again, ipiv, b, x, info):
        for p in range(len(a)):
            A, S = matrix(a[p], V, n, n), matrix(ipiv[p], V, n, one)
            factor(A, S, info[p], uplo)
            solve(A, S, matrix(b[p], V, n, r), uplo)
            both(matrix(again[p], V, n, n), matrix(x[p], V, n, r), S, info[p], uplo)

    return kernel


@pytest.mark.slow
@pytest.mark.parametrize(("V", "n", "r", "known", "dtype", "hermitian", "uplo"), [
    (8, 3, 1, True, np.complex128, True, "U"),
    exhaustive(16, 9, 9, True, np.float32, False, "L"),
    exhaustive(4, 5, 7, False, np.complex64, False, "U"),
    exhaustive(3, 33, 2, False, np.float64, True, "L"),
    exhaustive(1, 10, 1, False, np.complex128, True, "L"),
])  # fmt: skip
def test_in_numba_functions(rng, V, n, r, known, dtype, hermitian, uplo):
    trans = "C" if hermitian else "T"
    a, b = matrices(rng, n, dtype, trans)[:V], random(rng, (V, n, r), dtype)
    a, b = np.resize(a, (2 * V, n, n)), np.resize(b, (2 * V, n, r))
    packs = [cla.pack(x, V) for x in (a, a, b, b)]
    ipiv, info = np.zeros((2, n, 1, V), np.int64), np.zeros((2, V), np.int64)
    A, again, x, y = (P.data for P in packs)
    all_three(V, hermitian, uplo, *((n, r) if known else ()))(A, again, ipiv, x, y, info)
    assert not info.any()
    for P in packs[2:]:
        assert solve_ratio(a, P.unpack(), b, np.finfo(dtype).eps).max() < THRESHOLD
    same_bits(packs[2].unpack(), packs[3].unpack())


@pytest.mark.slow
def test_pairs_of_which_one_has_no_factor(rng, queue):
    """sygv: info is n + the order of the leading minor of B, or n; the results are NaN then."""
    n = 5
    a, b = matrices(rng, n, np.complex128, "C"), np.broadcast_to(np.eye(n), (NM, n, n)).astype(np.complex128)
    bad, spoiled_a, spoiled_b = slice(3, 7), a.copy(), b.copy()
    spoiled_b[3, 2, 2], spoiled_b[4, 4, 4], spoiled_b[5, 0, 0], spoiled_a[6, 1, 0] = -1, 0, np.nan, np.inf
    for uplo in "LU":
        results = []
        for pair in ((a, b), (spoiled_a, spoiled_b)):
            A, B = (cla.pack(x if uplo == "L" else op(x, "C"), queue=queue) for x in pair)
            w, info = cla.sygv(A, B, uplo)
            results.append([w if queue is None else w.get(), A.unpack(), B.unpack(), info])
        for x, y in zip(*results, strict=True):
            same_bits(np.delete(x, bad, 0), np.delete(y, bad, 0))
        w, V, _, info = results[1]
        assert info[bad].tolist() == [n + 3, n + 5, n + 1, n] and not results[0][3].any()
        assert np.isnan(w[bad]).all() and np.isnan(V[bad]).all()
