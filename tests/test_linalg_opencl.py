"""Functions on stacks of matrices in pyopencl Arrays, on every OpenCL device."""

import numpy as np
import pyopencl.array as cla
import pytest

from compactla import linalg
from compactla.gpu.linalg import fused
from drivers import working_devices

pytestmark = [
    pytest.mark.slow,
    pytest.mark.parametrize("queue", working_devices(), indirect=True, ids=lambda d: "opencl"),
]


def on(queue, a):
    return cla.to_device(queue, np.ascontiguousarray(a))


def compare(found, expected):
    """Results have NumPy's shapes and types, and its numbers but for rounding."""
    assert type(found) is cla.Array
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    scale = max(1, abs(expected).max(initial=0))
    assert abs(found.get() - expected).max(initial=0) <= 1e4 * np.finfo(expected.dtype).eps * scale


SHAPES = (
    ((5, 3, 3), (5, 3, 2)),
    ((3, 3), (3,)),
    ((5, 3, 3), (3,)),
    ((4, 1, 3, 3), (5, 3, 2)),
    ((3, 3), (5, 4, 3, 1)),
    ((0, 3, 3), (3,)),
    ((2, 0, 0), (0, 1)),
)


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("types", ["dd", "fF", "id", pytest.param("DF", marks=pytest.mark.slow)])
def test_solve(queue, rng, shapes, types):
    a, b = ((5 * rng.standard_normal(shape)).astype(char) for shape, char in zip(shapes, types, strict=True))
    a += 20 * np.eye(a.shape[-1], dtype=a.dtype)
    compare(linalg.solve(on(queue, a), on(queue, b)), np.linalg.solve(a, b))


def test_same_precision(queue, rng):
    a, b = rng.random((40, 3, 3), np.float32) + 3 * np.eye(3, dtype=np.float32), rng.random((3,), np.float32)
    x = linalg.solve(on(queue, a), on(queue, b), compute="same")
    compare(x, np.linalg.solve(a, b))
    assert (x.get() != linalg.solve(on(queue, a), on(queue, b)).get()).any()


def test_strides(queue, rng):
    a = rng.standard_normal((6, 5, 4, 4))
    some = on(queue, a)[::2].transpose((1, 0, 3, 2))[1:]
    compare(linalg.solve(some, on(queue, a[0, 0, 0])), np.linalg.solve(a[::2].transpose(1, 0, 3, 2)[1:], a[0, 0, 0]))


def test_failures(queue, rng):
    a, b = np.tile(np.eye(2), (7, 1, 1, 1)), rng.random((3, 2, 2))
    expected = np.linalg.solve(a, b)
    a[[3, 5]] = 1
    expected[[3, 5]] = np.nan
    np.testing.assert_array_equal(linalg.solve(on(queue, a), on(queue, b), on_error="nan").get(), expected)
    with pytest.raises(linalg.LinAlgError, match=r"^Singular matrix: 2 of 7 matrices, at \(3, 0\), \(5, 0\)$"):
        linalg.solve(on(queue, a), on(queue, b))


def test_refused(queue, elsewhere, rng):
    a = rng.random((3, 2, 2))
    here, there = on(queue, a), on(elsewhere, a)
    with pytest.raises(TypeError, match=r"^b is a numpy.ndarray, must be a pyopencl Array"):
        linalg.solve(here, a)
    with pytest.raises(TypeError, match=r"^a is a builtins.list, must be a pyopencl Array"):
        linalg.solve(a.tolist(), here)
    with pytest.raises(ValueError, match=r"^b lives in another OpenCL context"):
        linalg.solve(here, there)
    with pytest.raises(ValueError, match=r"^threads is 2, must be None"):
        linalg.solve(here, here, threads=2)
    with pytest.raises(ValueError, match=r"^on_error is 'no', must be"):
        linalg.solve(here, here, on_error="no")
    with pytest.raises(ValueError, match="mismatch"):
        linalg.solve(here, on(queue, np.ones((3, 3))))
    with pytest.raises(linalg.LinAlgError, match="square"):
        linalg.solve(on(queue, np.ones((2, 3))), here)


def hermitian(a):
    return a @ a.conj().swapaxes(-1, -2) + np.eye(a.shape[-1], dtype=a.dtype)


