"""Krylov methods, which are written for batches, in OpenCL for these, and for one system: they agree step by step."""

import numpy as np
import pytest
import scipy.sparse

import compactla as cla
from cases import exhaustive, here, random, there
from compactla import krylov

pytestmark = pytest.mark.slow

NM, N = 3, 9
STEPS = {"f": 5, "F": 5, "d": 7, "D": 7}  # until residuals are but rounding
METHODS = {
    "cg": {},
    "bicgstab": {},
    "gmres": {},
    "gmres, started anew": {"restart": 3},
    "gmres, cgs": {"ortho": "cgs", "restart": 4},
    "gmres, cgs2": {"ortho": "cgs2", "restart": 4},
}


def systems(rng, dtype, hermitian):
    """Well conditioned matrices, and right-hand sides."""
    a = random(rng, (NM, N, N), dtype)
    if hermitian:
        a = (a + a.conj().swapaxes(1, 2)) / 2
    return (a + 5 * np.eye(N) + np.diag(np.arange(N))).astype(dtype), random(rng, (NM, N), dtype)


def batch(a, queue=None):
    """The matrices, which are full, as sparse ones."""
    data, indices, indptr = a.reshape(NM, -1), np.tile(np.arange(N), N), np.arange(N + 1) * N
    return cla.BatchCSR((data, indices, indptr), queue=queue)


def one_by_one(solve, a, b, queue, **how):
    """Solutions and residuals as of a batch, by the methods for large systems."""
    found = []
    for matrix, rhs in zip(a, b, strict=True):
        A = scipy.sparse.csr_array(matrix)
        M = cla.LinePreconditioner(A, np.arange(N)[:, None], 1, queue=queue)  # that is the diagonal
        x, report = solve(A, there(rhs, queue), M=M, **how)
        found.append((here(x), report.history))
    return [np.array(part) for part in zip(*found, strict=True)]


def side_by_side(solve, a, b, queue, **how):
    A = batch(a, queue)
    x, report = solve(A, b, M=krylov.Jacobi(A), **how)
    return x, report.history


def in_numpy(solve, a, b, queue, **how):
    A = batch(a)
    x, report = solve(lambda X: A @ X, b, M=krylov.Jacobi(A).solve, **how)
    return x, report.history


@pytest.mark.parametrize("dtype", ["F", *map(exhaustive, "fdD")])
@pytest.mark.parametrize("name", METHODS)
def test_steps(name, queue, dtype, rng):
    """Iterates and norms of residuals after one step, two, and so on, to what rounding makes of the condition."""
    method, options = name.partition(",")[0], METHODS[name]
    a, b = systems(rng, dtype, method == "cg")
    solve, close = getattr(krylov, method), 4 * np.finfo(dtype).eps * np.linalg.cond(a).max()
    ways = (one_by_one, in_numpy) if queue is None else (one_by_one, side_by_side)
    length = np.linalg.norm(b, axis=1)
    for k in range(1, STEPS[dtype] + 1):
        how = {"rtol": 0.0, "maxiter": k, "history": True, **options}
        x, norms = side_by_side(solve, a, b, None, **how)
        assert norms.shape == (NM, k + 1) and (np.diff(norms) < 0).all()
        true = np.linalg.norm(b - np.einsum("qij,qj->qi", a, x), axis=1)
        assert (abs(norms[:, k] - true) <= close * length).all()
        for way in ways:
            y, others = way(solve, a, b, queue, **how)
            assert y.dtype == x.dtype and others.shape == norms.shape
            assert (abs(x - y).max(1) <= close * abs(x).max(1)).all(), (way, k)
            assert (abs(norms - others) <= close * length[:, None]).all(), (way, k)


@pytest.mark.parametrize("dtype", ["d", *map(exhaustive, "fFD")])
def test_steps_from_the_left(queue, dtype, rng):
    """They agree with each other, and residuals in the end are true."""
    a, b = systems(rng, dtype, False)
    close = 4 * np.finfo(dtype).eps * np.linalg.cond(a).max()
    ways = (one_by_one, in_numpy) if queue is None else (one_by_one, side_by_side)
    length = np.linalg.norm(b, axis=1)
    for k in range(1, STEPS[dtype] + 1):
        how = {"rtol": 0.0, "maxiter": k, "history": True, "side": "L"}
        x, norms = side_by_side(krylov.gmres, a, b, None, **how)
        true = np.linalg.norm(b - np.einsum("qij,qj->qi", a, x), axis=1)
        assert (abs(norms[:, k] - true) <= close * length).all()
        for way in ways:
            y, others = way(krylov.gmres, a, b, queue, **how)
            assert (abs(x - y).max(1) <= close * abs(x).max(1)).all(), (way, k)
            assert (abs(norms - others) <= close * length[:, None]).all(), (way, k)
