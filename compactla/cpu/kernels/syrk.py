"""syrk at the pack level, and what it shares with herk: products of which one triangle is wanted.

There is one algorithm, for a lower triangle: an upper one is its transpose.
"""

from compactla.checks import option
from compactla.cpu.emit.code import check_fit, routine
from compactla.cpu.emit.loops import starts
from compactla.cpu.emit.matrices import tile_size
from compactla.cpu.kernels.gemm import update
from compactla.cpu.kernels.symm import Symmetric


def multiply_half(code, A, B, C, alpha, beta, diagonal):
    """The lower triangle of C <- alpha A B + beta C; `diagonal` makes what `update` sees of C's tiles there."""
    k, known = A.n, isinstance(alpha, int)
    if not known:
        k = code.is_zero(alpha).select(0, k)
    tile = min(tile_size(C.vector, C.m, C.n))
    for j, t, rest in code.blocks(C.m, tile):
        for n in code.cases(t, tile):
            columns = B.block(0, j, k, n)
            products = [(A.block(j, 0, n, k), columns)]
            update(code, products, diagonal(C.block(j, j, n, n)), alpha, beta, half=True)
            for start, extent in rest(C.m):
                for i, m in code.tiles(extent, tile):
                    row = start + i
                    update(code, [(A.block(row, 0, m, k), columns)], C.block(row, j, m, n), alpha, beta)


def prepared(code, A, C, alpha, beta, ahead):
    """The scalars as `multiply_half` takes them."""
    check_fit("C", (C.m, C.n), (A.m, A.m))
    if ahead:
        tiles = len(starts(C.m, min(tile_size(C.vector, C.m, C.n))))
        code.fetch_ahead(ahead, tiles * (tiles + 1) // 2 * A.n)
    if alpha in (1, -1) and beta in (0, 1):
        return alpha, beta
    return [code.broadcast(x, C.vector) for x in (alpha, beta)]


@routine
def syrk(code, A, C, uplo="L", trans="N", alpha=1, beta=0, ahead=()):
    """C <- alpha op(A) op(A)^T + beta C for the V matrices of a pack, in a Numba function.

    Parameters
    ----------
    A, C : matrix
        Rectangular and symmetric, from `matrix`. Only one triangle of C is read and written.
    uplo, trans : str
        Which triangle, and what op(A) is: constants as in BLAS, where "C" is for real matrices only.
    alpha, beta : number
        The constants alpha = 1 or -1 with beta = 0 or 1 are compiled in.
        If beta is zero C is not read, if alpha is zero A is not read.
    ahead : tuple of matrices
        Of one known size, and contiguous: they are fetched into the cache meanwhile.
    """
    C = C.T if option("uplo", uplo, "LU") == "U" else C
    A = A if option("trans", trans, "NT" if A.vector.is_complex else "NTC") == "N" else A.T
    alpha, beta = prepared(code, A, C, alpha, beta, ahead)
    multiply_half(code, A, A.T, C, alpha, beta, Symmetric)
