"""axpy at the pack level."""

from compactla.cpu.emit.code import check_fit, routine
from compactla.cpu.kernels.scal import along, factor


@routine
def axpy(code, alpha, X, Y, ahead=()):
    """Y <- alpha X + Y for the V matrices of a pack, in a Numba function.

    Parameters
    ----------
    alpha : number, or matrix of 1 x 1
        One for all of the V matrices, or one for each. Where it is zero X, whatever it holds, changes nothing.
    X, Y : matrix
        m x n, from `matrix`.
    ahead : tuple of matrices
        Of one known size, and contiguous: they are fetched into the cache meanwhile.
    """
    check_fit("X", (X.m, X.n), (Y.m, Y.n))
    alpha = factor(code, alpha, Y.vector)
    zero = alpha == 0
    X, Y = along(code, X, Y)
    if ahead:
        code.fetch_ahead(ahead, Y.m * Y.n)
    for i in code.each(Y.m):
        for j in code.rounds(Y.n):
            y = Y[i, j]
            Y[i, j] = zero.select(y, alpha.fma(X[i, j], y))
