"""expm of stacks."""

import numpy as np
import pytest
import scipy.linalg

from cases import random, there
from compactla import linalg

every = pytest.mark.exhaustive


def exponential(a):
    """The exponential by its series, in extended precision."""
    s = max(0, int(np.ceil(np.log2(max(np.abs(a).sum(), 1)))))
    x = a.astype(np.clongdouble if a.dtype.kind == "c" else np.longdouble) / 2**s
    term = total = np.eye(len(a), dtype=x.dtype)
    for k in range(1, 40):
        term = term @ x / k
        total = total + term
    for _ in range(s):
        total = total @ total
    return total.astype(a.dtype)


HARD = {
    "Moler and Van Loan": ([[-49, 24], [-64, 31]], 2e-14),
    "not normal": ([[1, 1e6], [0, -1]], 1e-13),
    "nilpotent": ([[0, 1e8], [0, 0]], 0),
    "triangular": ([[-1000, 1], [0, 1]], 1e-15),
    "lower": ([[2, 0], [1e3, -900]], 1e-15),
    "diagonal": ([[-700, 0], [0, 300]], 1e-15),
    "stiff": ([[-1e4, 1e4 - 1], [1, -2]], 1e-12),
    "zero": ([[0, 0], [0, 0]], 0),
    "tiny": ([[1e-20, 0], [3e-20, 2e-20]], 1e-30),
    "rotation": ([[0, 100], [-100, 0]], 5e-14),
}


@pytest.mark.parametrize("dtype", ["d", pytest.param("D", marks=every)])
def test_hard_matrices(dtype):
    """Errors are those of SciPy, and what a matrix becomes does not depend on the others."""
    a = np.array([matrix for matrix, _ in HARD.values()], dtype)
    x = linalg.expm(a)
    for matrix, found, tolerance in zip(a, x, [tolerance for _, tolerance in HARD.values()], strict=True):
        expected = exponential(matrix)
        assert np.abs(found - expected).max() <= tolerance * np.abs(expected).max()
        np.testing.assert_array_equal(linalg.expm(matrix), found)
    np.testing.assert_array_equal(x[5:9, [0, 1], [1, 0]][[0, 2]], 0)


@pytest.mark.parametrize(
    ("n", "dtype"), [(3, "d"), *(pytest.param(n, t, marks=every) for n in (2, 5, 12, 20) for t in "fdFD")]
)
@pytest.mark.parametrize("scale", [1e-3, 1, 20])
def test_random_matrices(rng, n, dtype, scale):
    a = scale * rng.standard_normal((21, n, n)) / np.sqrt(n)
    a = (a + 1j * a[::-1] if dtype in "FD" else a).astype(dtype)
    x = linalg.expm(a)
    assert x.dtype == dtype
    expected = np.array([exponential(matrix) for matrix in a])
    error = np.abs(x - expected).max((1, 2)) / np.abs(expected).max((1, 2))
    assert error.max() < 200 * max(scale, 1) * np.finfo(dtype).eps


@every
def test_single_precision(rng):
    a = rng.standard_normal((21, 4, 4)).astype("f")
    a[7] = np.triu(a[7]) * 20
    expected = scipy.linalg.expm(a.astype(float))
    error = np.abs(linalg.expm(a, compute="same") - expected).max((1, 2)) / np.abs(expected).max((1, 2))
    assert error.max() < 1e-5


def test_other_types():
    assert linalg.expm(np.zeros((2, 2), int)).dtype == np.float64
    assert linalg.expm(np.zeros((2, 2), "float16")).dtype == np.float32
    assert linalg.expm(np.zeros((0, 3, 3))).shape == (0, 3, 3)
    np.testing.assert_array_equal(linalg.expm([[[2.0]]]), np.exp([[[2.0]]]))
    with pytest.raises(np.linalg.LinAlgError, match="square"):
        linalg.expm(np.zeros((2, 3)))


@pytest.mark.parametrize("char", ["d", pytest.param("F", marks=pytest.mark.slow)])
def test_on_devices(elsewhere, rng, char):
    """Scaled as on the CPU: small, large and triangular matrices, and one that is not finite alone."""
    a = random(rng, (17, 4, 4), char) * np.logspace(-3, 1.3, 17)[:, None, None].astype(char)
    a[3], a[4] = 0, np.triu(a[4]) + 100 * np.eye(4, k=1).astype(char)
    a[6] = np.nan
    x, expected = linalg.expm(there(a, elsewhere)).get(), linalg.expm(np.delete(a, 6, axis=0), compute="double")
    assert x.dtype == a.dtype and np.isnan(x[6]).all()
    error = np.abs(np.delete(x, 6, axis=0) - expected).max((1, 2)) / np.abs(expected).max((1, 2))
    assert error.max() < 2000 * np.finfo(a.dtype).eps
