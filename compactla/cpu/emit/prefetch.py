"""Fetching what comes next into the cache while a routine works on what is there.

Kernels are bound by memory where the data is large, and the processor alone does not look far enough ahead: the tiles
of a matrix are not read in the order in which they lie. So the innermost loops ask for a little of it in every round.
It goes into the first level of the caches if there is room for it, else into the second.

In a Numba function what comes next is not known, but likely: matrices of a large array are worked on one after the
other. `compactla.cpu.emit.numba_matrices.matrix` sees how large the array is, when the function runs.
"""

import functools
import operator
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from compactla import routine
from compactla.cpu.emit.index import INDEX, Index, Variable, is_known, value_of
from compactla.cpu.emit.machine import first_cache
from compactla.cpu.emit.matrices import Elements, itemsize

BYTE = ir.IntType(8)
BYTES = BYTE.as_pointer()
LINE, PAGE = 64, 4096  # bytes
OFFSET = ir.IntType(32)


class Prefetch:
    """Contiguous matrices of one known size that are fetched into the cache side by side, some lines of each a round.

    Even progress on several of them at once is what the memory likes best; one large matrix is fetched as two halves.
    Where matrices say how far `ahead` they want to look, it is done from there on, and not at all if none wants to.
    """

    def __init__(self, code, matrices, rounds):
        self.code = code
        self.streams = [stream for A in matrices for stream in streams(code, A, rounds, alone=len(matrices) == 1)]
        wanted = [A.ahead != 0 for A in matrices if not is_known(A.ahead, 0)]
        self.wanted = functools.reduce(operator.or_, wanted) if wanted else None
        self.first = nbytes(matrices[0]) * len(matrices) < first_cache()
        self.place = Variable(code.builder, 0)

    def advance(self, rounds):
        """Begin some rounds; returns the number of the first of them."""
        place = self.place.get()
        self.place.set(place + rounds)
        return place

    def fetch(self, start, p):
        """The cache lines of round p of those that begin with the round `start`."""
        with nullcontext() if self.wanted is None else self.code.when(self.wanted):
            for stream in self.streams:
                for place in stream.places(start, p):
                    prefetch(self.code.builder, place, first=self.first)


def streams(code, A, rounds, alone):
    """What there is to fetch of a matrix, in so many rounds."""
    start = behind(code, code.builder.bitcast((A if A.half else A._replace(base=A.lowest)).base, BYTES), A.ahead)
    if A.half:
        return [Triangle(code, start, A, rounds)]
    parts = 2 if alone and nbytes(A) >= PAGE else 1
    size = nbytes(A) // parts
    return [Whole(code, behind(code, start, part * size), -(-size // rounds)) for part in range(parts)]


def behind(code, start, offset):
    """The address that is so many bytes behind another."""
    return start if is_known(offset, 0) else code.builder.gep(start, [value_of(offset)], source_etype=BYTE)


class Whole:
    """Bytes that follow each other: a `step` in every round."""

    def __init__(self, code, start, step):
        self.code, self.start, self.step = code, start, step

    def places(self, first, p):
        """Addresses of the lines of round p, counted from the `first`."""
        start = behind(self.code, self.start, first * self.step)
        return [behind(self.code, start, p * self.step + line) for line in range(0, self.step, LINE)]


class Triangle:
    """The lines of a triangle of a matrix, by a table of their offsets: as many in every round."""

    def __init__(self, code, start, A, rounds):
        self.code, self.start = code, start
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
        code, entries = self.code, [(first + p) * self.count + k for k in range(self.count)]
        known = [Index(code.builder, code.builder.and_(value_of(entry), INDEX(self.mask))) for entry in entries]
        return [behind(code, self.start, code.entry(self.table, entry, OFFSET)) for entry in known]


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


def likely(name: str, given: Sequence, uplo: str | None) -> tuple[Elements, ...]:
    """The largest operands of a routine that are followed by what is likely to come next, to be fetched ahead."""
    operands = routine.named(name).operands if name in routine.names() else ()
    halves = [operand.half for operand in operands] + [False] * len(given)
    followed = [(A, half) for A, half in zip(given, halves, strict=False) if isinstance(A, Elements)]
    followed = [(A, half) for A, half in followed if not is_known(A.ahead, 0)]
    most = max((nbytes(A) for A, _ in followed), default=0)
    return tuple(A._replace(half=uplo if half else "") for A, half in followed if nbytes(A) == most)
