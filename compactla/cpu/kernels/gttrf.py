"""gttrf at the pack level, and rows of tridiagonal matrices, open or closed to rings, for the elimination of gbtrf."""

import functools

from compactla.cpu.emit.code import Code, routine
from compactla.cpu.emit.index import IntOrIndex
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.emit.vectors import Lanes
from compactla.cpu.kernels.gbtrf import BandWindow, eliminate, guarded, store


class Tridiagonal:
    """A tridiagonal matrix: three 1 x n matrices, of which the outer diagonals have n - 1 elements that are read."""

    kl = ku = 1

    def __init__(self, code: Code, lower: Elements, diag: Elements, upper: Elements) -> None:
        self.code, self.lower, self.diag, self.upper = code, lower, diag, upper
        self.n, self.vector = diag.n, diag.vector

    def row(self, i: IntOrIndex, whole: bool) -> list[Lanes]:
        """Row i from column i - 1 to i + 1; zeros behind the last row and column, which there are unless `whole`."""
        before, after = i - 1, i + 1
        given = (self.lower, before, i), (self.diag, i, i), (self.upper, i, after)
        return [guarded(self.code, A, 0, j, last, whole) for A, j, last in given]


class Ring:
    """A tridiagonal matrix that is closed to a ring, folded: unknowns in the order 0, n - 1, 1, n - 2, ...

    Neighbours on the ring are two places apart then, or one at its ends, so that it is a band matrix of two diagonals
    on either side. Element k of `lower` couples unknown k + 1 to unknown k, of `upper` k to k + 1; n is 2 or more.
    """

    kl = ku = 2

    def __init__(self, code: Code, lower: Elements, diag: Elements, upper: Elements) -> None:
        self.code, self.lower, self.diag, self.upper = code, lower, diag, upper
        self.n, self.vector = diag.n, diag.vector

    def row(self, i: IntOrIndex, whole: bool) -> list[Lanes]:
        """Row i of the folded matrix, from column i - 2 to i + 2.

        It is one in the middle if it is `whole`. Else it may be any, or one behind the last, which is zero.
        """
        code, n = self.code, self.n
        k = code.unknown(i)
        there = k < n
        k = k if whole else there.select(k, 0)
        odd, place = k % 2 != 0, folded(code, k, n)
        left = place - 1  # the coupling to the one before, of unknown 0 the last of all
        left = (left < 0).select(n - 1, left)
        lower, diag, upper = self.lower[0, left], self.diag[0, place], self.upper[0, place]
        zero = diag.constant(0)
        inner, outer = odd.select(upper, lower), odd.select(lower, upper)
        if whole:
            return [inner, zero, diag, zero, outer]

        def where(x, *conditions):
            for condition in conditions:
                x = condition.select(x, zero)
            return x

        first, second, last, other = k == 0, k == 1, k == n - 1, k == n - 2
        row = [
            where(inner, k >= 2),
            where(inner, second) + where(outer, last),
            diag,
            where(inner, first) + where(outer, other),
            where(outer, k < n - 2),
        ]
        return [where(x, there) for x in row]


class Folded:
    """Rows of a matrix in the order of `Ring`."""

    def __init__(self, B: Elements) -> None:
        self.B, self.code, self.vector, self.m, self.n = B, B.code, B.vector, B.m, B.n

    def block(self, i: IntOrIndex, j: IntOrIndex, m: IntOrIndex, n: IntOrIndex) -> "Folded":
        """Some columns."""
        return Folded(self.B.block(i, j, m, n))

    def __getitem__(self, ij):
        i, j = ij
        return self.B[folded(self.code, i, self.m), j]

    def __setitem__(self, ij, lanes):
        i, j = ij
        self.B[folded(self.code, i, self.m), j] = lanes


def folded(code, k, n):
    """The unknown, of n, that place k holds."""
    k = code.unknown(k)
    half = k // 2
    return (k % 2 != 0).select(n - 1 - half, half)


@routine
def gttrf(code, lower, diag, upper, U, L, ipiv, info, pivoting=True, ahead=()):
    """The LU factorizations of the V tridiagonal matrices of a pack, with row interchanges, in a Numba function.

    Parameters
    ----------
    lower, diag, upper : matrix
        (n - 1) x 1, n x 1 and (n - 1) x 1, from `matrix`: the diagonals, which are read only.
    U, L, ipiv, info, pivoting, ahead
        As of `gbtrf`, for one diagonal on either side.
    """
    n, pivoting = diag.m, bool(pivoting)
    source = Tridiagonal(code, *(diagonal.T._replace(n=n) for diagonal in (lower, diag, upper)))
    eliminate(code, [BandWindow(source)], n, pivoting, [info], functools.partial(store, code, [(U, L, ipiv)], pivoting))
