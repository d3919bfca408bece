"""Direct solves of sparse batches of one pattern: residuals, pivots that are zero, systems left alone, updates."""

import copy
import itertools
import pickle

import numpy as np
import pyopencl
import pytest

import compactla as cla
from cases import here, random, slow, there
from compactla.gpu import sparse, sparse_rounds
from compactla.oracle import THRESHOLD
from compactla.sparse.elimination import Tiles, in_tiles, ordered
from compactla.sparse.pattern import Pattern
from drivers import working_devices
from reference import solve_ratio
from systems_sparse import dense, pattern, run_in_rounds, values

pytestmark = pytest.mark.slow

NM = 19


def parts_of(mask):
    return np.nonzero(mask)[1], np.append(0, mask.sum(1).cumsum())


def arrow(n):
    """Dense first row and column, whose elimination in the order of rows would fill everything."""
    mask = np.eye(n, dtype=bool)
    mask[0] = mask[:, 0] = True
    return mask


def shapes(rng):
    n = 21
    i, j = np.indices((n, n))
    return {
        "one": np.ones((1, 1), bool),
        "diagonal": i == j,
        "tridiagonal": abs(i - j) <= 1,
        "arrow": arrow(n),
        "random": (rng.random((n, n)) < 0.15) | (i == j),
        "full": i == i,
        "almost": (rng.random((n, n)) < 0.8) | (i == j),
        "upper": i <= j,
        "missing": ((i < 4) & (j > 15)) | (((j < 4) & (i > 15)) | ((i == j) & (i > 3))),
    }


on_devices = pytest.mark.parametrize("queue", working_devices(), indirect=True, ids=lambda d: "opencl")


def transposed(a, trans):
    return {"N": a, "T": a.swapaxes(1, 2), "C": a.conj().swapaxes(1, 2)}[trans]


@pytest.mark.parametrize("trans", ["N", *map(slow, "TC")])
def test_residuals(queue, rng, dtype, trans):
    for name, mask in shapes(rng).items():
        n, parts = len(mask), parts_of(mask)
        data = values(rng, NM, *parts, dtype, 3 * np.sqrt(n))
        a, b = dense(data, *parts, n), random(rng, (NM, n, 1), dtype)
        F = cla.BatchLU(cla.BatchCSR((data, *parts), queue=queue))
        info = F.factor()
        assert info.shape == (NM,) and info.dtype == np.int64 and not info.any(), name
        x = F.solve(b[..., 0], trans=trans)
        assert x.shape == (NM, n) and x.dtype == dtype
        assert solve_ratio(transposed(a, trans), x[..., None], b) < THRESHOLD, name
        assert np.array_equal(np.sort(F.perm), np.arange(n)) and mask.sum() <= F.nnz <= n * n


@on_devices
@pytest.mark.exhaustive
@pytest.mark.parametrize("trans", "NTC")
def test_teams_of_work_items(queue, rng, dtype, trans, monkeypatch):
    monkeypatch.setattr(sparse, "team_of", lambda n, queue: 4)
    test_residuals(queue, rng, dtype, trans)


@on_devices
@pytest.mark.exhaustive
@pytest.mark.parametrize("trans", "NT")
def test_smaller_teams_for_many_systems(queue, rng, trans, monkeypatch):
    """Factors are the same by a bit, solutions but for rounding."""
    parts = pattern(rng, 13)
    data, b = values(rng, NM, *parts, np.float64), random(rng, (NM, 13), np.float64)
    F = cla.BatchLU(cla.BatchCSR((data, *parts), queue=queue))
    monkeypatch.setattr(sparse, "team_of", lambda n, queue: 16)
    found = []
    for many in 1 << 30, 0:
        monkeypatch.setattr(sparse, "MANY", many)
        assert not F.factor().any()
        found.append((F._factors.unpack(), F.solve(b, trans=trans)))
    (factors, x), (others, y) = found
    assert np.array_equal(factors, others) and np.abs(x - y).max() < 1e-12 * np.abs(x).max()


@on_devices
@pytest.mark.exhaustive
@pytest.mark.parametrize("size", sparse_rounds.SIZES)
@pytest.mark.parametrize("trans", "NTC")
def test_patterns_in_rounds(queue, rng, dtype, trans, size, monkeypatch):
    run_in_rounds(monkeypatch)
    monkeypatch.setattr(sparse_rounds, "SIZES", (size,))
    test_residuals(queue, rng, dtype, trans)


