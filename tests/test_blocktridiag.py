"""BlockTridiag: factor and solve lines of blocks."""

import copy
import pickle

import numpy as np
import pyopencl.array
import pytest
from hypothesis import given
from hypothesis import strategies as st

import compactla as cla
import reference
from cases import BATCH, LANES, in_turns, lines, make_singular, random, same_bits
from compactla.cpu import arrays as memory
from compactla.oracle import THRESHOLD
from systems import scattered


def factored(blocks, vlen=None, queue=None):
    T = cla.BlockTridiag(*blocks, vlen=vlen, queue=queue)
    return T, T.factor()


def check(blocks, rhs, **where):
    """Solve, and hold the result against the dense matrices."""
    T, info = factored(blocks, **where)
    assert info.shape == blocks[1].shape[:1] and info.dtype == np.int64 and not info.any()
    assert np.array_equal(T.info, info)
    x = T.solve(rhs)
    assert x.shape == rhs.shape and x.dtype == rhs.dtype
    assert ratio(blocks, x, rhs) < THRESHOLD


def ratio(blocks, x, rhs):
    nlines, K, b, *nrhs = rhs.shape
    columns = (nlines, K * b, *(nrhs or [1]))
    return reference.solve_ratio(reference.block_tridiagonal(*blocks), x.reshape(columns), rhs.reshape(columns))


# Every size up to 16 is compiled for, which takes a second for factor and solve each: these stand for all.
BLOCKS = [0, 1, 2, 3, 5, 8, 9, 15, 16, 17, 33, 50]


@pytest.mark.parametrize(("b", "dtype"), in_turns(BLOCKS, always=[0, 3, 9, 17, 33]), ids=str)
def test_block_sizes(queue, dtype, b, rng):
    check(lines(rng, BATCH, 3, b, dtype), random(rng, (BATCH, 3, b), dtype), queue=queue)


@pytest.mark.parametrize(("nrhs", "dtype"), in_turns([0, 1, 3, 8, 17], always=[1, 3, 17]), ids=str)
def test_right_hand_sides(queue, dtype, nrhs, rng):
    for b in (3, 17):
        check(lines(rng, BATCH, 4, b, dtype), random(rng, (BATCH, 4, b, nrhs), dtype), queue=queue)


def test_line_lengths(queue, dtype, rng):
    for K in (1, 2, 5, 40):
        check(lines(rng, BATCH, K, 3, dtype), random(rng, (BATCH, K, 3), dtype), queue=queue)


