"""Products of ordinary matrices by their rows: V numbers that follow each other in a row of B, or of C, are a vector.

Each number of A is broadcast. Complex numbers stay pairs of real ones: sums with the real parts of A and sums with its
imaginary parts are put together in the end.
"""

from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from compactla.cpu.emit.code import Code
from compactla.cpu.emit.index import INDEX, IntOrIndex
from compactla.cpu.emit.loops import starts
from compactla.cpu.emit.machine import machine
from compactla.cpu.emit.matrices import Elements, shifted
from compactla.cpu.emit.vectors import Flags, Lanes, Vector
from compactla.cpu.memory.packing import Tile

SMALL = ir.IntType(32)
TALLEST, WIDEST = 14, 4  # rows of a register tile, and vectors of these
UNKNOWN = 6, 2  # the same where sizes are not known: there is code for all tiles up to this


@dataclass
class Product:
    """C <- alpha op(A) op(B) + beta C while code is emitted; strides count real numbers.

    Attributes
    ----------
    code : Code
        Where it is emitted to.
    A : Elements
        m x k numbers, each for all lanes: of complex ones, the real parts.
    B, C : Elements
        Vectors of k x n and m x n numbers.
    n : int or Index
        Real numbers in a row of C.
    parts : int
        Real numbers in a number: 1 or 2.
    conj : tuple of bool
        Whether A and B are conjugated.
    alpha, beta : tuple of Lanes, optional
        The parts of the scalars; default: one and zero.
    """

    code: Code
    A: Elements
    B: Elements
    C: Elements
    n: Any
    parts: int
    conj: tuple[bool, bool] = (False, False)
    alpha: tuple[Lanes, ...] | None = None
    beta: tuple[Lanes, ...] | None = None

    @property
    def rounds(self) -> int:
        """Rounds in innermost loops, of matrices of known size."""
        rows, columns = tile_size(self.C, self.parts)
        return len(starts(self.C.m, rows)) * len(starts(self.C.n, columns)) * self.A.n

    def emit(self) -> None:
        code, A, B, C = self.code, self.A, self.B, self.C
        rows, columns = tile_size(C, self.parts)
        for j, n in code.tiles(C.n, columns):
            flags = there(code, C.vector, self.n - (j + (n - 1)) * C.vector.lanes)
            for i, m in code.tiles(C.m, rows):
                self._tile(A.block(i, 0, m, A.n), B.block(0, j, B.m, n), C.block(i, j, m, n), flags)

    def _tile(self, A, B, C, flags):
        code, tile = self.code, [(i, j) for i in range(C.m) for j in range(C.n)]
        sums = [code.registers(C.vector, C.m, C.n) for _ in range(self.parts)]
        for total in sums:
            for ij in tile:
                total[ij] = code.zero(C.vector)
        for p in code.rounds(A.n):
            b = [loaded(B, p, j, flags) for j in range(C.n)]
            for i in range(C.m):
                for part, total in enumerate(sums):
                    a = A._replace(base=A._at(i, p, part))[0, 0]
                    for j in range(C.n):
                        total[i, j] = a.fma(b[j], total[i, j])
        products = {ij: self._scaled(self._joined([total[ij] for total in sums]), self.alpha) for ij in tile}
        if self.beta is None:
            for ij in tile:
                store(C, *ij, flags, products[ij])
            return
        size = abs(self.beta[0]) + abs(self.beta[-1])
        with code.either(code.is_zero(size)) as (unread, read):
            with unread:
                for ij in tile:
                    store(C, *ij, flags, products[ij])
            with read:
                for ij in tile:
                    store(C, *ij, flags, self._scaled(loaded(C, *ij, flags), self.beta, products[ij]))

    def _joined(self, sums):
        """The sum of products, of sums with each part of A."""
        if self.parts == 1:
            return sums[0]
        (a, b), (x, y) = self.conj, sums
        x = x * signs(x, 1, -1) if b else x
        return swapped(y).fma(signs(x, 1 if a != b else -1, -1 if a else 1), x)

    def _scaled(self, x, factor, addend=None):
        """factor x + addend"""
        if factor is None:
            return x
        if self.parts == 2:
            y = swapped(x) * signs(x, -1, 1)
            addend = factor[1] * y if addend is None else factor[1].fma(y, addend)
        return factor[0] * x if addend is None else factor[0].fma(x, addend)


def swapped(x: Lanes) -> Lanes:
    """The other part of each number, of vectors of pairs."""
    order = ir.Constant(ir.VectorType(SMALL, x.vector.lanes), [lane ^ 1 for lane in range(x.vector.lanes)])
    return Lanes(x.builder, x.vector, x.builder.shuffle_vector(x.parts[0], x.parts[0], order))


