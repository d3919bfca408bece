"""solve_banded and solveh_banded of stacks."""

import numpy as np
import pytest
import scipy.linalg

from compactla import linalg


def numbers(rng, *shape, dtype="d"):
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype in "FD" else x).astype(dtype)


def dense(ab, lower, upper):
    """Band matrices with all their zeros."""
    n = ab.shape[-1]
    a = np.zeros((*ab.shape[:-2], n, n), ab.dtype)
    for d in range(lower + upper + 1):
        for j in range(n):
            if 0 <= j + d - upper < n:
                a[..., j + d - upper, j] = ab[..., d, j]
    return a


def backward_error(a, x, b):
    """The backward error, in units of rounding."""
    norm = np.abs(a).sum(-1).max(-1)[:, None, None] * np.abs(x).max((-1, -2), keepdims=True)
    return (np.abs(a @ x - b) / norm).max() / np.finfo(a.dtype).eps


every = pytest.mark.exhaustive


@pytest.mark.parametrize(
    ("lower", "upper", "n", "r", "dtype"),
    [
        (1, 1, 7, 1, "d"),
        (2, 1, 40, 6, "d"),
        *(pytest.param(*kl_ku, 9, 1, t, marks=every) for kl_ku in [(0, 2), (3, 0), (1, 1), (8, 0)] for t in "fdFD"),
        pytest.param(1, 1, 1500, 1, "d", marks=every),
        pytest.param(4, 4, 3, 2, "d", marks=every),
    ],
)
def test_solves(rng, lower, upper, n, r, dtype):
    """Rows have to be swapped, and corners do not matter."""
    ab, b = numbers(rng, 11, lower + upper + 1, n, dtype=dtype), numbers(rng, 11, n, r, dtype=dtype)
    a = dense(ab, lower, upper)
    x = linalg.solve_banded((lower, upper), ab, b)
    assert x.dtype == dtype
    assert backward_error(a, x, b) < 200
    np.testing.assert_array_equal(linalg.solve_banded((lower, upper), ab[4:], b[4:]), x[4:])


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize(
    ("upper", "n", "r", "dtype"),
    [
        (1, 7, 1, "D"),
        *(pytest.param(ku, 9, r, t, marks=every) for ku, r in [(0, 1), (1, 5), (3, 1), (8, 2)] for t in "fdFD"),
        pytest.param(2, 1000, 1, "d", marks=every),
    ],
)
def test_solves_positive_definite(rng, lower, upper, n, r, dtype):
    ab, b = numbers(rng, 11, upper + 1, n, dtype=dtype), numbers(rng, 11, n, r, dtype=dtype)
    ab[:, 0 if lower else -1] += 4 * upper + 3
    full = np.zeros((11, 2 * upper + 1, n), dtype)
    for d in range(upper + 1):
        diagonal = ab[:, d if lower else upper - d]
        short = diagonal[:, : n - d] if lower else diagonal[:, d:].conj()
        short = short.real if d == 0 else short
        full[:, upper + d, : n - d] = short
        full[:, upper - d, d:] = short.conj()
    x = linalg.solveh_banded(ab, b, lower=lower)
    assert x.dtype == dtype
    assert backward_error(dense(full, upper, upper), x, b) < 50


def test_failures(rng):
    ab, b = numbers(rng, 20, 3, 7), numbers(rng, 7)
    good = linalg.solve_banded((1, 1), ab, b)
    np.testing.assert_allclose(good, scipy.linalg.solve_banded((1, 1), ab, b), 1e-6)
    ab[3, :, 4] = ab[18, :, 0] = 0
    with pytest.raises(np.linalg.LinAlgError, match=r"^singular matrix: 2 of 20 matrices, at 3, 18$"):
        linalg.solve_banded((1, 1), ab, b)
    x = linalg.solve_banded((1, 1), ab, b, on_error="nan")
    assert np.isnan(x[[3, 18]]).all()
    np.testing.assert_array_equal(np.delete(x, [3, 18], 0), np.delete(good, [3, 18], 0))
    ab[5, 0, 0] = np.inf
    with pytest.raises(ValueError, match="infs or NaNs"):
        linalg.solve_banded((1, 1), ab, b)
    with pytest.raises(ValueError, match="not compatible"):
        linalg.solve_banded((1, 1), ab, b[1:])
    ab = np.ones((9, 2, 5)) * [[3], [1]]
    ab[6, 0, 2] = -1
    with pytest.raises(np.linalg.LinAlgError, match=r"^3th leading minor not positive definite: 1 of 9 .* at 6$"):
        linalg.solveh_banded(ab, np.ones(5), lower=True)
    assert np.isnan(linalg.solveh_banded(ab, np.ones(5), lower=True, on_error="nan")).all(-1).sum() == 1


def test_order_1():
    """Matrices of order 1 are as larger ones: types are mixed, and zeros singular, which SciPy divides by."""
    x = linalg.solve_banded((1, 0), np.array([[[2j], [0]], [[0], [0]]]), np.ones(1, np.float32), on_error="nan")
    np.testing.assert_array_equal(x, [[-0.5j], [np.nan]])
