"""gemv at the pack level: gemm with one column."""

from compactla.cpu.emit.code import routine
from compactla.cpu.kernels.gemm import gemm


@routine
def gemv(code, A, x, y, alpha=1, beta=0, ahead=()):
    """y <- alpha A x + beta y for the V matrices of a pack, in a Numba function.

    Parameters
    ----------
    A, x, y : matrix
        m x n, n x 1 and m x 1, from `matrix`; ``A.T`` and ``A.H`` are views.
    alpha, beta : number
        The constants alpha = 1 or -1 with beta = 0 or 1 are compiled in.
        If beta is zero y is not read, if alpha is zero A and x are not read.
    ahead : tuple of matrices
        Of one known size, and contiguous: they are fetched into the cache meanwhile.
    """
    gemm.emit(code, A, x.block(0, 0, x.m, 1), y.block(0, 0, y.m, 1), alpha, beta, ahead)
