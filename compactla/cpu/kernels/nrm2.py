"""nrm2 at the pack level."""

from compactla.cpu.emit import check_fit, routine
from compactla.cpu.kernels.dot import rounds, total
from compactla.cpu.kernels.householder import RANGE, add_squares


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
    vector, limit = X.vector.reals, 2.0 ** RANGE[X.vector.real.bitwidth]
    for j in code.each(X.n):
        squares = total(code, vector, X.m, lambda i, sums, j=j: add_squares(X[i, j], sums))
        usual, norm = (squares >= 1 / limit) & (squares <= limit), code.registers(vector, 1)
        norm[0, 0] = squares.sqrt()
        with code.builder.if_then(code.builder.not_(usual.all()), likely=False):
            less, more = squares < 1 / limit, squares > limit
            up, down, one = (squares.constant(x) for x in (limit, 1 / limit, 1))
            scale, back = less.select(up, more.select(down, one)), less.select(down, more.select(up, one))
            scaled = total(code, vector, X.m, lambda i, sums, j=j, s=scale: add_squares(X[i, j] * s, sums))
            norm[0, 0] = usual.select(norm[0, 0], scaled.sqrt() * back)
        r[0, j] = norm[0, 0]
