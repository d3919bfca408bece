"""Operations of Krylov methods for one large system on vectors, the rows of an array, on the CPU.

Rows are cut into pieces of one size, which threads share, and sums over pieces are added up in one order: results do
not depend on the number of threads. Kernels read several rows at a time, while the pieces that they write stay in
the cache.
"""

import functools
from typing import Any

import numpy as np
from numba import carray
from numba.extending import register_jitable
from numba.np.numpy_support import from_dtype

from compactla.calls.launch import NOW, Launch
from compactla.cpu.arnoldi import arnoldi_batch
from compactla.cpu.arrays import empty
from compactla.cpu.compile import INT, compiled
from compactla.cpu.cost import parts
from compactla.cpu.emit.matrices import native_width
from compactla.cpu.emit.numba_matrices import at, form
from compactla.cpu.emit.prefetch import LINE
from compactla.cpu.kernels.rows import add_rows, products
from compactla.cpu.threads import sharing
from compactla.cpu.threads.pool import pointer, server, words_of
from compactla.cpu.threads.sharing import parts_for, share
from compactla.overlap import address
from compactla.types import Array, Queue

PIECE = 1024  # numbers, real and imaginary parts counted apart
SUMS = np.dtype(np.float64)
SUM = form(SUMS, 1)
NONE = 0, 0, 0, 0  # no row to make


