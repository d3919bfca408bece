"""Products of block rows of a sparse matrix with one vector, all in ordinary memory.

Numbers that follow each other in a row of a block are a vector, and so are those of x that they are multiplied with.
Lanes are added up at the end of a row of blocks.
"""

from typing import Any

import numpy as np
from llvmlite import ir

from compactla.cpu.emit.code import Code, routine
from compactla.cpu.emit.index import INDEX
from compactla.cpu.emit.machine import machine
from compactla.cpu.emit.matrices import Elements, native_width
from compactla.cpu.emit.vectors import Lanes
from compactla.cpu.memory.products import loaded, signs, store, swapped, there

SMALL = ir.IntType(32)


def lanes_of(dtype: np.dtype, b: int) -> int:
    """Real numbers of a vector, for blocks of b x b numbers of this dtype."""
    size = b * (2 if dtype.kind == "c" else 1)
    return min(native_width(dtype), 1 << (size - 1).bit_length())


@routine
def blockrowsmv(
    code: Code, lo: Any, hi: Any, indptr: Any, indices: Any, blocks: Elements, x: Elements, y: Elements, parts: int = 1
) -> None:
    """y <- A x for block rows lo to hi - 1 of a matrix in BSR form, in a Numba function.

    Parameters
    ----------
    lo, hi : int
        Which rows of `y` these are.
    indptr, indices : int
        Addresses of what SciPy calls so, of 64 and of 32 bits.
    blocks : matrix
        The rows of all blocks, as vectors of `lanes_of` real numbers, of which the last one may reach beyond. How many
        of them, and the stride, which is how many real numbers a row has, are constants.
    x, y : matrix
        The block rows, of the form of `blocks`.
    parts : int
        A constant: 2 if numbers are complex, pairs of real ones.
    """
    b, size, V = code.builder, blocks.rs, blocks.vector.lanes
    lo = lo.index(code)
    tallest = max(machine()[1] // (2 * V), 1) * V  # real numbers of y that are made at a time
    whole, left = divmod(size, tallest)
    flags = there(code, y.vector, size - (y.n - 1) * V)

    def entry(address, i, kind):
        array = b.inttoptr(address.index(code).value, kind.as_pointer())
        return code.entry(array, i, kind)

    # Block row by block row of y, a tile of some of its real numbers at a time.
    with code.loop(hi.index(code) - lo) as step:
        i = lo + step
        first, last = entry(indptr, i, INDEX), entry(indptr, i + 1, INDEX)

        def make(tile, count):
            """Make `count` real numbers of y, those of a tile."""
            sums = code.registers(y.vector, count)
            for r in range(count):
                sums[r, 0] = code.zero(y.vector)
            # Add the products of the tile's rows with x, block by block: lanes are sums of their own.
            with code.loop(last - first) as step:
                k = first + step
                column = entry(indices, k, SMALL)
                top = k * (size // parts) + tile * (tallest // parts)

                def add(j, flags=None):
                    factor = loaded(x, column, j, flags)
                    factors = (factor, swapped(factor)) if parts == 2 else (factor,)
                    for r in range(count):
                        if r % parts == 0:
                            row = loaded(blocks, top + r // parts, j, flags)
                        sums[r, 0] = row.fma(factors[r % parts], sums[r, 0])

                for j in code.each(x.n - 1):
                    add(j)
                add(x.n - 1, flags)
            # Add up the lanes of V rows at a time, and store the sums.
            for start in range(0, count, V):
                rows = [sums[r, 0] if r < count else code.zero(y.vector) for r in range(start, start + V)]
                if parts == 2:
                    rows[::2] = [x * signs(x, 1, -1) for x in rows[::2]]
                j = tile * (tallest // V) + start // V
                store(y, i, j, flags if count - start < V else None, transposed_sum(rows))

        for tile in code.each(whole if whole < 2 else code.unknown(whole)):
            make(tile, tallest)
        if left:
            make(whole, left)


def transposed_sum(rows):
    """A vector of the sums over the lanes of V vectors."""
    while len(rows) > 1:
        rows = [shuffled(x, y, 0, 2) + shuffled(x, y, 1, 2) for x, y in zip(rows[::2], rows[1::2], strict=True)]
    return rows[0]


def shuffled(x, y, start, step):
    """Every second lane of two vectors."""
    order = ir.Constant(ir.VectorType(SMALL, x.vector.lanes), [*range(start, 2 * x.vector.lanes, step)])
    return Lanes(x.builder, x.vector, x.builder.shuffle_vector(x.parts[0], y.parts[0], order))
