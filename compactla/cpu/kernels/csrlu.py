"""LU factors of sparse matrices of one pattern, in register tiles: `csrlu` makes them, and `csrlusv` solves with them.

Tiles that are kept are those of `compactla.sparse.elimination.Tiles`, T of size x size numbers. A number is a row of
one column of vectors, tile by tile and in these row by row.
"""

import functools
from collections.abc import Callable

from numba import njit

from compactla.checks import option
from compactla.cpu.emit.code import routine
from compactla.cpu.emit.failures import report
from compactla.cpu.emit.matrices import itemsize
from compactla.cpu.emit.numba_matrices import at, lanes_of, parse_form, parts_of
from compactla.cpu.emit.prefetch import BYTES, LINE, prefetch
from compactla.cpu.kernels.getrfnp import reciprocal

SUMS = 8  # of multiply-adds, one of which waits for the one before


def largest_tile(parts: int) -> int:
    """Rows and columns of the largest tile of numbers of so many parts: it fits the registers."""
    return 4 // parts


def tile_at(code, F, t, size):
    """Tile t as a matrix."""
    return F.block(t * (size * size), 0, size, size)._replace(rs=size * F.rs, cs=F.rs)


def fetch(code, A, first, count):
    """Ask for so many rows of a column of vectors."""
    step = A.vector.lanes * itemsize(A.element)
    for i in range(0, count, max(1, LINE // step)):
        for im in (0, A.im)[: len(A.vector.parts)]:
            place = A.pointer(first + i, 0, im)
            prefetch(code.builder, code.builder.bitcast(place, BYTES))


def less_products(code, A, size, count, factors):
    """A matrix, of few columns, less the products of so many pairs: ``factors(p)`` are a tile and such a matrix."""
    width, parts = A.n, len(A.vector.parts)
    sets = max(1, SUMS // (size * width * parts))  # of sums that are under way
    sums, unrolled = [code.registers(A.vector, size, width) for _ in range(sets)], max(1, sets // size)
    for s in sums:
        for r in range(size):
            for c in range(width):
                s[r, c] = code.zero(A.vector)

    def subtract(p, u):
        L, X = factors(p)
        for q in range(size):
            s = sums[(u * size + q) % sets]
            x = [X[q, c] for c in range(width)]
            for r in range(size):
                multiple = -L[r, q]
                for c in range(width):
                    s[r, c] = multiple.fma(x[c], s[r, c])

    # Some pairs at a time, each with sums of its own, then the pairs that are left.
    rounds = count if unrolled == 1 else count // unrolled
    with code.loop(rounds) as p:
        for u in range(unrolled):
            subtract(p * unrolled + u, u)
    if unrolled > 1:
        done = rounds * unrolled
        with code.loop(count - done) as p:
            subtract(done + p, 0)
    # Add the sums up.
    for r in range(size):
        for c in range(width):
            rest = sums[0][r, c]
            for s in sums[1:]:
                rest = rest + s[r, c]
            sums[0][r, c] = A[r, c] + rest
    return sums[0]


@routine
def csrlu(code, F, size, rows, indices, diagonal, starts, products, info, mask=None, dropped=None, ahead=()):
    """F <- L\\U without pivoting for V sparse matrices of one pattern, in a Numba function.

    Parameters
    ----------
    F : matrix
        One column: the tiles of A, and then those of L and U, with reciprocals of the pivots in place of these.
    size : int
        A constant: rows and columns of a tile.
    rows, indices, diagonal, starts, products : array of int64
        The row and column of each tile, the tiles on the diagonal, and those whose products are subtracted: see
        `compactla.sparse.elimination.Tiles`.
    info : array of V int64
        Set to ``i + 1`` for a matrix whose pivot i is the first that is exactly zero, and whose column stays as it is;
        otherwise left alone.
    mask : array of int64, optional
        Not negative for numbers of the tiles that are set to zero as soon as they are finished, which is before they
        are used: factors without fill are made so.
    dropped : matrix, optional
        One column, whose rows of these numbers get what would have been there without the mask: that is A - L U.
    ahead : tuple of matrices
        Columns that are fetched into the cache meanwhile, as many numbers of each as the tiles have.
    """
    some = range(size)
    with code.loop(F.m // (size * size)) as t:
        # Subtract the products that belong to tile t.
        for A in ahead:
            fetch(code, A, t * (size * size), size * size)
        i, j = code.entry(rows, t), code.entry(indices, t)
        A = tile_at(code, F, t, size)
        first = code.entry(starts, t)

        def factors(p, first=first):
            pair = (first + p) * 2
            return [tile_at(code, F, code.entry(products, pair + side), size) for side in range(2)]

        tile = less_products(code, A, size, code.entry(starts, t + 1) - first, factors)
        own, other = (code.entry(diagonal, x) for x in (i, j))

        def kept(r, c, t=t):
            if mask is None:
                return tile[r, c]
            entry = code.entry(mask, t * (size * size) + (r * size + c))
            there, x = entry < 0, tile[r, c]
            if dropped is not None:
                with code.when(entry >= 0):
                    dropped[entry, 0] = x
            return there.select(x, x.constant(0))

        # Above the diagonal: U <- inv(L) U, with the tile of L on the diagonal.
        with code.when(i < j):
            L = tile_at(code, F, own, size)
            for q in some:
                for c in some:
                    tile[q, c] = kept(q, c)
                    for r in some[q + 1 :]:
                        tile[r, c] = (-L[r, q]).fma(tile[q, c], tile[r, c])
        # Below it: L <- L inv(U).
        with code.when(i > j):
            U = tile_at(code, F, other, size)
            for q in some:
                for r in some:
                    tile[r, q] = kept(r, q) * U[q, q]
                    for c in some[q + 1 :]:
                        tile[r, c] = (-tile[r, q]).fma(U[q, c], tile[r, c])
        # On it: the factors of the tile.
        with code.when(i == j):
            for q in some:
                for c in some[q:]:
                    tile[q, c] = kept(q, c)
                zero, inverse = reciprocal(tile[q, q])
                report(code, [zero], info, i * size + q + 1)
                tile[q, q] = inverse
                for r in some[q + 1 :]:
                    tile[r, q] = kept(r, q) * inverse
                    for c in some[q + 1 :]:
                        tile[r, c] = (-tile[r, q]).fma(tile[q, c], tile[r, c])
        # Store it.
        for r in some:
            for c in some:
                A[r, c] = tile[r, c]


@routine
def csrlusv(code, F, size, indices, indptr, diagonal, Y, trans="N"):
    """Y <- op(L U)^-1 Y with the factors of `csrlu`, in a Numba function.

    Parameters
    ----------
    F : matrix
        The factors.
    size : int
        A constant: rows and columns of a tile.
    indices, indptr, diagonal : array of int64
        The pattern of tiles; see `compactla.sparse.elimination.Tiles`.
    Y : matrix
        Of as many rows as the tiles have, and few columns, of which it is known how many.
    trans : str
        A constant as in BLAS: whether op(A) is A, its transpose or its conjugate transpose.
    """
    trans = option("trans", trans, "NTC")
    F = F._replace(conj=F.conj != (trans == "C"))
    blocks = Y.m // size
    for back in (False, True):
        with code.loop(blocks) as k:
            # Block row i, and where the tiles beside the diagonal are that this pass uses.
            i = blocks - 1 - k if back else k
            middle = code.entry(diagonal, i)
            if back == (trans == "N"):
                first, last = middle + 1, code.entry(indptr, i + 1)
            else:
                first, last = code.entry(indptr, i), middle
            own, y = tile_at(code, F, middle, size), rows_at(code, Y, i, size)

            def others(p, first=first):
                t = first + p
                return tile_at(code, F, t, size), rows_at(code, Y, code.entry(indices, t), size)

            # Subtract the products with finished rows, then solve; or, transposed, solve and subtract from the others.
            count = last - first
            if trans == "N":
                solved(y, own, less_products(code, y, size, count, others), back, not back)
                continue
            x = code.registers(Y.vector, size, Y.n)
            for r in range(size):
                for c in range(Y.n):
                    x[r, c] = y[r, c]
            solved(y, own.T, x, back, back)
            with code.loop(count) as p:
                tile, other = others(p)
                for r in range(size):
                    multiples = [-tile[q, r] for q in range(size)]
                    for c in range(Y.n):
                        rest = other[r, c]
                        for q in range(size):
                            rest = multiples[q].fma(x[q, c], rest)
                        other[r, c] = rest


def rows_at(code, Y, i, size):
    """Block i of so many rows."""
    return Y.block(i * size, 0, size, Y.n)


def solved(y, D, x, back, unit):
    """y <- the solution for registers x with a triangle of D, the lower one, or going back the upper one.

    The diagonal is one, or that of D has the reciprocals.
    """
    rows = range(D.m)[::-1] if back else range(D.m)
    for q in rows:
        for c in range(y.n):
            if not unit:
                x[q, c] = x[q, c] * D[q, q]
            y[q, c] = x[q, c]
        for r in rows[list(rows).index(q) + 1 :]:
            multiple = -D[r, q]
            for c in range(y.n):
                x[r, c] = multiple.fma(x[q, c], x[r, c])


@functools.partial(njit, error_model="numpy", inline="always")
def enter(A, F, places, zeros, ones):
    """F <- the tiles of A"""
    for t in zeros:
        F[t, 0] = 0
    for t in ones:
        F[t, 0] = 1
    for t in range(A.m):
        F[places[t], 0] = A[t, 0]


def lu_batch(column: str, size: int, incomplete: bool) -> Callable:
    """Kernel for the factors of packs lo to hi, of tiles of this size; or for those without fill."""
    width, parts = lanes_of(column), parts_of(column)

    def kernel(
        lo, hi, V, nnz, count, extra, places, zeros, ones, rows, indices, diagonal, starts, products, mask,
        data, factors, info,
    ):  # fmt: skip
        pack = parts * V
        for p in range(lo, hi):
            for v in range(0, V, width):
                A = at(data, p * nnz * pack + v, nnz, 1, pack, pack, V, column)
                start = p * (count + extra) * pack + v
                F = at(factors, start, count, 1, pack, pack, V, column)
                enter(A, F, places, zeros, ones)
                found = info[p * V + v :]
                if incomplete:
                    D = at(factors, start + count * pack, extra, 1, pack, pack, V, column)
                    csrlu(F, size, rows, indices, diagonal, starts, products, found, mask, D)
                else:
                    following = min(p + 1, hi - 1)
                    A = at(data, following * nnz * pack + v, nnz, 1, pack, pack, V, column)
                    G = at(factors, following * count * pack + v, count, 1, pack, pack, V, column)
                    csrlu(F, size, rows, indices, diagonal, starts, products, found, ahead=(A, G))

    return kernel


def lusv_batch(matrix: str, column: str, block: str, size: int, trans: str) -> Callable:
    """Kernel for the solutions with the factors of packs lo to hi, for as many columns at a time as `block` has."""
    width, parts = lanes_of(matrix), parts_of(matrix)
    columns = parse_form(block).n
    step = width * parts

    def kernel(lo, hi, V, n, nrhs, m, count, order, indices, indptr, diagonal, factors, b, x, work):
        pack = parts * V
        Y = at(work, 0, m, columns, columns * step, step, width, block)
        for p in range(lo, hi):
            for v in range(0, V, width):
                F = at(factors, p * count * pack + v, count, 1, pack, pack, V, column)
                place = p * n * nrhs * pack + v
                B = at(b, place, n, nrhs, nrhs * pack, pack, V, matrix)
                X = at(x, place, n, nrhs, nrhs * pack, pack, V, matrix)
                for j in range(0, nrhs, columns):
                    for i in range(n):
                        for c in range(columns):
                            Y[i, c] = B[order[i], min(j + c, nrhs - 1)]
                    for i in range(n, m):
                        for c in range(columns):
                            Y[i, c] = 0
                    csrlusv(F, size, indices, indptr, diagonal, Y, trans)
                    for i in range(n):
                        for c in range(min(columns, nrhs - j)):
                            X[order[i], j + c] = Y[i, c]

    return kernel