def rows_of(number):
    """How kernels see parts of rows: as an array of real numbers, or as vectors of a register, of some rows.

    Both begin at a number of the first row.
    """
    dtype = np.dtype(number.name)
    size, lanes = dtype.itemsize, native_width(dtype)
    any_number, one, two = (form(dtype, lanes, m, strides=(None, lanes)) for m in (None, 1, 2))

    @register_jitable
    def numbers(place, start, count):
        return carray(pointer(place + size * start), count, number)

    @register_jitable
    def some(place, start, rows, step, count):
        return at(place, start, rows, count // lanes, step, lanes, lanes, any_number)

    @register_jitable
    def first(place, start, step, count):
        return at(place, start, 1, count // lanes, step, lanes, lanes, one)

    @register_jitable
    def pair(place, start, step, count):
        return at(place, start, 2, count // lanes, step, lanes, lanes, two)

    return numbers, some, first, pair


def dots_batch(number, parts):
    """A kernel for pieces lo to hi of rows whose real numbers are of the type `number`, `parts` = 2 to a complex one.

    It takes the address of the rows, how far apart they are and their length; the first row, the stride to the next one
    and how many there are; the first of the rows to multiply them with, and whether there are one or two of these, one
    after the other; what these are scaled by before; and the address of the sums: (pieces, which of these, real and
    imaginary part, rows).
    """
    dtype = np.dtype(number.name)
    cast = dtype.type
    numbers, some, first_row, pair = rows_of(number)

    def kernel(lo, hi, place, step, length, first, stride, count, other, others, scale, sums):
        near = np.empty((2, PIECE if parts == 2 else 0), dtype)  # a row, and what makes imaginary parts with it
        for c in range(lo, hi):
            start = c * PIECE
            piece = min(PIECE, length - start)
            begin = first * step + start
            V = some(place, begin, count, stride * step, piece)
            if scale != 1:
                for o in range(other, other + others):
                    w = numbers(place, o * step + start, piece)
                    for i in range(piece):
                        w[i] *= cast(scale)
            if parts == 2:
                for o in range(others):
                    w = numbers(place, (other + o) * step + start, piece)
                    for i in range(piece // 2):
                        near[0, 2 * i], near[0, 2 * i + 1] = w[2 * i], w[2 * i + 1]
                        near[1, 2 * i], near[1, 2 * i + 1] = w[2 * i + 1], -w[2 * i]
                    S = at(sums, (c * others + o) * 2 * count, 2, count, count, 1, 1, SUM)
                    products(V, pair(near.ctypes.data, 0, PIECE, piece), S)
            else:
                S = at(sums, c * others * count, others, count, count, 1, 1, SUM)
                begin = other * step + start
                if others == 2:
                    products(V, pair(place, begin, step, piece), S)
                else:
                    products(V, first_row(place, begin, step, piece), S)

    return kernel


def combine_batch(number, parts):
    """A kernel for pieces lo to hi: row <- scale row + sum of factors times rows, for one row after the other.

    It takes what that of `dots_batch` does of the rows; how many are made, and for each of two the row, and the first,
    the stride and how many of those it is made of; the address of scale and factors of each, in double precision; and
    the row `against`. The sums are those of the squares of what comes out
    last, and of it times the conjugate of the row `against`, unless that is -1. With a scale of zero, what a row held
    is not read.
    """
    dtype = np.dtype(number.name)
    cast, real = dtype.type, from_dtype(SUMS)
    numbers, some, first_row, pair = rows_of(number)

    def kernel(lo, hi, place, step, length, made, row0, a, b, c0, row1, d, e, c1, factors, against, sums):
        near = np.empty((2, PIECE if parts == 2 else 0), dtype)  # the sums with the real and imaginary parts of factors
        given = (row0, a, b, c0), (row1, d, e, c1)
        for c in range(lo, hi):
            start = c * PIECE
            piece = min(PIECE, length - start)
            w = numbers(place, row0 * step + start, piece)
            before = 0
            for o in range(made):
                row, first, stride, count = given[o]
                H = at(factors, parts * (before + 1), count, parts, parts, 1, 1, SUM)
                h = carray(pointer(factors + 8 * parts * before), parts, real)
                before += count + 1
                w = numbers(place, row * step + start, piece)
                begin = first * step + start
                V = some(place, begin, count, stride * step, piece)
                if parts == 1:
                    f = cast(h[0])
                    for i in range(piece):
                        w[i] = f * w[i] if f != 0 else f
                    add_rows(V, H, first_row(place, row * step + start, step, piece))
                else:
                    for part in range(parts):
                        f = cast(h[part])
                        for i in range(piece):
                            near[part, i] = f * w[i] if f != 0 else f
                    add_rows(V, H, pair(near.ctypes.data, 0, PIECE, piece))
                    for i in range(piece // 2):
                        w[2 * i] = near[0, 2 * i] - near[1, 2 * i + 1]
                        w[2 * i + 1] = near[0, 2 * i + 1] + near[1, 2 * i]
            squares, s, si = 0.0, 0.0, 0.0
            for i in range(piece):
                squares += float(w[i]) * float(w[i])
            if against >= 0:
                u = numbers(place, against * step + start, piece)
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
    another shape keeps them. Behind their ends rows have zeros.
    """

    def __init__(self, count: int, n: int, dtype: np.dtype, queue: Queue, launch: Launch = NOW) -> None:
        self.parts = parts(dtype)
        each = LINE // dtype.itemsize
        apart = (-(-n // each) | 1) * each  # odd: places in rows have sets of the first cache of their own
        self.n, self.dtype, self.length = n, dtype, apart * self.parts
        self.blocks: dict = {}
        self.memory = empty((count, apart), dtype, None)
        self.vectors = [row[:n] for row in self.memory]
        self.begin(launch)
        self.pieces = -(-self.length // PIECE)
        self.sums = np.empty(self.pieces * 2 * (count + 1) * self.parts)
        self.factors = np.empty(2 * (count + 1), np.result_type(dtype, SUMS))
        self.found: dict[int, np.ndarray] = {}
        self.place = address(self.memory), self.length, self.length
        self.before, self.after = address(self.factors), address(self.sums)
        self.kernels = kernel("dots", dtype.char), kernel("combine", dtype.char)
        others = (*[0] * 5, 0.0), (*[0] * 9, self.before, -1)
        self.words = [
            (words_of(kernel), np.frombuffer(words_of(kernel).filled([(*self.place, *some, self.after)]), np.int64))
            for kernel, some in zip(self.kernels, others, strict=True)
        ]
        self.result = np.empty(3)

    def __getitem__(self, k: int) -> Array:
        return self.vectors[k]

    def begin(self, launch: Launch) -> None:
        """Begin with another system, which may leave what is not finite behind the ends of rows."""
        self.launch = launch
        self.memory[:, self.n :] = 0

    def dots(self, rows: range, others: range, scale: float = 1.0) -> Any:
        """The products of rows, conjugate, with one or two neighbouring others, scaled before: (others, rows)."""
        count, two = len(rows), len(others)
        given = rows.start, rows.step, count, others.start, two, scale
        found = self._sums(0, given, two * self.parts * count, self.length * (count + 2))
        if self.parts == 1:
            return found.reshape(two, count)
        found = found.reshape(two, 2, count)
        return found[:, 0] + 1j * found[:, 1]

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
        found = self._sums(1, given, 2 * self.parts, self.length * (end + len(made)), measured)
        if not measured:
            return None
        return found[0], found[1] if self.parts == 1 else complex(found[2], found[3])

    def orthogonalize(self, vectors: Any, j: int, scale: float, passes: int, eps: float) -> tuple[float, float]:
        """Vector j + 1, scaled before as vector j, made orthogonal to those before, and a column of a `Hessenberg`.

        Returns the norm of what is left, and that of the residual. It is done as often as `passes` says, zero for the
        modified process.
        """
        kernels = (x for words, memory in self.words for x in (words.function, address(memory)))
        threads, boxes = parts_for(self.length * (j + 3), self.pieces, self.launch.threads), sharing.boxes
        arrays = vectors.products, vectors.columns, vectors.rotations, vectors.rhs
        step(self.parts).entry(
            0, self.pieces, address(boxes), len(boxes), server(), threads, *kernels, self.after, self.before,
            *map(address, arrays), len(vectors.rotations), j, passes, scale, eps, address(self.result),
        )  # fmt: skip
        norm, residual, kept = self.result.tolist()
        vectors.count(kept)
        return norm, residual

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
    return compiled(make, arguments, from_dtype(np.dtype(char.lower())), parts(np.dtype(char)), reordered=True)


@functools.cache
def step(parts):
    """The kernel for a step of GMRES."""
    return compiled(arnoldi_batch, (*[INT] * 17, *[from_dtype(SUMS)] * 2, INT), parts)
