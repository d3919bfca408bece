"""trtri at the register level (`invert`, `invert_left`) and at the pack level (`trtri`).

There is one algorithm, for a lower triangle: an upper one is its transpose. The inverse X is solved for from L X = I
row by row, each from left to right, so that it takes the place of L.
"""

import numpy as np

from compactla.checks import option
from compactla.cpu.emit.code import Code, check_fit, routine
from compactla.cpu.emit.failures import report
from compactla.cpu.emit.loops import starts
from compactla.cpu.emit.matrices import Elements, tile_size


def invert(code: Code, L: Elements, inverses, unit):
    """Register tile: L <- inv(L) for a lower triangle of known size; a unit diagonal is not touched.

    `inverses` are the reciprocals of the diagonal; None are ones.
    """
    size = range(L.m)
    x = code.registers(L.vector, L.m, L.m)
    for i in size:
        for j in range(i):
            x[i, j] = L[i, j]
    for j in size:
        for i in size[j + 1 :]:
            total = x[i, j] if inverses is None else x[i, j] * inverses[j, 0]
            for p in range(j + 1, i):
                total = x[i, p].fma(x[p, j], total)
            x[i, j] = -total if inverses is None else -total * inverses[i, 0]
    for i in size:
        for j in range(i):
            L[i, j] = x[i, j]
        if not unit:
            L[i, i] = inverses[i, 0]


def invert_left(code: Code, B: Elements, D, T, L, X, of_rows, of_columns):
    """Register tile: B <- -inv(D) (B T + L X) for a B of known size, D and T lower triangular.

    D is not inverted yet, T is: what is read of them is below their diagonals, of which D's has the reciprocals
    `of_rows`, and T's is `of_columns`; None are ones.
    """
    rows, columns = range(B.m), range(B.n)
    x = code.registers(B.vector, B.m, B.n)
    for i in rows:
        for j in columns:
            x[i, j] = B[i, j]
    for j in columns:
        if of_columns is not None:
            for i in rows:
                x[i, j] = x[i, j] * of_columns[j, 0]
        for p in columns[j + 1 :]:
            t = T[p, j]
            for i in rows:
                x[i, j] = x[i, p].fma(t, x[i, j])
    for p in code.rounds(L.n):
        right = [X[p, j] for j in columns]
        for i in rows:
            a = L[i, p]
            for j in columns:
                x[i, j] = a.fma(right[j], x[i, j])
    for i in rows:
        for q in range(i):
            d = D[i, q]
            for j in columns:
                x[i, j] = d.fma(x[q, j], x[i, j])
        for j in columns:
            x[i, j] = -x[i, j] if of_rows is None else -x[i, j] * of_rows[i, 0]
            B[i, j] = x[i, j]


def invert_left_tiles(code, B, D, T, L, X, of_rows=None, of_columns=None):
    """`invert_left` for a B that is no larger than a tile."""
    tile = min(tile_size(B.vector, B.m, B.n))
    for m in code.cases(B.m, tile):
        for n in code.cases(B.n, tile):
            known = B.block(0, 0, m, n), D, T, L.block(0, 0, m, L.n), X.block(0, 0, X.m, n), of_rows, of_columns
            invert_left(code, *known)


def reciprocals(code, L, info, unit=False):
    """The reciprocals of the diagonal, a column; zeros are entered into `info`. None or ones for a unit diagonal."""
    if unit and isinstance(L.m, int):
        return None
    column = code.room(L.vector, L.m, 1)
    zeros = []
    for q in code.each(L.m):
        if unit:
            column[q, 0] = code.zero(L.vector).constant(1)
            continue
        diagonal = L[q, q]
        column[q, 0] = diagonal.reciprocal(many=True)
        if isinstance(q, int):
            zeros.append(diagonal == 0)
        else:
            report(code, [diagonal == 0], info, q + 1)
    if zeros:
        report(code, zeros, info, 1)
    return column


def invert_lower(code, L, inverses, unit=False):
    """L <- inv(L) for a lower triangle, with the reciprocals of its diagonal; None are ones."""
    tile = min(tile_size(L.vector, L.m, L.n))

    def part(start, extent):
        return None if inverses is None else inverses.block(start, 0, extent, 1)

    for i, m, before in code.rows_of_triangle(L.m, tile):
        D = L.block(i, i, m, m)
        for j, n in before():
            done = j + n
            left = i - done
            blocks = D, L.block(j, j, n, n), L.block(i, done, m, left), L.block(done, j, left, n)
            code.shared(invert_left_tiles, L.block(i, j, m, n), *blocks, *filter(None, (part(i, m), part(j, n))))
        for known in code.cases(m, tile):
            invert(code, D.block(0, 0, known, known), part(i, known), unit)


@routine
def trtri(code, A, info, uplo="L", diag="N", ahead=()):
    """A <- inv(A) for the V triangular matrices of a pack, in a Numba function.

    Parameters
    ----------
    A : matrix
        Square, from `matrix`; only one triangle is read and written.
    info : array of V int64
        Set to ``i + 1`` for a matrix whose diagonal has its first exact zero at i, which then holds anything; otherwise
        left alone.
    uplo, diag : str
        Constants as in LAPACK: which triangle, and "U" for a diagonal that is taken as ones and not touched.
    ahead : tuple of matrices
        Of one known size, and contiguous: they are fetched into the cache meanwhile.
    """
    diag = option("diag", diag, "NU")
    L = A.T if option("uplo", uplo, "LU") == "U" else A
    check_fit("A", (L.m, L.n), (L.n, L.m))
    if ahead:
        code.fetch_ahead(ahead, rounds(L))
    unit = diag == "U"
    invert_lower(code, L, reciprocals(code, L, info, unit), unit)


def rounds(L):
    """Number of rounds in the innermost loops of an inversion."""
    return int(sum(np.cumsum(starts(L.m, min(tile_size(L.vector, L.m, L.n))))))
