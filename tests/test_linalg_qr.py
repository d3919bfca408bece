"""linalg.qr: as numpy.linalg.qr, signs included."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from compactla import linalg
from compactla.linalg.qr import QR

MODES = "reduced", "complete", "r", "raw"
EPS = {"f": 2.0**-23, "d": 2.0**-52, "F": 2.0**-23, "D": 2.0**-52}


def matrices(m, n, char="d", nm=11):
    rng = np.random.default_rng(m * 100 + n)
    a = rng.standard_normal((nm, m, n))
    return (a + 1j * rng.standard_normal(a.shape) if char in "FD" else a).astype(char)


def check(a, mode, compute="double"):
    found, expected = linalg.qr(a, mode, compute=compute), np.linalg.qr(a, mode)
    assert type(found) is type(expected)
    found, expected = ((x,) if mode == "r" else x for x in (found, expected))
    m, n = a.shape[-2:]
    scale = np.abs(a).max((-2, -1), keepdims=True)
    for x, y, name in zip(found, expected, {"r": "r", "raw": "ht"}.get(mode, "qr"), strict=True):
        assert x.shape == y.shape and x.dtype == y.dtype
        if name == "r":
            assert_array_equal(np.tril(x, -1), 0)
    eps = EPS[a.dtype.char]
    if mode in ("reduced", "complete"):
        q, r = found
        assert np.abs(q @ r - a).max(initial=0) <= 10 * max(m, n) * eps * scale.max(initial=0)
        unit = np.swapaxes(q.conj(), -2, -1) @ q
        assert np.abs(unit - np.eye(q.shape[-1])).max(initial=0) <= 10 * m * eps
        (r, s) = (np.diagonal(x.R, axis1=-2, axis2=-1) for x in (found, expected))
        clear = np.abs(s) > 1e3 * eps * scale[..., 0]
        assert_array_equal(np.sign(r.real)[clear], np.sign(s.real)[clear])
    elif m <= n:  # or single rows may be badly conditioned
        for x, y in zip(found, expected, strict=True):
            assert np.abs(x - y).max(initial=0) <= 1e6 * eps * max(scale.max(initial=0), 1)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("m, n", [(3, 3), (7, 4), (4, 7), (24, 24)])
def test_modes(mode, m, n):
    check(matrices(m, n), mode)


@pytest.mark.exhaustive
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("char", "fdFD")
@pytest.mark.parametrize("m, n", [(1, 1), (2, 2), (8, 8), (13, 13), (32, 32), (32, 8), (3, 20), (1, 5), (5, 1)])
def test_sizes(mode, char, m, n):
    check(matrices(m, n, char), mode)
    check(matrices(m, n, char), mode, "same")


@pytest.mark.parametrize("scale", [1e300, 1e-300])
def test_scales(scale):
    check(matrices(3, 3) * scale, "reduced")


def test_singular():
    a = matrices(3, 3)
    a[2] = 0
    a[3, 1:] = a[3, 0]
    a[4, 1:] = 0
    check(a, "reduced")


def test_a_matrix_that_is_not_finite_leaves_others_alone():
    a = matrices(3, 3)
    expected = linalg.qr(a)
    a[5, 1, 1] = np.nan
    found = linalg.qr(a)
    for x, y in zip(found, expected, strict=True):
        assert np.isnan(x[5]).any()
        assert_array_equal(np.delete(x, 5, 0), np.delete(y, 5, 0))


def test_other_modes_are_numpys():
    with pytest.raises(ValueError, match="Unrecognized mode 'x'"):
        linalg.qr(np.eye(2), "x")
    with pytest.warns(DeprecationWarning, match="full"):
        linalg.qr(np.eye(2), "full")
    assert set(QR) == set(MODES)
