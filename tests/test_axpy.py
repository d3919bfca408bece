"""Tests specific to axpy, scal, dot and nrm2: alpha of many kinds, and norms of numbers of all magnitudes."""

import numpy as np
import pyopencl.array
import pytest
from numba import njit

import compactla as cla
from cases import random, same_bits
from compactla.cpu import axpy, dot, matrix, nrm2, scal
from drivers import working_devices

pytestmark = pytest.mark.slow

NM = 19


def vectors(rng, dtype, m=5, n=2):
    return random(rng, (NM, m, n), dtype), random(rng, (NM, m, n), dtype)


def one_each(rng, dtype, queue):
    """Numbers, with zeros among them, and as an array where packs live."""
    alpha = random(rng, NM, dtype)
    alpha[[0, 7, 18]] = 0
    return alpha, alpha if queue is None else pyopencl.array.to_device(queue, alpha)


def test_one_alpha_for_each_matrix(queue, dtype, rng):
    x, y = vectors(rng, dtype)
    alpha, given = one_each(rng, dtype, queue)
    factors, eps = alpha[:, None, None], np.finfo(dtype).eps
    for m in (5, 1, 4):
        X, Y = cla.pack(x[:, :m], queue=queue), cla.pack(y[:, :m], queue=queue)
        assert cla.axpy(given, X, Y) is Y
        assert np.allclose(Y.unpack(), factors * x[:, :m] + y[:, :m], rtol=0, atol=16 * eps)
        assert cla.scal(given, X) is X
        assert np.allclose(X.unpack(), factors * x[:, :m], rtol=0, atol=16 * eps)


@pytest.mark.parametrize("queue", working_devices(), indirect=True, ids=lambda device: "opencl")
def test_alphas_of_any_strides(queue, dtype, rng):
    x, y = vectors(rng, dtype)
    alpha = random(rng, 3 * NM, dtype)
    X, memory = cla.pack(x, queue=queue), pyopencl.array.to_device(queue, alpha)
    for part in (slice(1, None, 3), slice(NM, 2 * NM)):
        expected = cla.axpy(alpha[part], X, cla.pack(y, queue=queue)).unpack()
        assert same_bits(cla.axpy(memory[part], X, cla.pack(y, queue=queue)).unpack(), expected)
    if dtype.kind == "c":
        with pytest.raises(ValueError, match="alpha has strides"):
            cla.scal(memory.real[::3], X)
    none = cla.Pack.empty(0, 2, 2, dtype, queue=queue)
    assert cla.scal(pyopencl.array.empty(queue, 0, dtype), none) is none


def test_where_alpha_is_zero_nothing_is_read(queue, dtype, rng):
    """Only matrices whose alpha is zero are not read."""
    x, y = vectors(rng, dtype)
    alpha, given = one_each(rng, dtype, queue)
    zero = alpha == 0
    x[zero], y[0] = np.nan, -0.0
    X, Y = cla.pack(x, queue=queue), cla.pack(y, queue=queue)
    cla.axpy(given, X, Y)
    assert same_bits(Y.unpack()[zero], y[zero]) and np.isfinite(Y.unpack()).all()
    X, Y = cla.pack(np.full_like(x, np.inf), queue=queue), cla.pack(y, queue=queue)
    cla.axpy(0, X, Y)
    assert same_bits(Y.unpack(), y)


def test_numbers(queue, dtype, rng):
    """One alpha for all matrices gives the same as one for each, whatever its type."""
    x, y = vectors(rng, dtype)
    for alpha in (2, -1.5, np.float32(0.25), np.array(3), True, *([1 - 2j] if dtype.kind == "c" else [])):
        X, Y = cla.pack(x, queue=queue), cla.pack(y, queue=queue)
        expected = cla.axpy(np.full(NM, alpha), X, cla.pack(y, queue=queue)).unpack()
        assert same_bits(cla.axpy(alpha, X, Y).unpack(), expected)
        assert np.allclose(cla.scal(alpha, X).unpack(), alpha * x)


