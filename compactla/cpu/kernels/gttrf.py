"""gttrf at the pack level, and rows of tridiagonal matrices, open or closed to rings, for the elimination of gbtrf."""

import functools

from compactla.cpu.emit.code import Code, routine
from compactla.cpu.emit.matrices import INDEX, Elements, index
from compactla.cpu.kernels.gbtrf import Window, eliminate, guarded, store


class Tridiagonal:
    """A tridiagonal matrix: three 1 x n matrices, of which the outer diagonals have n - 1 elements that are read."""

    kl = ku = 1

    def __init__(self, code: Code, lower: Elements, diag: Elements, upper: Elements):
        self.code, self.lower, self.diag, self.upper = code, lower, diag, upper
        self.n, self.vector = diag.n, diag.vector

    def row(self, i, whole):
        """Row i from column i - 1 to i + 1; zeros behind the last row and column, which there are unless `whole`."""
        before, after = self.code.add(i, -1), self.code.add(i, 1)
        given = (self.lower, before, i), (self.diag, i, i), (self.upper, i, after)
        return [guarded(self.code, A, 0, j, last, whole) for A, j, last in given]


class Ring:
    """A tridiagonal matrix that is closed to a ring, folded: unknowns in the order 0, n - 1, 1, n - 2, ...

    Neighbours on the ring are two places apart then, or one at its ends, so that it is a band matrix of two diagonals
    on either side. Element k of `lower` couples unknown k + 1 to unknown k, of `upper` k to k + 1; n is 2 or more.
    """

    kl = ku = 2

    def __init__(self, code: Code, lower: Elements, diag: Elements, upper: Elements):
        self.code, self.lower, self.diag, self.upper = code, lower, diag, upper
        self.n, self.vector = diag.n, diag.vector

    def row(self, i, whole):
        """Row i of the folded matrix, from column i - 2 to i + 2.

        It is one in the middle if it is `whole`. Else it may be any, or one behind the last, which is zero.
        """
        code, b, n = self.code, self.code.builder, index(self.n)
        there = b.icmp_signed("<", index(i), n)
        k = index(i) if whole else b.select(there, index(i), INDEX(0))
        odd, place = is_odd(code, k), folded(code, k, n)
        left = code.sub(place, 1)  # the coupling to the one before, of unknown 0 the last of all
        left = b.select(b.icmp_signed("<", left, INDEX(0)), code.sub(n, 1), left)
        lower, diag, upper = self.lower[0, left], self.diag[0, place], self.upper[0, place]
        zero = diag.constant(0)
        inner, outer = chosen(b, odd, upper, lower), chosen(b, odd, lower, upper)
        if whole:
            return [inner, zero, diag, zero, outer]

        def where(x, *conditions):
            for condition in conditions:
                x = chosen(b, condition, x, zero)
            return x

        def equal(x, y):
            return b.icmp_signed("==", index(x), index(y))

        first, second, last, other = equal(k, 0), equal(k, 1), equal(k, code.sub(n, 1)), equal(k, code.sub(n, 2))
        row = [
            where(inner, b.icmp_signed(">=", k, INDEX(2))),
            where(inner, second) + where(outer, last),
            diag,
            where(inner, first) + where(outer, other),
            where(outer, b.icmp_signed("<", k, code.sub(n, 2))),
        ]
        return [where(x, there) for x in row]


class Folded:
    """Rows of a matrix in the order of `Ring`."""

    def __init__(self, B: Elements):
        self.B, self.code, self.vector, self.m, self.n = B, B.code, B.vector, B.m, B.n

    def block(self, i, j, m, n):
        """Some columns."""
        return Folded(self.B.block(i, j, m, n))

    def __getitem__(self, ij):
        i, j = ij
        return self.B[folded(self.code, i, self.m), j]

    def __setitem__(self, ij, lanes):
        i, j = ij
        self.B[folded(self.code, i, self.m), j] = lanes


def is_odd(code, k):
    b = code.builder
    return b.icmp_signed("!=", b.and_(index(k), INDEX(1)), INDEX(0))


def folded(code, k, n):
    """Which unknown of n is in place k."""
    b = code.builder
    half = b.lshr(index(k), INDEX(1))
    return b.select(is_odd(code, k), b.sub(b.sub(index(n), INDEX(1)), half), half)


def chosen(builder, condition, x, y):
    """The lanes of x if a condition holds, else those of y."""
    return x._new(*(builder.select(condition, *parts) for parts in zip(x.parts, y.parts, strict=True)))


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
    eliminate(code, [Window(source)], n, pivoting, [info], functools.partial(store, code, [(U, L, ipiv)], pivoting))
