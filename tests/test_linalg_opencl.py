"""Functions on stacks of matrices in pyopencl Arrays, on every OpenCL device."""

import numpy as np
import pyopencl.array as cla
import pytest

from compactla import linalg
from drivers import working_devices

pytestmark = pytest.mark.parametrize("queue", working_devices(), indirect=True, ids=lambda d: "opencl")


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
