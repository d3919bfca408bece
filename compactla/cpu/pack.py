"""Copies between ordinary matrices and the compact layout. Addresses and strides of ordinary arrays count bytes.

All of them move tiles: as many contiguous numbers as fill 16 bytes, of as many matrices as have their lanes in a cache
line. A tile is transposed in registers, so that both sides of a copy are vectors.

Where the elements of a matrix are says an `order`: for each the offset in the matrix and that in the pack, in turns. Each
`run` elements that follow each other there are contiguous in the matrix.
"""

import functools

import numpy as np
from llvmlite import ir
from numba.core import cgutils

from compactla.cpu.emit import routine
from compactla.cpu.simd import INDEX

LINE = 64  # bytes of a cache line
STAGE = 16384  # bytes that are collected in the cache before they go past it to memory
BYTE, SMALL = ir.IntType(8), ir.IntType(32)


def lanes_at_once(real, V):
    """How many of V lanes are copied at a time: a power of two that fits a cache line."""
    return min(V & -V, LINE // real.itemsize)


class Tile:
    """Emits copies of `run` contiguous real numbers of each of `lanes` matrices; complex numbers are pairs."""

    def __init__(self, code, real, lanes, run, stream=False):
        self.builder, self.lanes, self.run, self.stream = code.builder, lanes, run, stream
        self.real = ir.DoubleType() if real == "d" else ir.FloatType()
        self.item = np.dtype(real).itemsize
        self.vector = ir.VectorType(self.real, lanes)
        self.chunk = ir.VectorType(self.real, run) if run > 1 else self.real
        self.in_blocks = 1 < run <= lanes and lanes & (lanes - 1) == 0

    def load(self, pointer, kind):
        return self.builder.load(self.builder.bitcast(pointer, kind.as_pointer()), align=1, typ=kind)

    def store(self, value, pointer):
        pointer = self.builder.bitcast(pointer, value.type.as_pointer())
        if not self.stream:
            self.builder.store(value, pointer, align=1)
            return
        store = self.builder.store(value, pointer, align=self.lanes * self.item)
        store.set_metadata("nontemporal", self.builder.module.add_metadata([SMALL(1)]))

    def pack(self, matrices, places):
        for vector, place in zip(self.transposed([self.load(matrix, self.chunk) for matrix in matrices]), places):
            self.store(vector, place)

    def unpack(self, matrices, places):
        vectors = [self.load(place, self.vector) for place in places]
        for chunk, matrix in zip(self.transposed_back(vectors), matrices):
            self.store(chunk, matrix)

    def transposed(self, chunks):
        """`run` vectors of `lanes` numbers from `lanes` vectors of `run`."""
        if self.in_blocks:
            return self.exchanged([self.joined(chunks[r :: self.run]) for r in range(self.run)])
        return self.rearranged(chunks, self.vector, self.run)

    def transposed_back(self, vectors):
        if not self.in_blocks:
            return self.rearranged(vectors, self.chunk, self.lanes)
        vectors = self.exchanged(vectors)
        starts = range(0, self.lanes, self.run)
        return [self.shuffle(x, x, range(start, start + self.run)) for start in starts for x in vectors]

    def exchanged(self, vectors):
        """Transpose all the blocks of run x run numbers of `run` vectors, where they are."""
        distance = 1
        while distance < self.run:
            for i in range(self.run):
                if not i & distance:
                    x, y = vectors[i], vectors[i + distance]
                    lower = [k + (self.lanes - distance) * bool(k & distance) for k in range(self.lanes)]
                    vectors[i] = self.shuffle(x, y, lower)
                    vectors[i + distance] = self.shuffle(x, y, [k + distance for k in lower])
            distance *= 2
        return vectors

    def joined(self, vectors):
        """One vector of them all, a power of two."""
        while len(vectors) > 1:
            both = range(2 * vectors[0].type.count)
            vectors = [self.shuffle(x, y, both) for x, y in zip(vectors[::2], vectors[1::2])]
        return vectors[0]

    def shuffle(self, x, y, order):
        return self.builder.shuffle_vector(x, y, ir.Constant(ir.VectorType(SMALL, len(order)), list(order)))

    def rearranged(self, given, kind, count):
        """The same for sizes that are not powers of two, and for single numbers."""
        result = [ir.Constant(kind, ir.Undefined)] * count
        for i, x in enumerate(given):
            for j in range(count):
                number = x if x.type == self.real else self.builder.extract_element(x, SMALL(j))
                result[j] = number if kind == self.real else self.builder.insert_element(result[j], number, SMALL(i))
        return result


class Lanes:
    """Emits copies between some matrices and their lanes of a pack."""

    def __init__(self, code, form, V, pointers, packed, order):
        self.char, self.direction, *stream = form.split()
        self.code, self.builder, self.pointers, self.packed, self.order = code, code.builder, pointers, packed, order
        self.parts, self.real, self.stream = 2 if self.char in "FD" else 1, self.char.lower(), bool(stream)
        self.imaginary = self.builder.mul(V, INDEX(np.dtype(self.real).itemsize))

    def tile(self, run):
        return Tile(self.code, self.real, len(self.pointers), run, self.stream)

    def offset(self, e, which):
        b = self.builder
        place = b.gep(self.order, [b.add(b.shl(e, INDEX(1)), INDEX(which))], source_etype=INDEX)
        return b.load(place, typ=INDEX)

    def at(self, pointer, offset):
        return self.builder.gep(pointer, [offset], source_etype=BYTE)

    def places(self, e, elements):
        """Where the lanes of the elements e, e + 1, ... are."""
        b = self.builder
        for k in range(elements):
            place = self.at(self.packed, self.offset(b.add(e, INDEX(k)), 1))
            yield place
            if self.parts == 2:
                yield self.at(place, self.imaginary)

    def copy(self, e, elements):
        """The elements e, e + 1, ..., which are contiguous."""
        offset = self.offset(e, 0)
        matrices = [self.at(pointer, offset) for pointer in self.pointers]
        tile = self.tile(elements * self.parts)
        getattr(tile, self.direction)(matrices, list(self.places(e, elements)))

    def copy_adjacent(self, e):
        """Element e, where the matrices are such that those of all of them are contiguous."""
        b = self.builder
        matrix, n = self.at(self.pointers[0], self.offset(e, 0)), len(self.pointers)
        tile = self.tile(1)
        order = [k * self.parts + part for part in range(self.parts) for k in range(n)]
        both = ir.VectorType(tile.real, n * self.parts)
        places = list(self.places(e, 1))
        if self.direction == "pack":
            x = tile.load(matrix, both)
            for part, place in enumerate(places):
                tile.store(tile.shuffle(x, x, order[part * n : part * n + n]), place)
        else:
            x = tile.joined([tile.load(place, tile.vector) for place in places])
            tile.store(tile.shuffle(x, x, [order.index(k) for k in range(n * self.parts)]), matrix)

    def copy_all(self, first, count, run):
        """`count` elements of the order from `first`, whose runs are contiguous."""
        b = self.builder
        most = max(16 // (self.tile(1).item * self.parts), 1)
        with self.code.loop(b.udiv(count, run)) as t:
            start = b.add(first, b.mul(t, run))
            tiles = b.udiv(run, INDEX(most))
            with self.code.loop(tiles) as k:
                self.copy(b.add(start, b.mul(k, INDEX(most))), most)
            if most > 1:
                done = b.mul(tiles, INDEX(most))
                start = b.add(start, done)
                with self.code.loop(b.sub(run, done)) as k:
                    self.copy(b.add(start, k), 1)


def number(code, x):
    return INDEX(x) if isinstance(x, int) else x.index(code)


@routine
def transfer(code, form, lanes, V, matrix, step, packed, order, first, count, run):
    """Copy elements between `lanes` matrices, `step` apart, and their lanes in a pack."""
    b = code.builder
    V, matrix, step, packed, first, count, run = (number(code, x) for x in (V, matrix, step, packed, first, count, run))
    pointer = BYTE.as_pointer()
    matrices = [b.inttoptr(b.add(matrix, b.mul(step, INDEX(k))), pointer) for k in range(lanes)]
    copy = Lanes(code, form, V, matrices, b.inttoptr(packed, pointer), order)
    if lanes == 1:
        copy.copy_all(first, count, run)
        return
    adjacent = b.icmp_signed("==", step, INDEX(copy.parts * copy.tile(1).item))
    with b.if_else(adjacent) as (yes, no):
        with yes, code.loop(count) as k:
            copy.copy_adjacent(b.add(first, k))
        with no:
            copy.copy_all(first, count, run)


@routine
def gather(code, form, lanes, V, source, size, missing, places, start, packed, order, count):
    """Fill lanes with the matrices of `size` bytes whose numbers in `source` are in `places`.

    -1 and -2 stand for the first and the second matrix at `missing`.
    """
    b = code.builder
    numbers = (V, source, size, missing, start, packed, count)
    V, source, size, missing, start, packed, count = (number(code, x) for x in numbers)
    pointer = BYTE.as_pointer()
    matrices = []
    for k in range(lanes):
        place = b.load(b.gep(places, [b.add(start, INDEX(k))], source_etype=INDEX), typ=INDEX)
        here = b.icmp_signed(">=", place, INDEX(0))
        base = b.select(here, source, missing)
        matrices.append(b.inttoptr(b.add(base, b.mul(size, b.select(here, place, b.not_(place)))), pointer))
    copy = Lanes(code, form, V, matrices, b.inttoptr(packed, pointer), order)
    copy.copy_all(INDEX(0), count, count)


@routine
def stream(code, target, source, size):
    """Copy bytes past the caches, except for those that fill no line."""
    b = code.builder
    target, source, size = (b.inttoptr(number(code, x), BYTE.as_pointer()) for x in (target, source, size))
    raise NotImplementedError


@routine
def settle(code):
    """Make what was stored past the caches visible to other threads, as other stores are."""
    b = code.builder
    if b.module.triple.startswith(("x86_64", "i686")):
        kind = ir.FunctionType(ir.VoidType(), [])
        b.call(cgutils.get_or_insert_function(b.module, kind, "llvm.x86.sse.sfence"), [])
    else:
        b.fence("release")


def transfer_batch(char, lanes, direction, past, identity):
    """Kernel that packs or unpacks packs lo to hi."""
    item = np.dtype(char.lower()).itemsize
    form = f"{char} {direction}"
    fast = f"{form} stream" if past and direction == "pack" else form

    def kernel(lo, hi, V, nm, s, sq, order, count, run, group, block, a, ap):
        for p0 in range(lo, hi, max(group, 1)):
            p1 = min(p0 + group, hi)
            for e in range(0, count, max(block, 1)):
                size = min(block, count - e)
                for p in range(p0, p1):
                    for v in range(0, V, lanes):
                        q, packed = p * V + v, a + (p * ap + v) * item
                        if q + lanes <= nm:
                            transfer(fast, lanes, V, s + q * sq, sq, packed, order, e, size, min(run, size))
                        else:
                            for k in range(nm - q):
                                matrix = s + (q + k) * sq
                                transfer(form, 1, V, matrix, sq, packed + k * item, order, e, size, min(run, size))
        if past:
            settle()
        return identity

    return kernel


def gather_batch(char, lanes, identity):
    """Kernel that fills slots lo to hi with b x b matrices of a sparse matrix."""
    item = np.dtype(char.lower()).itemsize
    form = f"{char} pack"

    def kernel(lo, hi, V, source, size, missing, places, order, count, target):
        for p in range(lo, hi):
            for v in range(0, V, lanes):
                packed = target + p * V * size + v * item
                gather(form, lanes, V, source, size, missing, places, p * V + v, packed, order, count)
        return identity

    return kernel


@functools.lru_cache(64)
def ordered(m, n, si, sj, ar, ac, size):
    """The order of the elements in memory, and how many are contiguous."""
    i, j = np.arange(m)[:, None], np.arange(n)
    order = np.stack([i * si + j * sj, i * ar + j * ac], 2)
    if n < 2 or (m > 1 and abs(si) < abs(sj)):
        order, m, n, si, sj = order.swapaxes(0, 1), n, m, sj, si
    run = n if sj == size else 1
    if run > 1 and si == n * size:
        run *= m
    return order.reshape(-1), run
