"""Block rows of sizes of their own on lines: in matrices, in arrays of blocks, and where lines are found."""

import copy

import numpy as np
import pytest
import scipy.sparse

import compactla as cla
import reference
from cases import random, same_bits
from compactla.lines.sizes import LineSizes
from compactla.oracle import THRESHOLD
from systems import scattered

LENGTHS = [1, 7, 3, 3, 12, 1, 5, 2]
b = 4


def trimmed(rng, dtype, lengths=LENGTHS):
    """A CSR matrix with block rows of 1 to 4 unknowns, its sizes and lines, and the part of it along these."""
    M, lines = scattered(rng, lengths, b, dtype)
    size = rng.integers(1, b + 1, sum(lengths))
    size[lines[1][:2]] = 1, b
    return *of_sizes(M, size, lines), lines


def of_sizes(M, size, lines):
    kept = np.flatnonzero(np.arange(b) < size[:, None])
    coupled = np.zeros((len(size),) * 2, bool)
    for line in lines:
        coupled[line, line] = coupled[line[1:], line[:-1]] = coupled[line[:-1], line[1:]] = True
    row = np.repeat(np.arange(len(size)), size)
    C = M.tocsr()[kept][:, kept]
    return C, size, C.toarray() * coupled[np.ix_(row, row)]


@pytest.mark.parametrize("dtype", [np.float64, np.complex64])
@pytest.mark.parametrize("parts", [None, pytest.param(2, marks=pytest.mark.slow)])
def test_preconditioner(rng, queue, dtype, parts):
    M, size, T, lines = trimmed(rng, dtype)
    P = cla.LinePreconditioner(M, lines, block_size=size, parts=parts, queue=queue)
    assert (P.block_size, P.shape, P.info.tolist()) == (b, M.shape, [0] * len(lines))
    for shape in (M.shape[:1], (M.shape[0], 3)):
        r = random(rng, shape, dtype)
        x = P.solve(r)
        assert reference.solve_ratio(T[None], x, r) < THRESHOLD
        assert reference.solve_ratio(T.conj().T[None], P.rmatvec(r) if x.ndim == 1 else P.rmatmat(r), r) < THRESHOLD
        out = r.copy()
        assert P.solve(out, out=out) is out
        assert same_bits(out, x)
    P.update(2 * M)
    assert same_bits(P.solve(r), x / 2)
    assert same_bits(copy.copy(P).solve(r), x / 2)


def test_equal_sizes_are_one_size(rng):
    M, lines = scattered(rng, LENGTHS, 3, np.float64)
    r = random(rng, M.shape[0], np.float64)
    P = cla.LinePreconditioner(M.tocsr(), lines, block_size=np.full(sum(LENGTHS), 3))
    assert same_bits(P @ r, cla.LinePreconditioner(M, lines) @ r)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["jacobi", "symmetric"])
def test_relaxation(rng, queue, scheme):
    M, size, _, lines = trimmed(rng, np.float64)
    x = random(rng, M.shape[0], np.float64)
    S = cla.LineRelaxation(M, lines, size, scheme=scheme, sweeps=100, damping=0.9, tol=1e-13, queue=queue)
    assert np.allclose(S.solve(M @ x), x, rtol=1e-10)
    assert np.allclose(S.solve(M @ x, x0=x), x, rtol=1e-10)


@pytest.mark.slow
def test_several_devices_share_lines(rng, devices):
    M, size, T, lines = trimmed(rng, np.float64)
    r = random(rng, M.shape[0], np.float64)
    P = cla.LinePreconditioner(M, lines, size, queue=devices)
    assert reference.solve_ratio(T[None], P.solve(r), r) < THRESHOLD


@pytest.mark.slow
def test_krylov_methods_take_it(rng, queue):
    M, size, _, lines = trimmed(rng, np.float64)
    P = cla.LinePreconditioner(M, lines, size, queue=queue)
    rhs = random(rng, M.shape[0], np.float64)
    x, report = cla.krylov.gmres(M, rhs, M=P, rtol=1e-10)
    assert report.converged and np.linalg.norm(M @ x - rhs) < 1e-9 * np.linalg.norm(rhs)


@pytest.mark.parametrize("scale", [1.0, pytest.param(1e-9, marks=pytest.mark.slow)])
def test_pivots_are_counted_without_padding(rng, queue, scale):
    M, size, _, lines = trimmed(rng, np.float64)
    line = lines[1]
    first = np.cumsum(size) - size
    row = first[line[2]] + size[line[2]] - 1  # the last of the third block row
    A = M.tolil()
    A[row, :] = 0
    A = scipy.sparse.csr_array(A + 0 * M)
    A.data *= scale
    P = cla.LinePreconditioner(A, lines, size, queue=queue, diagnose=True)
    bad = size[line[:3]].sum()
    assert P.info.tolist() == [0, bad] + [0] * (len(lines) - 2)
    assert (P.report.block[1], P.report.pivot[1]) == (2, size[line[2]] - 1)
    with pytest.raises(cla.PivotError, match=f"pivot {size[line[2]] - 1} of block 2"):
        cla.LinePreconditioner(A, lines, size, queue=queue, pivots="raise")
    P = cla.LinePreconditioner(A, lines, size, queue=queue, pivots="perturb")
    assert P.report.replaced.tolist() == [0, 1] + [0] * (len(lines) - 2)  # whatever the scale