@on_devices
def test_rounds(queue, rng, dtype, monkeypatch):
    """Tiles of all sizes; a zero pivot and NaN beside good matrices; packs and arrays of vectors; too little room."""
    run_in_rounds(monkeypatch)
    size = sparse_rounds.SIZES["fdFD".index(dtype.char)]
    monkeypatch.setattr(sparse_rounds, "SIZES", (size,))
    n, mask = 13, shapes(rng)["missing"][:13, :13] | arrow(13)
    mask[5, 5] = False
    parts = parts_of(mask)
    data, b = values(rng, NM, *parts, dtype, 9), random(rng, (NM, n, 2), dtype)
    a = dense(data, *parts, n)
    F = cla.BatchLU(cla.BatchCSR((data, *parts), queue=queue))
    assert not F.factor().any()
    expected = F._factors.unpack()
    bad = data.copy()
    bad[3], bad[7, 0] = 0, np.nan
    F.update(bad)
    info, good = F.factor(), np.delete(np.arange(NM), [3, 7])
    assert info[3] == 1 and not info[good].any()
    assert np.array_equal(F._factors.unpack()[good], expected[good])
    F.update(data)
    expected_x = F.solve(b)
    for trans, given in ("N", b), ("T", there(b, queue)), ("C", there(np.asfortranarray(b[..., 0]), queue)):
        x, given = here(F.solve(given, trans=trans)), here(given)
        if given.ndim == 2:
            x, given = x[..., None], given[..., None]
        assert solve_ratio(transposed(a, trans), x, given) < THRESHOLD
    F.update(bad)
    assert np.array_equal(F.solve(b)[good], expected_x[good])
    run_in_rounds(monkeypatch, 0)
    F.update(bad)
    assert np.array_equal(F.factor(), info)
    assert np.abs(F._factors.unpack() - expected)[good].max() < 1e3 * np.finfo(dtype).eps * np.abs(expected).max()


@on_devices
def test_incomplete_factors_in_rounds(queue, rng, monkeypatch):
    run_in_rounds(monkeypatch)
    parts = pattern(rng, 13)
    data, b = values(rng, NM, *parts, np.float64), random(rng, (NM, 13, 1), np.float64)
    A = cla.BatchCSR((data, *parts), queue=queue)
    M = cla.krylov.ILU0(A)
    found = M @ b
    run_in_rounds(monkeypatch, 0)
    M.update()
    assert np.allclose(found, M @ b, rtol=1e-12, atol=1e-14)
    assert np.abs(found - np.linalg.solve(dense(data, *parts, 13), b)).max() > 1e-6


@pytest.mark.parametrize("nrhs", [0, 2, slow(3), slow(7)])
def test_right_hand_sides(queue, rng, nrhs):
    parts = pattern(rng, 13)
    data = values(rng, NM, *parts, np.float64)
    A, a = cla.BatchCSR((data, *parts), queue=queue), dense(data, *parts, 13)
    F, b = cla.BatchLU(A), random(rng, (NM, 13, nrhs), np.float64)
    x = F.solve(b)  # factors on the way
    assert x.shape == b.shape and solve_ratio(a, x, b) < THRESHOLD
    assert not F.info.any()


def test_report(queue):
    """Pivots and growth of a matrix that is known: [[eps, 1], [1, 1]] and a good one."""
    data = np.array([[1e-9, 1, 1, 1], [2, 1, 1, 2]])
    F = cla.BatchLU(cla.BatchCSR((data, [0, 1, 0, 1], [0, 2, 4]), queue=queue))
    info, smallest, growth = F.report()
    assert np.array_equal(info, F.info) and np.array_equal(F.perm, [0, 1])
    assert np.allclose(smallest, [1e-9, 0.75]) and np.allclose(growth, [1e9, 1])
    data[0, :2], data[1, 1] = 0, np.nan
    F.update(there(data, queue))
    info, smallest, growth = F.report()
    assert info[0] == 1 and smallest[0] == 0 and np.isnan([smallest[1], growth[1]]).all()


def test_missing_diagonal_waits_or_is_reported():
    mask = np.array([[0, 1, 1], [1, 1, 0], [1, 0, 1]], bool)
    F = cla.BatchLU(cla.BatchCSR((np.ones((2, 6)), *parts_of(mask))))
    assert not F.factor().any() and F.perm[0] != 0
    swap = cla.BatchLU(cla.BatchCSR((np.ones((2, 2)), [1, 0], [0, 1, 2])))
    assert np.array_equal(swap.factor(), [1, 1])
    empty = cla.BatchLU(cla.BatchCSR((np.ones((2, 0)), [], [0, 0, 0])))
    assert np.array_equal(empty.factor(), [1, 1])


