"""ldl, solve with `assume_a`, eigh and eigvalsh with `b`, of stacks."""

import itertools
import warnings

import numpy as np
import pyopencl.array
import pytest
import scipy.linalg

from cases import exhaustive, random
from compactla import linalg
from compactla.oracle import THRESHOLD, norm1, op, ratio, solve_ratio

pytestmark = pytest.mark.slow
NM = 13


def on(queue, *arrays):
    """Arrays where a queue is."""
    found = arrays if queue is None else [pyopencl.array.to_device(queue, a) for a in arrays]
    return found if len(found) > 1 else found[0]


def back(found):
    found = found if isinstance(found, tuple) else (found,)
    return [x if isinstance(x, np.ndarray) else x.get() for x in found]


def matrices(rng, n, dtype, trans):
    a = random(rng, (NM, n, n), dtype)
    a = a + op(a, trans)
    a[::2, (n + 1) // 2 :, (n + 1) // 2 :] = 0
    return a


def definite(rng, n, dtype):
    a = random(rng, (NM, n, n), dtype)
    return (a @ op(a, "C") + np.eye(n)).astype(dtype)


def without(a, lower):
    """NaN in the triangle that is not read."""
    a = a.copy()
    i, j = np.triu_indices(a.shape[-1], 1)
    a[(..., i, j) if lower else (..., j, i)] = np.nan
    return a


TYPES = [(4, "d"), (5, "F"), exhaustive(9, "D"), exhaustive(1, "f"), exhaustive(33, "d"), exhaustive(70, "D")]


@pytest.mark.parametrize(("n", "char"), TYPES)
def test_ldl(rng, queue, n, char):
    for lower, hermitian in itertools.product((True, False), repeat=2):
        trans, dtype = "C" if hermitian else "T", np.dtype(char)
        a = matrices(rng, n, dtype, trans)
        lu, d, perm = back(linalg.ldl(on(queue, a), lower, hermitian, compute="same"))
        assert ratio(norm1(a - lu @ d @ op(lu, trans)), n * np.finfo(dtype).eps * norm1(a)).max() < THRESHOLD
        rows = np.take_along_axis(lu, perm[:, :, None], 1)
        assert np.array_equal(rows, (np.tril if lower else np.triu)(rows))
        assert (np.diagonal(rows, axis1=1, axis2=2) == 1).all()
        assert not np.triu(d, 2).any() and not np.tril(d, -2).any()
        expected = scipy.linalg.ldl(a[0], lower, hermitian)
        assert [x.dtype for x in expected[:2]] == [lu.dtype, d.dtype]
        if n <= 33:
            assert np.array_equal(perm[0], expected[2])
            assert np.allclose(lu[0], expected[0], atol=1e4 * np.finfo(dtype).eps)


def test_ldl_takes_what_scipys_takes(rng):
    a = matrices(rng, 3, np.float64, "T")
    for x in (a[0], a[:0], a.reshape(1, NM, 3, 3), a[:, ::-1, ::-1], a.astype(int), a.astype(np.float32)):
        lu, d, perm = linalg.ldl(x)
        assert lu.shape == d.shape == x.shape and perm.shape == x.shape[:-1] and perm.dtype == np.intp
    for wrong in (a[:, :2], np.full((2, 3, 3), np.nan)):
        with pytest.raises(ValueError, match=r"square|infs or NaNs"):
            linalg.ldl(wrong)
    with pytest.warns(np.exceptions.ComplexWarning):
        linalg.ldl(a + 1j * np.eye(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        linalg.ldl(a + 1j * np.eye(3), hermitian=False)
    assert np.isnan(linalg.ldl(np.full((2, 3, 3), np.nan), check_finite=False)[1]).any()


@pytest.mark.parametrize(("n", "char"), TYPES)
def test_solve_reads_one_triangle(rng, queue, n, char):
    dtype = np.dtype(char)
    for word, lower in itertools.product(("sym", "her", "pos"), (True, False)):
        a = definite(rng, n, dtype) if word == "pos" else matrices(rng, n, dtype, "C" if word == "her" else "T")
        b = random(rng, (NM, n, 2), dtype)
        given = on(queue, without(a, lower), b)
        (x,) = back(linalg.solve(*given, assume_a=word, lower=lower, compute="same"))
        assert x.dtype == dtype and solve_ratio(a, x, b, np.finfo(dtype).eps).max() < THRESHOLD


def test_words_of_solve(rng):
    a, b = definite(rng, 4, np.float64), random(rng, (NM, 4, 1), np.float64)
    expected = np.linalg.solve(a, b)
    words = ["gen", "sym", "her", "pos", "general", "symmetric", "hermitian", "positive definite"]
    for word in words:
        assert np.allclose(linalg.solve(a, b, assume_a=word), expected)
        assert np.allclose(linalg.solve(a[0], b[0, :, 0], assume_a=word), expected[0, :, 0])
    for word in ("no", 3, None):
        with pytest.raises((ValueError, TypeError)):
            linalg.solve(a, b, assume_a=word and "no")
            linalg.solve(a, b, assume_a="no" if word is None else word)


def test_solve_names_what_it_takes(queue):
    b = np.ones((3, 1))
    for shape in ((3,), (2, 3), (4, 2, 3), (0, 2, 3)):
        for word in ("sym", "her", "pos"):
            with pytest.raises(np.linalg.LinAlgError, match=r"a has shape \(.*3,?\), must be \(..., n, n\)"):
                linalg.solve(*on(queue, np.zeros(shape), b), assume_a=word)
    with pytest.raises(ValueError, match="compute is 'no', must be 'double' or 'same' or 'mixed'"):
        linalg.solve(*on(queue, np.eye(3), b), compute="no")


def test_solves_that_fail(rng):
    a, b = matrices(rng, 4, np.float64, "T"), random(rng, (NM, 4, 1), np.float64)
    a = without(a, False)  # what is not read
    good = linalg.solve(a, b, assume_a="sym")
    a[5], a[8, 1, 1] = 0, np.nan
    with pytest.raises(np.linalg.LinAlgError, match="1 of 13 matrices, at 5"):
        linalg.solve(a, b, assume_a="sym")
    x = linalg.solve(a, b, assume_a="sym", on_error="nan")
    others = np.delete(np.arange(NM), [5, 8])
    assert np.isnan(x[5]).all() and np.isnan(x[8]).any() and np.array_equal(x[others], good[others])
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite: "):
        linalg.solve(a[:5], b[:5], assume_a="pos")
    for n in (4, 80):  # by a kernel, and by NumPy
        p, b = definite(rng, n, np.float64), random(rng, (NM, n, 1), np.float64)
        p[3] *= -1
        x = linalg.solve(p, b, assume_a="pos", on_error="nan")
        assert np.isnan(x[3]).all() and np.isfinite(np.delete(x, 3, 0)).all()


@pytest.mark.parametrize(("n", "char"), TYPES[:-1])
def test_pairs(rng, queue, n, char):
    dtype, eps = np.dtype(char), np.finfo(char).eps
    a, b = matrices(rng, n, dtype, "C"), definite(rng, n, dtype)
    for uplo in "LU":
        given = on(queue, without(a, uplo == "L"), without(b, uplo == "L"))
        w, V = back(tuple(linalg.eigh(given[0], uplo, given[1], compute="same")))
        (values,) = back(linalg.eigvalsh(given[0], uplo, b=given[1], compute="same"))
        assert V.dtype == dtype and w.dtype == values.dtype == np.finfo(dtype).dtype
        assert (
            ratio(norm1(a @ V - b @ V * w[:, None]), n * eps * (norm1(a) + norm1(b) * abs(w).max(1)) * norm1(V)).max()
            < 30
        )
        assert ratio(norm1(np.eye(n) - op(V, "C") @ b @ V), n * eps * np.linalg.cond(b)).max() < THRESHOLD
        expected = np.array([scipy.linalg.eigh(x, y, eigvals_only=True) for x, y in zip(a, b, strict=True)])
        bound = n * eps * abs(w).max(1)[:, None] * np.linalg.cond(b)[:, None]
        assert ratio(w - expected, bound).max() < THRESHOLD and ratio(values - expected, bound).max() < THRESHOLD


@pytest.mark.parametrize("n", [4, exhaustive(100)])
def test_pairs_that_fail(rng, n):
    a, b = matrices(rng, n, np.float64, "T"), definite(rng, n, np.float64)
    w, V = linalg.eigh(a, b=b)
    assert np.array_equal(linalg.eigh(a[0], b=b[0])[0], w[0]) or n > 96
    empty = linalg.eigh(a[:0].astype(np.complex64), b=b[:0].astype(np.complex64))  # as all that NumPy computes
    assert [x.dtype for x in empty] == [np.float32, np.complex64]
    b[3], a[6, 1, 0], b[2, 1, 1] = -1, np.nan, np.inf
    match = "b is not positive definite, or eigenvalues did not converge: "
    for x, y in ((a[3:6], b[3:6]), (a[4:], b[4:]), (a[:3], b[:3])):
        with pytest.raises(np.linalg.LinAlgError, match=match):
            linalg.eigh(x, b=y)
        with pytest.raises(np.linalg.LinAlgError, match=match):
            linalg.eigvalsh(x, b=y)
    found = linalg.eigh(a, b=b, on_error="nan")
    others = np.delete(np.arange(NM), [2, 3, 6])
    for x, y in zip(found, (w, V), strict=True):
        assert np.isnan(x[[2, 3, 6]]).all() and (np.array_equal(x[others], y[others]) if n < 96 else True)
    assert np.isnan(linalg.eigvalsh(a, b=b, on_error="nan")[[2, 3, 6]]).all()


def test_arguments_of_pairs(rng):
    a, b = matrices(rng, 3, np.float64, "T"), definite(rng, 3, np.float64)
    w, V = linalg.eigh(a, b=b[0])  # broadcast
    assert w.shape == (NM, 3) and np.allclose(a @ V, b[0] @ V * w[:, None])
    assert linalg.eigh(a[:0], b=b[:0])[1].shape == (0, 3, 3)
    for wrong in (b[:, :2], b[:, :2, :2], b[:4], b[0, 0]):
        with pytest.raises((ValueError, np.linalg.LinAlgError)):
            linalg.eigh(a, b=wrong)
    with pytest.raises(ValueError, match="UPLO"):
        linalg.eigh(a, "M", b)
