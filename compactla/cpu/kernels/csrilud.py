"""Incomplete factors of sparse matrices that are almost dense, by register tiles of matrices with zeros filled in.

Entries outside the pattern are set to zero as soon as they are finished, which is before they are used.
"""

from compactla.cpu.emit import routine
from compactla.cpu.info import report
from compactla.cpu.kernels.csr import entry
from compactla.cpu.kernels.getrfnp import reciprocal
from compactla.cpu.simd import INDEX, index


def tile_of(parts):
    """Rows and columns of a tile, of numbers of so many parts: it fits the registers."""
    return 4 // parts


@routine
def csrilud(code, values, rows, indices, mask, D, factors, info):
    """The factors that `csrilu` makes, of V sparse matrices of one pattern, in a Numba function.

    Parameters
    ----------
    values, factors : matrix
        nnz x 1: the values of A, and what gets L and U in their places, with reciprocals of the pivots in place of
        these.
    rows, indices : array of int64
        The row and column of each value.
    mask : array of int64
        Of the size of `D`, row by row: not zero in the pattern, and on the diagonal.
    D : matrix
        Room, square, of a multiple of `tile_of` rows; zero outside the pattern, and one on what there is more of the
        diagonal than A has. It stays so.
    info : array of V int64
        Set to ``i + 1`` for a matrix whose pivot i is the first that is exactly zero, and counts as one; otherwise
        left alone.
    """
    b, vector, size = code.builder, values.vector, tile_of(len(values.vector.parts))
    tile, some = code.registers(vector, size, size), range(size)
    with code.loop(values.m) as t:
        D[entry(code, rows, t), entry(code, indices, t)] = values[t, 0]
    blocks = b.udiv(index(D.m), INDEX(size))
    with code.loop(blocks) as block, code.loop(blocks) as other:
        i, j = code.mul(block, size), code.mul(other, size)
        A = D.block(i, j, size, size)
        for r in some:
            for c in some:
                tile[r, c] = A[r, c]
        with code.loop(code.min(i, j)) as k:
            above = [D[k, code.add(j, c)] for c in some]
            for r in some:
                multiple = -D[code.add(i, r), k]
                for c in some:
                    tile[r, c] = multiple.fma(above[c], tile[r, c])

        def kept(r, c, i=i, j=j):
            there = entry(code, mask, code.add(code.mul(code.add(i, r), D.m), code.add(j, c)))
            there, x = b.icmp_signed("!=", there, INDEX(0)), tile[r, c]
            pairs = zip(x.parts, x.constant(0).parts, strict=True)
            return x._new(*(b.select(there, part, zero) for part, zero in pairs))

        with b.if_then(b.icmp_signed("<", i, j)):
            L = D.block(i, i, size, size)
            for q in some:
                for c in some:
                    tile[q, c] = kept(q, c)
                    for r in some[q + 1 :]:
                        tile[r, c] = (-L[r, q]).fma(tile[q, c], tile[r, c])
        with b.if_then(b.icmp_signed(">", i, j)):
            U = D.block(j, j, size, size)
            for q in some:
                for r in some:
                    tile[r, q] = kept(r, q) * U[q, q]
                    for c in some[q + 1 :]:
                        tile[r, c] = (-tile[r, q]).fma(U[q, c], tile[r, c])
        with b.if_then(b.icmp_signed("==", i, j)):
            for q in some:
                for c in some[q:]:
                    tile[q, c] = kept(q, c)
                zero, inverse = reciprocal(tile[q, q])
                report(code, [zero], info, code.add(code.add(i, q), 1))
                tile[q, q] = inverse
                for r in some[q + 1 :]:
                    tile[r, q] = kept(r, q) * inverse
                    for c in some[q + 1 :]:
                        tile[r, c] = (-tile[r, q]).fma(tile[q, c], tile[r, c])
        for r in some:
            for c in some:
                A[r, c] = tile[r, c]
    with code.loop(values.m) as t:
        factors[t, 0] = D[entry(code, rows, t), entry(code, indices, t)]
