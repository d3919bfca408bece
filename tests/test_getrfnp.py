"""Tests specific to getrfnp: A <- L\\U without pivoting, and info."""

import numpy as np
import pytest
from numba import njit

import compactla as cla
import reference
from cases import BATCH, dominant, in_turns, random, same_bits
from compactla import oracle
from compactla.cpu import getrfnp as factor
from compactla.cpu import matrix
from rows import call, residual


def getrfnp(a, **where):
    """The factors and info that `cla.getrfnp` makes of a pack of `a`."""
    (lu,), info = call("getrfnp", [a], **where)
    return lu, info


@pytest.mark.parametrize(("n", "dtype"), in_turns([0, 3, 9, 17, 33], always=[3]), ids=str)
def test_the_column_of_a_zero_pivot_is_not_scaled(queue, n, dtype, rng):
    a = dominant(rng, BATCH, n, n, dtype)
    where = [1, 4, 7] if n else []
    for q, k in zip(where, (0, n // 2, n - 1), strict=False):
        oracle.named("getrfnp").spoil(q, k, a)
    lu, info = getrfnp(a, queue=queue)
    assert np.array_equal(np.flatnonzero(info), where)
    assert residual("getrfnp", [a], [lu]) < oracle.THRESHOLD


def test_info_is_of_the_first_zero_pivot(queue, dtype, rng):
    a, spoil = dominant(rng, BATCH, 6, 6, dtype), oracle.named("getrfnp").spoil
    for k in (4, 1, 3):
        spoil(2, k, a)
    spoil(9, 5, a)
    a[4] = 0
    a[7] = np.nan
    lu, info = getrfnp(a, queue=queue)
    assert info.tolist() == [0, 0, 2, 0, 1, 0, 0, 0, 0, 6, 0]
    assert not lu[4].any() and np.isnan(lu[7]).all()
    rest = np.arange(BATCH) != 7
    assert residual("getrfnp", [a[rest]], [lu[rest]]) < oracle.THRESHOLD


def test_pivots_of_any_magnitude(queue, dtype, rng):
    limits = np.finfo(dtype)
    for scale in (limits.tiny / limits.eps, limits.max / 64):
        a = (dominant(rng, BATCH, 3, 3, dtype) * scale).astype(dtype)
        lu, info = getrfnp(a, queue=queue)
        assert not info.any() and np.isfinite(lu).all()
        assert residual("getrfnp", [a], [lu]) < oracle.THRESHOLD


@pytest.mark.slow
@pytest.mark.parametrize(("n", "dtype"), in_turns([2, 3, 9]), ids=str)
def test_packs_side_by_side(n, dtype, rng):
    """Packs of known size are as each is alone, and pivots that are not regular change no others by a bit."""

    @njit(error_model="numpy")
    def alone(a, info):
        for p in range(2):
            factor(matrix(a[p], 8, n, n), info[8 * p : 8 * p + 8])

    @njit(error_model="numpy")
    def both(a, info):
        factor((matrix(a[0], 8, n, n), matrix(a[1], 8, n, n)), info)

    good = dominant(rng, 16, n, n, dtype)
    bad = good.copy()
    limits = np.finfo(dtype)
    for q, pivot in {1: 0, 4: np.inf, 6: np.nan, 9: limits.smallest_subnormal, 11: limits.max}.items():
        bad[q, 0, 0] = pivot
    bad[13] = np.triu(bad[13])
    bad[13, n - 1, n - 1] = 0
    found = []
    for a, run in ((good, alone), (bad, alone), (bad, both)):
        A, info = cla.pack(a, 8), np.zeros(16, np.int64)
        run(A.data, info)
        found.append((A.unpack(), info))
    (usual, none), (lu, info), (other, same) = found
    assert not none.any() and same.tolist() == info.tolist() == [n * (q == 13) + (q == 1) for q in range(16)]
    assert np.array_equal(lu, other, equal_nan=True)
    rest = ~np.isin(np.arange(16), [1, 4, 6, 9, 11, 13])
    assert same_bits(lu[rest], usual[rest])
    assert same_bits(lu[1, 1:, 0], bad[1, 1:, 0])


def test_unused_lanes_stay_finite(queue, dtype, rng):
    A = cla.pack(random(rng, (5, 3, 3), dtype), queue=queue)
    cla.getrfnp(A)
    expected = reference.pack(np.zeros((5, 3, 3), dtype), A.vlen)
    assert same_bits(A.to("cpu").data[..., 5:].copy(), expected[..., 5:].copy())


@pytest.mark.slow
def test_pivots_that_move_away_from_zero(queue, dtype, rng):
    """By a fixed amount, to the side where the real part is; zero pivots to the right."""
    for n in (1, 3, 9, 33):
        a = dominant(rng, BATCH, n, n, dtype) * rng.choice([-1, 1], (BATCH, n, 1)).astype(dtype)
        oracle.named("getrfnp").spoil(2, n // 2, a)
        a[5] = 0
        for tiny in (0.25, np.float32(1e-3)):
            A = cla.pack(a, queue=queue)
            assert not cla.getrfnp(A, tiny=tiny).any()
            lu = A.unpack()
            assert residual("getrfnp", [a], [lu], tiny=tiny) < oracle.THRESHOLD
            assert same_bits(lu[5], (tiny * np.eye(n)).astype(dtype))
        A = cla.pack(a, queue=queue)
        cla.getrfnp(A, 0.0)
        assert same_bits(A.unpack(), getrfnp(a, queue=queue)[0])


def test_amounts_that_are_refused(queue, rng):
    a = random(rng, (5, 3, 3), np.complex64)
    A = cla.pack(a, queue=queue)
    for error, tiny in (
        (ValueError, -1),
        (ValueError, np.inf),
        (ValueError, np.nan),
        (TypeError, 1j),
        (TypeError, "1"),
    ):
        with pytest.raises(error, match="tiny is"):
            cla.getrfnp(A, tiny=tiny)
    assert same_bits(A.unpack(), a)
