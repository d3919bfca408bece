"""Fetching what comes next into the cache while a routine works on what is there.

Kernels are bound by memory where the data is large, and the processor alone does not look far enough ahead: the tiles
of a matrix are not read in the order in which they lie. So the innermost loops ask for a little of it in every round.
"""

from llvmlite import ir
from numba.core import cgutils

from compactla.cpu.emit.matrices import INDEX, index, itemsize

BYTE = ir.IntType(8)
BYTES = BYTE.as_pointer()
LINE, PAGE = 64, 4096  # bytes


class Ahead:
    """Contiguous matrices of one known size that are fetched into the cache side by side, some bytes of each a round.

    Even progress on several of them at once is what the memory likes best; one large matrix is fetched as two halves.
    """

    def __init__(self, code, matrices, rounds):
        self.code = code
        self.starts = [code.builder.bitcast(A.lowest, BYTES) for A in matrices]
        size = nbytes(matrices[0])
        if len(matrices) == 1 and size >= PAGE:
            size //= 2
            self.starts.append(code.builder.gep(self.starts[0], [INDEX(size)], source_etype=BYTE))
        self.step = -(-size // rounds)
        self.place = cgutils.alloca_once_value(code.builder, INDEX(0))

    def advance(self, rounds):
        """Where the first of some rounds begins to fetch."""
        code, b = self.code, self.code.builder
        place = b.load(self.place, typ=INDEX)
        b.store(code.add(place, code.mul(rounds, self.step)), self.place)
        return [b.gep(start, [place], source_etype=BYTE) for start in self.starts]

    def fetch(self, starts, p):
        """The cache lines of round p."""
        for start in starts:
            for line in range(0, self.step, LINE):
                offset = index(self.code.add(self.code.mul(p, self.step), line))
                prefetch(self.code.builder, self.code.builder.gep(start, [offset], source_etype=BYTE))


def prefetch(builder, pointer, write=False, first=True):
    """Ask for the cache line at a pointer to bytes, to be read or written; or for all caches but the `first` level."""
    number = ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [BYTES, number, number, number])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(function, [pointer, number(int(write)), number(3 if first else 2), number(1)])  # data


def nbytes(A):
    """Bytes of a matrix of known size."""
    return A.m * A.n * A.vector.lanes * len(A.vector.parts) * itemsize(A.element)
