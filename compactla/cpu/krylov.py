"""What Krylov methods for one large system do with vectors, the rows of an array, on the CPU.

Rows are cut into pieces of one size, which threads share, and sums over pieces are added up in one order: results do
not depend on the number of threads. Each kernel reads the rows once, while the pieces it writes stay in the cache.
"""

import functools

import numpy as np
from numba import carray
from numba.np.numpy_support import from_dtype

from compactla.cpu.handover import pointer
from compactla.cpu.kernel import INT, compiled
from compactla.cpu.parallel import share
from compactla.overlap import address

PIECE = 1024  # numbers, real and imaginary parts counted apart
SUMS = np.dtype(np.float64)


def dots_batch(number, parts):
    """A kernel for pieces lo to hi of rows whose real numbers are of the type `number`, `parts` = 2 to a complex one.

    It takes the address of the rows and their length; the first row, the step to the next one and how many there are;
    the first of the rows to multiply them with, and whether there are one or two of these, one after the other; what
    these are scaled by before; and the address of the sums: (pieces, which of these, rows, real and imaginary part).
    """
    size, real = number.bitwidth // 8, from_dtype(SUMS)
    dtype = np.dtype(number.name)
    cast = dtype.type
    zero = cast(0)

    def kernel(lo, hi, place, length, first, step, count, other, others, scale, sums):
        targets = others * parts
        near = np.empty((4, PIECE), dtype)  # what all rows are multiplied with
        for c in range(lo, hi):
            start = c * PIECE
            piece = min(PIECE, length - start)
            for o in range(others):
                w = carray(pointer(place + size * ((other + o) * length + start)), piece, number)
                if scale != 1:
                    for i in range(piece):
                        w[i] *= cast(scale)
                near[o * parts, :piece] = w
                if parts == 2:
                    for i in range(piece // 2):
                        near[o * parts + 1, 2 * i] = w[2 * i + 1]
                        near[o * parts + 1, 2 * i + 1] = -w[2 * i]
            total = carray(pointer(sums + 8 * targets * c * count), targets * count, real)
            for k in range(count):
                v = carray(pointer(place + size * ((first + k * step) * length + start)), piece, number)
                for t in range(0, targets, 2):
                    at, a, b = parts * (t // parts * count + k), zero, zero
                    if targets == 1:
                        for i in range(piece):
                            a += v[i] * near[0, i]
                    else:
                        for i in range(piece):
                            a += v[i] * near[t, i]
                            b += v[i] * near[t + 1, i]
                        total[at + (1 if parts == 2 else count)] = b
                    total[at] = a

    return kernel


def combine_batch(number, parts):
    """A kernel for pieces lo to hi: row <- scale row + sum of factors times rows.

    It takes what that of `dots_batch` does, the row, and the addresses of scale and factors, in double precision; the
    sums are those of the squares of what comes out, and of it times the conjugate of the row `against`, unless that is
    -1. With a scale of zero, what the row held is not read.
    """
    size, real = number.bitwidth // 8, from_dtype(SUMS)
    dtype = np.dtype(number.name)
    cast = dtype.type

    def kernel(lo, hi, place, length, first, step, count, row, factors, against, sums):
        h = carray(pointer(factors), parts * (count + 1), real)
        near = np.empty((2, PIECE), dtype)  # the sums with the real and imaginary parts of factors
        for c in range(lo, hi):
            start = c * PIECE
            piece = min(PIECE, length - start)
            w = carray(pointer(place + size * (row * length + start)), piece, number)
            for part in range(parts):
                f = cast(h[part])
                for i in range(piece):
                    near[part, i] = f * w[i] if f != 0 else f
            for k in range(count):
                v = carray(pointer(place + size * ((first + k * step) * length + start)), piece, number)
                f, g = cast(h[parts * (k + 1)]), cast(h[parts * (k + 2) - 1])
                for i in range(piece):
                    near[0, i] += f * v[i]
                    if parts == 2:
                        near[1, i] += g * v[i]
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
                u = carray(pointer(place + size * (against * length + start)), piece, number)
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


def room(shape, dtype, queue):
    """Rows that nothing was put into yet."""
    return np.empty(shape, dtype)


def dots(W, rows, others, scale=1.0, threads=None):
    """The products of `rows` of W, conjugate, with one or two neighbouring `others`, scaled before: (others, rows).

    Rows are ranges. Sums are in double precision, but for those over a piece.
    """
    head = others.start, len(others), scale
    return launch("dots", W, rows, head, (len(others), len(rows)), 2 * len(others), threads)


def combine(W, row, scale, rows=range(0), factors=(), against=None, measured=True, threads=None):
    """Row `row` of W <- scale times it + factors times the rows.

    Returns the square of its norm, and row `against`^H times it; what is not `measured` may be None.
    """
    h = np.empty(len(rows) + 1, widened(W.dtype))
    h[0], h[1:] = scale, factors
    head = row, address(h), -1 if against is None else against
    squares, product = launch("combine", W, rows, head, (2,), 2, threads)
    return squares.real, product


def launch(name, W, rows, head, shape, work, threads):
    """The sums of a kernel over all pieces."""
    parts = 2 if W.dtype.kind == "c" else 1
    length = W.shape[1] * parts
    sums = np.empty((-(-length // PIECE), *shape), widened(W.dtype))
    args = address(W), length, rows.start, rows.step, len(rows), *head, address(sums)
    cost = length * work * (len(rows) + 1)
    share(kernel(name, W.dtype.char), cost, (0, len(sums), *args), threads)
    return np.add.reduce(sums)


def widened(dtype):
    return np.complex128 if dtype.kind == "c" else np.float64


@functools.cache
def kernel(name, char):
    make, last = {"dots": (dots_batch, from_dtype(SUMS)), "combine": (combine_batch, INT)}[name]
    arguments = [*[INT] * 7, last, INT]
    parts = 2 if char in "FD" else 1
    return compiled(make, arguments, from_dtype(np.dtype(char.lower())), parts, reordered=True)
