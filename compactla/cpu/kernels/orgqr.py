"""orgqr at the pack level."""

from compactla.cpu.emit import check_fit, routine
from compactla.cpu.kernels.householder import Reflectors, reflect
from compactla.cpu.simd import tile_size


@routine
def orgqr(code, A, tau, ahead=()):
    """A <- the first n columns of Q, which `geqrf` left in A, for the V matrices of a pack, in a Numba function.

    Parameters
    ----------
    A : matrix
        m x n, m >= n, from `matrix`.
    tau : matrix
        n x 1.
    ahead : tuple of matrices
        Of one known size, and contiguous: they are fetched into the cache meanwhile.
    """
    check_fit("tau", (tau.m, tau.n), (A.n, 1))
    zero, one = code.zero(A.vector), code.zero(A.vector).constant(1)
    for j in code.each(A.n):
        for i in code.each(j):
            A[i, j] = zero
    tile, widest = tile_size(A.vector, A.m, A.n)
    tile = min(tile, widest)
    for start, extent, _ in code.blocks(A.n, tile):
        i = code.sub(code.sub(A.n, start), extent)
        rows = code.sub(A.m, i)
        for t in code.cases(extent, tile):
            panel, scales = A.block(i, i, rows, t), tau.block(i, 0, t, 1)
            group = Reflectors(code, panel, scales)
            for j, n in code.tiles(start, widest):
                group.apply(A.block(i, code.add(code.add(i, t), j), rows, n), adjoint=False)
            for q in reversed(range(t)):
                scale, below = scales[q, 0], code.sub(rows, q + 1)
                v, right = panel.block(q + 1, q, below, 1), t - q - 1
                reflect(code, v, scale, panel.block(q, q + 1, 1, right), panel.block(q + 1, q + 1, below, right))
                panel[q, q] = one - scale
                for p in code.each(below):
                    v[p, 0] = -(scale * v[p, 0])
