"""How the CPU factors lines of blocks and solves with them."""

import functools
import math
from typing import Any

import numba
import numpy as np
from numba import types

from compactla.buffers import Buffer
from compactla.calls.launch import NOW, Launch
from compactla.cpu import run
from compactla.cpu.arrays import default_vlen, empty
from compactla.cpu.compile import INT, INTS, compiled
from compactla.cpu.cost import STATIC, known_form, operations, parts, width
from compactla.cpu.emit.numba_matrices import form
from compactla.cpu.kernels.blocktridiag import (
    couple_batch,
    factor_batch,
    factor_watched_batch,
    residual_batch,
    solve_batch,
    spread_batch,
)
from compactla.cpu.threads import sharing
from compactla.cpu.threads.sharing import share
from compactla.dtypes import REAL, packed_dtype
from compactla.overlap import address
from compactla.types import Array, Queue
from compactla.view import Layout, layout

# Bytes of the nearest cache, into which the blocks of a step of a factorization and those that come next should fit.
NEAREST = 48 << 10
# Bytes of blocks that cores read about as fast as they compute with them.
NEAR = 8 << 20


def reals(dtype):
    """Real numbers in an element."""
    return 2 if dtype.kind == "c" else 1


def vector_length(b: int, dtype: np.dtype, queue: Queue) -> int:
    """The vector length that suits packs of b x b blocks: that of all packs."""
    return default_vlen(dtype, queue)


def concurrency(b: int, dtype: np.dtype, vlen: int, queue: Queue) -> tuple[float, float]:
    """How many lines are solved at once by all processors; the steps of a line that calls for separators cost."""
    step = 15 + 1.6 * (b * reals(dtype)) ** 2  # nanoseconds; the calls take 16 us
    return vlen * vars(numba.config)["NUMBA_DEFAULT_NUM_THREADS"], 16_000 / step


def relative_step(b: int, dtype: np.dtype, lanes: int, vlen: int, nbytes: int) -> float:
    """Time of a step of packs with so many lanes, over that of packs with `vlen`, for so many bytes of blocks.

    Fewer lanes take less of the registers' time; far from the cores, bytes alone count.
    """
    if nbytes > NEAR:
        return lanes / vlen
    work = (b * reals(dtype)) ** 2
    return (75 + lanes * work) / (75 + vlen * work)


