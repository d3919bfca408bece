"""svd and svdvals on stacks, and pinv and norms, which need them: accuracy on inputs that are hard, and options."""

import re

import numpy as np
import pytest

from compactla import linalg

MORE = (1, 1), (3, 9), (9, 9), (32, 32), (1, 5)
SIZES = [(3, 3), (7, 4), *(pytest.param(*size, marks=pytest.mark.exhaustive) for size in MORE)]
LIMIT = 4  # of residuals, in units of max(m, n) eps


def hard(m, n, dtype):
    """Matrices by the names of what is hard about them."""
    rng, k = np.random.default_rng(m + n), min(m, n)

    def normal(*shape):
        x = rng.standard_normal(shape)
        return x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x

    far = 300 if np.dtype(dtype).char in "dD" else 36
    u, v = (np.linalg.qr(normal(size, size))[0][:, :k] for size in (m, n))
    found = {
        "usual": normal(m, n),
        "huge": normal(m, n) * 10.0**far,
        "tiny": normal(m, n) * 10.0**-far,
        "graded rows": normal(m, n) * np.logspace(0, -far // 10, m)[:, None],
        "graded columns": normal(m, n) * np.logspace(-far // 10, 0, n),
        "geometric": (u * np.logspace(0, -17, k)) @ v.T,
        "nearly multiple": (u * (1 + 1e-13 * np.arange(k))) @ v.T,
        "rank 1": normal(m, 1) * np.ones(n),
        "rank 2": normal(m, 2) @ normal(2, n),
        "no diagonal": np.eye(m, n, k=1),
        "triangle": np.tri(m, n),
        "identity": np.eye(m, n),
        "zero": np.zeros((m, n)),
    }
    return {name: x.astype(dtype) for name, x in found.items()}


def check(name, a, u, s, vh):
    k, eps = len(s), np.finfo(a.dtype).eps * max(a.shape)
    scale = s[0] or 1
    assert (np.diff(s) <= 0).all() and (s >= 0).all(), name
    for x in (u, np.conj(vh.T)):
        assert abs(np.conj(x.T) @ x - np.eye(x.shape[1])).max() <= LIMIT * eps, name
    assert abs(a / scale - (u[:, :k] * (s / scale)) @ vh[:k]).max() <= LIMIT * eps, name


@pytest.mark.parametrize("dtype", ["d", *(pytest.param(x, marks=pytest.mark.exhaustive) for x in "fFD")])
@pytest.mark.parametrize(("m", "n"), SIZES)
def test_accuracy(m, n, dtype):
    given = hard(m, n, dtype)
    a = np.array([*given.values()])
    for full in (True, False):
        found = linalg.svd(a, full, compute="same")
        shapes = [x.shape for x in np.linalg.svd(a[0], full)]
        assert [x.shape[1:] for x in found] == shapes
        for (name, x), *factors in zip(given.items(), *found, strict=True):
            check(name, x, *factors)
    largest = found.S.max(1, keepdims=True)
    difference = abs(linalg.svdvals(a, compute="same") - found.S)
    assert (difference <= LIMIT * max(m, n) * np.finfo(dtype).eps * largest).all()


def test_hermitian():
    a = np.random.default_rng(0).standard_normal((5, 3, 3))
    a = a + a.swapaxes(1, 2)
    found, expected = linalg.svd(a, hermitian=True), np.linalg.svd(a, hermitian=True)
    assert type(found) is type(expected)
    np.testing.assert_allclose(found.S, expected.S, atol=1e-14)
    np.testing.assert_allclose((found.U * found.S[:, None]) @ found.Vh, a, atol=1e-14)
    np.testing.assert_allclose(linalg.svd(a, compute_uv=False, hermitian=True), expected.S, atol=1e-14)


@pytest.mark.parametrize(
    "keywords", [{}, {"rtol": None}, {"rcond": 0.5}, {"rcond": [0.1, 0.5, 0.9]}, {"hermitian": True}]
)
def test_pinv(keywords):
    a = np.random.default_rng(0).standard_normal((3, 3, 3))
    a = a + a.swapaxes(1, 2)
    np.testing.assert_allclose(linalg.pinv(a, **keywords), np.linalg.pinv(a, **keywords), atol=1e-12)


@pytest.mark.parametrize("kind", ["H", "?", "d"])
@pytest.mark.parametrize("keywords", [{}, {"rtol": None}, {"rtol": 0.5}])
def test_pinv_of_nothing(kind, keywords):
    """pinv of an empty array has NumPy's type, or NumPy's error: integers have no epsilon."""
    for shape in (0, 3, 3), (2, 0, 3), (2, 3, 0):
        a = np.zeros(shape, kind)
        try:
            expected = np.linalg.pinv(a, **keywords)
        except ValueError as error:
            with pytest.raises(ValueError, match=re.escape(str(error))):
                linalg.pinv(a, **keywords)
        else:
            found = linalg.pinv(a, **keywords)
            assert found.shape == expected.shape and found.dtype == expected.dtype


def test_infinities():
    """Results are NaN, as NumPy's where it finds an end, which it does not if they are in the first column."""
    a = np.random.default_rng(0).standard_normal((5, 3, 3))
    expected = [*linalg.svd(a), linalg.pinv(a)]
    a[1, 2, 0], a[3, 0, 1] = np.inf, -np.inf
    for x, y in zip([*linalg.svd(a), linalg.pinv(a)], expected, strict=True):
        assert np.isnan(x[[1, 3]]).all()
        assert x[::2].tobytes() == y[::2].tobytes()
    assert np.isnan(linalg.svd(a[1]).S).all() and np.isnan(linalg.pinv(a[1])).all()


@pytest.mark.exhaustive
def test_pinv_of_wide_and_tall():
    a = np.random.default_rng(0).standard_normal((2, 3, 7, 4))
    for x in (a, a.swapaxes(-1, -2), a + 1j * a[::-1], np.zeros((2, 4, 7))):
        np.testing.assert_allclose(linalg.pinv(x), np.linalg.pinv(x), atol=1e-13)


def test_norms():
    a = np.random.default_rng(0).standard_normal((4, 3, 3))
    a[1] = 0
    for ord in (2, -2, "nuc", "fro", 1):
        for axes in ((1, 2), (2, -2)):
            expected = np.linalg.norm(a, ord, axes, True)
            np.testing.assert_allclose(linalg.norm(a, ord, axes, True), expected, atol=1e-14)
    with np.errstate(all="ignore"):
        for p in (None, -2, "fro"):
            np.testing.assert_allclose(linalg.cond(a, p), np.linalg.cond(a, p), rtol=1e-12)
    assert list(linalg.matrix_rank(a)) == [3, 0, 3, 3]
    np.testing.assert_array_equal(linalg.matrix_rank(a, rtol=0.5), np.linalg.matrix_rank(a, rtol=0.5))
    with pytest.raises(ValueError, match="Duplicate axes"):
        linalg.norm(a, 2, (1, 1))
