"""Arrays in CUDA memory, with the names that `pyopencl.array.Array` has."""

import ctypes
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from compactla.backends import device_module
from compactla.calls import notes as noted
from compactla.cuda import driver
from compactla.overlap import address

# All memory, which is never read here: NumPy says of arrays in it where their views are.
BEGIN = 16
SPACE: Any = (ctypes.c_char * 2**62).from_address(BEGIN)
WORD = 4  # bytes that are set at once
HAS_COPY = np.lib.NumpyVersion(np.__version__) >= "2.1.0"  # as an argument of reshape


class Memory(int):
    """An address, and the object that owns the memory there."""

    owner: object

    def __new__(cls, address: int, owner: Any) -> "Memory":
        memory = super().__new__(cls, address)
        memory.owner = owner
        return memory


class Array:
    """Numbers in CUDA memory.

    Attributes
    ----------
    queue : compactla.cuda.queues.Queue
        Library and device.
    place : ndarray
        An array at the same address, which must not be read.
    offset : int
        Address of the first element.
    base_data : Memory
        The beginning of all memory, as it is seen by one who owns a part.
    given : object
        The array of the library that this is, if it is known.
    """

    __slots__ = ("_data", "base_data", "given", "offset", "place", "queue")
    allocator = None
    _data: Memory | None
    events: ClassVar[list] = []  # streams keep the order

    def __init__(
        self, queue: Any, shape: Sequence[int], dtype: Any, order: str = "C", *, strides: Sequence[int] | None = None,
        data: "Memory", offset: int = 0, events: Any = None, given: Any = None,
    ) -> None:  # fmt: skip
        self.queue, self.base_data, self.offset, self.given, self._data = queue, data, offset, given, None
        if offset < BEGIN:  # empty arrays have no address
            self.place = np.ndarray(shape, dtype, SPACE, 0)
        else:
            self.place = np.ndarray(shape, dtype, SPACE, offset - BEGIN, strides)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.place.shape

    @property
    def dtype(self) -> np.dtype:
        return self.place.dtype

    @property
    def strides(self) -> tuple[int, ...]:
        return self.place.strides

    @property
    def ndim(self) -> int:
        return self.place.ndim

    @property
    def size(self) -> int:
        return self.place.size

    @property
    def nbytes(self) -> int:
        return self.place.nbytes

    @property
    def flags(self) -> Any:
        return self.place.flags

    @property
    def data(self) -> int:
        """The address of the first element."""
        if noted.state.notes is not None:
            return self.offset
        if self._data is None:
            self._data = Memory(self.offset, self.base_data.owner)
        return self._data

    @property
    def T(self) -> "Array":
        return self._seen(self.place.T, self.offset)

    def __len__(self) -> int:
        return len(self.place)

    def _seen(self, place, offset):
        """A view, which begins at this address."""
        a = Array.__new__(Array)
        a.queue, a.base_data, a.given, a.place, a._data = self.queue, self.base_data, None, place, None
        a.offset = offset
        return a

    def __getitem__(self, index: Any) -> "Array":
        index = index if isinstance(index, tuple) else (index,)
        place = self.place[index if Ellipsis in index else (*index, ...)]
        return self._seen(place, self.offset + (address(place) - address(self.place)))

    def reshape(self, *shape: Any) -> "Array":
        return self._seen(_reshaped(self.place, *shape), self.offset)

    def transpose(self, *axes: Any) -> "Array":
        return self._seen(self.place.transpose(*axes), self.offset)

    def view(self, dtype: Any) -> "Array":
        return self._seen(self.place.view(dtype), self.offset)

    def get(self, target: np.ndarray | None = None) -> np.ndarray:
        """A NumPy copy, for which this waits; of contiguous arrays in `target`, if that is given."""
        noted.refuse()
        if target is not None and self.size:
            driver.read(self.queue.device.index, self.offset, target, self.queue.stream)
            return target
        if not self.size:
            return np.empty(self.shape, self.dtype)
        ends = [(n - 1) * stride for n, stride in zip(self.shape, self.strides, strict=True)]
        below, above = sum(min(end, 0) for end in ends), sum(max(end, 0) for end in ends)
        memory = np.empty(above - below + self.dtype.itemsize, np.uint8)
        driver.read(self.queue.device.index, self.offset + below, memory, self.queue.stream)
        return np.ndarray(self.shape, self.dtype, memory, -below, self.strides)

    def set(self, values: Any) -> None:
        """Copy NumPy's numbers to a contiguous array; this waits, as arrays may be kept that other streams read."""
        noted.refuse()
        values = np.ascontiguousarray(values, self.dtype)
        if self.queue.is_capturing:
            raise RuntimeError("a CUDA graph is captured: call the function once before, with arrays of the same sizes")
        if values.size:
            driver.write(self.queue.device.index, self.offset, values, self.queue.stream)
            self.queue.finish()

    def fill(self, number: Any, wait_for: Sequence = ()) -> None:
        """Set all numbers of a contiguous array, of 4 bytes or to zero."""
        noted.refuse()
        word = int(np.array(number, self.dtype).view(np.uint32)) if self.dtype.itemsize == WORD else 0
        if self.dtype.itemsize != WORD and number:
            raise ValueError(f"number is {number}, must be 0 for {self.dtype}")
        if self.size:
            driver.fill(self.queue.device.index, self.offset, word, self.nbytes // WORD, self.queue.stream)

    def copy(self) -> "Array":
        """A contiguous copy."""
        return self.astype(self.dtype)

    def astype(self, dtype: Any) -> "Array":
        """A contiguous copy in another type."""
        dtype = np.dtype(dtype)
        if dtype != self.dtype or not self.flags.c_contiguous:
            return device_module("linalg.arrays").spread(self, self.shape, self.strides, dtype)
        target = empty(self.queue, self.shape, dtype)
        self.write_to(target)
        return target

    def write_to(self, target: "Array") -> None:
        """Copy to another array; both are contiguous, and of one size."""
        noted.refuse()
        if self.size:
            driver.copy(self.queue.device.index, target.offset, self.offset, self.nbytes, self.queue.stream)

    def _computed(self, operation, other):
        """The result of the library's operation."""
        noted.refuse()
        library = self.queue.library
        other = library.give(other) if isinstance(other, Array) else other
        return library.array(getattr(library.give(self), operation)(other))

    def __add__(self, other: Any) -> "Array":
        return self._computed("__add__", other)

    def __mul__(self, other: Any) -> "Array":
        return self._computed("__mul__", other)

    def __ne__(self, other):
        return self._computed("__ne__", other)

    __hash__ = None  # type: ignore[assignment] # Python's word for what has no hash

    def __reduce__(self):
        return _restored, (self.queue, self.get())


def lacks_memory(error) -> bool:
    """Whether a library has no room: errors of PyTorch and JAX only say so."""
    said = str(error).lower()
    return isinstance(error, MemoryError) or "out of memory" in said or "resource_exhausted" in said


def empty(queue, shape, dtype) -> Array:
    """A new array, unset, of the memory of a library."""
    shape, dtype = tuple(map(int, shape)), np.dtype(dtype)
    wanted = math.prod(shape) * dtype.itemsize
    try:
        given, place, owner = queue.library.empty(shape, dtype, queue.device.index)
    except (MemoryError, RuntimeError) as error:
        device = queue.device
        if not (wanted > device.global_mem_size or lacks_memory(error)):
            raise
        raise MemoryError(f"an array of {wanted} bytes does not fit in the memory of {device.name}: {error}") from None
    a = Array(queue, shape, dtype, data=Memory(0, owner), offset=place, given=given)
    if noted.state.notes is not None:
        noted.state.notes.made(a, None)
    return a


def uploaded(queue, values: np.ndarray) -> Array:
    """A copy of a NumPy array."""
    a = empty(queue, values.shape, values.dtype)
    a.set(values)
    return a


def _restored(queue, values):
    return uploaded(queue, values)


def _reshaped(place, *shape):
    """A view of an array, which is never read, in another shape."""
    if HAS_COPY:
        return place.reshape(*shape, copy=False)
    view = place.view()
    view.shape = shape[0] if len(shape) == 1 else shape
    return view
