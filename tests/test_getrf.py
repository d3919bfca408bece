"""getrfnp at the batch level: A <- L\\U without pivoting, and info."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import compactla as cla
import reference
from cases import BATCH, FEW, LANES, LAYOUTS, SIZES, dominant, in_turns, make_singular, poisoned, random, same_bits


def getrfnp(a, vlen=None, queue=None, layout=cla.pack):
    """The factors and info that `cla.getrfnp` makes of a pack of `a`."""
    A = layout(a, vlen, queue)
    info = cla.getrfnp(A)
    assert isinstance(info, np.ndarray) and info.shape == (len(a),) and info.dtype.kind == "i"
    return A.unpack(), info


def check(a, **where):
    lu, info = getrfnp(a, **where)
    assert not info.any()
    assert reference.getrfnp_ratio(lu, a) < reference.THRESHOLD


@pytest.mark.parametrize(("n", "dtype"), in_turns(SIZES, FEW), ids=str)
def test_squares(queue, dtype, n, rng):
    check(dominant(rng, BATCH, n, n, dtype), queue=queue)


def test_rectangles(queue, dtype, rng):
    for m, n in ((1, 6), (6, 1), (3, 8), (8, 3), (17, 5), (5, 33), (0, 4), (4, 0)):
        check(dominant(rng, BATCH, m, n, dtype), queue=queue)


@given(m=st.integers(0, 50), n=st.integers(0, 50), nm=st.integers(0, 40))
def test_any_shape(queue, m, n, nm):
    check(dominant(np.random.default_rng(0), nm, m, n, np.float64), queue=queue)


@pytest.mark.parametrize(("vlen", "dtype"), LANES)
def test_vector_lengths_and_batches(queue, dtype, vlen, rng):
    for nm in (0, 1, 4, 33):
        check(dominant(rng, nm, 5, 5, dtype), vlen=vlen, queue=queue)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_views(queue, dtype, layout, rng):
    check(dominant(rng, BATCH, 5, 4, dtype), vlen=4, queue=queue, layout=layout)


def test_what_surrounds_a_block_is_left_alone(queue, dtype, rng):
    whole = dominant(rng, BATCH, 7, 8, dtype)
    W = cla.pack(whole, 4, queue)
    cla.getrfnp(W[2:6, 2:7])
    expected = whole.copy()
    expected[:, 2:6, 2:7] = W[2:6, 2:7].unpack()
    assert same_bits(W.unpack(), expected)
    assert reference.getrfnp_ratio(expected[:, 2:6, 2:7], whole[:, 2:6, 2:7]) < reference.THRESHOLD


@pytest.mark.parametrize(
    ("size", "dtype"), in_turns([(1, 1), (3, 3), (5, 5), (16, 16), (33, 33), (9, 4), (4, 9)]), ids=str
)
def test_a_zero_pivot_is_reported_and_stays_alone(queue, dtype, size, rng):
    m, n = size
    a = dominant(rng, BATCH, m, n, dtype)
    good, _ = getrfnp(a, 4, queue)
    for k in {0, min(m, n) // 2, min(m, n) - 1}:
        bad = a.copy()
        make_singular(bad[6], k)
        lu, info = getrfnp(bad, 4, queue)
        assert np.array_equal(info, np.where(np.arange(BATCH) == 6, k + 1, 0))
        others = np.arange(BATCH) != 6
        assert same_bits(lu[others], good[others])
        assert reference.getrfnp_ratio(lu, bad) < reference.THRESHOLD


def test_info_is_of_the_first_zero_pivot(queue, dtype, rng):
    a = dominant(rng, BATCH, 6, 6, dtype)
    for k in (4, 1, 3):
        make_singular(a[2], k)
    make_singular(a[9], 5)
    a[4] = 0
    a[7] = np.nan
    lu, info = getrfnp(a, queue=queue)
    assert info.tolist() == [0, 0, 2, 0, 1, 0, 0, 0, 0, 6, 0]
    assert not lu[4].any() and np.isnan(lu[7]).all()
    rest = np.arange(BATCH) != 7
    assert reference.getrfnp_ratio(lu[rest], a[rest]) < reference.THRESHOLD


def test_pivots_of_any_magnitude(queue, dtype, rng):
    limits = np.finfo(dtype)
    for scale in (limits.tiny / limits.eps, limits.max / 64):
        a = (dominant(rng, BATCH, 3, 3, dtype) * scale).astype(dtype)
        lu, info = getrfnp(a, queue=queue)
        assert not info.any() and np.isfinite(lu).all()
        assert reference.getrfnp_ratio(lu, a) < reference.THRESHOLD


def test_unused_lanes_may_hold_anything(queue, dtype, rng):
    a = dominant(rng, BATCH, 5, 5, dtype)
    A = poisoned(a, 8, queue)
    lu, info = getrfnp(a, 8, queue)
    assert np.array_equal(cla.getrfnp(A), info)
    assert same_bits(A.unpack(), lu)


def test_unused_lanes_stay_finite(queue, dtype, rng):
    A = cla.pack(random(rng, (5, 4, 4), dtype), 8, queue)
    cla.getrfnp(A)
    assert np.array_equal(A.to("cpu").data[..., 5:], reference.pack(np.zeros((5, 4, 4), dtype), 8)[..., 5:])


def test_results_do_not_depend_on_the_rest_of_the_batch(queue, dtype, rng):
    a = dominant(rng, 300, 6, 6, dtype)
    whole, _ = getrfnp(a, queue=queue)
    for part in (slice(0, 1), slice(1, 2), slice(5, 42), slice(299, 300), slice(None, None, -1)):
        assert same_bits(getrfnp(a[part].copy(), queue=queue)[0], whole[part].copy())
