"""Copies between ordinary matrices and the compact layout. Addresses, offsets and strides of elements count bytes.

All of them move tiles: as many contiguous numbers as fill 16 bytes, of as many matrices as have their lanes in a cache
line. A tile is transposed in registers, so that both sides of a copy are vectors.

Where the elements of a matrix are says its `order`: for each the offset in the matrix and that in the pack, in turns.
Each `run` elements that follow each other there are contiguous in the matrix.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from compactla.cpu.emit.code import Code, routine
from compactla.cpu.emit.index import INDEX, Index, value_of
from compactla.cpu.emit.numba_matrices import fence
from compactla.cpu.emit.prefetch import BYTE, BYTES, LINE, prefetch

AHEAD = 8192  # bytes that a copy past the caches asks for before it needs them
COLLECTED = 2048  # bytes that are unpacked to a buffer before as many of earlier ones are stored past the caches
STAGE = 65536  # bytes of such a buffer, which holds one pack at least
APART = STAGE + 2048 + 2 * LINE  # from one to the other: a load may wait for a store a multiple of 4096 bytes away
STREAM = 4096  # bytes of an element that follow each other before the next is copied, where those of all matrices do
STREAMS = 8  # elements that are then copied side by side
SMALL = ir.IntType(32)


def lanes_at_once(real: np.dtype, V: int) -> int:
    """How many of V lanes are copied at a time: a power of two that fits a cache line."""
    return min(V & -V, LINE // real.itemsize)


class Tile:
    """Emits copies of `run` contiguous real numbers of each of `lanes` matrices; complex numbers are pairs."""

    def __init__(self, code: Code, real: str, lanes: int, run: int, past: bool = False) -> None:
        self.builder, self.lanes, self.run, self.past = code.builder, lanes, run, past
        self.real, self.item = (ir.DoubleType(), 8) if real == "d" else (ir.FloatType(), 4)
        self.vector = ir.VectorType(self.real, lanes)
        self.chunk = ir.VectorType(self.real, run) if run > 1 else self.real
        self.in_blocks = 1 < run <= lanes and lanes & (lanes - 1) == 0

    def load(self, pointer: Any, kind: Any) -> Any:
        return self.builder.load(self.builder.bitcast(pointer, kind.as_pointer()), align=1, typ=kind)

    def store(self, value: Any, pointer: Any) -> None:
        pointer = self.builder.bitcast(pointer, value.type.as_pointer())
        store = self.builder.store(value, pointer, align=self.lanes * self.item if self.past else 1)
        if self.past:
            store.set_metadata("nontemporal", self.builder.module.add_metadata([SMALL(1)]))

    def pack(self, matrices: Sequence, places: Sequence) -> None:
        chunks = [self.load(matrix, self.chunk) for matrix in matrices]
        if self.in_blocks:
            vectors = self.exchanged([self.joined(chunks[r :: self.run]) for r in range(self.run)])
        else:
            vectors = self.rearranged(chunks, self.vector, self.run)
        for vector, place in zip(vectors, places, strict=True):
            self.store(vector, place)

    def unpack(self, matrices: Sequence, places: Sequence) -> None:
        vectors = [self.load(place, self.vector) for place in places]
        if self.in_blocks:
            vectors = self.exchanged(vectors)
            starts = range(0, self.lanes, self.run)
            chunks = [self.shuffle(x, x, range(start, start + self.run)) for start in starts for x in vectors]
        else:
            chunks = self.rearranged(vectors, self.chunk, self.lanes)
        for chunk, matrix in zip(chunks, matrices, strict=True):
            self.store(chunk, matrix)

    def exchanged(self, vectors: list) -> list:
        """Transpose the blocks of run x run numbers that `run` vectors consist of, where they are."""
        distance = 1
        while distance < self.run:
            for i in range(self.run):
                if not i & distance:
                    x, y = vectors[i], vectors[i + distance]
                    order = [k + (self.lanes - distance) * bool(k & distance) for k in range(self.lanes)]
                    vectors[i] = self.shuffle(x, y, order)
                    vectors[i + distance] = self.shuffle(x, y, [k + distance for k in order])
            distance *= 2
        return vectors

    def joined(self, vectors: list) -> Any:
        """Join vectors, whose number is a power of two, into one."""
        while len(vectors) > 1:
            both = range(2 * vectors[0].type.count)
            vectors = [self.shuffle(x, y, both) for x, y in zip(vectors[::2], vectors[1::2], strict=True)]
        return vectors[0]

    def shuffle(self, x: Any, y: Any, order: Sequence[int]) -> Any:
        return self.builder.shuffle_vector(x, y, ir.Constant(ir.VectorType(SMALL, len(order)), list(order)))

    def rearranged(self, given: Sequence, kind: Any, count: int) -> list:
        """Transpose what is not in blocks, number by number."""
        result = [ir.Constant(kind, ir.Undefined)] * count
        for i, x in enumerate(given):
            for j in range(count):
                number = x if x.type == self.real else self.builder.extract_element(x, SMALL(j))
                result[j] = number if kind == self.real else self.builder.insert_element(result[j], number, SMALL(i))
        return result


class Copies:
    """Emits copies between matrices, given by pointers to them, and their lanes of a pack.

    `form` is the type of their elements, "pack" or "unpack", and "past" where a copy goes past the caches: then lanes
    that are written are aligned, and `ahead` is how far away what is read some time later lies.
    """

    def __init__(self, code, form, V, matrices, packed, order, ahead=None):
        self.code, self.builder = code, code.builder
        char, self.direction, *past = form.split()
        self.real, self.parts, self.past = char.lower(), 2 if char in "FD" else 1, bool(past)
        self.matrices, self.packed, self.order, self.ahead = matrices, packed, order, ahead
        self.size = self.parts * self.tile(1).item
        self.imaginary = V * self.tile(1).item

    def tile(self, run):
        return Tile(self.code, self.real, len(self.matrices), run, self.past and self.direction == "pack")

    def at(self, pointer, offset):
        return self.code.address(pointer, offset, BYTE)

    def offset(self, e, side):
        """The offset of element e, in the matrix (side 0) or in the pack (1)."""
        return self.code.entry(self.order, 2 * e + side)

    def places(self, e, elements):
        """The addresses of the lanes of the elements e, e + 1, ..."""
        places = []
        for k in range(elements):
            places.append(self.at(self.packed, self.offset(e + k, 1)))
            if self.parts == 2:
                places.append(self.at(places[-1], self.imaginary))
        return places

    def copy(self, e, elements):
        """The elements e, e + 1, ..., which are contiguous in each matrix."""
        offset, places = self.offset(e, 0), self.places(e, elements)
        if self.past and self.direction == "pack":
            # Adjacent matrices are asked for in the order of memory, not of the copies.
            n = len(self.matrices)
            here = self.at(self.matrices[0], offset * n)
            self.prefetch(self.at(here, line) for line in range(0, elements * self.size * n, LINE))
        elif self.past:
            self.prefetch(places)
        matrices = [self.at(matrix, offset) for matrix in self.matrices]
        getattr(self.tile(elements * self.parts), self.direction)(matrices, places)

    def prefetch(self, pointers):
        """Ask for what is `ahead` of these."""
        for pointer in pointers:
            prefetch(self.builder, self.at(pointer, self.ahead))

    def copy_adjacent(self, e):
        """Element e, where those of all the matrices are contiguous."""
        tile, n = self.tile(1), len(self.matrices)
        matrix, places = self.at(self.matrices[0], self.offset(e, 0)), self.places(e, 1)
        order = [k * self.parts + part for part in range(self.parts) for k in range(n)]
        if self.direction == "pack":
            x = tile.load(matrix, ir.VectorType(tile.real, len(order)))
            for part, place in enumerate(places):
                tile.store(tile.shuffle(x, x, order[part * n :][:n]), place)
        else:
            x = tile.joined([tile.load(place, tile.vector) for place in places])
            tile.store(tile.shuffle(x, x, [order.index(k) for k in range(len(order))]), matrix)

    def copy_runs(self, first, runs, run):
        """`runs` runs of elements from `first`."""
        most = max(16 // self.size, 1)
        with self.code.loop(runs) as t:
            start = first + t * run
            tiles = run // most
            with self.code.loop(tiles) as k:
                self.copy(start + k * most, most)
            if most > 1:
                done = tiles * most
                with self.code.loop(run - done) as k:
                    self.copy(start + done + k, 1)


def indices(code, *numbers):
    return [code.unknown(x) if isinstance(x, int) else x.index(code) for x in numbers]


@routine
def transfer(code, form, lanes, V, matrix, step, packed, order, first, runs, run, ahead):
    """Copy runs of elements of `lanes` matrices, `step` apart, to or from their lanes."""
    b, pointer = code.builder, BYTES
    V, matrix, step, packed, first, runs, run, ahead = indices(code, V, matrix, step, packed, first, runs, run, ahead)
    matrices = [b.inttoptr(value_of(matrix + step * k), pointer) for k in range(lanes)]
    copies = Copies(code, form, V, matrices, b.inttoptr(packed.value, pointer), order, ahead)
    if lanes == 1:
        copies.copy_runs(first, runs, run)
        return
    with code.either(step == copies.size) as (adjacent, apart):
        with adjacent, code.loop(runs * run) as k:
            copies.copy_adjacent(first + k)
        with apart:
            copies.copy_runs(first, runs, run)


@routine
def gather(code, form, lanes, V, source, size, missing, places, first, packed, order, count):
    """Fill lanes with the matrices of `size` bytes whose numbers in `source` are in `places` from `first`.

    -1 and -2 stand for the first and the second matrix in `missing`.
    """
    b, pointer = code.builder, BYTES
    V, source, size, missing, first, packed, count = indices(code, V, source, size, missing, first, packed, count)
    matrices = []
    for k in range(lanes):
        place = code.entry(places, first + k)
        there = place >= 0
        base, place = there.select(source, missing), there.select(place, -1 - place)
        matrices.append(b.inttoptr(value_of(base + size * place), pointer))
    Copies(code, form, V, matrices, b.inttoptr(packed.value, pointer), order).copy_runs(0, 1, count)


@intrinsic
def stage(typing_context):
    """Address of two buffers, APART, for what is on its way past the caches; a cache line starts there."""

    def lower(context, builder, signature, args):
        with builder.goto_entry_block():  # cgutils.alloca_once would write all of it
            address = Index(builder, builder.ptrtoint(builder.alloca(ir.ArrayType(BYTE, 2 * APART)), INDEX))
        return value_of((address + (LINE - 1)) // LINE * LINE)

    return types.intp(), lower


@routine
def store_lines(code, target, source, first, end):
    """Copy the cache lines from byte `first` to byte `end`, at addresses where lines start, past the caches."""
    b, pointer = code.builder, BYTES
    target, source, first, end = indices(code, target, source, first, end)
    tile = Tile(code, "d", LINE // 8, 1, past=True)
    with code.loop((end - first) // LINE) as k:
        byte = first + k * LINE
        here, there = (b.inttoptr(value_of(base + byte), pointer) for base in (source, target))
        tile.store(tile.load(here, tile.vector), there)


@routine
def store_bytes(code, target, source, first, end):
    """Copy the bytes from `first` to `end`."""
    b, pointer = code.builder, BYTES
    target, source, first, end = indices(code, target, source, first, end)
    with code.loop(end - first) as k:
        byte = first + k
        here, there = (b.inttoptr(value_of(base + byte), pointer) for base in (source, target))
        b.store(b.load(here, typ=BYTE), there)


def transfer_batch(char: str, lanes: int, direction: str, past: bool) -> Callable:
    """Kernel that packs or unpacks packs lo to hi, in groups of packs, and in these in blocks of elements."""
    item = np.dtype(char.lower()).itemsize
    one = f"{char} {direction}"
    form = f"{one} past" if past else one

    def kernel(lo, hi, V, nm, s, sq, order, count, run, group, block, ahead, a, ap):
        for p0 in range(lo, hi, max(group, 1)):
            for e in range(0, count, max(block, 1)):
                runs = min(block, count - e) // run
                for p in range(p0, min(p0 + group, hi)):
                    for v in range(0, V, lanes):
                        q = p * V + v
                        matrix, packed = s + q * sq, a + (p * ap + v) * item
                        if q + lanes <= nm:
                            transfer(form, lanes, V, matrix, sq, packed, order, e, runs, run, ahead)
                        else:
                            for k in range(nm - q):
                                transfer(one, 1, V, matrix + k * sq, sq, packed + k * item, order, e, runs, run, 0)
        if past:
            fence()

    return kernel


def unpack_past_batch(char: str, lanes: int) -> Callable:
    """Kernel that unpacks packs lo to hi past the caches, to matrices that are all contiguous.

    Groups of packs are unpacked to one buffer, in blocks of elements, and after each block some lines of the group
    before are stored from the other, so that reading and writing memory overlap. With blocks of half a group::

        buffer      here: group g              before: group g - 1         memory
                    ____________________       __________________________
        block 1     unpack e = 0, 1 ..  |      store lines up to a half  | -> target + 0 .. last
        block 2     unpack the rest     |      store lines up to `full`  | -> target + last .. full
                    --------------------       --------------------------
        then        `here` and `before` change places; g is the group before

    Groups do not end where cache lines do. What is behind `full` in `before`, the start of the line that group g goes
    on with, is copied to the `head` bytes of `here` first, and stored along with that group. The first group of a
    thread stores its first line byte by byte, and the last one its last, as others write the rest of these.
    """
    item, size = np.dtype(char.lower()).itemsize, np.dtype(char).itemsize
    one = f"{char} unpack"
    form = f"{one} past"

    def kernel(lo, hi, V, nm, s, sq, order, count, run, group, block, ahead, a, ap):
        here = stage()
        before = here + APART
        # Of the group before: where its first line is, the bytes to be stored, and those that fill lines.
        target, first, end, full = 0, 0, 0, 0
        for p0 in range(lo, hi, max(group, 1)):
            # The line in which the group begins also has the end of the group before.
            p1 = min(p0 + group, hi)
            start = s + p0 * V * sq
            head = start % LINE
            store_bytes(here, before + full, 0, head)
            for e in range(0, count, max(block, 1)):
                # Unpack a block of elements of the group, and store as large a part of the group before.
                elements = min(block, count - e)
                for p in range(p0, p1):
                    for v in range(0, V, lanes):
                        q = p * V + v
                        matrix, packed = here + head + (q - p0 * V) * sq, a + (p * ap + v) * item
                        if q + lanes <= nm:
                            transfer(form, lanes, V, matrix, sq, packed, order, e, 1, elements, ahead)
                            continue
                        for k in range(nm - q):
                            transfer(one, 1, V, matrix + k * sq, sq, packed + k * item, order, e, 1, elements, 0)
                last = full if e + elements == count else min(first + elements * V * size // LINE * LINE, full)
                store_lines(target, before, first, last)
                first = max(first, last)
            # What was unpacked is to be stored next; the first line of all, which others write too, byte by byte.
            target, first, end = start - head, 0, head + (min(p1 * V, nm) - p0 * V) * sq
            full = end // LINE * LINE
            if p0 == lo and head > 0:
                first = min(end, LINE)
                store_bytes(target, here, head, first)
            here, before = before, here
        store_lines(target, before, first, full)
        store_bytes(target, before, max(first, full), end)
        fence()

    return kernel


def gather_batch(char: str, lanes: int) -> Callable:
    """Kernel that fills slots lo to hi with matrices of `count` elements, `size` bytes; see `gather`."""
    item = np.dtype(char.lower()).itemsize
    form = f"{char} pack"

    def kernel(lo, hi, V, source, size, missing, places, order, count, target):
        for s in range(lo, hi):
            for v in range(0, V, lanes):
                packed = target + s * V * size + v * item
                gather(form, lanes, V, source, size, missing, places, s * V + v, packed, order, count)

    return kernel


@functools.lru_cache(32)
def ordered(m: int, n: int, si: int, sj: int, ar: int, ac: int, size: int) -> tuple[np.ndarray, int]:
    """The order of m x n elements of `size` bytes that goes through memory as they lie there, and its runs' length."""
    i, j = np.arange(m, dtype=np.int64)[:, None], np.arange(n, dtype=np.int64)
    order = np.stack([i * si + j * sj, i * ar + j * ac], 2)
    if n == 1 or (m > 1 and abs(si) < abs(sj)):
        order, m, n, si, sj = order.swapaxes(0, 1), n, m, sj, si
    run = n if sj == size else 1
    if run > 1 and si == n * size:
        run *= m
    return order.reshape(-1), run


@functools.lru_cache(32)
def planned(V: int, m: int, n: int, sq: int, si: int, sj: int, ar: int, ac: int, size: int, lanes: int) -> tuple:
    """How `transfer_batch` goes through a batch: order, count, run, group, block, ahead."""
    order, run = ordered(m, n, si, sj, ar, ac, size)
    count = m * n
    ahead = -(-AHEAD // (lanes * count * size)) * lanes * sq
    if abs(sq) < min(abs(si), abs(sj)):
        return order, count, 1, -(-STREAM // (V * size)), STREAMS, ahead
    return order, count, run, 1, count, ahead


@functools.lru_cache(32)
def planned_past(V: int, m: int, n: int, sq: int, si: int, sj: int, ar: int, ac: int, size: int) -> tuple | None:
    """The plan of `unpack_past_batch` for a batch, as `planned` makes it; None where that kernel does not serve."""
    order, run = ordered(m, n, si, sj, ar, ac, size)
    if run == m * n and sq == run * size and V * sq <= STAGE:
        return order, run, run, max(COLLECTED // (V * sq), 1), max(COLLECTED // (V * size), 1), AHEAD
    return None
