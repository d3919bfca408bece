"""pack, unpack and Pack: the memory, the views, every kind of source, every device."""

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pyopencl.array
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import compactla as cla
import reference
from cases import BATCH, DTYPES, LAYOUTS, VLENS, in_turns, random, same_bits
from compactla.cpu import arrays
from compactla.cpu.threads import sharing
from compactla.cpu.threads.pool import BOX
from compactla.layout import packed

ROOT = Path(__file__).resolve().parent.parent


def memory(A):
    """The memory of a pack as a NumPy array."""
    return A.to("cpu").data


def check(a, A):
    """`A` is exactly the pack of `a`, with the identity in its unused lanes."""
    assert (A.nm, A.m, A.n, A.dtype) == (*a.shape, a.dtype)
    assert same_bits(memory(A), reference.pack(a, A.vlen))
    assert same_bits(A.unpack(), np.ascontiguousarray(a))


@pytest.mark.parametrize("vlen", VLENS)
def test_memory_is_the_compact_format(queue, dtype, vlen, rng):
    for nm in (0, 1, 3, 4, 33, 64):
        for m, n in ((3, 3), (1, 1), (2, 5), (5, 2), (0, 3), (3, 0), (33, 17)):
            a = random(rng, (nm, m, n), dtype)
            A = cla.pack(a, vlen, queue=queue)
            assert A.vlen == vlen or vlen is None
            check(a, A)


def test_attributes(queue):
    A = cla.pack(np.ones((5, 3, 2), np.complex64), 4, queue=queue)
    assert A.device == ("cpu" if queue is None else queue.device)
    assert A.queue is queue
    assert A.data.shape == (2, 3, 2, 2, 4)
    assert A.data.dtype == np.float32
    assert "complex64" in repr(A)


def test_large_packs_begin_at_different_lines_of_a_page():
    """So that reads from one are not taken for reads of what was just written to another."""
    packs = [cla.Pack.empty(100, 16, 16) for _ in range(4)]
    assert len({A.data.ctypes.data % 4096 for A in packs}) == len(packs)
    assert all(A.data.ctypes.data % 64 == 0 for A in packs)


def test_memory_is_aligned_for_vectors(dtype):
    assert cla.pack(np.ones((9, 3, 3), dtype)).data.ctypes.data % 64 == 0


SOURCES = {
    "C": lambda a: np.ascontiguousarray(a),
    "F": lambda a: np.asfortranarray(a),
    "column-major matrices": lambda a: np.ascontiguousarray(a.swapaxes(1, 2)).swapaxes(1, 2),
    "batch last": lambda a: np.ascontiguousarray(a.transpose(1, 2, 0)).transpose(2, 0, 1),
    "offset": lambda a: np.pad(a, ((2, 1), (1, 3), (3, 1)))[2:-1, 1:-3, 3:-1],
    "strided": lambda a: np.repeat(np.repeat(np.repeat(a, 2, 0), 3, 1), 2, 2)[::2, ::3, ::2],
}
NUMPY_SOURCES = {
    **SOURCES,
    "negative strides": lambda a: np.ascontiguousarray(a[::-1, ::-1, ::-1])[::-1, ::-1, ::-1],
    "broadcast": lambda a: np.broadcast_to(a[:1], a.shape),
    "no alignment": lambda a: np.frombuffer(b"x" + a.tobytes(), a.dtype, offset=1).reshape(a.shape),
}


@pytest.mark.parametrize("source", NUMPY_SOURCES.values(), ids=NUMPY_SOURCES)
def test_sources(queue, dtype, source, rng):
    a = source(random(rng, (BATCH, 4, 3), dtype))
    copy = a.copy()
    a.flags.writeable = False
    check(copy, cla.pack(a, 4, queue=queue))


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_device_sources_and_targets(queue, dtype, source, rng):
    def arrange(a):
        a = source(a)
        return a if queue is None else on_device(a, queue)

    a = random(rng, (BATCH, 4, 3), dtype)
    A = cla.pack(arrange(a), 4)
    assert A.queue is queue
    check(a, A)
    target = arrange(np.zeros_like(a))
    assert A.unpack(out=target) is target
    assert same_bits(np.ascontiguousarray(target if queue is None else on_host(target)), a)