def test_several_slots_at_once(dtype, rng):
    """Whether block rows of a line follow each other in memory makes no difference, nor where they do."""
    for b, nrhs, lengths in ((3, 1, [29, 29, 29, 20, 8, 1]), (1, 2, [13] * 9)):
        M, scattered_lines = scattered(rng, lengths, b, dtype)
        inside = [np.arange(stop - n, stop) for n, stop in zip(lengths, np.cumsum(lengths), strict=True)]
        back = [line[::-1] for line in inside]
        halves = [np.roll(line, len(line) // 2) for line in inside]
        rhs = random(rng, (M.shape[0], nrhs), dtype)
        options = {"vlen": 4, "parts": 1, "refine": nrhs - 1}
        expected = cla.LinePreconditioner(M, scattered_lines, **options).solve(rhs).reshape(-1, b, nrhs)
        order = np.concatenate(scattered_lines)
        for arranged in (inside, back, halves):
            # The matrix whose block row arranged[i] is scattered_lines[i] of the other one.
            place = np.empty(len(order), np.int64)
            place[np.concatenate(arranged)] = order
            rows = (place[:, None] * b + np.arange(b)).ravel()
            P = cla.LinePreconditioner(M.tocsr()[rows][:, rows], arranged, b, **options)
            assert same_bits(P.solve(rhs[rows]).reshape(-1, b, nrhs), expected[place])


@pytest.mark.parametrize(("vlen", "dtype"), LANES)
def test_vector_lengths_and_batches(queue, dtype, vlen, rng):
    for nlines in (0, 1, 4, 33):
        check(lines(rng, nlines, 3, 3, dtype), random(rng, (nlines, 3, 3), dtype), vlen=vlen, queue=queue)


@pytest.mark.slow
@given(
    nlines=st.integers(0, 40), K=st.integers(1, 9), b=st.sampled_from([0, 3, 9, 17]), nrhs=st.sampled_from([0, 1, 3])
)
def test_any_shape(queue, nlines, K, b, nrhs):
    rng = np.random.default_rng(0)
    check(lines(rng, nlines, K, b, np.float64), random(rng, (nlines, K, b, nrhs), np.float64), queue=queue)


def test_any_strides(queue, dtype, rng):
    blocks, rhs = lines(rng, BATCH, 4, 3, dtype), random(rng, (BATCH, 4, 3, 2), dtype)
    expected = factored(blocks, queue=queue)[0].solve(rhs)
    for arrange in (np.asfortranarray, lambda a: a[::-1, ::-1, ::-1].copy()[::-1, ::-1, ::-1]):
        strided = [arrange(a) for a in (*blocks, rhs)]
        for a in strided:
            a.flags.writeable = False
        assert same_bits(factored(strided[:3], queue=queue)[0].solve(strided[3]), expected)


def test_arguments_are_left_alone(queue, dtype, rng):
    arrays = (*lines(rng, BATCH, 4, 3, dtype), random(rng, (BATCH, 4, 3), dtype))
    copies = [a.copy() for a in arrays]
    T, _ = factored(arrays[:3], queue=queue)
    x = T.solve(arrays[3])
    assert all(map(same_bits, arrays, copies))
    assert same_bits(T.solve(arrays[3]), x)


def test_device_arrays_in_and_out(queue, dtype, rng):
    if queue is None:
        put, get = np.copy, np.asarray
    else:
        put, get = lambda a: pyopencl.array.to_device(queue, a), lambda a: a.get()
    blocks, rhs = lines(rng, BATCH, 4, 3, dtype), random(rng, (BATCH, 4, 3), dtype)
    expected = factored(blocks, queue=queue)[0].solve(rhs)
    T, _ = factored([put(a) for a in blocks])
    x = T.solve(put(rhs))
    assert type(x) is type(put(rhs))
    assert same_bits(get(x), expected)
    assert same_bits(T.solve(rhs), expected)


def test_a_singular_line_is_reported_and_stays_alone(queue, dtype, rng):
    K, b = 4, 3
    blocks, rhs = lines(rng, BATCH, K, b, dtype), random(rng, (BATCH, K, b), dtype)
    expected = factored(blocks, 4, queue=queue)[0].solve(rhs)
    others = np.arange(BATCH) != 6
    for k, i in ((0, 0), (0, 2), (2, 1), (3, 2)):
        lower, diag, upper = (a.copy() for a in blocks)
        make_singular(diag[6, k], i)
        if k:
            lower[6, k - 1, i] = 0
        T, info = factored((lower, diag, upper), 4, queue=queue)
        assert np.array_equal(info, np.where(others, 0, 1 + k * b + i))
        assert same_bits(T.solve(rhs)[others], expected[others])


def test_results_do_not_depend_on_the_rest_of_the_batch(queue, dtype, rng):
    blocks, rhs = lines(rng, 150, 3, 3, dtype), random(rng, (150, 3, 3), dtype)
    whole = factored(blocks, queue=queue)[0].solve(rhs)
    for part in (slice(0, 1), slice(5, 42), slice(149, 150), slice(None, None, -1)):
        x = factored([a[part] for a in blocks], queue=queue)[0].solve(rhs[part])
        assert same_bits(x, whole[part].copy())


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda T: pickle.loads(pickle.dumps(T))])
def test_copies_solve(copied, rng):
    blocks, rhs = lines(rng, 7, 3, 4, np.float64), random(rng, (7, 3, 4), np.float64)
    T = cla.BlockTridiag(*blocks)
    early = copied(T)
    early.factor()
    x = early.solve(rhs)
    late = copied(early)
    for block in (early.lower, early.diag, early.upper):
        block[...] = np.nan
    del T, early
    assert same_bits(late.solve(rhs), x)
    assert reference.solve_ratio(reference.block_tridiagonal(*blocks), x.reshape(7, 12, 1), rhs.reshape(7, 12, 1)) < 30


def test_factorizations_that_are_broken_off(rng, monkeypatch):
    """The arrays then hold neither blocks nor factors."""
    blocks = lines(rng, 5, 4, 3, np.float64)
    T, U = (cla.BlockTridiag(*blocks, vlen=4) for _ in range(2))
    arrays = [a.copy() for a in (T.lower, T.diag, T.upper)]
    rhs = rng.random((5, 4, 3))

    def interrupt(info):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(memory, "download", interrupt)
        with pytest.raises(KeyboardInterrupt):
            T.factor()
    for call in (T.factor, lambda: T.solve(rhs)):
        with pytest.raises(RuntimeError, match="fill the blocks again"):
            call()
    for array, values in zip((T.lower, T.diag, T.upper), arrays, strict=True):
        array[...] = values
    assert not T.refactor().any() and not U.factor().any()
    assert same_bits(T.solve(rhs), U.solve(rhs))


def test_memory_of_results_is_used_again(rng):
    """The memory of a large result is used again only once neither it nor a view of it is there any more."""
    T, _ = factored(lines(rng, 400, 32, 3, np.float64))
    rhs = random(rng, (400, 32, 3), np.float64)
    x = T.solve(rhs)
    place, expected, view = x.ctypes.data, x.copy(), x[3, 1:]
    del x
    y = T.solve(2 * rhs)
    assert y.flags.writeable and y.ctypes.data != place
    assert same_bits(view, expected[3, 1:]) and same_bits(y, 2 * expected)
    del view
    z = T.solve(rhs)
    assert z.ctypes.data == place and same_bits(z, expected) and same_bits(y, 2 * expected)
