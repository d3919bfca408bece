"""Fetching what comes next into the cache while a routine works on what is there.

Kernels are bound by memory where the data is large, and the processor alone does not look far enough ahead: the tiles
of a matrix are not read in the order in which they lie. So the innermost loops ask for a little of it in every round.
It goes into the first level of the caches if there is room for it, else into the second.

In a Numba function what comes next is not known, but likely: matrices of a large array are worked on one after the
other. `compactla.cpu.emit.numba_matrices.matrix` sees how large the array is, when the function runs.
"""

import functools
import operator
from contextlib import nullcontext
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from compactla.cpu.emit.index import Variable, is_known, value_of
from compactla.cpu.emit.machine import first_cache
from compactla.cpu.emit.matrices import Elements, itemsize

BYTE = ir.IntType(8)
BYTES = BYTE.as_pointer()
LINE, PAGE = 64, 4096  # bytes


class Prefetch:
    """Contiguous matrices of one known size that are fetched into the cache side by side, some bytes of each a round.

    Even progress on several of them at once is what the memory likes best; one large matrix is fetched as two halves.
    Where matrices say how far `ahead` they want to look, it is done from there on, and not at all if none wants to.
    """

    def __init__(self, code, matrices, rounds):
        self.code = code
        self.starts = [self._behind(code.builder.bitcast(A.lowest, BYTES), A.ahead) for A in matrices]
        wanted = [A.ahead != 0 for A in matrices if not is_known(A.ahead, 0)]
        self.wanted = functools.reduce(operator.or_, wanted) if wanted else None
        size = nbytes(matrices[0])
        self.first = size * len(matrices) < first_cache()
        if len(matrices) == 1 and size >= PAGE:
            size //= 2
            self.starts.append(self._behind(self.starts[0], size))
        self.step = -(-size // rounds)
        self.place = Variable(code.builder, 0)

    def advance(self, rounds):
        """Begin some rounds; returns the addresses at which the first of them fetches."""
        place = self.place.get()
        self.place.set(place + rounds * self.step)
        return [self._behind(start, place) for start in self.starts]

    def fetch(self, starts, p):
        """The cache lines of round p."""
        with nullcontext() if self.wanted is None else self.code.when(self.wanted):
            for start in starts:
                for line in range(0, self.step, LINE):
                    prefetch(self.code.builder, self._behind(start, p * self.step + line), first=self.first)

    def _behind(self, start, offset):
        """The address that is so many bytes behind another."""
        return self.code.builder.gep(start, [value_of(offset)], source_etype=BYTE)


def prefetch(builder: ir.IRBuilder, pointer: Any, write: bool = False, first: bool = True) -> None:
    """Ask for the cache line at a pointer to bytes, to be read or written; or for all caches but the `first` level."""
    number = ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [BYTES, number, number, number])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(function, [pointer, number(int(write)), number(3 if first else 2), number(1)])  # data


def nbytes(A: Elements) -> int:
    """Bytes of a matrix of known size."""
    return A.m * A.n * A.vector.lanes * len(A.vector.parts) * itemsize(A.element)


def likely(given: Any) -> tuple[Elements, ...]:
    """The largest of some operands that are followed by what is likely to come next, to be fetched ahead."""
    matrices = [A for A in given if isinstance(A, Elements) and not is_known(A.ahead, 0)]
    most = max(map(nbytes, matrices), default=0)
    return tuple(A for A in matrices if nbytes(A) == most)
