"""Memory that is written: of its own for every element, and none of what is read meanwhile."""

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest

import compactla as cla
from cases import lines, random, same_bits
from compactla.overlap import is_same, repeats, share_memory

COUNT = 2048


class Memory:
    """Numbers of which arrays are views; on a device each of them is in a sub-buffer, as far as is possible."""

    def __init__(self, rng, queue):
        self.queue, self.host, self.parts = queue, random(rng, COUNT, np.float64), {}
        self.whole = self.host if queue is None else cl.array.to_device(queue, self.host)

    def at(self, first, shape, strides=None):
        """An array from this number on, with strides in numbers, by default of no gaps."""
        steps = np.cumprod([1, *shape[:0:-1]])[::-1] if strides is None else strides
        steps = [8 * int(step) for step in steps]
        if self.queue is None:
            return np.ndarray(shape, np.float64, self.host, 8 * first, steps)
        align = self.queue.device.mem_base_addr_align // 8
        start = 8 * first // align * align
        if start not in self.parts:
            self.parts[start] = self.whole.base_data.get_sub_region(start, 8 * COUNT - start)
        where = {"data": self.parts[start], "offset": 8 * first - start}
        return cl.array.Array(self.queue, shape, np.float64, strides=tuple(steps), **where)

    def get(self):
        return self.whole.copy() if self.queue is None else self.whole.get()


# NVIDIA's driver ends the process where a buffer is gone before its parts: these live longer than arrays of a test.
@pytest.fixture
def memory(rng, queue):
    return Memory(rng, queue)


@pytest.fixture
def apart(rng, queue):
    return Memory(rng, queue)


@pytest.mark.parametrize("size", [1, 3])
def test_which_strides_repeat(size, rng):
    for count in (1, 2, 3, 3, 3, 4, 5):
        for _ in range(300):
            shape, strides = rng.integers(0, 6, count).tolist(), rng.integers(-40, 41, count).tolist()
            if rng.random() < 0.5:  # few of the others have none
                strides = (np.cumprod([size, *shape[:-1]]) + rng.integers(-1, 2, count)).tolist()
            first = np.tensordot(strides, np.indices(shape), 1).reshape(-1, 1)
            places = (first + np.arange(size)).reshape(-1)
            assert repeats(shape, strides, size) == (len(np.unique(places)) < len(places)), (shape, strides)


def test_arrays_in_parts_of_memory(memory):
    x = memory.at(0, (4, 8), (32, 2))
    for first, shared in ((1, False), (128, False), (2, True), (66, True), (120, False)):
        assert share_memory(x, memory.at(first, (4, 8), (32, 2))) == shared
    assert not share_memory(x, memory.at(64, (0, 8))) and not share_memory(x, np.zeros((4, 8))[::2])
    assert is_same(memory.at(512, (2, 3)), memory.at(512, (2, 3)))
    assert not is_same(memory.at(512, (2, 3)), memory.at(513, (2, 3)))


def solved(queue):
    T = cla.BlockTridiag(*lines(np.random.default_rng(1), 4, 3, 2, np.float64), queue=queue)
    T.factor()
    return T


def multiply(queue, x, out):
    values = random(np.random.default_rng(2), (8, 6), np.float64)
    cla.BatchCSR((values, [0, 1, 1, 2, 0, 2], [0, 2, 4, 6]), vlen=4, queue=queue).multiply(cla.Pack(x), cla.Pack(out))


# Functions of the queue, of what is read and of what is written, and the shapes of these.
WRITING = {
    "gemm": (lambda _, x, out: cla.gemm(x, x, out), (8, 3, 3), (8, 3, 3)),
    "sequences": (lambda _, x, out: cla.gemm([x[0], x[1]], x[2], [out[0], out[1]]), (3, 3, 3), (2, 3, 3)),
    "packs": (lambda _, x, out: cla.gemm(cla.Pack(x), cla.Pack(x), cla.Pack(out)), (2, 3, 3, 4), (2, 3, 3, 4)),
    "pack": (lambda _, x, out: cla.pack(x, out=cla.Pack(out)), (8, 3, 3), (2, 3, 3, 4)),
    "unpack": (lambda _, x, out: cla.Pack(x).unpack(out=out), (2, 3, 3, 4), (8, 3, 3)),
    "kron": (lambda _, x, out: cla.kron_apply((x[0, 0], x[0, 1], x[0, 2]), x, out), (4, 3, 3, 3), (4, 3, 3, 3)),
    "lines": (lambda queue, x, out: solved(queue).solve(x, out=out), (4, 3, 2), (4, 3, 2)),
    "rows": (lambda queue, x, out: solved(queue).solve_rows(x, out), (12, 2, 1), (12, 2, 1)),
    "pattern": (multiply, (2, 3, 2, 4), (2, 3, 2, 4)),
}


@pytest.mark.parametrize(("write", "shape", "written"), WRITING.values(), ids=WRITING)
def test_what_is_written(memory, apart, queue, write, shape, written):
    x, size = memory.at(512, shape), int(np.prod(written))
    before, steps = memory.get(), np.cumprod([1, *written[:0:-1]])[::-1]
    once, twice = [0, *steps[1:]], [steps[0] - 1, *steps[1:]]
    for first, strides in ((512 + 16, steps), (512 - size + 1, steps), (0, once), (0, twice)):
        with pytest.raises(ValueError, match=r"shares memory with|has strides"):
            write(queue, x, memory.at(first, written, strides))
    assert same_bits(memory.get(), before)
    write(queue, x, memory.at(512 - size, written))
    found = memory.get()
    write(queue, x, apart.at(512, written))
    assert same_bits(found[512 - size : 512], apart.get()[512 : 512 + size]) and same_bits(found[512:], before[512:])


def test_solutions_in_any_number_of_axes(memory):
    """Arrays of four axes and more have their elements in one place also where no stride is zero."""
    shape = 2, 3, 2, 5
    diagonals = [memory.at(first, (*shape[:-1], n)) for first, n in ((0, 4), (64, 5), (128, 4))]
    T, b = cla.Tridiag(*diagonals, axis=-1), memory.at(256, shape)
    before = memory.get()
    for strides in ((30, 9, 5, 1), (10, 5, 6, 1), (29, 10, 5, 1), (30, 10, 5, 0)):
        with pytest.raises(ValueError, match=r"out has strides .*, must have memory of its own for every element"):
            T.solve(b, out=memory.at(1024, shape, strides))
    with pytest.raises(ValueError, match="out shares memory with diag, must not"):
        T.solve(b, out=memory.at(64, shape))
    with pytest.raises(ValueError, match="out shares memory with rhs, must be the same or apart from it"):
        T.solve(b, out=memory.at(257, shape))
    assert same_bits(memory.get(), before)
    T.solve(b, out=memory.at(1024, shape, (1, 30, 90, 2)))
    T.solve(b, out=b)
    found = memory.get()
    x = np.ndarray(shape, np.float64, found, 8 * 1024, (8, 240, 720, 16))
    assert same_bits(x.copy(), found[256 : 256 + x.size].reshape(shape))
