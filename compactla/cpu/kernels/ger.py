"""ger at the pack level: gemm of a column and a row."""

from compactla.cpu.emit.code import routine
from compactla.cpu.kernels.gemm import gemm


@routine
def ger(code, x, y, A, alpha=1, conj=False, ahead=()):
    """A <- alpha x y^T + A for the V matrices of a pack, in a Numba function.

    Parameters
    ----------
    x, y, A : matrix
        m x 1, n x 1 and m x n, from `matrix`.
    alpha : number
        The constants 1 and -1 are compiled in. If it is zero nothing is read.
    conj : bool
        A constant: whether y is conjugated, for y^H.
    ahead : tuple of matrices
        Of one known size, and contiguous: they are fetched into the cache meanwhile.
    """
    x, y = x.block(0, 0, x.m, 1), y.block(0, 0, y.m, 1)
    operands = x, y.H if conj else y.T, A
    if alpha in (1, -1):
        gemm.emit(code, *operands, alpha, 1, ahead)
        return
    with code.when(~code.is_zero(code.broadcast(alpha, A.vector))):
        gemm.emit(code, *operands, alpha, 1, ahead)
