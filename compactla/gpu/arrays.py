"""Arrays on a device, all of them pyopencl's: memory for packs, and what moves matrices and blocks into them and back.

The names and arguments are those of `compactla.cpu.arrays`.
Nothing waits for a launch but `download`.
"""

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array as cla
from pyopencl import status_code as status
from pyopencl.tools import ImmediateAllocator, MemoryPool

from compactla.calls import notes as noted
from compactla.calls.launch import NOW, Launch
from compactla.calls.plans import UNKNOWN
from compactla.checks import stays
from compactla.dtypes import REAL
from compactla.gpu.launch import flatten, launch_lanes, launch_plan, plan, plans
from compactla.gpu.program import built
from compactla.search import GROUP, LANES, LOCAL_BYTES, Choice, Kernel, Search, squares
from compactla.types import Array, Queue
from compactla.view import View

SECTOR = 32  # bytes that memory moves at once
PLACES = 65535  # work-groups along the elements of a matrix that every device takes
MOVED = 32  # elements that a work-item moves through local memory, at most


def default_vlen(dtype: np.dtype, queue: Queue) -> int:
    """Vector length that suits the device: a warp of a GPU, two 64-byte registers of a CPU."""
    if queue.device.type & cl.device_type.CPU:
        return 128 // REAL[dtype.char].itemsize
    return 32


def empty(shape: Sequence[int], dtype: Any, queue: Queue, allocator: Any = None) -> Array:
    """A new array; a MemoryError if there is no room."""
    return new(shape, dtype, queue, allocator)


def new(shape, dtype, queue, allocator=None, values=None):
    """A new array, with these values if there are some."""
    if not isinstance(queue, cl.CommandQueue):
        return queue.empty(shape, dtype) if values is None else queue.upload(values)
    what = f"an array of shape {shape} and {np.dtype(dtype)} does not fit in the memory of {queue.device.name.strip()}"
    if math.prod(shape) * np.dtype(dtype).itemsize > queue.device.global_mem_size:  # some drivers find out too late
        raise MemoryError(what)
    try:
        if values is not None:
            noted.refuse()
            return cla.to_device(queue, values, allocator)
        shape, dtype = tuple(shape), np.dtype(dtype)
        a = unset(shape, dtype, queue, allocator, contiguous(shape, dtype.itemsize))
        if noted.state.notes is not None:
            noted.state.notes.made(a, allocator)
        return a
    except cl.Error as error:
        if lacks_memory(error):
            raise MemoryError(f"{what}: {error}") from None
        raise


def unset(shape: tuple[int, ...], dtype: np.dtype, queue: Queue, allocator: Any, strides: tuple[int, ...]) -> Array:
    """A new array, by what pyopencl has for its own use: its usual constructor takes many times as long."""
    return cla.Array(
        None, shape, dtype, allocator=allocator, strides=strides, _fast=True, _size=math.prod(shape),
        _context=queue.context, _queue=queue,
    )  # fmt: skip


def lacks_memory(error: Any) -> bool:
    """Whether that is why OpenCL made no buffer; anything else may run out of resources for other reasons."""
    if isinstance(error, cl.MemoryError) or error.code in (status.INVALID_BUFFER_SIZE, status.OUT_OF_HOST_MEMORY):
        return True
    return error.code == status.OUT_OF_RESOURCES and error.routine == "create_buffer"


def beside(a: Array, shape: Sequence[int], dtype: np.dtype) -> tuple[Array, int]:
    """A new array where another lives, of its allocator, and where it begins, in real elements."""
    found = empty(shape, dtype, a.queue, reused(a))
    return found, found.offset // dtype.itemsize


def reused(a: Array) -> Any:
    """The allocator of an array, for work space; None if kernels run out of order: they may need what is freed."""
    return None if out_of_order(a.queue) else a.allocator


def pool(queue: Queue) -> Any:
    """An allocator that keeps memory for arrays to come; None where a library has its own, or as for `reused`."""
    if not isinstance(queue, cl.CommandQueue) or out_of_order(queue):
        return None
    return MemoryPool(ImmediateAllocator(queue))


def out_of_order(queue: Queue) -> bool:
    return bool(queue.properties & cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE)


def upload(a: np.ndarray, queue: Queue) -> Array:
    """A C-contiguous copy of a NumPy array on the device."""
    a = np.ascontiguousarray(a)
    return new(a.shape, a.dtype, queue, values=a)


def constant(a: np.ndarray, queue: Queue) -> Array:
    """The same for numbers that are not written to: calls that are made again keep them on the device."""
    notes, noted.state.notes = noted.state.notes, None
    try:
        copy = upload(a, queue)
    finally:
        noted.state.notes = notes
    noted.keep(copy)
    return copy


