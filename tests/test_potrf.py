"""potrf and potrs at the pack level: A <- L or U, info, and B <- inv(A) B."""

import functools

import numpy as np
import pytest
from numba import njit

import compactla as cla
import reference
from cases import in_turns, random, same_bits
from compactla.cpu import matrix, potrf, potrs
from compactla.oracle import THRESHOLD, norm1, ratio, widen


@functools.cache
def factor_and_solve(V, uplo, n=None, columns=None):
    @njit(error_model="numpy")
    def kernel(a, b, info, first):
        for p in range(len(a)):
            A, B = matrix(a[p], V, n, n), matrix(b[p], V, n, columns)
            potrf(A, info[p], uplo, first)
            potrs(A, B, uplo)

    return kernel


def definite(rng, nm, n, dtype):
    """Hermitian matrices that are positive definite."""
    x = random(rng, (nm, n, n), dtype)
    return (x @ x.conj().swapaxes(1, 2) + n * np.eye(n)).astype(dtype)


def unread(n, uplo):
    """A mask of the elements that potrf must not read."""
    return {"L": np.triu, "U": np.tril}[uplo](np.ones((n, n), bool), {"L": 1, "U": -1}[uplo])


def hidden(a, uplo):
    """A copy with NaN in the other triangle, and imaginary parts on the diagonal."""
    a = np.where(unread(a.shape[-1], uplo), np.nan, a).astype(a.dtype)
    if np.iscomplexobj(a):
        np.einsum("qii->qi", a).imag = 3
    return a


def lower(factors, uplo):
    """L, where what is in memory is L or U."""
    return np.tril(factors) if uplo == "L" else np.triu(factors).conj().swapaxes(1, 2)


def potrf_ratio(factors, a, uplo):
    """max ||A - L L^H|| / (n eps ||A||) in the 1-norm (LAPACK's xPOT01)."""
    eps, n = np.finfo(a.dtype).eps, a.shape[-1]
    L, a = widen(lower(factors, uplo), a)
    return ratio(norm1(a - L @ L.conj().swapaxes(1, 2)), n * eps * norm1(a)).max()


def run(a, b, uplo, V, known=True, first=0):
    """Factors, solutions and info of whole packs."""
    A, B, info = cla.pack(hidden(a, uplo), V), cla.pack(b, V), np.zeros(len(a), np.int64)
    kernel = factor_and_solve(V, uplo, *(b.shape[1:] if known else ()))
    kernel(A.data, B.data, info.reshape(-1, V), first)
    return A.unpack(), B.unpack(), info


def check(a, b, uplo, V, known=True):
    factors, x, info = run(a, b, uplo, V, known)
    assert not info.any()
    assert potrf_ratio(factors, a, uplo) < THRESHOLD
    assert reference.solve_ratio(*widen(a), x, b) < THRESHOLD
    other = unread(a.shape[-1], uplo)
    assert same_bits(factors[:, other], hidden(a, uplo)[:, other])
    imaginary = np.einsum("qii->qi", factors).imag
    assert same_bits(imaginary, np.zeros_like(imaginary))


@pytest.mark.parametrize(("n", "dtype"), in_turns([1, 5, 8, 17]), ids=str)
@pytest.mark.parametrize("uplo", "LU")
def test_known_sizes(n, dtype, uplo, rng):
    check(definite(rng, 32, n, dtype), random(rng, (32, n, 2), dtype), uplo, 16 if dtype.char in "fF" else 8)


@pytest.mark.parametrize(("where", "dtype"), in_turns([(1, "L"), (3, "U"), (8, "L")]), ids=str)
def test_unknown_sizes(where, dtype, rng):
    V, uplo = where
    for n, columns in ((0, 1), (1, 3), (4, 1), (9, 7), (33, 2)):
        check(definite(rng, 2 * V, n, dtype), random(rng, (2 * V, n, columns), dtype), uplo, V, known=False)


@pytest.mark.parametrize(("n", "dtype"), in_turns([3, 9]), ids=str)
def test_packs_side_by_side(n, dtype, rng):
    @njit(error_model="numpy")
    def both(a, info):
        potrf((matrix(a[0], 8, n, n), matrix(a[1], 8, n, n)), info.reshape(16))

    a = definite(rng, 16, n, dtype)
    a[3, 1, 1] = a[14, 2, 2] = -1
    alone, _, info = run(a, random(rng, (16, n, 2), dtype), "L", 8)
    A, together = cla.pack(hidden(a, "L"), 8), np.zeros((2, 8), np.int64)
    both(A.data, together)
    good = info == 0
    assert together.ravel().tolist() == info.tolist() == [0] * 3 + [2] + [0] * 10 + [3, 0]
    assert same_bits(A.unpack()[good], alone[good])


