"""Operators on packs, and what objects say of themselves in one line."""

import operator

import numpy as np
import pyopencl.array
import pytest
import scipy.sparse as sp

import compactla as cla
from cases import random, same_bits


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


def unused_lanes(A):
    """The matrices in lanes of the last pack that are not in use."""
    A = A.to("cpu")
    return cla.Pack(A.data, A.vlen * len(A.data)).unpack()[A.nm :]


@pytest.mark.parametrize("char", "fD")
def test_quotients(queue, rng, char):
    """Quotients have the bits of NumPy's, and its warnings; unused lanes stay what they were."""
    dtype = np.dtype(char)
    a = random(rng, (11, 3, 4), dtype)
    a[2, 0, 1], a[3, 1, 0], a[5, 0, 2] = 0, np.inf, np.finfo(dtype).tiny
    A = cla.pack(a, 8, queue=queue)
    numbers = [3, -0.7, True, 2**70, 1e-30, np.inf, np.nan, np.int8(5), np.float16(0.1), 0, -0.0]
    for number in [*numbers, *([2 - 3j, 0.1 + 4j, 2j, 0j] if dtype.kind == "c" else [])]:
        B, b = A[:, ::2].copy(), a[:, :, ::2].copy()
        with np.errstate(all="ignore"):
            expected = np.true_divide(a, dtype.type(number))
            C = A / number
            assert isinstance(C, cla.Pack) and equal(C.unpack(), expected), number
            C = A[1:, ::2].copy()
            C /= number
            assert equal(C.unpack(), expected[:, 1:, ::2])
            C = B.T / number
            assert equal(C.T.unpack(), np.true_divide(b, dtype.type(number)))
        assert same_bits(unused_lanes(C), unused_lanes(B.T))
    one, zero = cla.pack(np.ones((3, 2, 2), dtype), 8, queue=queue), 0 * dtype.type(1)
    with pytest.warns(RuntimeWarning) as caught:
        assert np.isinf((one / 0).unpack().real).all()
    assert "divide by zero encountered in divide" in {str(warning.message) for warning in caught}
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        one / zero
    for call in (lambda: one / 10**400, lambda: one * -(10**400)):
        with pytest.raises(OverflowError, match="too large to convert to float"):
            call()


def equal(x, y):
    """Whether numbers have the same bits, but for those of NaN."""
    parts = [(x.real, y.real), (x.imag, y.imag)] if x.dtype.kind == "c" else [(x, y)]
    same = [np.array_equal(p, q, equal_nan=True) and np.array_equal(np.signbit(p[p == 0]), np.signbit(q[q == 0]))
            for p, q in parts]  # fmt: skip
    return x.dtype == y.dtype and all(same)


@pytest.mark.parametrize("char", "dF")
def test_sums(queue, rng, char):
    """Sums have the bits of NumPy's, even if the operands share memory."""
    a = random(rng, (11, 4, 4), np.dtype(char))
    a[4, 1, 2], a[6, 0, 0], a[7, 2, 2] = np.inf, -0.0, 0
    A, t = cla.pack(a, 8, queue=queue), a.swapaxes(1, 2)
    with np.errstate(invalid="ignore"):
        for found, expected in ((A + A.T, a + t), (A - A.T, a - t), (A - A, a - a), (-A, -a)):
            assert equal(found.unpack(), expected)
        for add in (operator.iadd, operator.isub):
            for first, second in (np.s_[:, :], np.s_[:, :]), (np.s_[:3, :3], np.s_[1:, 1:]):
                B, b = A.copy(), a.copy()
                add(B[first], B[second])
                b[:, *first] = add(a[:, *first].copy(), a[:, *second])
                assert equal(B.unpack(), b)
            B = A.copy()
            B = add(B, B.T)
            assert equal(B.unpack(), add(a.copy(), t))
        assert np.negative(A, out=A) is A and equal(A.unpack(), -a)


def test_unused_lanes_do_not_matter(queue, rng):
    """Whatever operators leave there."""
    a, b = random(rng, (2, 11, 3, 3), np.float64) + 3 * np.eye(3)
    A, B = cla.pack(a, 8, queue=queue), cla.pack(b, 8, queue=queue)
    for found, expected in ((A - B, a - b), (A + B, a + b), (A * 0 + B, b), (2 * A, 2 * a)):
        found, expected = found.copy(), cla.pack(expected, 8, queue=queue)
        (p, info), (pivots, right) = cla.getrf(found), cla.getrf(expected)
        assert same_bits(found.unpack(), expected.unpack())
        assert np.array_equal(p, pivots) and np.array_equal(info, right)


def test_outputs(stacks):
    a, A = stacks[0].real.copy(), cla.pack(stacks[0].real)
    B, C, d = A.copy(), A.copy(), np.empty_like(a)
    for ufunc in (np.modf, np.divmod):
        inputs = (A, 0.3)[: ufunc.nin]
        first, second = ufunc(a, *inputs[1:])
        found = ufunc(*inputs, out=(B, C))
        assert found[0] is B and found[1] is C
        assert same_bits(B.unpack(), first) and same_bits(C.unpack(), second)
        assert ufunc(*inputs, out=(d, None))[0] is d and same_bits(d, first)
        assert ufunc(*inputs, out=(None, C))[1] is C
    C.data.flags.writeable = False
    with pytest.raises(ValueError, match="out is read-only"):
        np.modf(2 * A, out=(B, C))
    assert same_bits(B.unpack(), first)
    with pytest.raises(ValueError, match="read-only"):
        C /= 2


def test_at_is_refused(stacks):
    """ufunc.at would change a copy."""
    A = cla.pack(stacks[0])
    for ufunc, how in ((np.add, (0, 1.0)), (np.negative, (0,)), (np.multiply, ([0, 1], A))):
        with pytest.raises(TypeError, match=rf"{ufunc.__name__}\.at cannot write to a pack"):
            ufunc.at(A, *how)
    np.testing.assert_array_equal(A.unpack(), stacks[0])
    a = np.zeros_like(stacks[0])
    np.add.at(a, ..., A)
    np.testing.assert_array_equal(a, stacks[0])


def test_other_operators_are_those_of_arrays(stacks):
    a, b = stacks
    A = cla.pack(a)
    np.testing.assert_array_equal(A * A, a * a)
    assert (A == a).all() and not (A != A).any() and isinstance(a - A, np.ndarray) and len({A, A}) == 1
    close(b[0] @ A, b[0] @ a)
    np.testing.assert_allclose(A @ b, a @ b, rtol=1e-5)
    A += 1
    close(A, a + 1)
    R = cla.pack(a.real)
    for found, expected in ((R * 1j, a.real * 1j), (2j / R, 2j / a.real), (R / 2j, a.real / 2j)):
        assert type(found) is np.ndarray
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal([A[np.int8(2)], A[np.array(2)]], [A[2]] * 2)


def test_refusals(packs, queue):
    A, B = packs
    for error, match, call in [
        (ValueError, "truth value", lambda: bool(A)), (IndexError, "from -11 to 10", lambda: A[11]),
        (TypeError, "two slices", lambda: A[1:3]), (TypeError, "index is True", lambda: A[True]),
        (TypeError, "index is", lambda: A[np.True_]), (TypeError, "index is", lambda: A[np.array(True)]),
        (TypeError, "out=A", lambda: A.__setitem__(0, 1)),
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
