"""getrinp at the pack level: the inverse, with the factors that getrfnp makes.

X = inv(U) inv(L) is the solution of X L = inv(U). Transposed and with both axes reversed that is M Y = W, with a unit
lower triangle M that shares its square with the upper triangle W, as L did with inv(U), and which Y takes the place of.
"""

from typing import Any

from compactla.cpu.emit.code import Code, check_fit, routine
from compactla.cpu.emit.loops import starts
from compactla.cpu.emit.matrices import Elements, tile_size
from compactla.cpu.kernels import trtri
from compactla.cpu.kernels.trsm import solve_rows


def move(code: Code, A: Elements, B):
    """A <- B, B <- 0"""
    with code.loop(B.n) as j:
        for i in code.each(B.m):
            A[i, j] = B[i, j]
            B[i, j] = code.zero(B.vector)


def move_below(code, A, B):
    """The elements below the diagonal, likewise."""
    for i in code.each(B.m):
        for j in code.each(i):
            A[i, j] = B[i, j]
            B[i, j] = code.zero(B.vector)


@routine
def getrinp(code: Code, A: Elements, info: Any, ahead: Any = ()) -> None:
    """A <- inv(A) for the V matrices of a pack, with the factors of `getrfnp`, in a Numba function.

    Parameters
    ----------
    A : matrix
        n x n, from `matrix`: L\\U.
    info : array of V int64
        Set to ``i + 1`` for a matrix whose U has its first exact zero on the diagonal at i, which then holds anything;
        otherwise left alone.
    ahead : tuple of matrices
        Of one known size, and contiguous: they are fetched into the cache meanwhile.
    """
    check_fit("A", (A.m, A.n), (A.n, A.m))
    tile = min(tile_size(A.vector, A.m, A.n))
    if ahead:
        first = starts(A.n, tile)
        code.fetch_ahead(ahead, trtri.rounds(A) + sum(first) * len(first))
    trtri.invert_lower(code, A.T, trtri.reciprocals(code, A.T, info))
    Y, row = A.T.reversed, code.room(A.vector, A.n, tile).T
    ones = code.pivots(Y, tile, unit=True)
    for i, m, _ in code.rows_of_triangle(A.n, tile):
        left, D = row.block(0, 0, m, i), row.block(0, i, m, m)
        code.shared(move, left, Y.block(i, 0, m, i))
        code.shared(move_below, D, Y.block(i, i, m, m))
        rows = Y.block(i, 0, m, A.n), D, left, Y.block(0, 0, i, A.n)
        code.shared(solve_rows, *rows, *([] if ones is None else [ones]))
