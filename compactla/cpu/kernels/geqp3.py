"""geqp3 at the pack level."""

from compactla.cpu.emit.code import Code, check_fit, routine
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.emit.vectors import Lanes
from compactla.cpu.kernels.householder import reflect, reflector
from compactla.cpu.kernels.laswp import swap_columns
from compactla.cpu.kernels.norms import RANGE, add_squares, is_right, largest


class Longest:
    """The column of each lane with the largest norm of those that were seen, the first of several.

    Columns are called by real numbers, which are as long as what they are selected by.
    """

    def __init__(self, code: Code, vector):
        self.code, self.vector, self.found = code, vector.reals, code.registers(vector.reals, 2)

    def forget(self, first):
        """Columns from `first` on are to be seen; it is what lanes have of which none is, or only NaN."""
        self.first = first
        self.found[0, 0], self.column = self.code.zero(self.vector).constant(-1), self.number(0)

    def number(self, j) -> Lanes:
        """The name of column j behind the first."""
        return self.code.broadcast(self.first + j, self.vector)

    @property
    def squares(self) -> Lanes:
        """The sum of the squares of the column."""
        return self.found[0, 0]

    @property
    def column(self) -> Lanes:
        return self.found[1, 0]

    @column.setter
    def column(self, column):
        self.found[1, 0] = column

    def see(self, j, squares):
        longer = squares > self.squares
        self.found[0, 0] = longer.select(squares, self.squares)
        self.column = longer.select(self.number(j), self.column)


def search(code: Code, A: Elements, longest: Longest, scale=None):
    """See all columns of A, multiplied by `scale` if that is given."""
    total = code.registers(longest.vector, 1)
    with code.loop(A.n) as j:
        total[0, 0] = code.zero(longest.vector)
        with code.loop(A.m) as i:
            x = A[i, j]
            total[0, 0] = add_squares(x if scale is None else x * scale, total[0, 0])
        longest.see(j, total[0, 0])


def search_scaled(code: Code, A: Elements, longest: Longest, first):
    """Search again where squares overflowed or underflowed, or all are zero."""
    usual, column = is_right(longest.squares), longest.column
    with code.when(~usual.all(), likely=False):
        size, limit = largest(code, A), 2.0 ** RANGE[longest.vector.real.bitwidth]
        longest.forget(first)
        search(code, A, longest, size.reciprocal().minimum(size.constant(limit)))
        longest.column = usual.select(column, longest.column)


@routine
def geqp3(code, A, jpvt, tau, ahead=()):
    """A <- Q \\ R with A P = Q R, for the V matrices of a pack, in a Numba function.

    Parameters
    ----------
    A : matrix
        m x n, from `matrix`. The upper trapezoid becomes R, whose diagonal is real and falls; below it are reflectors.
    jpvt : matrix
        n x 1, of integers: column ``jpvt[j, 0]`` of A became column j.
    tau : matrix
        min(m, n) x 1: the factors of the reflectors.
    ahead : tuple of matrices
        Nothing is fetched ahead.
    """
    m, n, k = A.m, A.n, code.min(A.m, A.n)
    check_fit("tau", (tau.m, tau.n), (k, 1))
    check_fit("jpvt", (jpvt.m, jpvt.n), (n, 1))
    with code.loop(n) as j:
        jpvt[j, 0] = code.broadcast(j, jpvt.vector)
    longest = Longest(code, A.vector)
    longest.forget(0)
    search(code, A, longest)
    with code.loop(k) as q:
        after, below, right = q + 1, m - q - 1, n - q - 1
        search_scaled(code, A.block(q, q, m - q, n - q), longest, q)
        with code.loop(right) as j:
            other = after + j
            wanted = longest.column == code.broadcast(other, longest.vector)
            with code.when(wanted.any()):
                for M in (A, jpvt.T):
                    swap_columns(code, M.block(0, q, M.m, 1), M.block(0, other, M.m, 1), wanted)
        v = A.block(after, q, below, 1)
        A[q, q], tau[q, 0] = _, t = reflector(code, A[q, q], v)
        longest.forget(after)
        reflect(code, v, t.conjugate(), A.block(q, after, 1, right), A.block(after, after, below, right), longest.see)
