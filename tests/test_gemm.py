"""gemm at the batch level: C <- alpha op(A) op(B) + beta C."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import compactla as cla
import reference
from cases import BATCH, FEW, LANES, LAYOUTS, SIZES, in_turns, poisoned, random, same_bits, scalars

OPTIONS = list(product("NTC", repeat=2))


def operands(rng, nm, m, n, k, dtype, transa="N", transb="N"):
    a = random(rng, (nm, m, k) if transa.upper() == "N" else (nm, k, m), dtype)
    b = random(rng, (nm, k, n) if transb.upper() == "N" else (nm, n, k), dtype)
    return a, b, random(rng, (nm, m, n), dtype)


def gemm(a, b, c, *options, vlen=None, queue=None, layout=cla.pack):
    """The result of `cla.gemm` on packs of the operands."""
    A, B, C = (layout(x, vlen, queue) for x in (a, b, c))
    assert cla.gemm(A, B, C, *options) is C
    assert same_bits(A.unpack(), a) and same_bits(B.unpack(), b)
    return C.unpack()


def check(a, b, c, *options, **where):
    result = gemm(a, b, c, *options, **where)
    assert reference.gemm_ratio(result, a, b, c, *options) < reference.THRESHOLD


@pytest.mark.parametrize(("n", "dtype"), in_turns(SIZES, FEW), ids=str)
def test_squares(queue, dtype, n, rng):
    pairs = list(product(scalars(dtype), repeat=2))
    for i, (transa, transb) in enumerate(OPTIONS):
        alpha, beta = pairs[(5 * n + i) % len(pairs)]
        check(*operands(rng, BATCH, n, n, n, dtype), alpha, beta, transa, transb, queue=queue)


@pytest.mark.parametrize(("m", "n", "k"), [(3, 4, 5), (16, 16, 16), (17, 9, 20), (5, 6, 0)])
def test_scalars(queue, dtype, m, n, k, rng):
    for alpha, beta in product(scalars(dtype), repeat=2):
        check(*operands(rng, BATCH, m, n, k, dtype), alpha, beta, queue=queue)


@pytest.mark.parametrize(("transa", "transb"), OPTIONS)
def test_rectangles(queue, dtype, transa, transb, rng):
    for m, n, k in ((1, 7, 2), (12, 1, 5), (6, 13, 1), (4, 0, 3), (0, 4, 3), (10, 31, 3)):
        check(*operands(rng, BATCH, m, n, k, dtype, transa, transb), 1, -1, transa.lower(), transb, queue=queue)


@given(
    sizes=st.tuples(*[st.integers(0, 50)] * 3),
    nm=st.integers(0, 40),
    trans=st.sampled_from(OPTIONS),
    alpha=st.floats(-2, 2),
    beta=st.floats(-2, 2),
)
def test_any_shape(queue, sizes, nm, trans, alpha, beta):
    rng = np.random.default_rng(0)
    check(*operands(rng, nm, *sizes, np.float64, *trans), alpha, beta, *trans, queue=queue)


@pytest.mark.parametrize(("vlen", "dtype"), LANES)
def test_vector_lengths_and_batches(queue, dtype, vlen, rng):
    for nm in (0, 1, 4, 33):
        check(*operands(rng, nm, 5, 4, 3, dtype), 0.5, 2, vlen=vlen, queue=queue)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_views(queue, dtype, layout, rng):
    for transa, transb in ("NN", "TC", "CT"):
        a, b, c = operands(rng, BATCH, 5, 4, 6, dtype, transa, transb)
        check(a, b, c, 1, 1, transa, transb, vlen=4, queue=queue, layout=layout)


def test_what_surrounds_a_block_is_left_alone(queue, dtype, rng):
    a, b, whole = operands(rng, BATCH, 7, 8, 3, dtype)
    A, B, W = (cla.pack(x, 4, queue) for x in (a, b, whole))
    cla.gemm(A[1:5, :], B[:, 2:7], W[2:6, 1:6], 2, 1)
    expected = whole.copy()
    expected[:, 2:6, 1:6] = W[2:6, 1:6].unpack()
    assert same_bits(W.unpack(), expected)
    assert reference.gemm_ratio(expected[:, 2:6, 1:6], a[:, 1:5], b[:, :, 2:7], whole[:, 2:6, 1:6], 2, 1) < 30


def test_zero_scalars_read_nothing(queue, dtype, rng):
    for m, n, k in ((3, 4, 5), (9, 9, 9)):
        a, b, c = operands(rng, BATCH, m, n, k, dtype)
        for value in (np.nan, np.inf):
            unset = np.full_like(c, value)
            for alpha in scalars(dtype):
                assert np.isfinite(gemm(a, b, unset, alpha, 0, queue=queue)).all()
            for beta in scalars(dtype):
                check(np.full_like(a, value), np.full_like(b, value), c, 0, beta, queue=queue)


def test_unused_lanes_may_hold_anything(queue, dtype, rng):
    a, b, c = operands(rng, BATCH, 5, 5, 5, dtype)
    A, B, C = (poisoned(x, 8, queue) for x in (a, b, c))
    assert same_bits(cla.gemm(A, B, C, 1, 1).unpack(), gemm(a, b, c, 1, 1, vlen=8, queue=queue))


def test_results_do_not_depend_on_the_rest_of_the_batch(queue, dtype, rng):
    a, b, c = operands(rng, 300, 6, 6, 6, dtype)
    whole = gemm(a, b, c, 1, -1, queue=queue)
    for part in (slice(0, 1), slice(1, 2), slice(5, 42), slice(299, 300), slice(None, None, -1)):
        assert same_bits(gemm(*(x[part].copy() for x in (a, b, c)), 1, -1, queue=queue), whole[part].copy())


def test_scalars_of_numpy(queue, dtype, rng):
    a, b, c = operands(rng, 3, 2, 2, 2, dtype)
    expected = gemm(a, b, c, 0.5, -1, queue=queue)
    assert same_bits(gemm(a, b, c, dtype.type(0.5), np.int64(-1), queue=queue), expected)
