"""Sparse batches on GPUs, by work-groups that have some matrices each.

They go through lists that `compactla.sparse.rounds` makes.
"""

import functools
import weakref
from typing import Any, NamedTuple

import numpy as np

from compactla.calls.launch import Launch
from compactla.dtypes import REAL
from compactla.gpu.arrays import ordinary
from compactla.gpu.bands import columns
from compactla.gpu.launch import enqueue, flatten
from compactla.gpu.pattern_lists import on_device, small
from compactla.gpu.program import kernel
from compactla.gpu.tuning.choices import is_cpu, local_room
from compactla.layout import Pack
from compactla.search import LOCAL_BYTES
from compactla.sparse import rounds
from compactla.sparse.elimination import Tiles, multiplications, tiled
from compactla.types import Array
from compactla.view import View

SIZES = 1, 2, 3, 4, 6  # rows and columns of tiles
LARGE, FEWEST = 4, 3  # the largest ones of complex numbers, and how many are side by side at least
GROWTH = 2.25  # time of a product of tiles, as a power of their size: so it was measured
LANES, MEMBERS, LEAST = 16, 64, 2  # matrices of a work-group at most, and work-items of each
GROUP, SMALL = 256, 64  # work-items of a work-group, about; and of one that multiplies or solves with short vectors
SHORT = 16  # rows of these
SECTOR = 32  # bytes that memory moves at once
COPYING = 80  # the compute capability from which on a GPU makes such copies
SPARE = 1024  # bytes of local memory beside what the launch provides
NONE, UNIT = 0xFFFF, 0xFFFE  # of csrlu.cl: instead of places of values
AHEAD = 4  # rounds that values are on their way before they are used, twice as many with longer vectors
_kept: weakref.WeakKeyDictionary[Any, dict] = weakref.WeakKeyDictionary()


class Shape(NamedTuple):
    """How matrices are factored: rows of a tile, matrices of a work-group, and work-items of each."""

    size: int
    lanes: int
    members: int


class Elimination(NamedTuple):
    """The lists of csrlu.cl, and how many numbers a matrix has in tiles."""

    starts: np.ndarray
    words: np.ndarray
    sources: np.ndarray
    places: np.ndarray
    numbers: int


def room_of(device: Any) -> int:
    """Bytes of local memory that a work-group may have; 0 on CPUs, where that is no faster than other memory."""
    return 0 if is_cpu(device) else local_room(device, True) - SPARE


def kept(pattern, name, make):
    """What `make` makes of a pattern, once."""
    known = _kept.setdefault(pattern, {})
    if name not in known:
        known[name] = make()
    return known[name]


def factor(
    values: Pack, pattern: Any, sources: np.ndarray | None, factors: Pack, info: Array, launch: Launch
) -> bool:  # fmt: skip
    """Factor packs of values, if there is room for them; arguments as of `compactla.gpu.sparse.eliminate`."""
    queue, dtype, V = values.queue, values.dtype, values.vlen
    sizes, device = SIZES[: 1 if sources is None else None], queue.device
    key = "shape", sizes, dtype.char, V, room_of(device)
    shape = kept(pattern, key, lambda: shape_of(pattern, sizes, dtype, V, device))
    if shape is None:
        return False
    size, lanes, members = shape
    name = "elimination", size, members
    lists = kept(pattern, name, lambda: elimination(pattern, sources, size, members))
    numbers = lists.numbers
    macros = {"SIZE": size, "LANES": lanes, "MEMBERS": members, "NUMBERS": numbers}
    macros |= {"ARS": values.view.rs, "FRS": factors.view.rs, "CLA_ASYNC": int(not is_old(queue.device))}
    macros |= room_for(numbers * lanes * dtype.itemsize)
    counts = len(lists.starts) - 1, len(lists.words), len(lists.sources), len(lists.places)
    arrays, args = flatten(
        (*counts, *on_device(pattern, queue, name, lambda: lists[:-1]), values.view, factors.view, info)
    )
    start("csrlu.cl", "csrlu_batch", values, lanes, members, arrays, args, launch, macros)
    return True