def signs(x: Lanes, re: float, im: float) -> Lanes:
    """A vector like x of a number for real parts and one for imaginary parts."""
    return x._new(ir.Constant(x.vector.part, [float(re), float(im)] * (x.vector.lanes // 2)))


def tile_size(C, parts):
    """Rows of a register tile of C, and vectors of these."""
    known = isinstance(C.m, int) and isinstance(C.n, int)
    tallest, widest = (TALLEST, min(C.n, WIDEST)) if known else UNKNOWN
    return max(1, min((machine()[1] - 2 - widest) // (widest * parts), tallest)), widest


def there(code: Code, vector: Vector, count: IntOrIndex) -> Flags | None:
    """Flags of the first `count` lanes; None for all of them."""
    b, V = code.builder, vector.lanes
    if isinstance(count, int):
        flags = [lane < count for lane in range(V)]
        return None if all(flags) else Flags(b, ir.Constant(ir.VectorType(ir.IntType(1), V), flags))
    kind = ir.VectorType(INDEX, V)
    first = b.insert_element(ir.Constant(kind, ir.Undefined), count.value, SMALL(0))
    count = b.shuffle_vector(first, first, ir.Constant(ir.VectorType(SMALL, V), [0] * V))
    return Flags(b, b.icmp_signed("<", ir.Constant(kind, list(range(V))), count))


def loaded(X: Elements, i: IntOrIndex, j: IntOrIndex, flags: Flags | None) -> Lanes:
    """A vector of a tile, of which the last one of a row has the lanes of the flags."""
    return X[i, j] if flags is None or j < X.n - 1 else X.masked(i, j, flags, X.code.zero(X.vector))


def store(X: Elements, i: IntOrIndex, j: IntOrIndex, flags: Flags | None, x: Lanes) -> None:
    if flags is None or j < X.n - 1:
        X[i, j] = x
    elif X.vector.lanes == 1:
        with X.code.when(flags.any()):
            X[i, j] = x
    else:
        X.store_masked(i, j, flags, x)


@dataclass
class Scattered:
    """An ordinary m x n matrix whose rows are not contiguous; strides count real numbers.

    Attributes
    ----------
    code : Code
        Where code is emitted to.
    base : LLVM value
        Pointer to the first number.
    m, n, rs, cs : int or Index
        Sizes and strides.
    parts : int
        Real numbers in a number.
    turned : bool
        Whether numbers of a column follow each other.
    """

    code: Code
    base: Any
    m: Any
    n: Any
    rs: Any
    cs: Any
    parts: int
    turned: bool

    def room(self, vector: Vector) -> Elements:
        """Memory for the matrix by rows, which are whole vectors; there is as much of it as `read` writes."""
        code, V = self.code, vector.lanes
        across = max(V // self.parts, 1)
        columns, m = over(self.n * self.parts, V), self.m
        if self.turned:
            m = over(m, across) * across
        return code.room(vector, m, columns)

    def read(self, W: Elements) -> None:
        """W <- the matrix; what lies behind its rows is of no account."""
        (self._read_turned if self.turned and W.vector.lanes > self.parts else self._read_each)(W)

    def _read_turned(self, W):
        """Read square tiles, and transpose them in registers."""
        code, b, V, real = self.code, self.code.builder, W.vector.lanes, W.vector.part.element
        side = V // self.parts
        unit = real if self.parts == 1 else ir.IntType(2 * W.vector.real.bitwidth)
        tile = Tile(code, "d", side, side)
        column = Elements(code, W.vector, self.base, self.n, 1, self.cs, V, 0)
        for p in code.each(over(self.m, side)):
            first = p * side
            flags = there(code, W.vector, (self.m - first) * self.parts)
            part = column._replace(base=column._shifted(first * self.parts))
            for j in code.each(W.n):
                rows, kind = [], ir.VectorType(unit, side)
                for q in range(side):
                    place = j * side + q
                    if isinstance(place, int) and isinstance(self.n, int) and place >= self.n:
                        rows.append(ir.Constant(kind, ir.Undefined))
                    else:
                        x = loaded(part, code.min(place, self.n - 1), 0, flags)
                        rows.append(b.bitcast(x.parts[0], kind))
                for q, x in enumerate(tile.exchanged(rows)):
                    W[first + q, j] = Lanes(b, W.vector, b.bitcast(x, W.vector.part))

    def _read_each(self, W):
        code, b, V = self.code, self.code.builder, W.vector.lanes
        real = W.vector.part.element
        last = self.n * self.parts - 1
        for i in code.each(self.m):
            for j in code.each(W.n):
                x = ir.Constant(W.vector.part, ir.Undefined)
                for lane in range(V):
                    place = code.min(j * V + lane, last)
                    number = b.load(self._at(i, place, real), align=W.vector.real.bitwidth // 8, typ=real)
                    x = b.insert_element(x, number, SMALL(lane))
                W[i, j] = Lanes(b, W.vector, x)

    def write(self, W: Elements) -> None:
        """The matrix <- W"""
        code, b, real = self.code, self.code.builder, W.vector.part.element
        with code.loop(self.m) as i:
            row = shifted(b, W.base, i * W.rs, real)
            with code.loop(self.n * self.parts) as place:
                number = b.load(shifted(b, row, place, real), typ=real)
                b.store(number, self._at(i, place, real), align=W.vector.real.bitwidth // 8)

    def _at(self, i, place, real):
        """Pointer to a real number of row i."""
        b = self.code.builder
        j, part = (place, 0) if self.parts == 1 else (place // self.parts, place % self.parts)
        offset = i * self.rs + j * self.cs + part
        return shifted(b, self.base, offset, real)


def over(count: Any, size: int) -> Any:
    """count / size, rounded up."""
    return (count + (size - 1)) // size
