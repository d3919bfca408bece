"""Inverses, determinants, LU factors and triangular solves on stacks: all that is peculiar to them."""

import itertools
import warnings

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose, assert_array_equal

from compactla import linalg

EVERY = pytest.mark.exhaustive
SIZES = [3, *(pytest.param(n, marks=EVERY) for n in (1, 12, 40))]
CHARS = ["d", *(pytest.param(char, marks=EVERY) for char in "fFD")]
# Each kind of system, and one of complex numbers in single precision; the others are exhaustive.
SYSTEMS = [("d", 0), ("d", 1), ("F", 2)]
SYSTEMS += [
    pytest.param(*system, marks=EVERY) for system in itertools.product("fdFD", range(3)) if system not in SYSTEMS
]
NM = 21


@pytest.fixture(params=SIZES)
def n(request):
    return request.param


def matrices(rng, dtype, *shape):
    a = rng.standard_normal(shape)
    return (a + 1j * rng.standard_normal(shape) if dtype.kind == "c" else a).astype(dtype)


def hard(rng, dtype, n):
    """Matrices of all scales, graded ones, and ones that are nearly singular."""
    a = matrices(rng, dtype, NM, n, n)
    tiny = np.finfo(dtype).tiny
    scales = np.array([1, tiny**0.25, tiny**-0.25])[np.arange(NM) % 3].astype(tiny.dtype)
    a *= scales[:, None, None]
    a[5] *= np.logspace(0, -6, n, dtype=tiny.dtype)
    a[6] = np.triu(a[6]) + np.tril(a[6], -1) * np.finfo(dtype).eps
    return a


def test_inv_residual(rng, dtype, n):
    a = hard(rng, dtype, n)
    x = linalg.inv(a, compute="same")
    residual, size, inverse = (np.linalg.norm(y, axis=(1, 2)) for y in (a.astype("D") @ x - np.eye(n), a, x))
    ratio = residual / size.astype("d") / inverse
    assert (ratio < 10 * n * np.finfo(dtype).eps).all()


def test_determinants_of_any_scale(rng, dtype, n):
    a = hard(rng, dtype, n)
    a[3], a[4, :, 0] = 0, np.nan
    with np.errstate(all="ignore"):
        expected, found = np.linalg.slogdet(a), linalg.slogdet(a)
        value = np.linalg.det(a)
    tolerance = 1e3 * n * np.finfo(dtype).eps
    assert_allclose(found.sign, expected.sign, tolerance)
    assert_allclose(found.logabsdet, expected.logabsdet, tolerance, tolerance)
    with np.errstate(all="ignore"):
        assert_allclose(linalg.det(a), value, tolerance, np.finfo(dtype).smallest_normal)


def test_determinants_of_extreme_pivots():
    a = np.stack([np.diag([1e200, 1e200, 1e-300]), np.diag([-1e-200, 1e-200, 1e300]), np.diag([1e-310, 1e300, 1.0])])
    assert_allclose(linalg.det(a), [1e100, -1e-100, 1e-10], 1e-13)
    huge = linalg.slogdet(a[:, :2, :2])
    assert_allclose(huge.logabsdet, np.log(10) * np.array([400, -400, -10]), 1e-14)
    assert_array_equal(huge.sign, [1, -1, 1])
    with pytest.warns(RuntimeWarning, match="overflow"):
        assert linalg.det(a[0, :2, :2]) == np.inf


@pytest.mark.parametrize("shape", [(NM, 3, 3), (2, 5, 4, 7), (7, 4), pytest.param((NM, 12, 12), marks=EVERY)], ids=str)
@pytest.mark.parametrize("char", CHARS)
def test_lu_factor_as_scipy(rng, char, shape):
    dtype, a = np.dtype(char), matrices(rng, np.dtype(char), *shape)
    found, expected = linalg.lu_factor(a, compute="same"), scipy.linalg.lu_factor(a)
    for x, y in zip(found, expected, strict=True):
        assert x.dtype == y.dtype
        assert_allclose(x, y, 0, 100 * np.finfo(dtype).eps * np.abs(y).max())


@pytest.mark.parametrize(("char", "trans"), SYSTEMS)
def test_lu_solve_as_scipy(rng, char, trans, n):
    dtype = np.dtype(char)
    a = matrices(rng, dtype, 2, 5, n, n) + 4 * np.eye(n, dtype=dtype)
    factors = scipy.linalg.lu_factor(a)
    for shape in ((n,), (n, 1)) if trans else ((n,), (2, 1, n, n)):
        b = matrices(rng, dtype, *shape)
        expected, found = scipy.linalg.lu_solve(factors, b, trans), linalg.lu_solve(factors, b, trans)
        assert_allclose(found, expected, 0, 1e3 * np.finfo(dtype).eps * np.abs(expected).max())


