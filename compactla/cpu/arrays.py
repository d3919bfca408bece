"""Arrays on the CPU: memory for packs, and what moves matrices and blocks into them and back."""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from compactla.calls.launch import NOW, Launch
from compactla.cpu.compile import INT, INTS, compiled
from compactla.cpu.cost import parts
from compactla.cpu.emit.choices import past_caches
from compactla.cpu.emit.matrices import native_width
from compactla.cpu.emit.prefetch import LINE, PAGE
from compactla.cpu.memory.packing import (
    gather_batch,
    lanes_at_once,
    ordered,
    planned,
    planned_past,
    transfer_batch,
    unpack_past_batch,
)
from compactla.cpu.threads.sharing import share
from compactla.dtypes import REAL
from compactla.overlap import address
from compactla.types import Array, Queue
from compactla.view import View

BYTE = np.dtype(np.uint8)
# Arrays of up to so many bytes share memory with others: to align one takes longer than a call on some matrices.
SLOT, SLOTS = 512, 31
slots: list[tuple[np.ndarray, int, int]] = []  # that are free
TOGETHER = 1 << 16  # bytes of packs that are divided at once
# Bytes from which on arrays begin at different places in a page, and these, one after the other: 11 lines apart, which
# has no divisor in common with the number of lines.
PAGED = 64 << 10
PLACES = itertools.cycle([11 * LINE * k % PAGE for k in range(PAGE // LINE)])


def default_vlen(dtype: np.dtype, queue: Queue) -> int:
    return native_width(dtype)


def empty(shape: Sequence[int], dtype: Any, queue: Queue, allocator: Any = None) -> np.ndarray:
    """Uninitialised array, aligned to a cache line.

    Large arrays would all begin at the same offset in a page. Processors that compare no more than these offsets would
    take reads from one for reads of what was just written to another. So they begin at different lines of a page.
    """
    return beside(None, shape, np.dtype(dtype))[0]


def beside(a: Array, shape: Sequence[int], dtype: np.dtype) -> tuple[np.ndarray, int]:
    """Such an array, and its address."""
    size = math.prod(shape) * dtype.itemsize
    if size <= SLOT:
        return in_slot(shape, dtype)
    unit, place = (PAGE, next(PLACES)) if size >= PAGED else (LINE, 0)
    memory = np.empty(size + unit, BYTE)
    begin = address(memory)
    start = (place - begin) % unit
    return np.ndarray(shape, dtype, memory, start), begin + start


def in_slot(shape, dtype, strides=None):
    """Such an array of up to so many bytes."""
    try:
        memory, start, begin = slots.pop()
    except IndexError:  # all are taken
        memory, start, begin = new_slot()
    return np.ndarray(shape, dtype, memory, start, strides), begin


def maker(a: np.ndarray) -> Callable[[], tuple[np.ndarray, int]]:
    """A function that makes arrays, like one without gaps, again and again, and says their addresses."""
    shape, dtype, strides = a.shape, a.dtype, a.strides
    if a.nbytes <= SLOT:
        return functools.partial(in_slot, shape, dtype, strides)

    def make():
        found, start = beside(None, shape, dtype)
        return as_strided(found, shape, strides), start

    return functools.partial(beside, None, shape, dtype) if a.flags.c_contiguous else make


def new_slot():
    """A slot of new memory, the others of which are for arrays to come: memory, where the slot begins, its address."""
    memory = np.empty(SLOTS * SLOT + LINE, BYTE)
    begin = address(memory)
    first = -begin % LINE
    starts = range(first + SLOT, first + SLOTS * SLOT, SLOT)
    slots.extend(zip(itertools.repeat(memory), starts, range(begin + starts.start, begin + starts.stop, SLOT)))
    return memory, first, begin + first


def reused(a: Array) -> None:
    """NumPy has memory of its own for arrays."""


def pool(queue: Queue) -> None:
    """None: memory for arrays to come is not kept on the CPU."""


def upload(a: np.ndarray, queue: Queue) -> Array:
    return a


def download(a: Array) -> np.ndarray:
    return a


def reshaped(a: Array, shape: Sequence[int]) -> Array:
    return a.reshape(shape)


def broadcast(matrix: np.ndarray, nm: int, queue: Queue) -> Array:
    return np.broadcast_to(matrix, (nm, *matrix.shape))


def pack(source: Array, A: View, nm: int, period: int, unit: float, launch: Launch = NOW) -> None:
    _transfer(source, A, nm, "pack", launch)
    unused = -nm % A.vlen
    if unused:
        lanes = A.buffer[-1, ..., A.vlen - unused :]
        lanes[...] = unused_lanes(A.dtype, A.m, A.n, period, unit)


@functools.lru_cache(64)
def unused_lanes(dtype, m, n, period, unit):
    """A lane of each vector of a pack: `unit` where i % period == j, else 0."""
    matrix = np.where(np.arange(m)[:, None] % period == np.arange(n), dtype.type(unit), dtype.type(0))
    return matrix.view(REAL[dtype.char]).reshape(m, n, *[2][: parts(dtype) - 1], 1)


def unpack(A: View, nm: int, target: Array, launch: Launch = NOW) -> None:
    _transfer(target, A, nm, "unpack", launch)


def apply(function, nm, Z: View, A: View, *others):
    """Z <- a function of NumPy, of A and other packs or numbers, for each real number; unused lanes are those of A."""
    whole, rest = divmod(nm, A.vlen)
    arrays = [X.buffer if isinstance(X, View) else X for X in (A, *others)]
    if whole:
        some = arrays if not rest else [x[:whole] if isinstance(x, np.ndarray) else x for x in arrays]
        function(*some, out=Z.buffer[:whole])
    if rest:
        function(*[x[-1, ..., :rest] if isinstance(x, np.ndarray) else x for x in arrays], out=Z.buffer[-1, ..., :rest])
        if Z is not A:
            Z.buffer[-1, ..., rest:] = A.buffer[-1, ..., rest:]


def divide(nm: int, Z: View, A: View, number: Any) -> None:
    """Z <- A / number, as NumPy has it; unused lanes are those of A."""
    if A.dtype.kind == "f" or number == 0:
        apply(np.true_divide, nm, Z, A, abs(number.real) if A.dtype.kind == "c" else number)
    else:
        apply(functools.partial(by_smith, number=number), nm, Z, A)


def by_smith(x, number, out):
    """out <- x / number, of complex numbers whose parts are along the last axis but one: Smith's method, as NumPy's."""
    re, im = number.real, number.imag
    with np.errstate(all="ignore"):
        if abs(re) >= abs(im):
            own, other, scale = 1, im / re, 1 / (re + im * (im / re))
        else:
            own, other, scale = re / im, 1, 1 / (im + re * (re / im))
        mixed = np.array([[other], [-other]], out.dtype)
        rows = max(TOGETHER // max(x[:1].nbytes, 1), 1)
        for first in range(0, len(x), rows):
            some = x[first : first + rows]
            found = some[..., ::-1, :] * mixed
            found += some if own == 1 else some * own
            np.multiply(found, scale, out=out[first : first + rows])


def _transfer(array, A, nm, direction, launch):
    cost, strides = nm * A.m * A.n, array.strides
    if cost:
        kernel, plan = transfer_of(A, cost, strides, direction)
        share(kernel, cost, (0, A.npack, A.vlen, nm, address(array), strides[0], *plan, A.address, A.ps), launch)


def rows(A: View, nm: int, launch: Launch = NOW) -> Callable[[Array, int], Array]:
    """A function that makes arrays (nm, n) of columns n x 1, or rows 1 x n, that lie like some, again and again.

    It takes the memory of these, and its address.
    """
    cost, item = nm * A.m * A.n, A.dtype.itemsize
    memory = maker(np.empty((nm, A.m * A.n), A.dtype))
    if not cost:
        return lambda data, address: memory()[0]
    strides = A.m * A.n * item, A.n * item, item
    kernel, plan = transfer_of(A, cost, strides, "unpack")
    first, plan, ps = (0, A.npack, A.vlen, nm), (strides[0], *plan), A.ps

    def of(data, address):
        found, start = memory()
        share(kernel, cost, (*first, start, *plan, address, ps), launch)
        return found

    return of


def transfer_of(A, cost, strides, direction):
    """`transfer` for an array and packs, of so many elements."""
    past = cost * A.dtype.itemsize > past_caches()
    place = (A.address % LINE, A.ps) if past else (0, 0)  # which matter for nothing else
    return transfer(direction, past, A.dtype, A.vlen, A.m, A.n, strides, *place, A.rs, A.cs)


@functools.lru_cache(1024)
def transfer(direction, past, dtype, V, m, n, strides, start, ps, rs, cs):
    """The kernel for packs that lie like that, and how it walks through them."""
    real = REAL[dtype.char]
    lanes, item = lanes_at_once(real, V), real.itemsize
    shape = V, m, n, *strides, rs * item, cs * item, dtype.itemsize
    plan = planned_past(*shape) if past and direction == "unpack" else None
    if plan:
        return unpack_past_kernel(dtype.char, lanes), plan
    vector = lanes * item
    aligned = vector >= 16 and not any(x % vector for x in (start, ps * item, rs * item, cs * item))
    kernel = transfer_kernel(dtype.char, lanes, direction, past and direction == "pack" and aligned)
    return kernel, planned(*shape, lanes)


TRANSFER = (*[INT] * 4, INTS, *[INT] * 7)


@functools.cache
def transfer_kernel(char, lanes, direction, past):
    return compiled(transfer_batch, TRANSFER, char, lanes, direction, past)


@functools.cache
def unpack_past_kernel(char, lanes):
    return compiled(unpack_past_batch, TRANSFER, char, lanes)


def gather_blocks(source: Array, index: Array, target: Array, launch: Launch = NOW) -> None:
    b, V = target.shape[1], target.shape[-1]
    size = source.itemsize
    order, _ = ordered(1, b * b, 0, size, 0, V * size, size)
    missing = missing_blocks(source.dtype, b)
    places = index.reshape(-1), order, b * b, address(target)
    kernel = gather_kernel(source.dtype.char, lanes_at_once(target.dtype, V))
    args = 0, len(index), V, address(source), b * b * size, address(missing), *places
    share(kernel, target.size, args, launch)


def gather_values(source: Array, index: Array, target: Array, launch: Launch = NOW) -> None:
    """Gather values, which are blocks of a single number."""
    V = target.shape[-1]
    gather_blocks(source, index.reshape(-1, V), target.reshape(-1, 1, 1, *target.shape[3:]), launch)


@functools.cache
def missing_blocks(dtype, b):
    """The numbers for the places -1 and -2."""
    return np.stack([np.zeros((b, b), dtype), np.eye(b, dtype=dtype)])


@functools.cache
def gather_kernel(char, lanes):
    return compiled(gather_batch, (*[INT] * 4, INTS, INTS, INT, INT), char, lanes)