def on_device(a, queue):
    """The memory that `a` is a view of, on the device, as an Array with the same strides and offset."""
    memory = a
    while memory.base is not None:
        memory = memory.base
    offset = a.ctypes.data - memory.ctypes.data
    buffer = pyopencl.array.to_device(queue, memory.ravel("K")).base_data
    return pyopencl.array.Array(queue, a.shape, a.dtype, strides=a.strides, data=buffer, offset=offset)


def on_host(a):
    memory = np.empty(a.base_data.size, np.uint8)
    a.finish()
    pyopencl.enqueue_copy(a.queue, memory, a.base_data)
    return np.ndarray(a.shape, a.dtype, memory, a.offset, a.strides)


def test_lists_are_arrays(queue):
    check(np.arange(6.0).reshape(1, 2, 3), cla.pack([[[0.0, 1, 2], [3, 4, 5]]], queue=queue))


def test_padding_of_lines_of_blocks(queue, dtype, rng):
    a = random(rng, (5, 6, 2), dtype)
    for unit in (0, 1):
        A = packed(a, 4, queue, period=2, unit=unit)
        assert same_bits(memory(A), reference.pack(a, 4, 2, unit))


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_views_unpack(queue, dtype, layout, rng):
    a = random(rng, (BATCH, 4, 3), dtype)
    A = layout(a, 4, queue=queue)
    assert same_bits(A.unpack(), a)
    assert same_bits(A.T.unpack(), np.ascontiguousarray(a.swapaxes(1, 2)))
    assert same_bits(A[1:, 1:3].T[:1, :].unpack(), np.ascontiguousarray(a[:, 1:, 1:2].swapaxes(1, 2)))
    assert same_bits(memory(A), reference.pack(a, 4)) or layout is not cla.pack


def test_views_share_memory(rng):
    A = cla.pack(random(rng, (5, 4, 3), np.float64), 4)
    for view in (A.T, A[1:3, :2], cla.Pack(A.data, A.nm)):
        assert np.shares_memory(A.data, view.data)
    assert A.T.T.view == A.view


def test_wrapping_is_without_a_copy(queue, dtype, rng):
    a = random(rng, (7, 4, 3), dtype)
    A = cla.pack(a, 4, queue=queue)
    B = cla.Pack(A.data, 7)
    assert B.data is A.data
    check(a, B)
    assert cla.Pack(A.data).nm == 8


def test_copies_between_devices(queue, dtype, rng):
    a = random(rng, (BATCH, 4, 3), dtype)
    A = cla.pack(a, 4)
    there = A.to("cpu" if queue is None else queue)
    back = there.to("cpu")
    assert there.queue is queue
    A.data[...] = 0
    check(a, there)
    check(a, back)


def test_new_packs(queue, dtype):
    options = {"dtype": dtype, "vlen": 4, "queue": queue}
    check(np.zeros((5, 2, 3), dtype), cla.Pack.zeros(5, 2, 3, **options))
    check(np.broadcast_to(np.eye(3, dtype=dtype), (5, 3, 3)), cla.Pack.identity(5, 3, **options))
    check(np.broadcast_to(np.eye(3, 2, dtype=dtype), (5, 3, 2)), cla.Pack.identity(5, 3, 2, **options))
    E = cla.Pack.empty(5, 2, 3, **options)
    lanes = memory(E)[1, ..., 1:]
    assert same_bits(lanes.copy(), reference.pack(np.zeros((5, 2, 3), dtype), 4)[1, ..., 1:].copy())


def test_many_small_matrices(queue, rng):
    a = random(rng, (20011, 3, 2), np.float64)
    check(a[:1000], cla.pack(a[:1000], queue=queue))
    A = cla.pack(a, queue=queue)
    assert same_bits(A.unpack(), a)
    assert same_bits(A.T.unpack(), np.ascontiguousarray(a.swapaxes(1, 2)))


