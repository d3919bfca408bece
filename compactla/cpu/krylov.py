"""Operations of Krylov methods for one large system on vectors, the rows of an array, on the CPU.

Rows are cut into pieces of one size, which threads share, and sums over pieces are added up in one order: results do
not depend on the number of threads. Kernels read four rows at a time, which is as fast as memory is, while the pieces
that they write stay in the cache.
"""

import functools
from typing import Any

import numpy as np
from numba import carray
from numba.extending import register_jitable
from numba.np.numpy_support import from_dtype

from compactla.calls.launch import NOW, Launch
from compactla.cpu.arrays import empty
from compactla.cpu.compile import INT, compiled
from compactla.cpu.threads.pool import pointer
from compactla.cpu.threads.sharing import share
from compactla.overlap import address
from compactla.types import Array, Queue

PIECE = 1024  # numbers, real and imaginary parts counted apart
FOUR = 4  # rows at a time
LINE = 16  # numbers that rows begin at multiples of
SUMS = np.dtype(np.float64)
NONE = 0, 0, 0, 0  # no row to make


def rows_of(number):
    """How kernels read rows: pieces of four, of which the last is repeated where there are no more."""
    size = number.bitwidth // 8

    @register_jitable
    def piece_of(place, row, step, start, piece):
        return carray(pointer(place + size * (row * step + start)), piece, number)

    @register_jitable
    def four(place, first, stride, k, count, step, start, piece):
        return (
            piece_of(place, first + stride * k, step, start, piece),
            piece_of(place, first + stride * min(k + 1, count - 1), step, start, piece),
            piece_of(place, first + stride * min(k + 2, count - 1), step, start, piece),
            piece_of(place, first + stride * min(k + 3, count - 1), step, start, piece),
        )

    return piece_of, four


