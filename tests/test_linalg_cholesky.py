"""cholesky, cho_factor, cho_solve of stacks."""

import numpy as np
import pytest
import scipy.linalg

from compactla import linalg


def positive(rng, nm, n, dtype="d"):
    """Positive definite matrices, graded."""
    x = rng.standard_normal((nm, n, n)) + (1j * rng.standard_normal((nm, n, n)) if dtype in "FD" else 0)
    scale = np.geomspace(1, 1e4, n) if dtype in "dD" else np.ones(n)
    return ((x @ x.swapaxes(1, 2).conj() + n * np.eye(n)) * scale * scale[:, None]).astype(dtype)


def residual(a, factor):
    """The residual of L, as in LAPACK's tests."""
    eps = np.finfo(a.dtype).eps
    difference = factor @ factor.swapaxes(-1, -2).conj() - a
    scale = np.sqrt(np.einsum("...ii->...i", a).real)
    return np.abs(difference / (scale[..., None] * scale[..., None, :])).max() / (a.shape[-1] * eps)


@pytest.mark.parametrize(
    ("n", "dtype"),
    [(3, "d"), (3, "D"), *(pytest.param(n, t, marks=pytest.mark.exhaustive) for n in (1, 8, 17, 32) for t in "fdFD")],
)
@pytest.mark.parametrize("upper", [False, True])
def test_factors(rng, n, dtype, upper):
    """The triangle that is not read may hold anything, and is zero in the result."""
    a = positive(rng, 19, n, dtype)
    given = a.copy()
    given[:, *(np.tril_indices(n, -1) if upper else np.triu_indices(n, 1))] = np.nan
    x = linalg.cholesky(given, upper=upper)
    assert x.dtype == a.dtype
    assert np.all(np.tril(x, -1) == 0 if upper else np.triu(x, 1) == 0)
    assert residual(a, x.swapaxes(1, 2).conj() if upper else x) < 10


def test_failures(rng):
    """Every kind of pivot that LAPACK refuses, at every place; NaN is for NumPy to decide."""
    a = positive(rng, 40, 3)
    good = linalg.cholesky(a)
    bad = {2: (0, -1.0), 9: (1, 0.0), 17: (2, -np.inf), 30: (1, -5.0), 39: (2, a[39, 2, 0] ** 2 / a[39, 0, 0] / 2)}
    for q, (i, x) in bad.items():
        a[q, i, i] = x
    with pytest.raises(np.linalg.LinAlgError, match=r"^Matrix is not positive definite: 5 of 40 matrices, at 2, 9, 17"):
        linalg.cholesky(a)
    x = linalg.cholesky(a, on_error="nan")
    assert np.isnan(x[list(bad)]).all()
    others = np.setdiff1d(np.arange(40), list(bad))
    np.testing.assert_array_equal(x[others], good[others])
    a = positive(rng, 9, 3)
    a[4, 1, 1], a[5, 2, 2] = np.nan, np.inf
    np.testing.assert_allclose(linalg.cholesky(a), np.linalg.cholesky(a), 1e-12)
    np.testing.assert_allclose(linalg.cholesky(a[4]), np.linalg.cholesky(a[4]), 1e-12)


def test_cho_factor_keeps_the_other_triangle(rng):
    a = positive(rng, 10, 3)
    a[:, 2, 0] = 77
    c, lower = linalg.cho_factor(a)
    assert not lower
    np.testing.assert_array_equal(c[:, 2, 0], 77)
    np.testing.assert_allclose(np.triu(c), np.triu(scipy.linalg.cho_factor(a)[0]), 1e-13)
    assert linalg.cho_factor(np.ones((2, 1, 1), "int8"))[0].dtype == np.float32
    a[3, 2, 0] = np.nan
    with pytest.raises(ValueError, match="infs or NaNs"):
        linalg.cho_factor(a)
    a[:, 2, 0], a[5, 1, 1] = 0, -1e9
    with pytest.raises(np.linalg.LinAlgError, match=r"\b2\b.*: 1 of 10 matrices, at 5$"):  # in SciPy's words
        linalg.cho_factor(a)
    x = linalg.cho_factor(a, on_error="nan")[0]
    assert np.isnan(x[5]).all()
    np.testing.assert_array_equal(np.triu(np.delete(x, 5, 0)), np.triu(np.delete(c, 5, 0)))


@pytest.mark.parametrize(("lower", "r"), [(False, 2), (True, 1)])
@pytest.mark.parametrize(("n", "dtype"), [(3, "d"), pytest.param(9, "D", marks=pytest.mark.exhaustive)])
def test_cho_solve(rng, lower, r, n, dtype):
    a, b = positive(rng, 11, n, dtype), rng.standard_normal((n, r)).astype(dtype)
    factors = linalg.cho_factor(a, lower)
    for right in (b, b[:, 0]) if r == 1 else (b,):
        x = linalg.cho_solve(factors, right)
        expected = np.linalg.solve(a, np.broadcast_to(right, (11, *right.shape)).reshape(11, n, -1))
        np.testing.assert_allclose(x, expected.reshape(x.shape), 1e-9)
    np.testing.assert_array_equal(linalg.cho_solve((factors[0], [lower] * 11), right), x)
    with pytest.raises(ValueError, match="infs or NaNs"):
        linalg.cho_solve(factors, np.full_like(b, np.nan))