@given(
    shape=st.tuples(st.integers(0, 70), st.integers(0, 50), st.integers(0, 50)),
    vlen=st.integers(1, 40),
    dtype=st.sampled_from(list(DTYPES.values())),
)
def test_any_shape(shape, vlen, dtype):
    a = random(np.random.default_rng(0), shape, dtype)
    A = cla.pack(a, vlen)
    assert A.data.shape[0] == -(-shape[0] // vlen)
    assert same_bits(A.unpack(), a)


def strided(shape, steps, axes, shift, dtype):
    """Bytes, and an array in them with these steps, its axes in this order in memory, `shift` bytes from the start."""
    room = [shape[axis] * max(abs(steps[axis]), 1) for axis in axes]
    memory = np.full(np.prod(room) * np.dtype(dtype).itemsize + shift + 9, 0xA5, np.uint8)
    whole = np.ndarray(room, dtype, memory, shift).transpose(np.argsort(axes))
    part = whole[tuple(slice(None, None, step) if step else slice(1) for step in steps)]
    strides = [stride if step else 0 for stride, step in zip(part.strides, steps, strict=True)]
    return memory, np.lib.stride_tricks.as_strided(part, shape, strides)


ANY_STRIDES = {
    "shape": st.tuples(st.integers(1, 40), st.integers(1, 9), st.integers(1, 9)),
    "steps": st.tuples(*[st.sampled_from([1, 1, 1, 2, -1, -3])] * 3),
    "axes": st.permutations(range(3)),
    "shift": st.integers(0, 9),
    "vlen": st.sampled_from([1, 2, 3, 4, 5, 7, 8, 12, 16, 32]),
    "dtype": st.sampled_from(list(DTYPES.values())),
}


@given(**ANY_STRIDES, fixed=st.sampled_from([None, None, 0, 1, 2]))
@settings(max_examples=150)
def test_any_source(shape, steps, axes, shift, vlen, dtype, fixed):
    """Sources of any axis order, steps and alignment, and broadcast ones, to packs of their own and to any memory."""
    steps = [0 if axis == fixed else step for axis, step in enumerate(steps)]
    a = strided(shape, steps, axes, shift, dtype)[1]
    a[...] = random(np.random.default_rng(0), shape, dtype) if fixed is None else 0.75
    packed = reference.pack(a, vlen)
    assert same_bits(cla.pack(a, vlen).data, packed)
    memory = np.full(packed.size + 3, np.nan, packed.dtype)
    A = cla.Pack(memory[1:-2].reshape(packed.shape), len(a))
    arrays.pack(a, A.view, len(a), shape[1], 1)
    assert same_bits(A.data, packed)
    assert np.isnan(memory[[0, -2, -1]]).all()


@pytest.mark.slow
@pytest.mark.parametrize("past", [1 << 30, 0])
@given(**ANY_STRIDES)
@settings(max_examples=150)
def test_any_target(past, shape, steps, axes, shift, vlen, dtype):
    """Nothing but the target is written."""
    a = random(np.random.default_rng(0), shape, dtype)
    memory, target = strided(shape, steps, axes, shift, dtype)
    expected, view = strided(shape, steps, axes, shift, dtype)
    view[...] = a
    A = cla.pack(a, vlen)
    with mock.patch.object(arrays, "past_caches", lambda: past):
        A.unpack(out=target)
    assert same_bits(memory, expected)


@pytest.mark.parametrize(("vlen", "dtype"), in_turns([1, 8, 2, 16, 3, 4, 32]), ids=str)
@pytest.mark.parametrize("source", NUMPY_SOURCES.values(), ids=NUMPY_SOURCES)
def test_large_batches_go_past_the_caches(monkeypatch, dtype, vlen, source, rng):
    monkeypatch.setattr(arrays, "past_caches", lambda: 0)
    for shape in ((35, 4, 3), (400, 5, 5), (3, 1, 1), (37, 17, 9)):
        a = source(random(rng, shape, dtype))
        check(a, cla.pack(a, vlen))
        assert same_bits(cla.pack(a.swapaxes(1, 2), vlen).T.unpack(), np.ascontiguousarray(a))
        # Where they cannot: vectors that are not aligned.
        packed = reference.pack(a, vlen)
        A = cla.Pack(np.empty(packed.size + 1, packed.dtype)[1:].reshape(packed.shape), len(a))
        arrays.pack(a, A.view, len(a), shape[1], 1)
        assert same_bits(A.data, packed)


def test_threads_share_cache_lines_past_the_caches(monkeypatch, rng):
    """If the part of one thread ends within a cache line, the other thread's bytes of it stay."""
    monkeypatch.setattr(arrays, "past_caches", lambda: 0)
    monkeypatch.setattr(sharing, "THREADS", 3)
    monkeypatch.setattr(sharing, "boxes", np.zeros((2, BOX), np.int64))
    a = random(rng, (60013, 3, 3), np.float32)
    A = cla.pack(a, 4)
    assert same_bits(A.data, cla.pack(a.T.copy().T, 4).data)
    memory = np.zeros(a.size + 33, a.dtype)
    for start in range(17):
        memory[:] = -7
        target = memory[start:][: a.size].reshape(a.shape)
        A.unpack(out=target)
        assert same_bits(target, a)
        assert (memory[:start] == -7).all()
        assert (memory[start + a.size :] == -7).all()


PLAIN_MACHINE = """
import numpy as np, compactla as cla, reference
for char, vlen in ("f", 4), ("f", 16), ("d", 3), ("F", 3), ("D", 4), ("D", 16):
    for a in (np.arange(11 * 15.0).astype(char).reshape(11, 3, 5), np.ones((15, 5, 33), char).T[::3]):
        A = cla.pack(a, vlen)
        assert np.array_equal(A.data, reference.pack(a, vlen)), (char, vlen)
        assert np.array_equal(A.unpack(), a), (char, vlen)
"""


@pytest.mark.slow
def test_a_machine_of_short_vectors():
    """Numba's cache is told of the machine, so these kernels do not get mixed up with those of this one."""
    path = os.pathsep.join((str(ROOT), str(ROOT / "tests")))
    environment = {**os.environ, "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "PYTHONPATH": path}
    subprocess.run([sys.executable, "-c", PLAIN_MACHINE], env=environment, check=True)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda A: pickle.loads(pickle.dumps(A))])
