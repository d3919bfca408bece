"""nrm2 at the pack level."""

from compactla.cpu.emit.code import check_fit, routine
from compactla.cpu.kernels.dot import rounds, total
from compactla.cpu.kernels.norms import add_squares, into_range, is_right


@routine
def nrm2(code, X, r, ahead=()):
    """r <- the 2-norms of the columns of X, for the V matrices of a pack, in a Numba function.

    Parameters
    ----------
    X, r : matrix
        m x n, and 1 x n of real numbers, from `matrix`. No square overflows or underflows.
    ahead : tuple of matrices
        Of one known size, and contiguous: they are fetched into the cache meanwhile.
    """
    check_fit("r", (r.n,), (X.n,))
    if ahead:
        code.fetch_ahead(ahead, rounds(X))
    vector = X.vector.reals
    for j in code.each(X.n):
        squares = total(code, vector, X.m, lambda i, sums, j=j: add_squares(X[i, j], sums))
        usual, norm = is_right(squares), code.registers(vector, 1)
        norm[0, 0] = squares.sqrt()
        with code.when(~usual.all(), likely=False):
            scale, back = into_range(squares)
            scaled = total(code, vector, X.m, lambda i, sums, j=j, s=scale: add_squares(X[i, j] * s, sums))
            norm[0, 0] = usual.select(norm[0, 0], scaled.sqrt() * back)
        r[0, j] = norm[0, 0]
