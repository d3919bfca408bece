"""Systems with band matrices, V at a time: factored, solved with factors that are kept, or both at once.

What is read of ordinary arrays is transposed into work space, chunk by chunk on the way down the diagonal.
"""

import functools

from compactla.cpu.bands.chunks import move
from compactla.cpu.emit.index import value_of
from compactla.cpu.emit.prefetch import BYTE, BYTES, prefetch
from compactla.cpu.kernels import pbtrf
from compactla.cpu.kernels.gbtrf import Band, BandWindow, eliminate
from compactla.cpu.kernels.gbtrs import COLUMNS, backward, forward
from compactla.cpu.kernels.gttrf import Folded, Ring, Tridiagonal
from compactla.cpu.kernels.pbtrf import HermitianBand


def factor(code, room, form, matrix, factors, info):
    """Keep the factors of a matrix."""
    source, begin = read(code, room, form, matrix)
    if form.name == "spd":
        pbtrf.eliminate(code, [source], source.n, [info], pbtrf.keep_columns(factors.U), begin)
        return

    def keep(w, k, inverse, multiples, top, flags):
        factors.U[0, k] = inverse
        for t in range(1, form.reach + 1):
            factors.U[t, k] = top[t]
        for i, multiple in enumerate(multiples):
            factors.L[i, k] = multiple
        if form.pivoting:
            factors.swaps.store(k, flags)

    eliminate(code, [BandWindow(source)], source.n, form.pivoting, [info], keep, begin)


def solve(code, room, form, factors, B, X):
    """X <- inv(A) B, by the factors of A."""
    right = room.take(B.m, B.n)
    if form.name != "ring" and isinstance(B.n, int):
        source, target = room.chunks(B, right), room.chunks(X, right)
        source.start()
        by_factors(code, form, factors, right, both(target.prepare, source.begin), target.end)
        target.finish()
        return
    move("read", B, right)
    rows = Folded(right) if form.name == "ring" else right
    for j, r in code.tiles(B.n, COLUMNS):
        by_factors(code, form, factors, rows.block(0, j, B.m, r))
    move("write", X, right)


def by_factors(code, form, factors, rows, begin=None, end=None):
    """rows <- inv(A) rows, by the factors of A; for `begin` and `end` see `forward` and `backward`.

    On the way down half of the lines of the next factors is fetched, and the others on the way up.
    """
    U, lines = factors.U, factors.following
    half = -(-len(lines) // 2)
    begin, end = both(begin, functools.partial(fetch, lines[:half])), both(end, functools.partial(fetch, lines[half:]))
    if form.name == "spd":
        forward(code, U.block(1, 0, form.ku, U.n), rows, begin=begin)
        backward(code, U, rows, form.ku, unit=True, end=end)
    else:
        forward(code, factors.L, rows, factors.swaps.load if form.pivoting else None, begin)
        backward(code, U, rows, form.reach, end=end)


def once(code, room, form, matrix, B, X, info):
    """X <- inv(A) B for a few right-hand sides of which the number is known; nothing is kept."""
    source, begin = read(code, room, form, matrix)
    right = room.take(B.m, B.n)
    if form.name == "ring":
        move("read", B, right)
        rows, U, end = Folded(right), room.take(source.n, form.reach + 1).T, None
    else:
        rows, U = right, room.band
        vectors, target = room.chunks(B, right), room.chunks(X, right)
        vectors.start()
        begin, end = both(begin, target.prepare, vectors.begin), target.end
    if form.name == "spd":
        F = source.A
        pbtrf.eliminate(code, [source], source.n, [info], pbtrf.keep_columns(F), begin)
        forward(code, F.block(1, 0, form.ku, F.n), rows)
        backward(code, F, rows, form.ku, unit=True, end=end)
    else:

        def keep(w, k, inverse, multiples, top, flags):
            U[0, k] = inverse
            for t in range(1, form.reach + 1):
                U[t, k] = top[t]
            for c in range(B.n):
                rows[k, c] = top[source.kl + source.ku + 1 + c]

        eliminate(code, [BandWindow(source, rows)], source.n, form.pivoting, [info], keep, begin)
        backward(code, U, rows, form.reach, end=end)
    if form.name == "ring":
        move("write", X, right)
    else:
        target.finish()


def fetch(lines, k):
    """Fetch lines of which each is so many bytes behind column k of a matrix, past the first cache."""
    for A, distance in lines:
        b = A.code.builder
        start = b.bitcast(A.block(0, k, 1, 1).base, BYTES)
        prefetch(b, b.gep(start, [value_of(distance)], source_etype=BYTE), first=False)


def both(*functions):
    """A function that calls functions one after the other."""

    def call(*args):
        for function in filter(None, functions):
            function(*args)

    return call


def read(code, room, form, matrix):
    """The rows of a matrix, and what reads them before a step: diagonals side by side in work space.

    There may be written what has been used.
    """
    n = matrix[len(matrix) // 2].m
    band = room.band = room.take(n, form.stored).T
    places = [band.block(t, 0, 1, diagonal.m).T for t, diagonal in enumerate(matrix)]
    if form.name == "ring":
        for diagonal, place in zip(matrix, places, strict=True):
            move("read", diagonal, place)
        return Ring(code, *(place.T for place in places)), None
    chunks = [room.chunks(diagonal, place) for diagonal, place in zip(matrix, places, strict=True)]
    for diagonal in chunks:
        diagonal.start()
    begin = both(*(diagonal.begin for diagonal in chunks))
    if form.name == "spd":
        return HermitianBand(code, band, form.lower), begin
    if form.name == "banded":
        return Band(code, band, form.kl), begin
    return Tridiagonal(code, *(band.block(t, 0, 1, n) for t in range(3))), begin