def shape_of(pattern, sizes, dtype, V, device) -> Shape | None:
    """How matrices are factored, in tiles of one of these sizes; None if there is no room for one matrix."""
    most = LARGE if dtype.kind == "c" else max(sizes)  # registers
    some = [size for size in sizes if size == sizes[0] or (size <= most and pattern.n >= FEWEST * size)]
    size = min(some, key=functools.partial(cost, pattern))
    count = len(tiled(pattern, size).indices)
    members = min(max(power_of_two(count // 2), LEAST), MEMBERS)
    lanes = min(max(GROUP // members, SECTOR // REAL[dtype.char].itemsize), LANES)
    members = min(members, device.max_work_group_size // lanes)
    while lanes and (V % lanes or lanes * count * pitch(size) * dtype.itemsize > room_of(device)):
        lanes //= 2
    return Shape(size, lanes, members) if lanes else None


def cost(pattern, size):
    """About how long elimination in tiles of a size takes: products of tiles, and less at a time if they are large."""
    tiles = tiled(pattern, size)
    count = len(tiles.indices)
    return (multiplications(tiles) + count) * size**GROWTH * count * pitch(size)


def power_of_two(number):
    return 1 << max(number, 1).bit_length() - 1


def start(file, name, values, lanes, members, arrays, args, launch, macros):
    """Launch a kernel with so many matrices of a pack in each work-group."""
    run = kernel(values.queue, file, name, values.dtype, values.vlen, args, **macros)
    groups, group = values.view.npack * values.vlen // lanes, lanes * members
    enqueue(values.queue, launch, run, (groups * group, 1), (group, 1), arrays, args)


def is_old(device):
    """Whether a GPU of NVIDIA's has no copies of async_copy.h."""
    if hasattr(device, "arch"):
        return int(device.arch.removeprefix("sm_")) < COPYING
    return "NVIDIA" in device.platform.name and device.compute_capability_major_nv < COPYING // 10


def room_for(size):
    """The macro for so many bytes of local memory that the launch has to provide."""
    return {"CLA_ROOM": size} if size > LOCAL_BYTES else {}


def pitch(size):
    """Numbers from tile to tile: odd, so that neighbours are in other banks."""
    return size * size + (size % 2 == 0)


def elimination(pattern, sources, size, members) -> Elimination:
    """The lists of tiles of a size; `sources` says which of the values those of the pattern are, by -1 for none."""
    tiles = Tiles(pattern, np.arange(pattern.n), pattern, size)
    sources = np.arange(len(pattern.indices)) if sources is None else sources
    tile, within = np.divmod(np.arange(tiles.count), size**2)
    local = tile * pitch(size) + within
    read = np.full(tiles.count, NONE)
    read[tiles.entries == -2] = UNIT
    read[tiles.places] = np.where(sources < 0, NONE, sources)
    order = np.argsort(read, kind="stable")  # as they are in memory
    words = (local[order] | read[order] << rounds.WORD).astype(np.uint32)
    done = rounds.schedule(rounds.elimination(tiles), members)
    return Elimination(
        done.starts, done.words, words, local[tiles.places].astype(np.int32), len(tiles.rows) * pitch(size)
    )


class Vectors(NamedTuple):
    """Columns for each of nm matrices, and results, in packs or in ordinary arrays."""

    given: View
    result: View
    nm: int
    is_ordinary: bool

    @classmethod
    def of_arrays(cls, x: Array, y: Array) -> "Vectors":
        """Arrays (nm, n) or (nm, n, nrhs)."""
        given, result = (ordinary(columns(a) if a.ndim == 2 else a) for a in (x, y))
        return cls(given, result, len(x), True)


def product(values: Pack, pattern: Any, vectors: Vectors, trans: str, launch: Launch) -> bool:
    """Multiply with matrices, or with their transposes, if vectors are short enough."""
    return stream(values, pattern, True, None, vectors, trans, launch)


def solve(
    factors: Pack, pattern: Any, order: np.ndarray | None, vectors: Vectors, trans: str, launch: Launch
) -> bool:  # fmt: skip
    """Solve with factors, or with their transposes, if vectors are short enough.

    Row i of the pattern is row ``order[i]`` of vectors, if there is an order.
    """
    return stream(factors, pattern, False, order, vectors, trans, launch)


def stream(values, pattern, is_product, order, vectors, trans, launch):
    """Go through a pattern with `csrstream.cl`."""
    given, result, nm, is_ordinary = vectors
    queue = values.queue
    numbers, longest = given.m + is_product * result.m, max(given.m, result.m)
    lanes, members = stream_shape(numbers * values.dtype.itemsize, longest, values.vlen, queue.device)
    if not lanes or not 0 < len(pattern.indices) <= NONE or longest > NONE:
        return False
    ahead = AHEAD if longest <= SHORT else 2 * AHEAD
    name = "rounds", is_product, trans != "N", members, ahead
    words = kept(pattern, name, lambda: stream_words(pattern, trans != "N", is_product, members, ahead))
    lists = on_device(pattern, queue, name, lambda: [words])
    orders = [None] if order is None else on_device(pattern, queue, "pivots", lambda: small(order))
    macros = {"LANES": lanes, "MEMBERS": members, "ROWS": result.m, "COLUMNS": given.m, "VRS": values.view.rs}
    macros |= {"AHEAD": ahead, "PRODUCT": int(is_product), "TRANS": "NTC".index(trans), "ORDINARY": int(is_ordinary)}
    macros["ALONG"] = int(is_ordinary and abs(given.ps) < abs(given.rs))
    arrays, args = flatten((nm, given.n, len(words), *lists, *orders, values.view, given, result))
    start("csrstream.cl", "csrstream", values, lanes, members, arrays, args, launch, macros)
    return True


def stream_words(pattern, trans, is_product, members, ahead):
    """The list of `csrstream.cl`."""
    tasks = rounds.product(pattern, trans) if is_product else rounds.substitution(pattern, trans)
    words = rounds.schedule(tasks, members).words
    return np.pad(words, ((0, -len(words) % ahead), (0, 0), (0, 0)))


def stream_shape(each, longest, V, device):
    """Matrices of a work-group, and work-items of each, where vectors of one take so many bytes; (0, 0) if too many."""
    room, group = min(room_of(device), LOCAL_BYTES), SMALL if longest <= SHORT else 2 * SMALL
    lanes = next((some for some in (32, 16, 8, 4, 2, 1) if V % some == 0 and each * (some + 1) <= room), 0)
    return (lanes, group // lanes) if lanes else (0, 0)
