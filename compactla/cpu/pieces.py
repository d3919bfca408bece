"""Kernels for pieces of vectors, the rows of an array: products, and sums of multiples.

They read several rows at a time, while the pieces that they write stay in the cache. What they have in common is made
once, and Numba infers its types once.
"""

import functools
from typing import Any

import numpy as np
from numba import carray
from numba.extending import register_jitable
from numba.np.numpy_support import from_dtype

from compactla.cpu.compile import INT, compiled
from compactla.cpu.cost import parts
from compactla.cpu.emit.matrices import native_width
from compactla.cpu.emit.numba_matrices import at, form
from compactla.cpu.emit.numba_words import pointer
from compactla.cpu.kernels.rows import add_rows, products

PIECE = 1024  # numbers, real and imaginary parts counted apart
SUMS = np.dtype(np.float64)
SUM = form(SUMS, 1)


@functools.cache
def rows_of(number):
    """How kernels see parts of rows: as an array of real numbers, or as vectors of a register, of some rows.

    Both begin at a number of the first row.
    """
    dtype = np.dtype(number.name)
    size, lanes = dtype.itemsize, native_width(dtype)
    any_number, one, two, four = (form(dtype, lanes, m, strides=(None, lanes)) for m in (None, 1, 2, 4))

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

    @register_jitable
    def quad(place, start, step, count):
        return at(place, start, 4, count // lanes, step, lanes, lanes, four)

    return numbers, some, first, pair, quad


@functools.cache
def products_of(number, parts):
    """A function for the products of parts of rows, conjugate, with those of others, which are one after the other."""
    numbers, some, first_row, pair, quad = rows_of(number)

    @register_jitable
    def of_complex(place, step, start, piece, first, stride, count, other, others, near, sums):
        V = some(place, first * step + start, count, stride * step, piece)
        for o in range(others):
            w = numbers(place, (other + o) * step + start, piece)
            for i in range(piece // 2):
                near[0, 2 * i], near[0, 2 * i + 1] = w[2 * i], w[2 * i + 1]
                near[1, 2 * i], near[1, 2 * i + 1] = w[2 * i + 1], -w[2 * i]
            S = at(sums, o * 2 * count, 2, count, count, 1, 1, SUM)
            products(V, pair(near.ctypes.data, 0, PIECE, piece), S)

    @register_jitable
    def of_real(place, step, start, piece, first, stride, count, other, others, near, sums):
        V = some(place, first * step + start, count, stride * step, piece)
        o = 0
        while o < others:
            begin, left = (other + o) * step + start, others - o
            if left >= 4:
                S = at(sums, o * count, 4, count, count, 1, 1, SUM)
                products(V, quad(place, begin, step, piece), S)
                o += 4
            elif left >= 2:
                S = at(sums, o * count, 2, count, count, 1, 1, SUM)
                products(V, pair(place, begin, step, piece), S)
                o += 2
            else:
                S = at(sums, o * count, 1, count, count, 1, 1, SUM)
                products(V, first_row(place, begin, step, piece), S)
                o += 1

    return of_complex if parts == 2 else of_real


@functools.cache
def add_rows_of(number, parts):
    """A function that adds to parts of a row, which are scaled before, those of others times factors."""
    dtype = np.dtype(number.name)
    cast = dtype.type
    numbers, some, first_row, pair, _ = rows_of(number)

    @register_jitable
    def of_complex(place, step, start, piece, row, scale, scale_imaginary, first, stride, count, H, near):
        w = numbers(place, row * step + start, piece)
        V = some(place, first * step + start, count, stride * step, piece)
        for part in range(2):
            f = cast(scale_imaginary) if part else cast(scale)
            for i in range(piece):
                near[part, i] = f * w[i] if f != 0 else f
        add_rows(V, H, pair(near.ctypes.data, 0, PIECE, piece))
        for i in range(piece // 2):
            w[2 * i] = near[0, 2 * i] - near[1, 2 * i + 1]
            w[2 * i + 1] = near[0, 2 * i + 1] + near[1, 2 * i]

    @register_jitable
    def of_real(place, step, start, piece, row, scale, scale_imaginary, first, stride, count, H, near):
        w = numbers(place, row * step + start, piece)
        V = some(place, first * step + start, count, stride * step, piece)
        f = cast(scale)
        for i in range(piece):
            w[i] = f * w[i] if f != 0 else f
        add_rows(V, H, first_row(place, row * step + start, step, piece))

    return of_complex if parts == 2 else of_real


def dots_batch(number, parts):
    """A kernel for pieces lo to hi of rows whose real numbers are of the type `number`, `parts` = 2 to a complex one.

    It takes the address of the rows, how far apart they are and their length; the first row, the stride to the next one
    and how many there are; the first of the rows to multiply them with, and how many of these there are, one
    after the other; what these are scaled by before; and the address of the sums: (pieces, which of these, real and
    imaginary part, rows).
    """
    dtype = np.dtype(number.name)
    cast = dtype.type
    numbers, *_ = rows_of(number)
    multiply = products_of(number, parts)

    def kernel(lo, hi, place, step, length, first, stride, count, other, others, scale, sums):
        near = np.empty((2, PIECE if parts == 2 else 0), dtype)  # a row, and what makes imaginary parts with it
        for c in range(lo, hi):
            start = c * PIECE
            piece = min(PIECE, length - start)
            if scale != 1:
                for o in range(other, other + others):
                    w = numbers(place, o * step + start, piece)
                    for i in range(piece):
                        w[i] *= cast(scale)
            found = sums + 8 * parts * c * others * count
            multiply(place, step, start, piece, first, stride, count, other, others, near, found)

    return kernel


def combine_batch(number, parts):
    """A kernel for pieces lo to hi: row <- scale row + sum of factors times rows, for one row after the other.

    It takes what that of `dots_batch` does of the rows; how many are made; the address of four integers for each: the
    row, and the first, the stride and how many of those it is made of; that of scale and factors of each, in double
    precision; and the row `against`. The sums are those of the squares of what comes out
    last, and of it times the conjugate of the row `against`, unless that is -1. With a scale of zero, what a row held
    is not read.
    """
    dtype, real = np.dtype(number.name), from_dtype(SUMS)
    numbers, *_ = rows_of(number)
    add = add_rows_of(number, parts)

    def kernel(lo, hi, place, step, length, made, spans, factors, against, sums):
        near = np.empty((2, PIECE if parts == 2 else 0), dtype)  # the sums with the real and imaginary parts of factors
        given = carray(pointer(spans), (made, 4), INT)
        # backwards, as the last pieces that products were made of may still be in a cache
        for c in range(hi - 1, lo - 1, -1):
            start = c * PIECE
            piece = min(PIECE, length - start)
            before = 0
            for o in range(made):
                row, first, stride, count = given[o, 0], given[o, 1], given[o, 2], given[o, 3]
                H = at(factors, parts * (before + 1), count, parts, parts, 1, 1, SUM)
                h = carray(pointer(factors + 8 * parts * before), parts, real)
                before += count + 1
                add(place, step, start, piece, row, h[0], h[parts - 1], first, stride, count, H, near)
            w = numbers(place, given[made - 1, 0] * step + start, piece)
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


def reduce_batch(number, parts):
    """A kernel for pieces lo to hi of rows that follow on `count` others: adds these times factors to each.

    It takes what that of `dots_batch` does of the rows; how many others there are, and how many rows follow; the
    address of factors, (rows that follow, others), in double precision; and that of sums: the products of the rows that
    come out, (pieces, rows, real and imaginary part, rows that are conjugated).
    """
    dtype = np.dtype(number.name)
    _, some, first_row, _, quad = rows_of(number)
    multiply, add = products_of(number, parts), add_rows_of(number, parts)

    @register_jitable
    def of_complex(place, step, start, piece, count, made, factors, near):
        for o in range(made):
            H = at(factors, 2 * count * o, count, 2, 2, 1, 1, SUM)
            add(place, step, start, piece, count + o, 1.0, 0.0, 0, 1, count, H, near)

    @register_jitable
    def of_real(place, step, start, piece, count, made, factors, near):
        V = some(place, start, count, step, piece)
        o = 0
        while o < made:
            begin = (count + o) * step + start
            if made - o >= 4:
                add_rows(V, at(factors, count * o, count, 4, 1, count, 1, SUM), quad(place, begin, step, piece))
                o += 4
            else:
                H = at(factors, count * o, count, 1, 1, count, 1, SUM)
                add_rows(V, H, first_row(place, begin, step, piece))
                o += 1

    reduce = of_complex if parts == 2 else of_real

    def kernel(lo, hi, place, step, length, count, made, factors, sums):
        near = np.empty((2, PIECE if parts == 2 else 0), dtype)
        for c in range(hi - 1, lo - 1, -1):  # backwards, as in `combine_batch`
            start = c * PIECE
            piece = min(PIECE, length - start)
            reduce(place, step, start, piece, count, made, factors, near)
            found = sums + 8 * parts * c * made * made
            multiply(place, step, start, piece, count, 1, made, count, made, near, found)

    return kernel


@functools.cache
def kernel(name: str, char: str) -> Any:
    make, arguments = {
        "dots": (dots_batch, (*[INT] * 8, from_dtype(SUMS), INT)),
        "combine": (combine_batch, (INT,) * 8),
        "reduce": (reduce_batch, (INT,) * 7),
    }[name]
    return compiled(make, arguments, from_dtype(np.dtype(char.lower())), parts(np.dtype(char)), reordered=True)