@pytest.mark.parametrize(
    ("lower", "unit"),
    [(False, False), (True, True), *(pytest.param(*x, marks=EVERY) for x in [(False, True), (True, False)])],
)
@pytest.mark.parametrize(("char", "trans"), SYSTEMS)
def test_solve_triangular_as_scipy(rng, char, trans, lower, unit, n):
    dtype = np.dtype(char)
    a, b = matrices(rng, dtype, 5, n, n) + 4 * np.eye(n, dtype=dtype), matrices(rng, dtype, n)
    expected = scipy.linalg.solve_triangular(a, b, trans, lower, unit)
    found = linalg.solve_triangular(a, b, trans, lower, unit)
    assert_allclose(found, expected, 0, 1e3 * np.finfo(dtype).eps * np.abs(expected).max())


@pytest.mark.parametrize("n", [40, pytest.param(128, marks=EVERY), 130])
def test_systems_of_many_rows(rng, n):
    """Kernels for any size, or SciPy, whose results these are; a singular matrix changes none beside it."""
    a, b = rng.standard_normal((11, n, n)), rng.standard_normal((11, n, 2))
    expected = scipy.linalg.lu_factor(a)
    a[4, :, 7] = 0
    with pytest.warns(scipy.linalg.LinAlgWarning, match="1 of 11 matrices, at 4" if n <= 128 else "exactly zero"):
        lu, piv = linalg.lu_factor(a)
    good = np.delete(np.arange(11), 4)
    assert_array_equal(piv[good], expected[1][good])
    assert_allclose(lu[good], expected[0][good], 0, 1e4 * n * np.finfo(float).eps)
    x = linalg.lu_solve((lu[good], piv[good]), b[good])
    residual = abs(a[good] @ x - b[good]).max((1, 2)) / (abs(a[good]).sum(2).max(1) * abs(x).max((1, 2)))
    assert (residual < n * np.finfo(float).eps).all()


def test_singular_factors_warn(rng):
    a = rng.standard_normal((4, 3, 3))
    a[2], a[1, :, 1] = 0, 0
    with pytest.warns(scipy.linalg.LinAlgWarning, match="Diagonal number 2 .*: 2 of 4 matrices, at 1, 2") as caught:
        linalg.lu_factor(a)
    assert caught[0].filename == __file__
    with pytest.warns(scipy.linalg.LinAlgWarning, match=r"Diagonal number 1 is exactly zero. Singular matrix\.$"):
        linalg.lu_factor(a[2])


def test_singular_triangles(rng):
    a = rng.standard_normal((4, 3, 3))
    a[2, 1, 1] = 0
    with pytest.raises(linalg.LinAlgError, match="resolution failed at diagonal 1: 1 of 4 matrices, at 2"):
        linalg.solve_triangular(a, np.ones(3))
    x = linalg.solve_triangular(a, np.ones(3), on_error="nan")
    assert_array_equal(np.isnan(x).all(1), [False, False, True, False])


def test_what_is_not_finite(rng):
    a = rng.standard_normal((4, 3, 3))
    a[1, 2, 0] = np.nan
    for function in linalg.lu_factor, lambda a: linalg.solve_triangular(a, np.ones(3)):
        with pytest.raises(ValueError, match="infs or NaNs"):
            function(a)
    assert np.isnan(linalg.lu_factor(a, check_finite=False)[0][1]).any()
    assert np.isfinite(linalg.solve_triangular(a, np.ones(3), check_finite=False)).all()


def test_pivots_are_rows(rng):
    lu = rng.standard_normal((4, 3, 3))
    with pytest.raises(ValueError, match="no rows: 1 of 4 matrices, at 3"):
        linalg.lu_solve((lu, [[0, 1, 2]] * 3 + [[0, 9, 2]]), np.ones(3))


def test_empty_stacks_of_scipys_functions():
    lu, piv = linalg.lu_factor(np.ones((3, 0, 4, 4), np.float32))
    assert (lu.shape, lu.dtype, piv.shape) == ((3, 0, 4, 4), np.float32, (3, 0, 4))
    assert linalg.lu_solve((lu, piv), np.ones(4)).shape == (3, 0, 4)
    assert linalg.solve_triangular(lu, np.ones((4, 2))).shape == (3, 0, 4, 2)
    factors = linalg.cho_factor(lu)
    assert factors[0].dtype == np.float32
    assert linalg.cho_solve(factors, np.ones(4)).shape == (3, 0, 4)
    assert linalg.solve_banded((1, 1), np.ones((0, 3, 4)), np.ones(4)).shape == (0, 4)
    assert linalg.solveh_banded(np.ones((0, 2, 4)), np.ones((4, 2)), lower=True).shape == (0, 4, 2)


@pytest.mark.parametrize("power", [-3, 0, 5])
def test_matrix_power(rng, power):
    a = rng.standard_normal((4, 3, 3))
    assert_allclose(linalg.matrix_power(a, power), np.linalg.matrix_power(a, power), 1e-10)


def test_matrix_power_of_integers():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert linalg.matrix_power([[1, 1], [1, 0]], 10)[0, 0] == 89
    with pytest.raises(TypeError, match="integer"):
        linalg.matrix_power(np.eye(2), 0.5)