def test_copies_are_packs_of_their_own_memory(copied, rng):
    A = cla.pack(random(rng, (5, 3, 3), np.float64))
    B = copied(A)
    same = B.data is A.data
    cla.gemm(A, A, cla.Pack.zeros(5, 3, 3))
    cla.getrfnp(B)
    assert np.array_equal(A.unpack(), B.unpack()) == same


def test_packs_are_arrays_to_numpy(dtype, queue, rng):
    a = random(rng, (BATCH, 3, 4), dtype)
    A = cla.pack(a, queue=queue)
    if queue is not None:
        with pytest.raises(TypeError, match=r"must live on the CPU: see Pack\.unpack"):
            np.asarray(A)
        return
    assert same_bits(np.asarray(A), a) and same_bits(np.array(A, copy=True), a)
    assert same_bits(np.asarray(A, np.complex128), a.astype(np.complex128))
    with pytest.raises(ValueError, match="copy is False"):
        A.__array__(copy=False)


@pytest.mark.parametrize("block", [np.s_[3:1, :], np.s_[:, 4:2], np.s_[1:3, 5:], np.s_[::2, 1:4:3], np.s_[-2:, :-1]])
def test_blocks_are_numpys(block, queue, rng):
    a = random(rng, (5, 4, 4), np.float64)
    assert np.array_equal(cla.pack(a, queue=queue)[block].unpack(), a[:, block[0], block[1]])


@pytest.mark.parametrize("vlen", [3, None])
def test_pack_to_a_pack_that_is_there(queue, dtype, vlen, rng):
    a, b = random(rng, (2, BATCH, 3, 4), dtype)
    A = cla.pack(a, vlen, queue=queue)
    assert cla.pack(b, out=A) is A
    assert same_bits(A.unpack(), b) and same_bits(cla.pack(b, vlen, queue=queue).to("cpu").data, A.to("cpu").data)
    block = cla.Pack.zeros(BATCH, 5, 4, dtype, vlen, queue=queue)
    cla.pack(a, out=block[1:4, :])
    assert same_bits(block.unpack()[:, 1:4], a) and not block.unpack()[:, [0, 4]].any()


def test_packs_that_cannot_be_written_to(rng):
    a = random(rng, (BATCH, 3, 3), np.float64)
    A, locked = cla.pack(a), cla.pack(a)
    locked.data.flags.writeable = False
    with pytest.raises(TypeError, match=r"\bout\b.*must be a Pack"):
        cla.pack(a, out=a)
    for b, out in ((a[1:], A), (a[:, :2], A), (a.astype(np.float32), A), (a, locked)):
        with pytest.raises(ValueError, match=r"\bout\b"):
            cla.pack(b, out=out)
    with pytest.raises(ValueError, match=r"\bvlen\b"):
        cla.pack(a, vlen=A.vlen + 1, out=A)
    whole = A.data.reshape(-1)[: BATCH // A.vlen * A.vlen * 9].reshape(-1, 3, 3)
    with pytest.raises(ValueError, match="shares memory"):
        cla.pack(whole, out=cla.Pack(A.data[: len(whole) // A.vlen]))