class LinesView:
    """Arguments of kernels for lines of blocks; the arrays are those of `compactla.lines.packed`."""

    def __init__(
        self, lower: Array, diag: Array, upper: Array, offset: Array, rows: Array, policy: str = "",
        swaps: Array = None, stored: Any = None, tiny: float = 0.0,
    ) -> None:  # fmt: skip
        _, b, _, *lanes = diag.shape
        column = math.prod(lanes)
        self.layout = layout(packed_dtype(diag), lanes[-1], b, b, (b * column, column))
        self.sizes = lanes[-1], b, b * b * column, b * column, column  # real numbers in a slot, a row, a column
        self.blocks = address(lower), address(diag), address(upper)
        self.factors: tuple[int, ...] = self.blocks
        self.storage = ""
        if stored is not None:
            self.factors, self.storage = tuple(map(address, stored.blocks)), stored.storage
        self.offset, self.rows = offset, rows.reshape(-1)
        self.tiny, self.policy, self.swaps = tiny, policy, 0 if swaps is None else address(swaps)
        self.npack, self.nslot = len(offset) - 1, len(diag)
        self.far = 3 * diag.nbytes > run.FAR
        self.longest = int(np.diff(offset).max(initial=0))
        numbers, lanes = b * len(lanes), width(self.layout.dtype, self.layout.vlen)
        self.several = slots_at_once(rows, offset, -(-lanes // max(numbers, 1)), lanes)


def slots_at_once(rows, offset, least, lanes):
    """How many slots of lines have their vectors moved at once from each slot on: 0 where an earlier slot's include it.

    These are `least` to `lanes` slots in which the block rows of every lane follow each other; the others are moved one
    by one. Nor are there several where vectors of so many lanes are not transposed in registers.
    """
    count = len(rows)
    if lanes & (lanes - 1) or lanes == 1:
        return np.ones(count, np.int64)
    follows = np.zeros(count, bool)
    follows[1:] = ((rows[1:] == rows[:-1] + 1) & (rows[1:] > 0)).all(1)
    follows[offset[:-1]] = False
    first = np.flatnonzero(~follows)
    length = np.diff(first, append=count)
    place = np.arange(count) - np.repeat(first, length)
    group = np.minimum(np.repeat(length, length) - place // lanes * lanes, lanes)
    return np.where(group < least, 1, np.where(place % lanes, 0, group))


def new_info(lanes: int, queue: Queue, allocator: Any = None) -> Array:
    """The array that `factor_lines` enters zero pivots into."""
    return np.zeros(lanes, np.int64)


def swaps_like(diag: Array, queue: Queue) -> Array:
    """Room for the rows that are swapped, as integers as wide as the real numbers; complex ones use half of it."""
    return empty((len(diag), diag.shape[1], *diag.shape[3:]), np.dtype(f"i{diag.dtype.itemsize}"), queue)


def swap_form(A: Layout):
    """Form of a column of `swaps_like`."""
    integer = np.dtype(f"i{A.dtype.itemsize // parts(A.dtype)}")
    return form(integer, width(A.dtype, A.vlen))


def factor_lines(lines: Any, info: Array, launch: Launch = NOW, watched: Array = None) -> None:
    kernel, cost = factor_choice(lines.layout, lines.policy, lines.far)
    args = 0, lines.npack, *lines.sizes, *lines.blocks, lines.offset, info
    if lines.policy:
        args += lines.rows, lines.swaps, address(watched), lines.tiny
    share(kernel, lines.nslot * cost, args, launch, lines.offset)


@functools.cache
def factor_choice(A: Layout, policy, far):
    """The kernel, which fetches blocks that are `far` ahead, and what it costs for a slot."""
    known = A.m <= STATIC
    fetched = known and far
    arguments, block = (*[INT] * 8, INTS, INTS), known_form(A, known)
    if not policy:
        large = 6 * A.m**2 * width(A.dtype, A.vlen) * A.dtype.itemsize > NEAREST
        return compiled(factor_batch, arguments, block, fetched, large), operations(A, 2 * A.m**3)
    forms = block, known_form(A, False), swap_form(A)
    kernel = compiled(factor_watched_batch, (*arguments, INTS, INT, INT, types.float64), *forms, fetched, policy)
    return kernel, operations(A, 4 * A.m**3)


def solve_lines(lines: Any, rhs: Array, x: Array, work: Any, launch: Launch = NOW) -> None:
    nrhs = rhs.shape[2]
    swapped = lines.policy.endswith("pivoting")
    kernel, cost = solve_choice(lines.layout, nrhs, swapped, lines.storage, lines.far)
    vectors = lines.offset, lines.rows, lines.several, address(rhs), address(x)
    args = 0, lines.npack, *lines.sizes, nrhs, *lines.factors, *vectors, lines.swaps
    share(kernel, lines.nslot * cost, args, launch, lines.offset, work.addresses)


@functools.cache
def solve_choice(A: Layout, nrhs, swapped, stored, far):
    """The kernel, which fetches blocks that are `far` ahead, and what it costs for a slot."""
    arguments = (*[INT] * 9, *[INTS] * 3, INT, INT, INT, INT)
    block, column = known_form(A, A.m <= STATIC, stored=stored), column_form(A, nrhs)
    swap = swap_form(A) if swapped else ""
    kernel = compiled(solve_batch, arguments, block, column, swap, far and "?" not in column)
    return kernel, operations(A, 8 * A.m**2 * nrhs)  # which have to wait for the blocks


def column_form(A: Layout, nrhs):
    """Form of a block row of the right-hand sides."""
    lanes = width(A.dtype, A.vlen)
    step = reals(A.dtype) * lanes
    known = A.m <= STATIC and 0 < nrhs <= STATIC // 2
    return form(A.dtype, lanes, *((A.m, nrhs, (nrhs * step, step)) if known else ()))


def residual_lines(lines: Any, blocks: Any, rhs: Array, x: Array, r: Array, work: Any, launch: Launch = NOW) -> None:
    """r <- rhs - A x for the blocks of the lines before they were factored."""
    nrhs = rhs.shape[2]
    kernel, cost = residual_choice(lines.layout, nrhs)
    vectors = lines.offset, lines.rows, lines.several, address(rhs), address(x), address(r)
    args = 0, lines.npack, *lines.sizes, nrhs, *map(address, blocks), *vectors
    share(kernel, lines.nslot * cost, args, launch, lines.offset, work.addresses)


@functools.cache
def residual_choice(A: Layout, nrhs):
    """The kernel, and what it costs for a slot."""
    arguments = (*[INT] * 9, *[INTS] * 3, INT, INT, INT, INT)
    kernel = compiled(residual_batch, arguments, known_form(A, A.m <= STATIC), column_form(A, nrhs))
    return kernel, operations(A, 3 * A.m**2 * nrhs)


def pad_diagonals(blocks: Array, size: Array, launch: Launch = NOW) -> None:
    slots, b, vlen = blocks.shape[0], blocks.shape[1], blocks.shape[-1]
    largest = np.fmax.reduce(abs(blocks.reshape(slots, -1, vlen)), axis=1)
    largest[~(largest > 0)] = 1  # of zeros, or of NaN alone
    for i in range(size.min(initial=b), b):
        number = blocks[:, i, i].reshape(slots, -1, vlen)
        number[:, 0] = np.where(size <= i, largest, number[:, 0])


def copy(source: Array, target: Array, launch: Launch = NOW) -> None:
    """target <- source"""
    np.copyto(target, source)


def spread_lines(lines: Any, ends: Array, edges: Any, spikes: Any, launch: Launch = NOW) -> None:
    """Multiply what couples factored lines to others, at both ends, by the inverses of the lines.

    `edges` are packs of a block for each line, `spikes` have the slots of `diag`; ``ends[p, v]`` is the last slot of a
    line.
    """
    before, after = spikes
    pack, lane = np.divmod(np.arange(ends.size), ends.shape[1])
    shortest = ends.min(1)
    kernel, cost = spread_choice(lines.layout)
    before[lines.offset[:-1]] = edges[0]
    for p in np.flatnonzero(shortest < lines.offset[1:] - 1):
        after[shortest[p] : lines.offset[p + 1]] = 0
    after[ends.reshape(-1), ..., lane] = edges[1][pack, ..., lane]
    args = 0, lines.npack, *lines.sizes, *lines.blocks, lines.offset, shortest, address(before), address(after)
    share(kernel, lines.nslot * cost, args, launch, lines.offset)


@functools.cache
def spread_choice(A: Layout):
    """The kernel, and what it costs for a slot."""
    known = A.m <= STATIC
    kernel = compiled(spread_batch, (*[INT] * 8, INTS, INTS, INT, INT), known_form(A, known), known)
    return kernel, operations(A, 4 * A.m**3)


class CouplingsView:
    """Arguments of kernels for block rows and their couplings to two others; see `couple_batch`."""

    longest = 3  # block rows that `LineScratch` has to make room for, whatever the longest pack

    def __init__(
        self, lower: Array, upper: Array, offset: Array, rows: Array, before: Array, after: Array, longest: int
    ) -> None:
        _, b, _, *lanes = lower.shape
        column = math.prod(lanes)
        self.layout = layout(packed_dtype(lower), lanes[-1], b, b, (b * column, column))
        self.sizes = lanes[-1], b, b * b * column, b * column, column
        self.blocks = address(lower), address(upper)
        self.offset, self.rows = offset, [a.reshape(-1) for a in (rows, before, after)]
        self.npack, self.nslot = len(offset) - 1, len(lower)


def couple_rows(couplings: Any, source: Array, x: Array, work: Any, launch: Launch = NOW) -> None:
    nrhs = x.shape[2]
    kernel, cost = couple_choice(couplings.layout, nrhs)
    vectors = couplings.offset, *couplings.rows, address(source), address(x)
    args = 0, couplings.npack, *couplings.sizes, nrhs, *couplings.blocks, *vectors
    share(kernel, couplings.nslot * cost, args, launch, couplings.offset, work.addresses)


@functools.cache
def couple_choice(A: Layout, nrhs):
    """The kernel, and what it costs for a slot."""
    column = column_form(A, nrhs)
    arguments = (*[INT] * 8, *[INTS] * 4, INT, INT, INT)
    kernel = compiled(couple_batch, arguments, known_form(A, A.m <= STATIC), column, "?" not in column)
    return kernel, operations(A, 4 * A.m**2 * nrhs)


class LineScratch:
    """Room for the x of one pack of lines and one block row more, for each thread."""

    def __init__(self, lines: Any) -> None:
        self.layout, self.longest = lines.layout, lines.longest
        self.nrhs: int | None = None
        self.room = Buffer(REAL[lines.layout.dtype.char], None)

    def fit(self, nrhs: int) -> None:
        """Make room for so many right-hand sides."""
        if nrhs == self.nrhs:
            return
        A = self.layout
        column = A.m * nrhs * reals(A.dtype)
        spare = -(-2 * column // 16) * 16
        size = spare + (self.longest + 1) * column * width(A.dtype, A.vlen)
        memory = self.room.array((sharing.THREADS, size))
        memory[:, :spare] = 0
        self.addresses = [address(row) for row in memory]
        self.nrhs = nrhs
