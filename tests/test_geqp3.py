"""geqp3, gels and gelsy: pivots, ranks and least squares of peculiar matrices, one beside the other."""

import numpy as np
import pytest
import scipy.linalg
from numba import njit

import compactla as cla
from cases import random, same_bits
from compactla import oracle
from compactla.cpu import gels, gelsy, geqp3, matrix
from compactla.oracle import THRESHOLD, op, widen
from compactla.oracle.gels import least_squares

pytestmark = pytest.mark.slow

on_numbers = pytest.mark.parametrize("dtype", [np.dtype("d"), np.dtype("F")], ids="dc")
shapes = pytest.mark.parametrize("shape", [(11, 7), (7, 11)], ids=["tall", "wide"])


def peculiar(rng, m, n, dtype):
    """Matrices of all kinds, with their ranks."""
    limits, k = np.finfo(dtype), min(m, n)
    usual = random(rng, (m, n), dtype) + 2 * np.eye(m, n)
    grades = 10.0 ** (-np.arange(n) % 4)
    found = {
        "usual": (usual, k),
        "zero": (0 * usual, 0),
        "zero column": (usual * (np.arange(n) != 2), min(m, n - 1)),
        "zero row": (usual * (np.arange(m) != 2)[:, None], min(m - 1, n)),
        "graded": (usual * grades, k),
        "graded rows": (usual * (10.0 ** (-np.arange(m) % 4))[:, None], k),
        "equal columns": (np.tile(usual[:, :1], (1, n)), 1),
        "one number": (np.eye(m, n, n - 1), 1),
        "not a number": (np.where(np.eye(m, n, dtype=bool), np.nan, usual), None),
        "infinite": (np.where(np.eye(m, n, 1, dtype=bool), np.inf, usual), None),
        "identity": (np.eye(m, n), k),
        "tiny": (usual * (limits.tiny * 16), k),
        "subnormal": (usual * (limits.tiny / 64), k),
        "huge": (usual * (limits.max / 128), k),
    }
    return {name: (a.astype(dtype), rank) for name, (a, rank) in found.items()}


def stacked(cases):
    return np.stack([a for a, _ in cases.values()])


@on_numbers
@shapes
def test_pivots(queue, dtype, shape, rng):
    """Every matrix has its own, and is factored as if it were alone."""
    a = stacked(peculiar(rng, *shape, dtype))
    A = cla.pack(a, queue=queue)
    jpvt, tau = cla.geqp3(A)
    jpvt, tau, factors = np.asarray(jpvt), tau.unpack(), A.unpack()
    assert (np.sort(jpvt) == np.arange(shape[1])).all()
    for q in range(len(a)):
        alone = cla.pack(np.repeat(a[q : q + 1], 3, axis=0), queue=queue)
        pivots, scales = cla.geqp3(alone)
        assert (np.asarray(pivots) == jpvt[q]).all()
        assert same_bits(alone.unpack()[1], factors[q]) and same_bits(scales.unpack()[2], tau[q])
    good = np.isfinite(a).all((1, 2))
    after = factors[good], jpvt[good, :, None], tau[good]
    assert oracle.named("geqp3").residual((a[good],), after).max() < THRESHOLD


@on_numbers
def test_pivots_of_graded_columns(queue, dtype, rng):
    """Pivots are those of LAPACK if no two columns come close; squares of the smallest underflow."""
    smallest = np.log10(np.finfo(dtype).tiny)
    order = rng.permutation(8)
    a = np.linalg.qr(random(rng, (5, 9, 8), np.complex128 if dtype.kind == "c" else float))[0]
    a = (a * 10 ** np.linspace(0, 0.8 * smallest, 8)[order]).astype(dtype)
    jpvt, _ = cla.geqp3(cla.pack(a, queue=queue))
    expected = scipy.linalg.qr(a[0].astype(complex if dtype.kind == "c" else float), mode="r", pivoting=True)[1]
    assert np.array_equal(expected, np.argsort(order))
    assert (np.asarray(jpvt) == expected).all()


def right_hand_sides(rng, a, rows, columns, unread=np.nan):
    """Right-hand sides of the size of each matrix, with something in the rows that are not read."""
    sizes = np.abs(np.where(np.isfinite(a), a, 0)).max((1, 2))
    b = random(rng, (len(a), max(a.shape[1:]), columns), a.dtype) * np.where(sizes == 0, 1, sizes)[:, None, None]
    b = b.astype(a.dtype)
    b[:, rows:] = unread
    return b


def wrong(T, b, x, rank):
    """The residual of a solution, in a precision where nothing overflows."""
    eps = np.finfo(x.dtype).eps
    return least_squares(*widen(T, b, x), eps, np.asarray(rank))


@on_numbers
@shapes
@pytest.mark.parametrize("trans", "NTC")
def test_least_squares(queue, dtype, shape, trans, rng):
    cases = peculiar(rng, *shape, dtype)
    cases = {name: (a, rank) for name, (a, rank) in cases.items() if rank in (None, min(shape))}
    a, ranks = stacked(cases), np.array([rank or 0 for _, rank in cases.values()])
    T = op(a, trans)
    b = right_hand_sides(rng, a, T.shape[1], 3)
    A, X = cla.pack(a, queue=queue), cla.pack(b, queue=queue)
    info, good = cla.gels(A, X, trans), ranks > 0
    assert not info[good].any()
    assert wrong(T[good], b[good], X.unpack()[good], ranks[good]).max() < THRESHOLD


