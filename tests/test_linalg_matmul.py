"""linalg.matmul: as numpy.matmul; and numpy.linalg's functions that are NumPy's own."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from compactla import linalg
from compactla.linalg import _numpy_only
from compactla.linalg.matmul import gains as matmul_gains


def random(shape, char="d"):
    rng = np.random.default_rng(len(shape))
    a = rng.standard_normal(shape)
    return (a + 1j * rng.standard_normal(shape) if char in "FD" else a).astype(char)


def check(a, b):
    found, expected = linalg.matmul(a, b), np.matmul(a, b)
    assert type(found) is type(expected) and found.dtype == expected.dtype and found.shape == expected.shape
    if expected.dtype.kind in "fc":
        eps = np.finfo(expected.dtype).eps
        assert_allclose(found, expected, rtol=0, atol=20 * eps * max(np.abs(expected).max(), 1))
    else:
        np.testing.assert_array_equal(found, expected)


STACK = (500, 3, 3)


@pytest.mark.parametrize(
    "a, b",
    [
        (random(STACK), random(STACK)),
        (random(STACK), random((3, 3))),
        (random((3, 3)), random(STACK)),
        (random(STACK).swapaxes(1, 2), random((3, 3))),
        (random((500, 1, 3, 3))[::-1], random((2, 3, 3))),
    ],
    ids=["stacks", "one on the right", "one on the left", "transposed", "broadcast"],
)
def test_factors(a, b):
    check(a, b)


@pytest.mark.exhaustive
@pytest.mark.parametrize("first", "fdFD")
@pytest.mark.parametrize("second", "fdFD")
@pytest.mark.parametrize("m, k, n", [(1, 1, 1), (4, 4, 4), (5, 2, 3), (7, 7, 1), (2, 9, 3)])
def test_sizes(first, second, m, k, n):
    a, b = random((5000, m, k), first), random((5000, k, n), second)
    check(a, b)
    check(a, b[0])
    check(a, b[0, :, 0])
    check(a[0, 0], b)


@pytest.mark.parametrize("char", "bBil?eg")
def test_other_types_are_numpys(char):
    a = (random(STACK) * 3).astype(char)
    check(a, a)
    check(a, random(STACK, "f"))


def test_subclasses_and_lists_are_numpys():
    a = random(STACK)
    check(np.ma.masked_array(a), a)
    check(a.tolist(), a)


@pytest.mark.parametrize("shapes", [(STACK, (2, 3)), (STACK, (2,)), (STACK, (7, 3, 3)), (STACK, ())])
def test_errors_are_numpys(shapes):
    a, b = map(random, shapes)
    with pytest.raises(ValueError) as expected:
        np.matmul(a, b)
    with pytest.raises(ValueError) as found:
        linalg.matmul(a, b)
    assert str(found.value) == str(expected.value)


def test_all_names():
    assert {*np.linalg.__all__, "LinAlgError"} >= {*_numpy_only.__all__}
    for name in _numpy_only.__all__:
        assert getattr(linalg, name) is getattr(np.linalg, name) and name in linalg.__all__


def test_few_or_large_matrices_are_left_to_numpy():
    def gains(count, n, columns=None):
        a = np.zeros((count, n, n))
        return matmul_gains(a, a[..., :columns], threads=1)

    assert gains(1000, 4) and gains(1000, 8) and gains(1000, 16) and gains(1000, 32)
    assert not gains(100, 8) and not gains(100, 16)  # a call of NumPy's takes less time
    assert not gains(1000, 33)
    assert gains(1000, 16, columns=1) and gains(1000, 24, columns=2) and not gains(1000, 24, columns=1)
    a = np.zeros((1000, 24, 24))
    assert matmul_gains(a[:, :1], a, threads=1) and not matmul_gains(a[:, :1], a.swapaxes(1, 2), threads=1)
    assert not matmul_gains(np.zeros(5000), np.zeros((5000, 2)))
