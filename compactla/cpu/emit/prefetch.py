"""Fetching what comes next into the cache while a routine works on what is there.

Kernels are bound by memory where the data is large, and the processor alone does not look far enough ahead: the tiles
of a matrix are not read in the order in which they lie. So the innermost loops ask for a little of it in every round.
How it is best asked for depends on the processor: `compactla.cpu.emit.choices` says it.

In a Numba function what comes next is not known, but likely: matrices of a large array are worked on one after the
other. `compactla.cpu.emit.numba_matrices.matrix` sees how large the array is, when the function runs.
"""

import functools
import operator
from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from compactla import routine
from compactla.cpu.emit.choices import choices
from compactla.cpu.emit.index import INDEX, Index, Variable, is_known, value_of
from compactla.cpu.emit.machine import first_cache, second_cache
from compactla.cpu.emit.matrices import Elements, itemsize

BYTE = ir.IntType(8)
BYTES = BYTE.as_pointer()
LINE, PAGE = 64, 4096  # bytes
LEAST = 2 << 10  # bytes of a matrix from which on others are fetched: what is smaller comes as fast by itself
OFFSET = ir.IntType(32)


class Prefetch:
    """Contiguous matrices of one known size that are fetched into the cache side by side, some lines of each a round.

    Even progress on several of them at once is what the memory likes best; one large matrix is fetched as two halves.
    Of matrices that have `packs` those that follow them are asked for as well, so that a line is asked for several
    times. Where matrices say how far `ahead` they want to look, it is done from there on, if it is `wanted` at all.
    """

    def __init__(self, code, matrices, rounds):
        self.code = code
        packs = packs_for(sum(map(nbytes, matrices)))
        alone = len(matrices) == 1
        self.streams = [stream for A in matrices for stream in streams(code, A, rounds, packs, alone)]
        wanted = [A.ahead != 0 for A in matrices if not is_known(A.ahead, 0)]
        self.wanted = functools.reduce(operator.or_, wanted) if wanted else None
        self.first = choices().first and nbytes(matrices[0]) * len(matrices) < first_cache()
        self.place = Variable(code.builder, 0)

    def advance(self, rounds):
        """Begin some rounds; returns the number of the first of them."""
        place = self.place.get()
        self.place.set(place + rounds)
        return place

    def fetch(self, start, p):
        """The cache lines of round p of those that begin with the round `start`."""
        for stream in self.streams:
            for place in stream.places(start, p):
                prefetch(self.code.builder, place, first=self.first)