# name, what is made of random matrices (3, 2, 3, 3), and options
CALLS = (
    ("inv", None, {}),
    ("det", None, {}),
    ("slogdet", None, {}),
    ("cholesky", hermitian, {}),
    ("cholesky", hermitian, {"upper": True}),
    ("eigvalsh", hermitian, {}),
    ("eigvalsh", hermitian, {"UPLO": "U"}),
    ("svdvals", None, {}),
    ("pinv", lambda a: a[..., :2], {}),
    ("qr", lambda a: a[..., :2], {"mode": "reduced"}),
    ("qr", lambda a: a[..., :2], {"mode": "complete"}),
    ("qr", lambda a: a[..., :2, :], {"mode": "r"}),
    ("qr", lambda a: a[..., :2, :], {"mode": "raw"}),
)


@pytest.mark.parametrize(("name", "make", "options"), CALLS, ids=lambda x: x if isinstance(x, str) else "")
@pytest.mark.parametrize("dtype", ["D", pytest.param("f", marks=pytest.mark.slow)])
def test_as_numpy(queue, rng, name, make, options, dtype):
    a = random(rng, (3, 2, 3, 3), dtype)
    a = np.ascontiguousarray(make(a) if make else a)
    found, expected = getattr(linalg, name)(on(queue, a), **options), getattr(np.linalg, name)(a, **options)
    if not isinstance(expected, tuple):
        found, expected = (found,), (expected,)
    assert len(found) == len(expected)
    for x, y in zip(found, expected, strict=True):
        compare(x, y)


def random(rng, shape, dtype):
    a = rng.standard_normal(shape)
    return (a + 1j * rng.standard_normal(shape) if dtype in "FD" else a).astype(dtype)


def test_eigenvectors(queue, rng):
    a = hermitian(random(rng, (4, 3, 3), "D"))
    w, v = (x.get() for x in linalg.eigh(on(queue, a)))
    np.testing.assert_allclose(a @ v, v * w[:, None], atol=1e-12)
    np.testing.assert_allclose(v.conj().swapaxes(1, 2) @ v, np.tile(np.eye(3), (4, 1, 1)), atol=1e-13)


@pytest.mark.parametrize("shape", [(3, 2), (2, 3)], ids=str)
def test_singular_vectors(queue, rng, shape):
    a = random(rng, (4, *shape), "d")
    u, s, vh = (x.get() for x in linalg.svd(on(queue, a)))
    assert u.shape[1:] == (shape[0],) * 2 and vh.shape[1:] == (shape[1],) * 2
    np.testing.assert_allclose((u[:, :, :2] * s[:, None]) @ vh[:, :2], a, atol=1e-13)
    for x in u, vh:
        np.testing.assert_allclose(x @ x.swapaxes(1, 2), np.tile(np.eye(x.shape[1]), (4, 1, 1)), atol=1e-13)