def test_an_alpha_that_does_not_fit(queue, rng):
    x, y = vectors(rng, np.float32)
    X, Y = cla.pack(x, queue=queue), cla.pack(y, queue=queue)
    complex_numbers = np.full(NM, 1j, np.complex64)
    wrong = [
        *[(ValueError, np.ones(count)) for count in (NM - 1, NM + 1, 1, 0)],
        (ValueError, np.full(NM, 1e300)),
        (ValueError, 1e300),
        *[(TypeError, alpha) for alpha in (1j, complex_numbers, None, "1", ["a"] * NM, np.ones((NM, 1)))],
    ]
    if queue is not None:
        put = pyopencl.array.to_device
        wrong += [(ValueError, put(queue, np.ones(NM + 1, np.float32))), (TypeError, put(queue, np.ones(NM)))]
        wrong += [(TypeError, put(queue, complex_numbers))]
    for error, alpha in wrong:
        for call in (lambda alpha: cla.axpy(alpha, X, Y), lambda alpha: cla.scal(alpha, Y)):
            with pytest.raises(error, match="alpha"):
                call(alpha)
    assert same_bits(Y.unpack(), y)


def columns(result):
    return result if isinstance(result, np.ndarray) else result.get()


def test_norms_of_all_magnitudes(queue, dtype):
    """No square overflows or underflows; infinities and NaN are as LAPACK has them."""
    limits = np.finfo(dtype)
    few = [0, limits.smallest_subnormal, limits.tiny / 8, limits.tiny, 1e-12, 1, 1e12, limits.max / 8]
    x = np.zeros((len(few) + 3, 9, 3), dtype)
    for q, size in enumerate(few):
        x[q] = size * np.arange(1, 10).reshape(9, 1) / 4 * [1, 0, -1] if 0 < q < 7 else size / 4
    x[len(few), 4, 0], x[len(few) + 1, 8, 1], x[len(few) + 2, (2, 3), (0, 0)] = np.inf, np.nan, (-np.inf, np.nan)
    wide = np.sqrt((np.abs(x).astype(np.longdouble) ** 2).sum(1))
    for m in (9, 2, 1, 0):
        found = columns(cla.nrm2(cla.pack(x[:, :m], queue=queue)))
        wide = np.sqrt((np.abs(x[:, :m]).astype(np.longdouble) ** 2).sum(1))
        assert found.shape == wide.shape and found.dtype == limits.dtype
        with np.errstate(invalid="ignore"):
            close = np.abs(found - wide) <= 8 * limits.eps * wide + limits.smallest_subnormal
        assert (close | (found == wide.astype(limits.dtype)) | (np.isnan(found) & np.isnan(wide))).all()


@pytest.mark.parametrize("V", [8, 3])
def test_pack_level(V, rng):
    """x <- x / ||x||, and y without its part along x."""

    @njit(error_model="numpy")
    def project(x, y, d, r):
        for p in range(len(x)):
            X, Y, D, R = matrix(x[p], V), matrix(y[p], V), matrix(d[p], V, 1, 1), matrix(r[p], V, 1, 1)
            nrm2(X, R)
            R[0, 0] = 1 / R[0, 0]
            scal(R, X)
            dot(X, Y, D)
            D[0, 0] = -D[0, 0]
            axpy(D, X, Y)
            axpy(0, X, Y)

    for m in (1, 6, 21):
        x, y = vectors(rng, np.float64, m, 1)
        X, Y, D, R = (cla.pack(a, V) for a in (x, y, x[:, :1], x[:, :1]))
        project(X.data, Y.data, D.data, R.data)
        unit = x / np.linalg.norm(x, axis=1, keepdims=True)
        assert np.allclose(X.unpack(), unit, rtol=1e-14, atol=0)
        assert np.allclose(Y.unpack(), y - unit * (unit * y).sum(1, keepdims=True), rtol=0, atol=1e-14)