def dots_batch(number, parts):
    """A kernel for pieces lo to hi of rows whose real numbers are of the type `number`, `parts` = 2 to a complex one.

    It takes the address of the rows, how far apart they are and their length; the first row, the stride to the next one
    and how many there are; the first of the rows to multiply them with, and whether there are one or two of these, one
    after the other; what these are scaled by before; and the address of the sums: (pieces, which of these, rows, real
    and imaginary part), where the number of rows is rounded up to fours.
    """
    real = from_dtype(SUMS)
    dtype = np.dtype(number.name)
    cast = dtype.type
    zero = cast(0)
    piece_of, four = rows_of(number)

    def kernel(lo, hi, place, step, length, first, stride, count, other, others, scale, sums):
        targets, width = others * parts, -(-count // FOUR) * FOUR * parts
        near = np.empty((4, PIECE), dtype)  # what all rows are multiplied with
        for c in range(lo, hi):
            start = c * PIECE
            piece = min(PIECE, length - start)
            for o in range(others):
                w = piece_of(place, other + o, step, start, piece)
                if scale != 1:
                    for i in range(piece):
                        w[i] *= cast(scale)
                near[o * parts, :piece] = w
                if parts == 2:
                    for i in range(piece // 2):
                        near[o * parts + 1, 2 * i] = w[2 * i + 1]
                        near[o * parts + 1, 2 * i + 1] = -w[2 * i]
            total = carray(pointer(sums + 8 * others * width * c), others * width, real)
            for k in range(0, count, FOUR):
                v0, v1, v2, v3 = four(place, first, stride, k, count, step, start, piece)
                for t in range(0, targets, 2):
                    at = t // parts * width + k * parts
                    a0, a1, a2, a3, b0, b1, b2, b3 = zero, zero, zero, zero, zero, zero, zero, zero
                    if targets == 1:
                        for i in range(piece):
                            x = near[0, i]
                            a0 += v0[i] * x
                            a1 += v1[i] * x
                            a2 += v2[i] * x
                            a3 += v3[i] * x
                    else:
                        for i in range(piece):
                            x, y = near[t, i], near[t + 1, i]
                            a0 += v0[i] * x
                            a1 += v1[i] * x
                            a2 += v2[i] * x
                            a3 += v3[i] * x
                            b0 += v0[i] * y
                            b1 += v1[i] * y
                            b2 += v2[i] * y
                            b3 += v3[i] * y
                        b = at + (1 if parts == 2 else width)
                        total[b], total[b + parts], total[b + 2 * parts], total[b + 3 * parts] = b0, b1, b2, b3
                    total[at], total[at + parts], total[at + 2 * parts], total[at + 3 * parts] = a0, a1, a2, a3

    return kernel


def combine_batch(number, parts):
    """A kernel for pieces lo to hi: row <- scale row + sum of factors times rows, for one row after the other.

    It takes what that of `dots_batch` does of the rows; how many are made, and for each of two the row, and the first,
    the stride and how many of those it is made of; the address of scale and factors of each, in double precision; and
    the row `against`. The sums are those of the squares of what comes out
    last, and of it times the conjugate of the row `against`, unless that is -1. With a scale of zero, what a row held
    is not read.
    """
    real = from_dtype(SUMS)
    dtype = np.dtype(number.name)
    cast = dtype.type
    piece_of, four = rows_of(number)

    def kernel(lo, hi, place, step, length, made, row0, a, b, c0, row1, d, e, c1, factors, against, sums):
        near = np.empty((2, PIECE), dtype)  # the sums with the real and imaginary parts of factors
        given = (row0, a, b, c0), (row1, d, e, c1)
        for c in range(lo, hi):
            start = c * PIECE
            piece = min(PIECE, length - start)
            h = carray(pointer(factors), 1, real)
            w = piece_of(place, row0, step, start, piece)
            before = 0
            for o in range(made):
                row, first, stride, count = given[o]
                h = carray(pointer(factors + 8 * parts * before), parts * (count + 1), real)
                before += count + 1
                w = piece_of(place, row, step, start, piece)
                for part in range(parts):
                    f = cast(h[part])
                    for i in range(piece):
                        near[part, i] = f * w[i] if f != 0 else f
                for k in range(0, count, FOUR):
                    v0, v1, v2, v3 = four(place, first, stride, k, count, step, start, piece)
                    for part in range(parts):
                        at = parts * (k + 1) + part
                        f0 = cast(h[at])
                        f1 = cast(h[at + parts]) if k + 1 < count else cast(0)
                        f2 = cast(h[at + 2 * parts]) if k + 2 < count else cast(0)
                        f3 = cast(h[at + 3 * parts]) if k + 3 < count else cast(0)
                        for i in range(piece):
                            near[part, i] += f0 * v0[i] + f1 * v1[i] + f2 * v2[i] + f3 * v3[i]
                if parts == 1:
                    w[:] = near[0, :piece]
                else:
                    for i in range(piece // 2):
                        w[2 * i] = near[0, 2 * i] - near[1, 2 * i + 1]
                        w[2 * i + 1] = near[0, 2 * i + 1] + near[1, 2 * i]
            squares, s, si = 0.0, 0.0, 0.0
            for i in range(piece):
                squares += float(w[i]) * float(w[i])
            if against >= 0:
                u = piece_of(place, against, step, start, piece)
                for i in range(piece):
                    s += float(u[i]) * float(w[i])
                if parts == 2:
                    for i in range(piece // 2):
                        si += u[2 * i] * w[2 * i + 1] - u[2 * i + 1] * w[2 * i]
            total = carray(pointer(sums + 16 * parts * c), 2 * parts, real)
            total[0], total[parts] = squares, s
            if parts == 2:
                total[1], total[3] = 0.0, si

    return kernel


class Rows:
    """So many vectors of n numbers, unset; ``rows[k]`` is one of them.

    Ranges name rows. Sums are in double precision, but for those over a piece. In `blocks` whoever reads vectors in
    another shape keeps them.
    """

    def __init__(self, count: int, n: int, dtype: np.dtype, queue: Queue, launch: Launch = NOW) -> None:
        parts = 2 if dtype.kind == "c" else 1
        step, self.length, self.launch = -(-n // LINE) * LINE, n * parts, launch
        self.n, self.dtype = n, dtype
        self.blocks: dict = {}
        self.memory = empty((count, step), dtype, None)
        self.vectors = [row[:n] for row in self.memory]
        self.pieces = -(-self.length // PIECE)
        wide = np.result_type(dtype, SUMS)
        self.sums = np.empty(self.pieces * 2 * (count + FOUR), wide)
        self.factors = np.empty(2 * (count + 1), wide)
        self.found: dict[int, np.ndarray] = {}
        self.place = address(self.memory), step * parts, self.length
        self.before, self.after = address(self.factors), address(self.sums)
        self.kernels = kernel("dots", dtype.char), kernel("combine", dtype.char)

    def __getitem__(self, k: int) -> Array:
        return self.vectors[k]

    def dots(self, rows: range, others: range, scale: float = 1.0) -> Any:
        """The products of rows, conjugate, with one or two neighbouring others, scaled before: (others, rows)."""
        count, two = len(rows), len(others)
        given = rows.start, rows.step, count, others.start, two, scale
        shape = two, -(-count // FOUR) * FOUR
        found = self._sums(0, given, shape[0] * shape[1], self.length * (count + 2))
        return found.reshape(shape)[:, :count]

    def combine(self, *made: Any, against: int | None = None, measured: bool = True) -> Any:
        """Make rows, one after the other, at most two: (row, scale, rows, factors), row <- scale row + factors rows.

        Returns the square of the norm of the last one, and row `against`^H times it; None, if they are not `measured`.
        """
        end = 0
        steps: tuple[int, ...] = ()
        for row, scale, rows, factors in made:
            count = len(rows)
            steps += row, rows.start, rows.step, count
            self.factors[end] = scale
            if count == 1:
                self.factors[end + 1] = factors[0]
            elif count:
                self.factors[end + 1 : end + 1 + count] = factors
            end += 1 + count
        if len(made) == 1:
            steps += NONE
        given = len(made), *steps, self.before, -1 if against is None else against
        found = self._sums(1, given, 2, self.length * (end + len(made)), measured)
        return (found[0].real, found[1]) if measured else None

    def _sums(self, which, given, count, cost, measured=True):
        """The sums of a kernel over all pieces."""
        share(self.kernels[which], cost, (0, self.pieces, *self.place, *given, self.after), self.launch)
        if not measured:
            return None
        if count not in self.found:
            self.found[count] = self.sums[: self.pieces * count].reshape(-1, count)
        return np.add.reduce(self.found[count])


@functools.cache
def kernel(name, char):
    make, arguments = {
        "dots": (dots_batch, (*[INT] * 8, from_dtype(SUMS), INT)),
        "combine": (combine_batch, (INT,) * 15),
    }[name]
    parts = 2 if char in "FD" else 1
    return compiled(make, arguments, from_dtype(np.dtype(char.lower())), parts, reordered=True)
