"""V items of several axes, in ordinary memory or in packs, as matrices of lanes while code is emitted."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from compactla.cpu.emit.code import Code
from compactla.cpu.emit.index import IntOrIndex
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.memory.matrices import Ordinary

PANEL, BAND = 256, 128  # vectors of items up to which they are read at once, and written
COLUMNS, ROWS = 8, 4  # that are read, and written, of others


def reshaped(row: Elements, m: IntOrIndex, n: IntOrIndex) -> Elements:
    """A row of m n elements as a matrix, row by row."""
    return row._replace(m=m, n=n, rs=n * row.cs)


def made(d: Sequence, e: Sequence) -> Iterator[tuple]:
    """Sizes of what all factors but the last make of items of d to get items of e: the rows are along their axes."""
    for k in range(len(d) - 1):
        yield e[k], math.prod(d[k + 1 :])


def panel(d, kind, known):
    """Size of what is read at once of items of d that lie like that; whether sizes are known when code is emitted."""
    if kind.startswith("split"):
        return d[0], d[-1]
    n = math.prod(d[1:])
    return d[0], n if known and d[0] * n <= PANEL else COLUMNS


def band(e, known):
    """Size of what is written at once of the last two axes of items of e."""
    m, n = e[-2:]
    return (-(-m // -(-m * n // BAND)) if known else ROWS), n


@dataclass(eq=False)
class Packed:
    """Items of a pack: `A` is a matrix with rows along the first axis, of which the others have some `sizes`."""

    A: Elements
    sizes: tuple

    def at(self, i: IntOrIndex) -> "Packed":
        """The parts at place i of the first axis."""
        m, *others = self.sizes
        row = self.A.block(i, 0, 1, self.A.n)
        return Packed(reshaped(row, m, math.prod(others)), tuple(others))

    def kept(self, room: Elements) -> Elements:
        """A matrix of whole items: this one, as there is nothing to copy to `room`."""
        return self.A

    read = kept

    def panels(self) -> Iterator[tuple]:
        yield 0, self.A.n, self

    def bands(self) -> Iterator[tuple]:
        yield 0, self.A.m, self

    def old(self, room: Elements, needed: bool) -> Elements:
        return self.A

    def write(self, S: Elements) -> None:
        """Nothing is left to do."""


@dataclass(eq=False)
class Loose:
    """Items in ordinary memory.

    Attributes
    ----------
    code, vector, real, starts, adjacent
        The attributes of `Ordinary` that have these names.
    kind : str
        How matrices lie: those of the last two axes, where items are written; where they are read, those of the first
        axis and all others, or, if it begins with "split ", of the first and the last one.
    sizes, strides : tuple of int or Index
        The axes; strides are in bytes.
    """

    code: Code
    vector: Any
    real: Any
    kind: str
    sizes: tuple
    strides: tuple
    starts: list
    adjacent: Any

    @property
    def _known(self):
        return isinstance(self.sizes[-1], int)

    def at(self, i):
        """The parts at place i of the first axis."""
        starts = self._moved(i * self.strides[0])
        return replace(self, sizes=self.sizes[1:], strides=self.strides[1:], starts=starts)

    def kept(self, room):
        """A matrix of whole items, which `read` copied to `room`."""
        return room

    def read(self, room):
        """Items of two axes."""
        return self._matrix(self.kind.rpartition(" ")[2], *self.sizes, 0).read(room)

    def panels(self):
        """Yield (start, extent, matrix) for matrices with rows along the first axis, of parts of all others."""
        split, _, kind = self.kind.rpartition(" ")
        if split:
            yield from self._split(kind, 0, 0, self.sizes[1:-1], self.strides[1:-1])
            return
        n = math.prod(self.sizes[1:])
        for j, extent in spans(self.code, n, panel(self.sizes, kind, self._known)[1]):
            part = kind if extent is n else {"whole": "rows"}.get(kind, kind)
            yield j, extent, self._matrix(part, self.sizes[0], extent, j * self.strides[-1])

    def _split(self, kind, j, offset, sizes, strides):
        code = self.code
        if not sizes:
            n = self.sizes[-1]
            yield j * n, n, self._matrix(kind, self.sizes[0], n, offset)
            return
        with code.loop(sizes[0]) as i:
            place, there = j * sizes[0] + i, offset + i * strides[0]
            yield from self._split(kind, place, there, sizes[1:], strides[1:])

    def bands(self):
        """Yield (start, extent, matrix) for some rows of items of two axes."""
        m, n = self.sizes
        for i, extent in spans(self.code, m, band(self.sizes, self._known)[0]):
            part = self.kind if extent is m else {"wholeT": "rowsT"}.get(self.kind, self.kind)
            yield i, extent, self._matrix(part, extent, n, i * self.strides[0])

    def _matrix(self, kind, m, n, offset):
        """An m x n matrix, so many bytes behind the start, with rows along the first axis, columns along the last."""
        starts, rs, cs = self._moved(offset), self.strides[0], self.strides[-1]
        return Part(Ordinary(self.code, self.vector, self.real, kind, m, n, starts, rs, cs, self.adjacent))

    def _moved(self, offset):
        return [start + offset for start in self.starts]


@dataclass(eq=False)
class Part:
    """A matrix in ordinary memory that is read or written."""

    matrix: Ordinary

    def read(self, room):
        S = room.block(0, 0, self.matrix.m, self.matrix.n)
        self.matrix.read(S)
        return S

    def old(self, room, needed):
        """A matrix for the numbers, with those that are there if they are needed."""
        return self.read(room) if needed else room.block(0, 0, self.matrix.m, self.matrix.n)

    def write(self, S):
        self.matrix.write(S)


def spans(code, size, extent):
    """Yield (start, extent) of parts of a size, of which only the last one may be shorter."""
    if isinstance(size, int) and isinstance(extent, int):
        if size <= extent:
            yield 0, size
            return
        whole, left = divmod(size, extent)
        with code.loop(whole) as t:
            yield t * extent, extent
        if left:
            yield whole * extent, left
        return
    with code.loop((size + (extent - 1)) // extent) as t:
        start = t * extent
        yield start, code.min(extent, size - start)
