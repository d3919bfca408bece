"""Operators on packs, and what objects say of themselves in one line."""

import numpy as np
import pyopencl.array
import pytest
import scipy.sparse as sp

import compactla as cla
from cases import random


@pytest.fixture
def stacks(rng):
    return random(rng, (11, 3, 4), np.complex64), random(rng, (11, 4, 3), np.complex64)


@pytest.fixture
def packs(stacks, queue):
    return [cla.pack(a, queue=queue) for a in stacks]


def close(A, expected):
    assert isinstance(A, cla.Pack)
    np.testing.assert_allclose(A.unpack(), expected, rtol=1e-5, atol=1e-5)


def test_items_and_copies(queue, rng):
    for char in "fdFD":
        a = random(rng, (11, 3, 4), np.dtype(char))
        a[5, 1] = np.inf
        A = cla.pack(a, queue=queue)
        assert len(A) == 11 and A[3].dtype == a.dtype
        np.testing.assert_array_equal([A[3], A[-1], A.T[2].T], a[[3, -1, 2]])
        np.testing.assert_array_equal(list(A), a)
        B = A[1:, ::2].copy()
        np.testing.assert_array_equal(B.unpack(), a[:, 1:, ::2])
        B.data.fill(0)
        np.testing.assert_array_equal(A.copy().unpack(), a)
        assert list(cla.pack(a[:0], queue=queue)) == []


def test_operators_make_packs(packs, stacks, queue):
    (A, B), (a, b) = packs, stacks
    close(A @ B, a @ b)
    one = b[0] if queue is None else pyopencl.array.to_device(queue, b[0])
    close(A @ one, a @ b[0])
    close(A + B.T - 2 * A, b.swapaxes(1, 2) - a)
    close(np.float64(2) * -A * 1j / 4, -0.5j * a)
    C = D = A.copy()
    C += A
    C *= 3
    C -= A
    assert C is D
    close(C, 5 * a)
    np.testing.assert_array_equal(A.unpack(), a)


def test_other_operators_are_those_of_arrays(stacks):
    a, b = stacks
    A = cla.pack(a)
    np.testing.assert_array_equal(A * A, a * a)
    assert (A == a).all() and not (A != A).any() and isinstance(a - A, np.ndarray) and len({A, A}) == 1
    close(b[0] @ A, b[0] @ a)
    np.testing.assert_allclose(A @ b, a @ b, rtol=1e-5)
    A += 1
    close(A, a + 1)


def test_refusals(packs, queue):
    A, B = packs
    for error, match, call in [
        (ValueError, "truth value", lambda: bool(A)), (IndexError, "from -11 to 10", lambda: A[11]),
        (TypeError, "two slices", lambda: A[1:3]), (TypeError, "out=A", lambda: A.__setitem__(0, 1)),
        (ValueError, "must have 4 rows", lambda: A @ A), (ValueError, "Y is", lambda: A + B),
    ]:  # fmt: skip
        with pytest.raises(error, match=match):
            call()
    if queue is not None:
        with pytest.raises(TypeError, match=r"must live on the CPU: see Pack\.unpack"):
            A * A


def test_completion():
    assert {"linalg", "krylov", "gemm", "Pack"} < {*dir(cla)} and "checks" not in dir(cla)
    A = cla.Pack.zeros(2, 3, 3)
    assert {"unpack", "copy", "nm", "T"} < {*dir(A)} and not {"view", "kind"} & {*dir(A)}


def test_representations(rng):
    place = "float64, vlen=8, device=cpu"
    T = cla.BlockTridiag(*(random(rng, (4, k, 2, 2), np.float64) for k in (2, 3, 2)), vlen=8)
    assert repr(T) == f"BlockTridiag(4 lines of 3 blocks 2 x 2, {place}, not factored)"
    M = sp.kron(sp.eye_array(6), np.ones((2, 2)) + np.eye(2)).tobsr(blocksize=(2, 2))
    P = cla.LinePreconditioner(M, [[0, 1, 2, 3], [4, 5]])
    assert repr(P) == "LinePreconditioner(12 x 12, 2 lines of blocks 2 x 2, float64, device=cpu, factored)"
    systems = cla.Tridiag(np.ones((7, 9)), np.full((7, 10), 4.0), np.ones((7, 9)))
    form = "periodic=False, pivoting=True, float64, device=cpu"
    assert repr(systems) == f"Tridiag(7 systems of 10, {form}, not factored)"
    A = cla.BatchCSR((np.ones((6, 3)), [0, 1, 2], [0, 1, 2, 3]), vlen=8)
    assert repr(A.T) == f"BatchCSR(6 x 3 x 3, nnz=3, {place}).T"
    assert repr(cla.BatchLU(A)) == f"BatchLU(6 x 3 x 3, nnz=3, {place}, not factored)"
    assert repr(cla.krylov.Jacobi(A)) == f"Jacobi(6 x 3 x 3, {place}, not made)"
    report = cla.krylov.Report(np.array([3, 4]), np.array([True, False]), np.array([0.5, 0.25]))
    assert repr(report) == "Report(1 of 2 systems converged, at most 4 iterations, residuals at most 0.5)"
