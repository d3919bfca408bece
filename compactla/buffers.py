"""Memory of work arrays and of results, which is kept from call to call."""

import math
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from compactla.backends import backend
from compactla.dtypes import REAL
from compactla.types import Array, Queue

STREAMS = 16  # of CUDA, for which work space is kept
_scratch = threading.local()
LARGE = 1 << 18  # bytes of a result from which on new memory costs time, in page faults


class Buffer:
    """Memory for one work array at a time. It grows: arrays no larger than one before allocate nothing."""

    def __init__(self, dtype: Any, queue: Queue) -> None:
        self.dtype, self.queue = dtype, queue
        self._memory: Array = None
        self._last: Array = None

    def array(self, shape: Sequence[int]) -> Array:
        """An unset array; the one that was taken before must not be used any more."""
        if self._last is None or self._last.shape != shape:
            size = math.prod(shape)
            if self._memory is None or self._memory.size < size:
                self._memory = self._last = None
                self._memory = backend(self.queue).empty((size,), self.dtype, self.queue)
            enough = self._memory if self._memory.size == size else self._memory[:size]
            self._last = enough.reshape(shape)
        return self._last


class Pool:
    """Work space between calls: a call takes some, and gives it back.

    Streams of CUDA do not share any; but graphs, which cannot allocate when they are captured, take some of another.
    """

    def __init__(self, queue: Queue, make: Callable) -> None:
        self._queue, self._make = queue, make
        self._kept: list[tuple] = []

    def take(self) -> Any:
        """Memory that was given back in the current stream, or new memory."""
        stream, others = getattr(self._queue, "stream", None), []
        try:
            while True:  # of several threads each takes its own
                its, work = self._kept.pop()
                if its == stream:
                    return work
                others.append((its, work))
        except IndexError:
            if others and self._queue.is_capturing:
                return others.pop()[1]
            return self._make()
        finally:
            self._kept[:0] = others[::-1]

    def give(self, work: Any) -> None:
        """Keep it for calls to come."""
        self._kept.append((getattr(self._queue, "stream", None), work))
        del self._kept[:-STREAMS]

    def clear(self) -> None:
        self._kept.clear()


class ResultPool:
    """Memory of arrays that calls return: that of one that nothing refers to any more is the next one's."""

    def __init__(self) -> None:
        self._free: list[np.ndarray] = []  # of one NumPy array
        self._allocators: dict[int, Any] = {}  # by the queues that they are for

    def beside(self, a: Array, dtype: Any, queue: Queue) -> Array:
        """An unset array of the shape of one on a device, of its allocator if it has one."""
        run, allocator = backend(queue), a.allocator
        if allocator is None:
            if id(queue) not in self._allocators:
                self._allocators[id(queue)] = run.pool(queue)
            allocator = self._allocators[id(queue)]
        return run.empty(a.shape, dtype, queue, allocator)

    def array(self, shape: Sequence[int], dtype: Any) -> np.ndarray:
        """An unset array, the caller's alone."""
        dtype = np.dtype(dtype)
        size = math.prod(shape) * dtype.itemsize
        if size < LARGE:
            return np.empty(shape, dtype)
        try:
            memory = self._free.pop()
        except IndexError:
            memory = None
        if memory is None or memory.size != size:
            memory = backend(None).empty((size,), np.uint8, None)
        return np.asarray(Holder(memory.view(dtype).reshape(shape), memory, self._free))


class Holder:
    """The owner of an array and all its views: memory becomes free with the last of them."""

    def __init__(self, array, memory, free):
        self.__array_interface__, self.memory, self.free = array.__array_interface__, memory, free

    def __del__(self):
        self.free[:] = [self.memory]


def scratch(dtype: np.dtype, threads: int, size: int) -> np.ndarray:
    """An unset array of `size` numbers for each of some threads, which the calling thread keeps for its next call."""
    buffers = _scratch.__dict__
    if dtype.char not in buffers:
        buffers[dtype.char] = Buffer(REAL[dtype.char], None)
    return buffers[dtype.char].array((threads, size))
