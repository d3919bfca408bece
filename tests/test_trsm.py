"""trsm at the batch level: B <- alpha op(A)^-1 B or alpha B op(A)^-1."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import compactla as cla
import reference
from cases import BATCH, FEW, LANES, LAYOUTS, SIZES, dominant, hide, in_turns, poisoned, random, same_bits, scalars

OPTIONS = list(product("LR", "LU", "NTC", "NU"))


def operands(rng, nm, n, nrhs, dtype, side="L", uplo="L", trans="N", diag="N"):
    """A with NaN in all that must not be read, B with `nrhs` right-hand sides."""
    a = (dominant(rng, nm, n, n, dtype) / max(n, 1)).astype(dtype)
    return hide(a, uplo, diag), random(rng, (nm, n, nrhs) if side == "L" else (nm, nrhs, n), dtype)


def trsm(a, b, *options, vlen=None, queue=None, layout=cla.pack):
    """The result of `cla.trsm` on packs of the operands."""
    A, B = (layout(x, vlen, queue) for x in (a, b))
    assert cla.trsm(A, B, *options) is B
    assert same_bits(A.unpack(), a)
    return B.unpack()


def check(rng, nm, n, nrhs, dtype, options, alpha=1, **where):
    a, b = operands(rng, nm, n, nrhs, dtype, *options)
    x = trsm(a, b, *options, alpha, **where)
    assert reference.trsm_ratio(x, a, b, *options, alpha) < reference.THRESHOLD


@pytest.mark.parametrize(("n", "dtype"), in_turns(SIZES, FEW), ids=str)
def test_squares(queue, dtype, n, rng):
    all_options = n == 3 or n > 32  # known sizes have a kernel for each option: they take turns
    for i, options in enumerate(OPTIONS):
        if all_options or i % 7 == n % 7:
            check(rng, BATCH, n, n, dtype, options, scalars(dtype)[1:][(n + i) % 3], queue=queue)


@pytest.mark.parametrize("options", OPTIONS, ids="".join)
def test_rectangles(queue, dtype, options, rng):
    for n, nrhs in ((1, 5), (4, 1), (3, 18), (19, 2), (5, 0), (0, 5)):
        check(rng, BATCH, n, nrhs, dtype, options, queue=queue)


@given(
    n=st.integers(0, 50),
    nrhs=st.integers(0, 50),
    nm=st.integers(0, 40),
    options=st.sampled_from(OPTIONS),
    alpha=st.floats(-2, 2),
)
def test_any_shape(queue, n, nrhs, nm, options, alpha):
    check(np.random.default_rng(0), nm, n, nrhs, np.float64, options, alpha, queue=queue)


def test_lower_case(queue, dtype, rng):
    options = ("R", "U", "C", "U")
    a, b = operands(rng, BATCH, 4, 3, dtype, *options)
    expected = trsm(a, b, *options, queue=queue)
    assert same_bits(trsm(a, b, *(x.lower() for x in options), queue=queue), expected)


@pytest.mark.parametrize("side", ["L", "R"])
def test_zero_alpha_reads_nothing(queue, dtype, side, rng):
    a, b = operands(rng, BATCH, 4, 3, dtype, side)
    x = trsm(np.full_like(a, np.nan), np.full_like(b, np.nan), side, "L", "N", "N", 0, queue=queue)
    assert np.array_equal(x, np.zeros_like(b))


@pytest.mark.parametrize(("vlen", "dtype"), LANES)
def test_vector_lengths_and_batches(queue, dtype, vlen, rng):
    for nm in (0, 1, 4, 33):
        check(rng, nm, 5, 3, dtype, ("L", "U", "N", "N"), 0.5, vlen=vlen, queue=queue)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_views(queue, dtype, layout, rng):
    for options in ("LLNN", "RUTU", "LUCN"):
        check(rng, BATCH, 5, 4, dtype, options, vlen=4, queue=queue, layout=layout)


def test_what_surrounds_a_block_is_left_alone(queue, dtype, rng):
    a, whole = operands(rng, BATCH, 4, 9, dtype)[0], random(rng, (BATCH, 7, 8), dtype)
    A, W = (cla.pack(x, 4, queue) for x in (a, whole))
    cla.trsm(A, W[2:6, 1:6])
    expected = whole.copy()
    expected[:, 2:6, 1:6] = W[2:6, 1:6].unpack()
    assert same_bits(W.unpack(), expected)
    assert reference.trsm_ratio(expected[:, 2:6, 1:6], a, whole[:, 2:6, 1:6]) < reference.THRESHOLD


def test_unused_lanes_may_hold_anything(queue, dtype, rng):
    a, b = operands(rng, BATCH, 5, 3, dtype)
    A, B = (poisoned(x, 8, queue) for x in (a, b))
    assert same_bits(cla.trsm(A, B).unpack(), trsm(a, b, vlen=8, queue=queue))


def test_a_singular_matrix_stays_alone(queue, dtype, rng):
    a, b = operands(rng, BATCH, 5, 3, dtype)
    good = trsm(a, b, vlen=4, queue=queue)
    a[6, 2, 2] = 0
    x = trsm(a, b, vlen=4, queue=queue)
    others = np.arange(BATCH) != 6
    assert same_bits(x[others], good[others])
    assert not np.isfinite(x[6, 2:]).any()


def test_results_do_not_depend_on_the_rest_of_the_batch(queue, dtype, rng):
    a, b = operands(rng, 300, 6, 5, dtype)
    whole = trsm(a, b, queue=queue)
    for part in (slice(0, 1), slice(1, 2), slice(5, 42), slice(299, 300), slice(None, None, -1)):
        assert same_bits(trsm(a[part].copy(), b[part].copy(), queue=queue), whole[part].copy())