def test_rows_of_lines_are_counted():
    counted = LineSizes(np.array([2, 1, 3, 3, 1]), np.array([3, 2]), 3)
    padded = np.array([8, 4])
    assert counted.count(padded).tolist() == [5, 4]
    assert [a.tolist() for a in counted.locate(np.array([5, 4]))] == [[2, 1], [1, 0]]
    assert counted.count(np.array([0, 1])).tolist() == [0, 1]


@pytest.mark.parametrize("periodic", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("each", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_block_tridiagonal(rng, queue, periodic, each):
    nlines, K = 5, 6
    size = rng.integers(1, b + 1, (nlines, K) if each else (K,))
    lower, upper = random(rng, (2, nlines, K - (not periodic), b, b), np.float64)
    diag = random(rng, (nlines, K, b, b), np.float64) + 6 * b * np.eye(b)
    sizes = np.broadcast_to(size, (nlines, K))
    inside = np.arange(b) < sizes[:, :, None]
    dense = np.zeros((nlines, K, b, K, b))
    for k in range(K):
        dense[:, k, :, k] = diag[:, k]
        if k + 1 < K or periodic:
            after = (k + 1) % K
            dense[:, after, :, k] += lower[:, k]
            dense[:, k, :, after] += upper[:, k]
    expected = []
    rhs = random(rng, (nlines, K, b, 2), np.float64)
    for A, r, keep in zip(dense.reshape(nlines, K * b, K * b), rhs.reshape(nlines, K * b, 2), inside, strict=True):
        i = np.flatnonzero(keep)
        x = np.zeros((K * b, 2))
        x[i] = np.linalg.solve(A[np.ix_(i, i)], r[i])
        expected.append(x.reshape(K, b, 2))
    diag[~inside], rhs[~inside] = np.nan, np.nan  # none of these is read
    diag.swapaxes(2, 3)[~inside] = np.nan
    T = cla.BlockTridiag(lower, diag, upper, sizes=size, periodic=periodic, queue=queue)
    assert T.factor().tolist() == [0] * nlines
    x = T.solve(rhs)
    assert np.allclose(x, expected, rtol=1e-11, atol=1e-14)
    assert same_bits(T.solve(rhs, out=rhs), x)


def test_block_tridiagonal_names_zero_pivots(queue):
    diag = np.tile(np.eye(3), (2, 3, 1, 1))
    diag[1, 1, 1, 1] = 0
    none = np.zeros((2, 2, 3, 3))
    T = cla.BlockTridiag(none, diag, none, sizes=[1, 2, 3], queue=queue)
    assert T.factor().tolist() == [0, 3]
    assert (T.report.block.tolist(), T.report.pivot.tolist()) == ([-1, 1], [-1, 1])
    assert T.refactor().tolist() == [0, 3]


def test_lines_are_found(rng):
    """Block rows of sizes of their own have the lines of those that they are cut from, where these are diagonal."""
    nx, ny = 4, 6
    T = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(ny, ny))
    S = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(nx, nx))
    M = scipy.sparse.kron(scipy.sparse.kronsum(100 * T, S), np.eye(b)).tobsr(blocksize=(b, b))
    size = rng.integers(1, b + 1, nx * ny)
    A, _, _ = of_sizes(M, size, [])
    found = cla.find_lines(A, block_size=size)
    assert [line.tolist() for line in found] == np.arange(nx * ny).reshape(nx, ny).tolist()


@pytest.mark.parametrize(
    ("size", "error", "message"),
    [
        ([1, 2], ValueError, "block_size sums to 3, must to the 4 rows of M"),
        ([0, 4], ValueError, r"block_size\[0\] is 0, must be at least 1"),
        ([2.0, 2.0], TypeError, "block_size: dtype is float64"),
        ([[2, 2]], ValueError, r"block_size has shape \(1, 2\)"),
    ],
)
def test_wrong_sizes(size, error, message):
    M = scipy.sparse.eye_array(4, format="csr")
    with pytest.raises(error, match=message):
        cla.LinePreconditioner(M, [[0, 1]], block_size=size)
    with pytest.raises(error, match=message):
        cla.find_lines(M, block_size=size)


def test_sizes_that_do_not_fit():
    with pytest.raises(ValueError, match="block_size is an array, must be an integer for a matrix in BSR format"):
        cla.find_lines(scipy.sparse.eye_array(4).tobsr(blocksize=(2, 2)), block_size=[2, 2])
    diag, none = np.tile(np.eye(2), (1, 3, 1, 1)), np.zeros((1, 2, 2, 2))
    with pytest.raises(ValueError, match=r"sizes has shape \(2,\), must be \(3,\) or \(1, 3\)"):
        cla.BlockTridiag(none, diag, none, sizes=[1, 2])
    with pytest.raises(ValueError, match="sizes holds 3, must hold numbers from 1 to 2"):
        cla.BlockTridiag(none, diag, none, sizes=[1, 2, 3])