def download(a: Array) -> np.ndarray:
    """A NumPy copy of a device array, which may have any strides but negative ones; waits for it."""
    noted.refuse()
    if a.size == 0:
        return np.empty(a.shape, a.dtype)
    if stays(a):
        return a.get()
    extent = a.dtype.itemsize + sum((n - 1) * stride for n, stride in zip(a.shape, a.strides, strict=True))
    memory = np.empty(extent, np.uint8)
    cl.enqueue_copy(a.queue, memory, a.base_data, src_offset=a.offset, wait_for=list(a.events))
    return np.ndarray(a.shape, a.dtype, memory, strides=a.strides)


def send(values: np.ndarray, a: Array, row: int = 0) -> None:
    """Rows of an array, from this one on, <- numbers of NumPy, both C-contiguous and of one dtype; waits for it."""
    noted.refuse()
    if stays(a):
        a[row:].set(values)
    elif values.size:
        start = a.offset + row * a.strides[0]
        cl.enqueue_copy(a.queue, a.base_data, values, dst_offset=start, wait_for=list(a.events))


def bring(a: Array, target: np.ndarray, row: int = 0) -> None:
    """target <- the rows of a device array from this one on, as many as it takes; waits for them."""
    noted.refuse()
    if a.dtype != target.dtype or not (a.flags.c_contiguous and target.flags.c_contiguous):
        target[...] = download(a)[row : row + len(target)]
    elif stays(a):
        a[row:].get(target)
    elif target.size:
        start = a.offset + row * a.strides[0]
        cl.enqueue_copy(a.queue, target, a.base_data, src_offset=start, wait_for=list(a.events))


class Flag:
    """An integer on a device, which kernels make 1 to tell the host, for one call of a thread at a time.

    Attributes
    ----------
    array : pyopencl.array.Array
        The integer.
    """

    def __init__(self, queue: Queue) -> None:
        self.array = upload(np.zeros(1, np.int32), queue)
        self._seen = np.zeros(1, np.int32)

    def is_set(self) -> bool:
        """Whether a kernel set it that was launched before; waits for it. It is zero then."""
        a, seen = self.array, self._seen
        cl.enqueue_copy(a.queue, seen, a.base_data, wait_for=list(a.events))
        if not seen[0]:
            return False
        a.fill(0)
        return True


def flag_for(queue: Queue) -> Any:
    """The flag of the calling thread on a device."""
    of_thread = built(queue).of_thread.__dict__
    if "flag" not in of_thread:
        of_thread["flag"] = Flag(queue) if isinstance(queue, cl.CommandQueue) else queue.flag()
    noted.keep(of_thread["flag"].array)
    return of_thread["flag"]


def is_set(flag: Any) -> bool:
    """Whether a flag was set by what was launched before; waits for that."""
    found = flag.is_set()
    if noted.state.notes is not None:
        noted.state.notes.wait(flag, found)
    return found


def broadcast(matrix: np.ndarray, nm: int, queue: Queue) -> Array:
    """`nm` times the same matrix, as a device array with stride 0."""
    a = constant(matrix, queue)
    return seen_as(a, (nm, *a.shape), (0, *a.strides))


def seen_as(a: Array, shape: Sequence[int], strides: Sequence[int]) -> Array:
    """A view of an array of other axes."""
    if stays(a):
        return type(a)(a.queue, shape, a.dtype, strides=strides, data=a.base_data, offset=a.offset)
    view = object.__new__(type(a))  # the constructor takes many times as long
    size = math.prod(shape)
    vars(view).update(
        vars(a), shape=tuple(shape), strides=tuple(strides), size=size, nbytes=size * a.dtype.itemsize, _flags=None
    )
    return view


def reshaped(a: Array, shape: Sequence[int]) -> Array:
    """A view of a C-contiguous array in another shape."""
    if stays(a):
        return a.reshape(shape)
    return seen_as(a, shape, contiguous(shape, a.dtype.itemsize))


def contiguous(shape: Sequence[int], item: int) -> tuple[int, ...]:
    """Strides of a C-contiguous array with elements of so many bytes."""
    strides = [item] * bool(shape)
    for n in shape[:0:-1]:
        strides.append(strides[-1] * max(n, 1))
    return tuple(strides[::-1])