@pytest.mark.parametrize(("known", "dtype"), in_turns([True, False]), ids=str)
def test_a_pivot_that_is_not_positive_is_reported_and_stays_alone(known, dtype, rng):
    n, first = 9, 100
    a, b = definite(rng, 16, n, dtype), random(rng, (16, n, 2), dtype)
    factors, x, _ = run(a, b, "U", 8, known)
    bad = a.copy()
    for q, k, pivot in ((1, 0, 0), (2, 8, -3), (7, 5, np.nan), (7, 6, -1), (8, 4, -np.inf), (12, 8, np.nan)):
        bad[q, k, k] = pivot
    bad[13] = 0
    failed, y, reported = run(bad, b, "U", 8, known, first)
    expected = {1: 1, 2: 9, 7: 6, 8: 5, 12: 9, 13: 1}
    assert reported.tolist() == [first + expected[q] if q in expected else 0 for q in range(16)]
    good = reported == 0
    assert same_bits(failed[good], factors[good])
    assert same_bits(y[good], x[good])


def test_info_that_is_there_already_is_left_alone(rng):
    a = definite(rng, 8, 5, np.float64)
    a[2:4, 1, 1] = -1
    A, info = cla.pack(a, 8), np.array([[0, 7, 0, 7, 0, 0, 0, 0]])
    factor_and_solve(8, "L", 5, 2)(A.data, np.zeros((1, 5, 2, 8)), info, 0)
    assert info.tolist() == [[0, 7, 2, 7, 0, 0, 0, 0]]


@pytest.mark.parametrize("V", [8, 3])
def test_an_infinite_pivot_is_its_own_root(V, rng):
    a = definite(rng, V, 5, np.float64)
    a[1] = np.diag([1, np.inf, 4, np.inf, 9])
    factors, _, info = run(a, random(rng, (V, 5, 2), np.float64), "L", V)
    assert not info.any()
    assert np.array_equal(np.tril(factors[1]), np.diag([1, np.inf, 2, np.inf, 3]))


def test_subnormal_matrices(dtype, rng):
    limits, V = np.finfo(dtype), 16 if np.dtype(dtype).char in "fF" else 8
    a, b = definite(rng, V, 5, dtype), random(rng, (V, 5, 2), dtype)
    a[1] *= limits.tiny / 16
    a[2] = np.diag([limits.smallest_subnormal] * 5)
    b[1:3] *= limits.tiny
    factors, x, info = run(a, b, "L", V)
    assert not info.any() and np.isfinite(x).all()
    error = np.abs(a - lower(factors, "L") @ lower(factors, "L").conj().swapaxes(1, 2))
    assert error[1:3].max() <= 16 * limits.smallest_subnormal
    assert np.allclose(np.einsum("ii->i", factors[2]), np.sqrt(a[2, 0, 0].real), rtol=8 * limits.eps, atol=0)
    assert reference.solve_ratio(*widen(a[[2]]), x[[2]], b[[2]]) < THRESHOLD


def test_factors_with_subnormal_diagonals(dtype, rng):
    """Reciprocals of these are infinite, quotients are not; other matrices get the same bits as elsewhere."""
    limits, V = np.finfo(dtype), 16 if np.dtype(dtype).char in "fF" else 8

    @njit(error_model="numpy")
    def solve(a, b):
        potrs(matrix(a[0], V), matrix(b[0], V))

    factors = np.tril(definite(rng, V, 9, dtype))
    b = random(rng, (V, 9, 3), dtype)
    x = cla.pack(b, V)
    solve(cla.pack(factors, V).data, x.data)
    diagonal, b[3] = limits.tiny / 8, limits.smallest_subnormal
    factors[3] = np.eye(9) * diagonal
    y = cla.pack(b, V)
    solve(cla.pack(factors, V).data, y.data)
    others = np.arange(V) != 3
    assert same_bits(y.unpack()[others], x.unpack()[others])
    assert np.array_equal(y.unpack()[3], b[3].real / diagonal / diagonal)
