"""linalg.lstsq: for each matrix what numpy.linalg.lstsq makes of it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from compactla import linalg


def random(shape, char="d"):
    rng = np.random.default_rng(sum(shape))
    a = rng.standard_normal(shape)
    return (a + 1j * rng.standard_normal(shape) if char in "FD" else a).astype(char)


def check(a, b, rcond=None, compute="double", eps=2.0**-52):
    """Solutions differ by what the condition of matrices makes of rounding; so do their residuals."""
    x, residuals, rank, s = linalg.lstsq(a, b, rcond, compute=compute)
    columns = b[:, None] if b.ndim == 1 else b
    lead = np.broadcast_shapes(a.shape[:-2], columns.shape[:-2])
    a, columns = (np.broadcast_to(y, lead + y.shape[-2:]) for y in (a, columns))
    for i in np.ndindex(lead):
        y, left, r, t = np.linalg.lstsq(a[i], b if b.ndim == 1 else columns[i], rcond)
        assert (x.dtype, residuals.dtype, rank.dtype, s.dtype) == (y.dtype, left.dtype, r.dtype, t.dtype)
        assert x[i].shape == y.shape and rank[i] == r and s[i].shape == t.shape
        tolerance = 100 * max(a.shape[-2:]) * eps
        assert_allclose(s[i], t, rtol=0, atol=tolerance * t.max(initial=0))
        condition = t[0] / t[r - 1] if r else 1
        assert_allclose(x[i], y, rtol=0, atol=tolerance * condition**2 * np.abs(y).max(initial=0))
        if left.size:
            size = np.linalg.norm(columns[i], axis=0).max() ** 2
            assert_allclose(residuals[i], left, rtol=0, atol=tolerance * size)
        else:
            assert np.isnan(residuals[i]).all()
    return x, residuals, rank, s


@pytest.mark.parametrize("m, n", [pytest.param(3, 3, marks=pytest.mark.exhaustive), (7, 4), (4, 7)])
def test_ranks(m, n):
    a = random((11, m, n))
    a[1, :, 1] = a[1, :, 0]
    a[2, 1] = a[2, 0]
    a[3] = a[3, :1, :1]
    a[4] = 0
    _, residuals, _, _ = check(a, random((11, m, 1)))
    assert residuals.shape == ((11, 1) if m > n else (11, 0))


def test_scales():
    a, b = random((11, 7, 4)), random((11, 7, 1))
    x, _, rank, s = linalg.lstsq(a, b)
    scales = np.array([1e300, 1e-300, 1e300, 1e-300, 1, 1, 1e150, 1e-150, 1, 1, 1])[:, None, None]
    others = np.array([1e300, 1e-300, 1, 1, 1e300, 1e-300, 1e-150, 1e-150, 0, 1, 1])[:, None, None]
    y, _, found, t = linalg.lstsq(a * scales, b * others)
    assert_array_equal(found, rank)
    assert_allclose(t, s * scales[..., 0], rtol=1e-13)
    assert_allclose(y, x * (others / scales), rtol=1e-11)


def test_graded():
    a = random((11, 7, 4)) * 10.0 ** -np.arange(0, 12, 3)
    x = random((11, 4, 1))
    assert_allclose(linalg.lstsq(a, a @ x, 1e-300)[0], x, rtol=1e-4)


def test_broadcast():
    a, b = random((2, 1, 7, 4)), random((3, 7, 1))
    check(a, b)
    check(a, b[0, :, 0])
    x, residuals, rank, s = check(random((7, 4)), b)
    assert (x.shape, residuals.shape, rank.shape, s.shape) == ((3, 4, 1), (3, 1), (3,), (3, 4))


@pytest.mark.parametrize("rcond", [0.5, 0.1, 0, -1, 1, 2, np.float32(0.25)])
def test_rcond(rcond):
    check(random((11, 7, 4)), random((11, 7, 1)), rcond)


def test_one_matrix_is_numpys():
    a, b = random((7, 4)), random((7,))
    for x, y in zip(linalg.lstsq(a, b), np.linalg.lstsq(a, b, None), strict=True):
        assert type(x) is type(y)
        assert_array_equal(x, y)


@pytest.mark.parametrize("a, b", [((3, 7, 4), (3, 6, 1)), ((4,), (3, 4, 1)), ((3, 7, 4), ())])
def test_errors(a, b):
    with pytest.raises(linalg.LinAlgError):
        linalg.lstsq(np.ones(a), np.ones(b))


@pytest.mark.parametrize("a, b", [((0, 7, 4), (7, 1)), ((5, 0, 4), (0, 1)), ((5, 7, 0), (7, 1)), ((5, 7, 4), (7, 0))])
def test_empty(a, b):
    x, residuals, rank, s = linalg.lstsq(np.ones(a), np.ones(b))
    m, n = a[1:]
    assert x.shape == (a[0], n, b[1]) and s.shape == (a[0], min(m, n)) and rank.shape == a[:1]
    assert residuals.shape == (a[0], b[1] if m > n else 0)


def test_a_matrix_that_is_not_finite():
    a, b = random((11, 7, 4)), random((11, 7, 1))
    expected = linalg.lstsq(a, b)
    a[5, 1, 1] = np.nan
    with pytest.raises(linalg.LinAlgError, match=r"SVD did not converge.*: 1 of 11 matrices, at 5"):
        linalg.lstsq(a, b)
    found = linalg.lstsq(a, b, on_error="nan")
    for x, y in zip(found, expected, strict=True):
        assert x.dtype.kind == "i" or np.isnan(x[5]).all()
        assert_array_equal(np.delete(x, 5, 0), np.delete(y, 5, 0))


def test_where_numpy_finds_no_end():
    """LAPACK iterates for ever on some matrices with NaN or infinities: these fail as others do."""
    a, b = np.tile(np.eye(7, 4), (11, 1, 1)), random((11, 7, 1))
    a[2, 2, 2], a[4, 0, 0] = np.nan, np.inf
    s = linalg.lstsq(a, b, on_error="nan")[3]
    assert_array_equal(np.isnan(s).all(1), np.isin(np.arange(11), [2, 4]))
    with pytest.raises(linalg.LinAlgError, match=r"SVD did not converge.*: 2 of 11 matrices, at 2, 4"):
        linalg.lstsq(a, b)
    with pytest.raises(linalg.LinAlgError, match=r"SVD did not converge in Linear Least Squares$"):
        linalg.lstsq(a[2, :4], np.ones(4))
    with pytest.raises(linalg.LinAlgError, match="Incompatible dimensions"):
        linalg.lstsq(a[2], np.ones(4))


@pytest.mark.exhaustive
@pytest.mark.parametrize("char", "fdFD")
@pytest.mark.parametrize("m, n, r", [(1, 1, 1), (8, 8, 8), (32, 32, 1), (32, 8, 3), (8, 32, 3), (100, 3, 1)])
def test_sizes(char, m, n, r):
    a, b = random((9, m, n), char), random((9, m, r), char)
    check(a, b, eps=np.finfo(char).eps)
    check(a, b, 1e-5, "same", np.finfo(char).eps)
