"""getrf, getrs, getri and gesv: which rows are swapped, what becomes of errors, and the pack level."""

import copy
import functools
import pickle

import numpy as np
import pytest
import scipy.linalg
from numba import njit

import compactla as cla
import reference
from cases import exhaustive, in_turns, random, same_bits
from compactla.cpu import gesv, getrf, getri, getrs, matrix
from compactla.oracle import THRESHOLD, inverse_ratio, widen
from compactla.oracle import getrf as oracle

pytestmark = pytest.mark.slow


@functools.cache
def all_four(V, n=None, r=None):
    one = None if n is None else 1

    @njit(error_model="numpy")
    def kernel(a, again, ipiv, b, c, x, info, first):
        for p in range(len(a)):
            A, S = matrix(a[p], V, n, n), matrix(ipiv[p], V, n, one)
            getrf(A, S, info[p], first)
            getrs(A, S, matrix(b[p], V, n, r))
            getrs(A, S, matrix(c[p], V, n, r), "C")
            gesv(matrix(again[p], V, n, n), matrix(x[p], V, n, r), info[p])
            getri(A, S, info[p])

    return kernel


def run(a, b, V, known):
    """Results of `all_four` for whole packs: inverses, ipiv, three solutions, and info."""
    nm, n, r = b.shape
    packs = [cla.pack(x, V) for x in (a, a, b, b, b)]
    A, again, *rest = (x.data for x in packs)
    ipiv, info = np.zeros((nm // V, n, 1, V), np.int64), np.zeros((nm // V, V), np.int64)
    all_four(V, *((n, r) if known else ()))(A, again, ipiv, *rest, info, 0)
    swaps = ipiv[:, :, 0].swapaxes(1, 2).reshape(nm, n)
    return packs[0].unpack(), swaps, *(x.unpack() for x in packs[2:]), info.ravel()


def check(a, b, V, known):
    inverse, ipiv, x, y, z, info = run(a, b, V, known)
    assert not info.any()
    if a.dtype.kind == "f":
        assert np.array_equal(ipiv, [scipy.linalg.lu_factor(each)[1] for each in a])
    for solution, op in ((x, a), (y, a.conj().swapaxes(1, 2)), (z, a)):
        assert reference.solve_ratio(op, solution, b) < THRESHOLD
    (wide,), (found,) = widen(a), widen(inverse)
    assert inverse_ratio(wide, found, np.finfo(a.dtype).eps).max() < THRESHOLD


@pytest.mark.parametrize(("n", "dtype"), in_turns([1, 3, 9], [9]), ids=str)
def test_known_sizes(n, dtype, rng):
    V = 16 if dtype.char in "fF" else 8
    check(random(rng, (2 * V, n, n), dtype), random(rng, (2 * V, n, 1), dtype), V, known=True)


@pytest.mark.parametrize(("V", "dtype"), in_turns([8, 3, 1], [8]), ids=str)
def test_unknown_sizes(V, dtype, rng):
    for n, r in ((1, 2), (5, 3), (18, 1), (33, 7)):
        check(random(rng, (2 * V, n, n), dtype), random(rng, (2 * V, n, r), dtype), V, known=False)


def factored(a, **how):
    """Factors, ipiv and info of a call."""
    A = cla.pack(a, queue=how.pop("queue", None))
    ipiv, info = cla.getrf(A, **how)
    return A.unpack(), np.asarray(ipiv), info


def wilkinson(n):
    """Gaussian elimination with partial pivoting doubles its last column in every step."""
    a = np.eye(n) - np.tril(np.ones((n, n)), -1)
    a[:, -1] = 1
    return a


def families(rng, nm, n, dtype):
    """Random matrices, of rows or columns of all sizes, near to singular ones, and those whose factors grow."""
    a, scales = random(rng, (nm, n, n), dtype), np.logspace(-8, 8, n)
    a[1::5] *= scales[:, None]
    a[2::5] *= rng.permutation(scales)
    a[3::5] = wilkinson(n)
    a[4::5] = scipy.linalg.hilbert(n)
    return a.astype(dtype)


@pytest.mark.parametrize(("n", "dtype"), [(3, np.dtype("d")), (17, np.dtype("F"))], ids=str)
def test_errors_are_those_of_lapack(n, dtype, queue, rng):
    a = families(rng, 50, n, dtype)
    lu, ipiv, info = factored(a, queue=queue)
    assert not info.any()
    theirs = [scipy.linalg.lu_factor(each) for each in a]
    theirs = np.array([each for each, _ in theirs]), np.array([each for _, each in theirs])[:, :, None]
    found, expected = oracle.residual((a,), (lu, ipiv[:, :, None])), oracle.residual((a,), theirs)
    for family in range(5):
        assert found[family::5].max() <= 2 * expected[family::5].max() + 0.1


def test_ties_go_to_the_first_row(queue):
    """Numbers that are equal, or differ in their last bit only."""
    least = np.nextafter(1, 2)
    columns = [[1, -1, 1], [-1, least, -least], [0, 0, 0], [0, -2, 2], [1, 1, least], [-0.0, 0, 1e-300]]
    a = np.tile(np.eye(3)[:, ::-1], (len(columns), 1, 1))
    a[:, :, 0] = columns
    _, ipiv, _ = factored(a, queue=queue)
    assert ipiv[:, 0].tolist() == [0, 1, 0, 1, 2, 2]


@pytest.mark.parametrize("shape", [exhaustive((3, 3)), (9, 4), exhaustive((4, 9))], ids=str)
def test_a_threshold_keeps_rows_where_they_are(shape, queue, dtype, rng):
    a = random(rng, (37, *shape), dtype)
    steps = np.arange(min(shape))
    moved = []
    for threshold in (1, 0.5, 0.125, 0):
        lu, ipiv, info = factored(a, queue=queue, threshold=threshold)
        assert not info.any()
        if threshold:
            assert (oracle.residual((a,), (lu, ipiv[:, :, None]), threshold) < THRESHOLD / threshold).all()
        moved.append(np.count_nonzero(ipiv != steps))
    assert moved == sorted(moved, reverse=True) and moved[0] > moved[2] > moved[3] == 0
    same = factored(a, queue=queue, threshold=np.float32(1))
    assert all(map(np.array_equal, same, factored(a, queue=queue)))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda ipiv: pickle.loads(pickle.dumps(ipiv))])
