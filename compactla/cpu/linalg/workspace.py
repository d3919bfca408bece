"""Work space of functions on stacks: matrices of V lanes between reading and writing."""

from typing import Any

from llvmlite import ir
from numba.core import cgutils

from compactla.cpu.emit.code import Code
from compactla.cpu.emit.index import INDEX, IntOrIndex
from compactla.cpu.emit.matrices import Elements, itemsize
from compactla.cpu.emit.prefetch import BYTES, LINE
from compactla.cpu.emit.vectors import Vector

# Columns of a matrix, of which a multiple is two or four kilobytes: a column would have few sets of the cache. Rows of
# such matrices are a vector longer.
ALIASED, ALIASED_LARGE = 32, 16


class Workspace(Code):
    """Code of a function on stacks, whose large matrices of unknown size are on the heap.

    Parameters
    ----------
    builder : llvmlite.ir.IRBuilder
        Where code is emitted to.
    large : bool
        Whether matrices may be too large for the stack.
    """

    def __init__(self, builder: ir.IRBuilder, large: bool) -> None:
        super().__init__(builder)
        self.large = large
        self.taken: list = []

    def room(self, vector: Vector, m: IntOrIndex, n: IntOrIndex = 1) -> Elements:
        if isinstance(m, int) and isinstance(n, int):
            extra = int(min(m, n) >= ALIASED and n % ALIASED == 0)
            return super().room(vector, m, n + extra)._replace(n=n)
        if not self.large or isinstance(m, int) or isinstance(n, int):
            return super().room(vector, m, n)
        step = vector.lanes * len(vector.parts)
        row = n + (n % ALIASED_LARGE == 0).select(1, 0)
        base = self._allocated(m * row * (step * itemsize(vector.part.element)))
        base = self.builder.bitcast(base, vector.part.element.as_pointer())
        return Elements(self, vector, base, m, n, row * step, step, vector.lanes)

    def _allocated(self, size):
        """Memory of so many bytes from the beginning of a cache line on."""
        b = self.builder
        memory = b.call(self._function("NRT_Allocate", BYTES, INDEX), [(size + LINE).value])
        slot = cgutils.alloca_once_value(b, ir.Constant(BYTES, None))
        b.store(memory, slot)
        self.taken.append(slot)
        aligned = b.and_(b.add(b.ptrtoint(memory, INDEX), INDEX(LINE)), INDEX(-LINE))
        return b.inttoptr(aligned, BYTES)

    def free(self) -> None:
        """Give memory back."""
        for slot in self.taken:
            self.builder.call(self._function("NRT_Free", ir.VoidType(), BYTES), [self.builder.load(slot, typ=BYTES)])

    def _function(self, name: str, result: Any, *arguments: Any) -> Any:
        """A function of Numba's run time."""
        return cgutils.get_or_insert_function(self.builder.module, ir.FunctionType(result, arguments), name)
