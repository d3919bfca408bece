"""Fetching what comes next into the cache while a routine works on what is there.

Kernels are bound by memory where the data is large, and the processor alone does not look far enough ahead: the tiles
of a matrix are not read in the order in which they lie. So the innermost loops ask for a little of it in every round.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils

from compactla.cpu.emit.index import Variable, value_of
from compactla.cpu.emit.matrices import Elements, itemsize

BYTE = ir.IntType(8)
BYTES = BYTE.as_pointer()
LINE, PAGE = 64, 4096  # bytes


class Prefetch:
    """Contiguous matrices of one known size that are fetched into the cache side by side, some bytes of each a round.

    Even progress on several of them at once is what the memory likes best; one large matrix is fetched as two halves.
    """

    def __init__(self, code, matrices, rounds):
        self.code = code
        self.starts = [code.builder.bitcast(A.lowest, BYTES) for A in matrices]
        size = nbytes(matrices[0])
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
        for start in starts:
            for line in range(0, self.step, LINE):
                prefetch(self.code.builder, self._behind(start, p * self.step + line))

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