@pytest.mark.parametrize("shape", [(4, 2), (2, 4)], ids=str)
def test_least_squares(queue, rng, shape):
    a, b = random(rng, (3, *shape), "d"), random(rng, (3, shape[0], 2), "d")
    a[1, :, 1] = a[1, :, 0]
    found, expected = linalg.lstsq(on(queue, a), on(queue, b)), linalg.lstsq(a, b)
    for x, y in zip(found, expected, strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        np.testing.assert_allclose(x.get(), y, atol=1e-12)


def test_factors_and_solutions(queue, rng):
    a, b = random(rng, (3, 3, 3), "d") + 3 * np.eye(3), random(rng, (3, 2), "d")
    h = hermitian(a)
    lu, piv = linalg.lu_factor(on(queue, a))
    c, lower = linalg.cho_factor(on(queue, h))
    upper = linalg.solve_triangular(on(queue, a), on(queue, b), trans=1)
    compare(linalg.lu_solve((lu, piv), on(queue, b)), np.linalg.solve(a, b[None]))
    compare(linalg.lu_solve((lu, piv), on(queue, b[:, 0]), trans=1), np.linalg.solve(a.swapaxes(1, 2), b[:, 0]))
    compare(linalg.cho_solve((c, lower), on(queue, b)), np.linalg.solve(h, b[None]))
    compare(upper, np.linalg.solve(np.triu(a).swapaxes(1, 2), b[None]))


@pytest.mark.parametrize(("left", "right"), [((3, 2, 4), (4, 5)), ((4,), (3, 4, 2)), ((3, 2, 4), (4,))], ids=str)
def test_products(queue, rng, left, right):
    a, b = random(rng, left, "d"), random(rng, right, "d")
    compare(linalg.matmul(on(queue, a), on(queue, b)), np.matmul(a, b))


def test_products_of_integers(queue):
    a = on(queue, np.ones((2, 2), int))
    with pytest.raises(TypeError, match=r"^x1: dtype is int64, must be float32"):
        linalg.matmul(a, a)


def test_what_fails(queue):
    a = np.zeros((3, 2, 2))
    a[1] = np.eye(2)
    a = on(queue, a)
    for call in linalg.inv, linalg.cholesky, lambda a: linalg.solve_triangular(a, a):
        with pytest.raises(linalg.LinAlgError, match=r"2 of 3 matrices, at 0, 2$"):
            call(a)
    with pytest.warns(match=r"2 of 3 matrices, at 0, 2$"):
        linalg.lu_factor(a)
    nan = on(queue, np.full((2, 2, 2), np.nan))
    for call in linalg.eigvalsh, linalg.svdvals, linalg.pinv:
        assert np.isnan(call(nan, on_error="nan").get()).all()
        with pytest.raises(linalg.LinAlgError, match=r"2 of 2 matrices, at 0, 1$"):
            call(nan)


@pytest.mark.parametrize("shape", [(0, 2, 3), (2, 0, 3), (2, 3, 0)])
def test_pinv_of_nothing(queue, shape):
    found = linalg.pinv(cla.Array(queue, shape, np.float64))
    assert type(found) is cla.Array and found.shape == (shape[0], shape[2], shape[1])


def test_only_on_the_cpu(queue, rng):
    a = on(queue, rng.random((3, 2, 2)))
    for call in linalg.cond, linalg.matrix_rank, lambda a: linalg.svd(a, hermitian=True):
        with pytest.raises(TypeError, match="is a pyopencl Array, must be a NumPy array"):
            call(a)


def test_through_local_memory(queue, rng, monkeypatch):
    """Kernels of GPUs, in which neighbours read each other's numbers, for more matrices than a work-group has."""
    monkeypatch.setattr(fused, "staged", lambda device: True)
    a, b = random(rng, (40, 3, 3), "F"), random(rng, (3, 2), "d")
    compare(linalg.solve(on(queue, a), on(queue, b), compute="same"), np.linalg.solve(a, b))
    compare(linalg.inv(on(queue, a), compute="same"), np.linalg.inv(a))
    compare(linalg.det(on(queue, a), compute="same"), np.linalg.det(a))
    compare(linalg.cholesky(on(queue, hermitian(a))), np.linalg.cholesky(hermitian(a)))


@pytest.mark.parametrize("dtype", ["d", pytest.param("F", marks=pytest.mark.slow)])
def test_eig(queue, rng, dtype):
    """Results are complex where one of a stack is, and those of a matrix with NaN are told apart."""
    a = rng.standard_normal((2, 7, 5, 5)).astype(dtype)
    a[1, 2] += 1j * rng.random((5, 5)) if dtype == "F" else 0
    for x in (a, a + a.conj().swapaxes(-1, -2), a[:, 3:4, ::-1]):
        w, v = linalg.eig(on(queue, x))
        expected = linalg.eig(x)
        assert type(w) is type(v) is cla.Array
        assert [(y.shape, y.dtype) for y in (w, v)] == [(y.shape, y.dtype) for y in expected]
        w, v = w.get(), v.get()
        assert abs(x @ v - v * w[..., None, :]).max() < 1e3 * np.finfo(dtype).eps
        assert abs(linalg.eigvals(on(queue, x)).get().sum(-1) - w.sum(-1)).max() < 1e3 * np.finfo(dtype).eps
    a[1, 3] = np.nan
    w, v = linalg.eig(on(queue, a), on_error="nan")
    assert np.isnan(w.get()[1, 3]).all() and np.isnan(w.get()).sum() == 5 and np.isnan(v.get()).sum() == 25
    with pytest.raises(linalg.LinAlgError, match=r"1 of 14 matrices, at \(1, 3\)"):
        linalg.eigvals(on(queue, a))
    none = linalg.eigvals(on(queue, np.zeros((0, 3, 3), dtype)))
    assert (none.shape, none.dtype) == ((0, 3), np.linalg.eigvals(np.zeros((0, 3, 3), dtype)).dtype)