def ordinary(a) -> View:
    """An ordinary array of three axes as packs of one lane."""
    item = REAL[a.dtype.char].itemsize
    nm, m, n = a.shape
    ps, rs, cs = (stride // item for stride in a.strides)
    return View(a, a.offset // item, nm, m, n, ps, rs, cs, 1, a.dtype, a.queue)


def pack(source: Array, A: View, nm: int, period: int, unit: float, launch: Launch = NOW) -> None:
    lanes, size = A.npack * A.vlen, A.m * A.n
    if not move("pack", launch, A, ordinary(source), nm, period, float(unit)):
        args = lanes, nm, A.m, A.n, period, float(unit), ordinary(source), A
        launch_lanes(A.queue, launch, "pack.cl", "pack", A.dtype, A.vlen, (lanes, size), *args)


def unpack(A: View, nm: int, target: Array, launch: Launch = NOW) -> None:
    if not move("unpack", launch, A, ordinary(target), nm):
        args = nm, A.m, A.n, A, ordinary(target)
        launch_lanes(A.queue, launch, "pack.cl", "unpack", A.dtype, A.vlen, (nm, A.m * A.n), *args)


def divide(nm: int, Z: View, A: View, number: Any) -> None:
    """Z <- A / number; unused lanes are those of A."""
    lanes, size = A.npack * A.vlen, A.m * A.n
    args = lanes, nm, A.m, A.n, float(number.real), float(number.imag), A, Z
    launch_lanes(A.queue, NOW, "quotients.cl", "quotients", A.dtype, A.vlen, (lanes, size), *args)


def move(routine, launch, A: View, other: View, nm, *padding) -> bool:
    """Run a kernel that moves through local memory, unless the device has no use for it."""
    queue, lanes, size = A.queue, A.npack * A.vlen, (A.m, A.n)
    if lanes * A.m * A.n == 0:
        return False
    flat = A.n == 1 or A.m == 1 or (A.rs == A.n * A.cs and other.rs == A.n * other.cs)
    if A.n == 1 and A.m > 1:  # elements are rows
        A, other = replace(A, cs=A.rs), replace(other, cs=other.rs)
    along = abs(other.ps) < min(abs(other.rs), abs(other.cs))
    arrays, values = flatten((nm, *size, *padding, *((other, A) if padding else (A, other))))
    key = routine, A.dtype.char, A.vlen, size, flat, along
    kept = plans(queue)
    found = kept.known.get(key, UNKNOWN)
    if found is UNKNOWN:
        macros = {"FLAT": int(flat), "ALONG": int(along)}
        found = kept.add(key, plan(queue, SEARCHES[routine], size, A.dtype, A.vlen, values, **macros))
    if found is None:
        return False
    runs = -(-size[0] * size[1] // found.choice["ELEMENTS"])
    launch_plan(queue, launch, found, lanes, arrays, values, runs)
    return True


def gather_blocks(source: Array, index: Array, target: Array, launch: Launch = NOW) -> None:
    _gather("gather_blocks", source, index, target, launch)


def gather_values(source: Array, index: Array, target: Array, launch: Launch = NOW) -> None:
    _gather("gather_values", source, index, target, launch)


def _gather(name, source, index, target, launch):
    slots, b, vlen = target.shape[0], target.shape[1], target.shape[-1]
    lanes = slots * vlen
    args = lanes, b, source, index, target
    launch_lanes(target.queue, launch, "pack.cl", name, source.dtype, vlen, (lanes, b * b), *args)


def candidates(kernel, size, dtype, lanes) -> Iterator[Choice]:
    """Whole matrices, which are neighbours in an ordinary array, or runs of elements of all lanes.

    Runs that would begin in the middle of what memory moves at once come last.
    """
    count = size[0] * size[1]
    whole, runs = [(some, count) for some in lanes], [(lanes[0], run) for run in (64, 32, 128) if run < count]
    tiles = whole + runs if count * dtype.itemsize % SECTOR else whole[:1] + runs + whole[1:]
    for some, run in tiles:
        if -(-count // run) <= PLACES:
            usual = min(max(some * run // 128 * 32, 32), 256)
            for group in (usual, usual // 2, usual * 2):
                if 32 <= group <= 512 and some * run <= MOVED * group:
                    yield {"kernel": kernel, "LANES": some, "ELEMENTS": run, "GROUP": group}


def tiled(name) -> Search:
    """The kernel that moves through local memory."""
    kernel = Kernel(
        {"LANES": LANES, "ELEMENTS": range(1, LOCAL_BYTES), "GROUP": GROUP},
        local=lambda choice, size: choice["ELEMENTS"] * (choice["LANES"] + 1),
        whole=is_whole,
    )
    kernels = {f"{name}_tiled": kernel}
    return Search(name, "pack.cl", kernels, functools.partial(candidates, f"{name}_tiled"), squares(2), largest=2**62)


def is_whole(choice, size) -> bool:
    moved = choice["LANES"] * choice["ELEMENTS"]
    return math.prod(size) <= PLACES * choice["ELEMENTS"] and moved <= MOVED * choice["GROUP"]


SEARCHES = {name: tiled(name) for name in ("pack", "unpack")}
