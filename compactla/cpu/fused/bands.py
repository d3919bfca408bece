"""Systems with band matrices, V at a time: factored, solved with factors that are kept, or both at once.

What is read of ordinary arrays is transposed into work space first, where everything is done.
"""

from dataclasses import replace

from compactla.cpu.kernels import pbtrf
from compactla.cpu.kernels.gbtrf import Band, Window, eliminate
from compactla.cpu.kernels.gbtrs import COLUMNS, backward, forward
from compactla.cpu.kernels.gttrf import Folded, Ring, Tridiagonal
from compactla.cpu.kernels.pbtrf import HermitianBand


def factor(code, room, kind, matrix, factors, info):
    """Keep the factors of a matrix."""
    source = read(code, room, kind, matrix)
    if kind.name == "spd":
        pbtrf.eliminate(code, [source], source.n, [info], keep_hermitian(factors.U))
        return

    def keep(w, k, inverse, multiples, top, flags):
        factors.U[0, k] = inverse
        for t in range(1, factors.U.m):
            factors.U[t, k] = top[t]
        for i, multiple in enumerate(multiples):
            factors.L[i, k] = multiple
        if kind.pivoting:
            factors.swaps.store(k, flags)

    eliminate(code, [Window(source)], source.n, kind.pivoting, [info], keep)


def solve(code, room, kind, factors, B, X):
    """X <- inv(A) B, by the factors of A."""
    right = room.take(B.m, B.n)
    move(code, "read", B, right)
    rows = Folded(right) if kind.name == "ring" else right
    U = factors.U
    for j, r in code.tiles(B.n, COLUMNS):
        some = rows.block(0, j, B.m, r)
        if kind.name == "spd":
            forward(code, U.block(1, 0, kind.ku, U.n), some)
            backward(code, U, some, kind.ku, unit=True)
        else:
            forward(code, factors.L, some, factors.swaps.load if kind.pivoting else None)
            backward(code, U, some, U.m - 1)
    move(code, "write", X, right)


def once(code, room, kind, matrix, B, X, info):
    """X <- inv(A) B for a few right-hand sides of which the number is known; nothing is kept."""
    source, right = read(code, room, kind, matrix), room.take(B.m, B.n)
    move(code, "read", B, right)
    rows = Folded(right) if kind.name == "ring" else right
    if kind.name == "spd":
        F = source.A
        pbtrf.eliminate(code, [source], source.n, [info], keep_hermitian(F))
        forward(code, F.block(1, 0, kind.ku, F.n), rows)
        backward(code, F, rows, kind.ku, unit=True)
    else:
        U = room.take(source.n, kind.reach + 1).T if kind.name == "ring" else room.band

        def keep(w, k, inverse, multiples, top, flags):
            U[0, k] = inverse
            for t in range(1, kind.reach + 1):
                U[t, k] = top[t]
            for c in range(B.n):
                rows[k, c] = top[source.kl + source.ku + 1 + c]

        eliminate(code, [Window(source, rows)], source.n, kind.pivoting, [info], keep)
        backward(code, U, rows, kind.reach)
    move(code, "write", X, right)


def keep_hermitian(F):
    """What keeps the factors of pbtrf in F."""

    def keep(w, k, inverse, multiples):
        F[0, k] = inverse
        for t, multiple in enumerate(multiples, 1):
            F[t, k] = multiple

    return keep


def read(code, room, kind, matrix):
    """The rows of a matrix, of which the diagonals are side by side in work space: what was read may be overwritten."""
    n = matrix[len(matrix) // 2].n
    band = room.band = room.take(n, kind.stored).T
    if len(matrix) == 1:
        matrix[0].read(band)
        return HermitianBand(code, band, kind.lower) if kind.name == "spd" else Band(code, band, kind.kl)
    for t, diagonal in enumerate(matrix):
        diagonal.read(band.block(t, 0, 1, diagonal.n))
    return (Ring if kind.name == "ring" else Tridiagonal)(code, *(band.block(t, 0, 1, n) for t in range(3)))


def move(code, action, vectors, W):
    """Read vectors into W, or write them, in one go where they follow each other as in W."""
    if vectors.kind == "whole":
        vectors = replace(vectors, m=1, n=code.mul(W.m, W.n))
        W = W._replace(m=1, n=vectors.n)
    getattr(vectors, action)(W)