def test_copies_of_swaps_see_their_own_memory(copied, rng):
    a = random(rng, (5, 3, 3), np.float64)
    ipiv, _ = cla.getrf(cla.pack(a))
    swaps = copied(ipiv)
    assert np.array_equal(swaps, ipiv)
    assert swaps.view.address == swaps.data.ctypes.data


def test_thresholds_that_are_none(rng):
    A = cla.pack(random(rng, (3, 2, 2), np.float64))
    before = A.unpack()
    for bad in (-0.5, 1.5, np.nan, np.inf):
        with pytest.raises(ValueError, match="threshold"):
            cla.getrf(A, threshold=bad)
    for bad in ("1", None, 1j, [1, 1], np.ones(1), np.ones(3)):
        with pytest.raises(TypeError, match="threshold"):
            cla.getrf(A, threshold=bad)
    assert same_bits(A.unpack(), before)


@pytest.mark.parametrize("n", [3, 9])
def test_what_is_wrong_stays_in_its_matrix(n, queue, rng):
    """Zero columns, NaN and infinity; others that need no swaps get the bits that they get beside any."""
    a, b = random(rng, (37, n, n), np.float64), random(rng, (37, n, 2), np.float64)
    a[20:] += 4 * n * np.eye(n)
    lu, ipiv, _ = factored(a, queue=queue)
    A, X = cla.pack(a, queue=queue), cla.pack(b, queue=queue)
    cla.gesv(A, X)
    bad = a.copy()
    bad[3, :, 1], bad[7], bad[21, n - 1, 0], bad[22, 0, 0], bad[30, :, n - 1] = 0, 0, np.nan, np.inf, 0
    others = np.setdiff1d(np.arange(37), (3, 7, 21, 22, 30))
    found, swaps, info = factored(bad, queue=queue)
    assert info[[3, 7, 30]].tolist() == [2, 1, n] and not info[others].any()
    assert same_bits(found[others], lu[others]) and np.array_equal(swaps[others], ipiv[others])
    assert ((swaps >= np.arange(n)) & (swaps < n)).all()
    C, Y = cla.pack(bad, queue=queue), cla.pack(b, queue=queue)
    assert np.array_equal(cla.gesv(C, Y), info)
    assert same_bits(Y.unpack()[others], X.unpack()[others])
    assert same_bits(factored(a[20:], queue=queue)[0], lu[20:])  # whoever shares their vectors


@pytest.mark.parametrize(("n", "r"), [(5, 5), exhaustive(7, 3)])
def test_swaps_of_all_kinds(n, r, queue, rng):
    """getrs takes swaps with any row, not only with later ones, as getrf makes them."""
    nm = 11
    lu, b = random(rng, (nm, n, n), np.float64) + 4 * np.eye(n), random(rng, (nm, n, r), np.float64)
    ipiv = rng.integers(0, n, (nm, n))
    a = np.empty_like(lu)
    for q in range(nm):
        order = np.arange(n)
        for i, k in enumerate(ipiv[q]):
            order[[i, k]] = order[[k, i]]
        a[q, order] = (np.tril(lu[q], -1) + np.eye(n)) @ np.triu(lu[q])
    for trans, op in (("N", a), ("T", a.swapaxes(1, 2))):
        X = cla.getrs(cla.pack(lu, queue=queue), ipiv.astype(np.int32), cla.pack(b, queue=queue), trans)
        assert reference.solve_ratio(op, X.unpack(), b) < THRESHOLD
    A = cla.pack(lu, queue=queue)
    assert not cla.getri(A, ipiv.tolist()).any()
    assert inverse_ratio(*widen(a, A.unpack()), np.finfo(float).eps).max() < THRESHOLD


@pytest.mark.parametrize("bad", [-1, 3, 10**6])
def test_swaps_with_rows_that_are_none(bad, queue, rng):
    A, B = (cla.pack(random(rng, (5, 3, 3), np.float64), queue=queue) for _ in "AB")
    before, ipiv = B.unpack(), np.tile(np.arange(3), (5, 1))
    ipiv[4, 1] = bad
    with pytest.raises(ValueError, match="ipiv"):
        cla.getrs(A, ipiv, B)
    with pytest.raises(ValueError, match="ipiv"):
        cla.getri(B, ipiv)
    assert same_bits(B.unpack(), before)