@on_numbers
@shapes
def test_zeros_on_the_diagonal(queue, dtype, shape, rng):
    """The first of them is reported."""
    a = np.repeat(random(rng, (1, *shape), dtype), 6, axis=0)
    lines = a if shape[0] > shape[1] else a.swapaxes(1, 2)
    for q, some in enumerate(([], [0], [3], [6], [2, 5], range(7))):
        lines[q, :, list(some)] = 0
    info = cla.gels(cla.pack(a, queue=queue), cla.pack(random(rng, (6, 11, 2), dtype), queue=queue))
    assert info.tolist() == [0, 1, 4, 7, 3, 1]


@on_numbers
@shapes
def test_ranks(queue, dtype, shape, rng):
    """Every matrix has its own rank, and is solved with as if it were alone."""
    cases = peculiar(rng, *shape, dtype)
    a, names = stacked(cases), list(cases)
    good = np.array([rank is not None for _, rank in cases.values()])
    ranks = np.array([rank or 0 for _, rank in cases.values()])
    b = right_hand_sides(rng, a, shape[0], 3)
    X = cla.pack(b, queue=queue)
    rank = cla.gelsy(cla.pack(a, queue=queue), X)
    x = X.unpack()
    assert dict(zip(names, np.where(good, rank, 0), strict=True)) == dict(zip(names, ranks, strict=True))
    found = wrong(a[good], b[good], x[good], ranks[good])
    assert found.max() < THRESHOLD, dict(zip(np.array(names)[good], found, strict=True))
    assert not x[names.index("zero"), : shape[1]].any()
    for q in range(len(a)):
        alone = cla.pack(np.repeat(b[q : q + 1], 3, axis=0), queue=queue)
        assert (cla.gelsy(cla.pack(np.repeat(a[q : q + 1], 3, axis=0), queue=queue), alone) == rank[q]).all()
        assert same_bits(alone.unpack()[1], x[q])


@on_numbers
def test_what_counts_as_zero(queue, dtype, rng):
    diagonal = 10.0 ** -np.arange(5)
    a = np.diag(diagonal).astype(dtype)[None, ::-1]
    b = np.ones((1, 5, 1), dtype)
    for rcond, rank in ((0, 5), (2e-2, 2), (0.5e-3, 4), (1, 1), (1.5, 0), (None, 5), (np.float32(2e-1), 1)):
        X = cla.pack(b, queue=queue)
        assert cla.gelsy(cla.pack(a, queue=queue), X, rcond).tolist() == [rank]
        expected = np.where(np.arange(5) < rank, 1 / diagonal, 0)
        eps = np.finfo(dtype).eps
        assert np.allclose(X.unpack()[0, :, 0], expected, rtol=100 * eps, atol=eps)
    for bad in (-1, np.nan, 1j, "small", [1]):
        with pytest.raises((TypeError, ValueError), match=r"\brcond\b"):
            cla.gelsy(cla.pack(a, queue=queue), cla.pack(b, queue=queue), bad)


@on_numbers
def test_pack_level(dtype, rng):
    """Numba functions call gels, gelsy and geqp3; gels takes a wide matrix as its conjugate transpose."""
    V, m, n = 4, 5, 3

    @njit(error_model="numpy")
    def solve(a, b, tau, info):
        gels(matrix(a[0], V).H, matrix(b[0], V), matrix(tau[0], V), info, "C")

    @njit(error_model="numpy")
    def solve_any(a, b, jpvt, tau, rank):
        gelsy(matrix(a[0], V), matrix(b[0], V), matrix(jpvt[0], V), matrix(tau[0], V), rank, 1e-3)

    @njit(error_model="numpy")
    def factor(a, jpvt, tau):
        geqp3(matrix(a[0], V, m, n), matrix(jpvt[0], V, n, 1), matrix(tau[0], V, n, 1))

    a, b = random(rng, (V, m, n), dtype), random(rng, (V, m, 2), dtype)
    jpvt, info, tau = np.zeros((1, n, 1, V), np.int64), np.zeros(V, np.int64), cla.Pack.zeros(V, n, 1, dtype, V)
    A, expected = cla.pack(a, V), cla.pack(a, V)
    factor(A.data, jpvt, tau.data)
    pivots = jpvt[0, :, 0].T
    assert (pivots == np.asarray(cla.geqp3(expected)[0])).all()
    assert oracle.named("geqp3").residual((a,), (A.unpack(), pivots[:, :, None], tau.unpack())).max() < THRESHOLD
    wide, X = cla.pack(op(a, "C"), V), cla.pack(b, V)
    solve(wide.data, X.data, tau.data, info)
    assert not info.any()
    assert wrong(op(a, "C"), b, X.unpack(), [n] * V).max() < THRESHOLD
    a[:, :, 1] = 2 * a[:, :, 0]
    A, X = cla.pack(a, V), cla.pack(b, V)
    solve_any(A.data, X.data, jpvt, tau.data, info)
    assert (info == n - 1).all()
    assert wrong(a, b, X.unpack(), [n - 1] * V).max() < THRESHOLD