@on_devices
def test_updates_on_devices(queue, rng, elsewhere):
    """Values on the device, in any order within a row, and after events; what is elsewhere is refused."""
    indices, indptr = pattern(rng, 13)
    data, other = (values(rng, NM, indices, indptr, np.float64) for _ in range(2))
    order = np.concatenate([np.arange(i, j)[::-1] for i, j in itertools.pairwise(indptr)])
    A, b = cla.BatchCSR((data[:, order], indices[order], indptr), queue=queue), random(rng, (NM, 13), np.float64)
    F, done = cla.BatchLU(A), [pyopencl.enqueue_marker(queue)]
    assert F.info is None
    F.update(there(other[:, order], queue), wait_for=done)
    assert not F.factor(wait_for=done).any()
    x = here(F.solve(there(b, queue), wait_for=done))
    assert solve_ratio(dense(other, indices, indptr, 13), x[..., None], b[..., None]) < THRESHOLD
    A.update(there(data[:, order], queue), wait_for=done)
    assert solve_ratio(dense(data, indices, indptr, 13), F.solve(b)[..., None], b[..., None]) < THRESHOLD
    with pytest.raises((TypeError, ValueError), match="b"):
        F.solve(there(b, elsewhere))
    with pytest.raises(ValueError, match="threads"):
        F.solve(b, threads=1)


def test_updates(rng):
    parts = pattern(rng, 13)
    first, second, third = (values(rng, NM, *parts, np.float64) for _ in range(3))
    A, b = cla.BatchCSR((first, *parts)), random(rng, (NM, 13), np.float64)
    F = cla.BatchLU(A)
    assert F.info is None
    x = F.solve(b)
    F.update(second)
    assert solve_ratio(dense(second, *parts, 13), F.solve(b)[..., None], b[..., None]) < THRESHOLD
    assert np.array_equal(A.toarray(), dense(first, *parts, 13))
    A.update(third)
    other = copy.copy(F), pickle.loads(pickle.dumps(F))
    expected = cla.BatchLU(A).solve(b)
    for G in (F, *other):  # also those that have to be factored, or have other values than A
        assert np.array_equal(G.solve(b), expected)
    A.update(first)
    assert not F.factor().any()
    assert np.array_equal(F.solve(b), x)


def test_order_of_values(rng):
    """Columns in any order within a row."""
    indices, indptr = pattern(rng, 13)
    data, b = values(rng, NM, indices, indptr, np.float64), random(rng, (NM, 13), np.float64)
    order = np.concatenate([np.arange(i, j)[::-1] for i, j in itertools.pairwise(indptr)])
    F = cla.BatchLU(cla.BatchCSR((data[:, order], indices[order], indptr)))
    expected = cla.BatchLU(cla.BatchCSR((data, indices, indptr))).solve(b)
    assert np.array_equal(F.solve(b), expected)
    F.update(np.asfortranarray(data[:, order]))
    assert np.array_equal(F.solve(b), expected)


def test_refused(rng):
    parts = pattern(rng, 5)
    data = values(rng, 3, *parts, np.float64)
    A = cla.BatchCSR((data, *parts))
    F = cla.BatchLU(A)
    b, nnz = np.ones((3, 5)), data.shape[1]
    wide = cla.BatchCSR((np.ones((3, 2)), [1, 2], [0, 1, 2]), (2, 3))
    for error, words, call in [
        (TypeError, "A is a ndarray, must be a BatchCSR", lambda: cla.BatchLU(data)),
        (ValueError, "A is BatchCSR.*must be of square", lambda: cla.BatchLU(wide)),
        (ValueError, r"b has shape \(3, 4\), must be", lambda: F.solve(b[:, :4])),
        (TypeError, "b: dtype is complex128, must be float64", lambda: F.solve(b * 1j)),
        (ValueError, "trans is 'X'", lambda: F.solve(b, trans="X")),
        (TypeError, "threads is", lambda: F.factor(threads="2")),
        (ValueError, "wait_for is", lambda: F.factor(wait_for=[])),
        (ValueError, "b is Pack", lambda: F.solve(cla.pack(b[:2, :, None]))),
        (ValueError, "data has shape", lambda: F.update(data[:2])),
        (TypeError, "data: dtype is float32", lambda: F.update(data.astype(np.float32))),
        (ValueError, "data has shape", lambda: F.update(np.ones((3, nnz + 1)))),
    ]:
        with pytest.raises(error, match=words):
            call()


def test_order_keeps_fill_small():
    order, filled = ordered(Pattern(*parts_of(arrow(50))))
    assert len(filled.indices) == 3 * 50 - 2 and 0 in order[-2:]
    band = np.abs(np.subtract.outer(range(50), range(50))) <= 1
    assert len(ordered(Pattern(*parts_of(band)))[1].indices) == band.sum()


def test_size_of_tiles(rng):
    """Full matrices are eliminated in large tiles, and scattered entries one by one."""
    for mask, sizes in ((np.ones((30, 30), bool), [4]), (arrow(50), [1, 2])):
        given = Pattern(*parts_of(mask))
        assert in_tiles(given, *ordered(given), 4).size in sizes
        assert in_tiles(given, *ordered(given), 2).size <= 2
    tiles = Tiles(given, *ordered(given), 4)
    kept = (tiles.mask < 0).sum()
    assert kept == len(given.indices) + 2 and (tiles.entries == -1).sum() + kept == tiles.count
