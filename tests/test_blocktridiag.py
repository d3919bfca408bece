"""BlockTridiag: factor and solve lines of blocks."""

import copy
import pickle

import numpy as np
import pyopencl.array
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyopencl.tools import ImmediateAllocator, MemoryPool

import compactla as cla
import reference
from cases import BATCH, LANES, in_turns, lines, random, same_bits
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
    assert reference.solve_ratio(reference.block_tridiagonal(*blocks), x, rhs) < THRESHOLD


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


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda T: pickle.loads(pickle.dumps(T))])
def test_copies_before_they_are_factored(copied, rng):
    blocks, rhs = lines(rng, 7, 3, 4, np.float64), random(rng, (7, 3, 4), np.float64)
    T = cla.BlockTridiag(*blocks)
    U = copied(T)
    T.factor()
    with pytest.raises(RuntimeError, match="not factored"):
        U.solve(rhs)
    U.factor()
    assert same_bits(U.solve(rhs), T.solve(rhs))


def test_solutions_in_the_memory_of_factors(rng):
    T, _ = factored(lines(rng, 1, 3, 3, np.float64), 1)
    with pytest.raises(ValueError, match="out shares memory with diag of the lines, must not"):
        T.solve(np.ones((1, 3, 3)), out=T.diag.reshape(-1)[:9].reshape(1, 3, 3))


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


def test_memory_of_results_on_devices_is_used_again(queue, rng):
    """Without an allocator, a result that is gone leaves its memory to the next one; one that is there keeps it."""
    if queue is None:
        return
    T, _ = factored(lines(rng, 40, 8, 3, np.float64), queue=queue)
    rhs = pyopencl.array.to_device(queue, random(rng, (40, 8, 3), np.float64))
    x = T.solve(rhs)
    expected, place = x.get(), x.base_data.int_ptr
    y = T.solve(2 * rhs)
    assert same_bits(x.get(), expected) and same_bits(y.get(), 2 * expected)
    del x
    assert T.solve(rhs).base_data.int_ptr == place
    pool = MemoryPool(ImmediateAllocator(queue))
    own = pyopencl.array.to_device(queue, rhs.get(), allocator=pool)
    assert T.solve(own).allocator is pool