def packs_for(size: int) -> int:
    """Of how many of the next packs lines are asked for at a time, if they have so many bytes: all fit the cache."""
    return max(1, min(choices().packs, 3 * second_cache() // 4 // size - 1))


def streams(code, A, rounds, packs, alone):
    """What there is to fetch of a matrix, in so many rounds, and of others behind it up to so many packs.

    Where no others are known to be behind it, or fit the cache, lines that are to be asked for several times are asked
    for again half a matrix later, unless it is small.
    """
    start = behind(code, code.builder.bitcast((A if A.half else A._replace(base=A.lowest)).base, BYTES), A.ahead)
    count, step = A.packs
    count = min(count, packs)
    steps = [p * step * itemsize(A.element) for p in reversed(range(count))]
    again = count == 1 < choices().packs and nbytes(A) >= LEAST
    delays = [0, rounds // 2] if again else [0]
    if A.half:
        return [Triangle(code, start, A, rounds, steps, delays)]
    parts = 2 if alone and nbytes(A) >= PAGE else 1
    size = nbytes(A) // parts
    starts = [behind(code, start, part * size) for part in range(parts)]
    return [Whole(code, place, -(-size // rounds), steps, delays) for place in starts]


def behind(code, start, offset):
    """The address that is so many bytes behind another."""
    return start if is_known(offset, 0) else code.builder.gep(start, [value_of(offset)], source_etype=BYTE)


class Whole:
    """Bytes that follow each other: a `step` in every round, from several places on, and again some rounds later."""

    def __init__(self, code, start, step, places, delays):
        self.code, self.starts, self.step = code, [behind(code, start, place) for place in places], step
        self.delays = delays

    def places(self, first, p):
        """Addresses of the lines of round p, counted from the `first`."""
        lines = range(0, self.step, LINE)
        rounds = [first + -delay for delay in self.delays]
        there = [behind(self.code, start, place * self.step) for place in rounds for start in self.starts]
        return [behind(self.code, start, p * self.step + line) for line in lines for start in there]


class Triangle:
    """The lines of a triangle of a matrix, by a table of their offsets: as many in every round, as of `Whole`."""

    def __init__(self, code, start, A, rounds, places, delays):
        self.code, self.starts, self.delays = code, [behind(code, start, place) for place in places], delays
        lines = lines_of_triangle(A)
        self.count = -(-len(lines) // rounds)
        used = self.count * rounds
        offsets = [lines[k * len(lines) // used] for k in range(used)]
        self.mask = (1 << (used - 1).bit_length()) - 1  # whatever is asked for is in the table
        offsets += offsets[-1:] * (self.mask + 1 - used)
        table = ir.Constant(ir.ArrayType(OFFSET, len(offsets)), offsets)
        self.table = cgutils.global_constant(code.builder.module, "lines", table).bitcast(OFFSET.as_pointer())

    def places(self, first, p):
        """Addresses of the lines of round p, counted from the `first`."""
        code = self.code
        entries = [(first + p - delay) * self.count + k for delay in self.delays for k in range(self.count)]
        known = [Index(code.builder, code.builder.and_(value_of(entry), INDEX(self.mask))) for entry in entries]
        offsets = [code.entry(self.table, entry, OFFSET) for entry in known]
        return [behind(code, start, offset) for offset in offsets for start in self.starts]


def lines_of_triangle(A: Elements) -> list[int]:
    """Offsets in bytes of the cache lines of the triangle that is used of a matrix of known size and strides."""
    size = nbytes(A) // (A.m * A.n)
    elements = [(i, j) if A.half == "L" else (j, i) for i in range(A.m) for j in range(i + 1)]
    starts = [(i * A.rs + j * A.cs) * itemsize(A.element) // LINE for i, j in elements]
    return sorted({LINE * (start + k) for start in starts for k in range(-(-size // LINE))})


def prefetch(builder: ir.IRBuilder, pointer: Any, write: bool = False, first: bool = True) -> None:
    """Ask for the cache line at a pointer to bytes, to be read or written; or for all caches but the `first` level."""
    number = ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [BYTES, number, number, number])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(function, [pointer, number(int(write)), number(3 if first else 2), number(1)])  # data


def nbytes(A: Elements) -> int:
    """Bytes of a matrix of known size."""
    return A.m * A.n * A.vector.lanes * len(A.vector.parts) * itemsize(A.element)


def successive(A: Elements, side: int = 1) -> Elements:
    """A matrix to be fetched that others follow in memory, to be fetched as well; of `side` by side it is one."""
    return A._replace(packs=(choices().packs, side * nbytes(A) // itemsize(A.element)))


def likely(name: str, given: Sequence, uplo: str | None) -> tuple[Elements, ...]:
    """The largest operands of a routine that are followed by what is likely to come next, to be fetched ahead."""
    operands = routine.named(name).operands if name in routine.names() else ()
    halves = [operand.half for operand in operands] + [False] * len(given)
    followed = [(A, half) for A, half in zip(given, halves, strict=False) if isinstance(A, Elements)]
    followed = [(A, half) for A, half in followed if not is_known(A.ahead, 0)]
    most = max((nbytes(A) for A, _ in followed), default=0)
    return tuple(successive(A)._replace(half=uplo if half else "") for A, half in followed if nbytes(A) == most)
