"""syr at the pack level, and what it shares with her: updates of one triangle by a column and a row.

There is one algorithm, for a lower triangle: an upper one is its transpose.
"""

from compactla.checks import option
from compactla.cpu.emit.code import check_fit, routine
from compactla.cpu.kernels.scal import factor


def update_half(code, alpha, x, row, A, ahead, finished=lambda diagonal: diagonal):
    """The lower triangle of A <- alpha x row + A; `finished` makes what is stored of a sum on the diagonal."""
    check_fit("x", (x.m, x.n), (A.m, 1))
    check_fit("A", (A.m,), (A.n,))
    if ahead:
        code.fetch_ahead(ahead, A.m * (A.m - 1) // 2)
    zero = alpha == 0
    for i in code.each(A.m):
        multiple = alpha * x[i, 0]
        for j in code.rounds(i):
            a = A[i, j]
            A[i, j] = zero.select(a, multiple.fma(row[0, j], a))
        a = A[i, i]
        A[i, i] = zero.select(a, finished(multiple.fma(row[0, i], a)))


@routine
def syr(code, alpha, x, A, uplo="L", ahead=()):
    """A <- alpha x x^T + A for the V matrices of a pack, in a Numba function.

    Parameters
    ----------
    alpha : number, or matrix of 1 x 1
        One for all of the V matrices, or one for each. Where it is zero x, whatever it holds, changes nothing.
    x, A : matrix
        n x 1, and symmetric, from `matrix`. Only one triangle of A is read and written.
    uplo : str
        Which triangle: a constant as in BLAS.
    ahead : tuple of matrices
        Of one known size, and contiguous: they are fetched into the cache meanwhile.
    """
    A = A.T if option("uplo", uplo, "LU") == "U" else A
    update_half(code, factor(code, alpha, A.vector), x, x.T, A, ahead)
