"""Balancing of matrices before their eigenvalues are found: LAPACK's gebal and gebak, in every lane its own.

Places of rows and columns are real numbers: each lane has other ones.
"""

from compactla.cpu.emit.code import Code
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.emit.vectors import Flags, Lanes
from compactla.cpu.kernels.jacobi import sweep
from compactla.cpu.kernels.norms import add_squares, power_below

PASSES = 30  # over all rows and columns; two to four are usual
GAIN = 0.95  # by which a scaling has to lessen norms at least
MOST = {64: 2.0**300, 32: 2.0**24}  # of factors, all together
LEAST = {64: 2.0**-960, 32: 2.0**-98}  # sums of squares that are right


class Balance:
    """P^T A P of the matrix A of each lane, with triangles at both ends: rows and columns lo to hi are not.

    Columns before lo are those of an upper triangular matrix, and so are rows after hi.
    """

    def __init__(self, code: Code, A: Elements):
        reals = A.vector.reals
        n = code.unknown(A.n)
        self.code, self.A, self.n = code, A, n
        self.bounds = code.registers(reals, 2)
        self.bounds[0, 0], self.bounds[1, 0] = code.zero(reals), code.broadcast(n - 1, reals)
        self.swaps, self.count = code.room(reals, A.n + A.n, 2), code.variable(0)
        self.factors, self.bits = None, reals.real.bitwidth
        for M, end in (A, 1), (A.T, 0):
            sweep(code, reals, lambda turned, M=M, end=end: self._isolate(M, end, turned), n)

    @property
    def lo(self) -> Lanes:
        return self.bounds[0, 0]

    @property
    def hi(self) -> Lanes:
        return self.bounds[1, 0]

    def _isolate(self, M, end, turned):
        """Bring a row that is zero between lo and hi but for its diagonal to one of these ends, and move that."""
        code, zero = self.code, self.lo.constant(0)
        found, total = code.registers(zero.vector, 1), code.registers(zero.vector, 1)
        found[0, 0] = zero.constant(-1)
        with code.loop(self.n) as r:
            total[0, 0] = zero
            with code.loop(self.n) as c, code.when(r != c):
                total[0, 0] = total[0, 0] + self.within(c).select(M[r, c].abs1(), zero)
            alone = (total[0, 0] == 0) & self.within(r)
            found[0, 0] = alone.select(code.broadcast(r, zero.vector), found[0, 0])
        some = (found[0, 0] >= 0) & (self.lo < self.hi)
        turned(some)
        with code.when(some.any()):
            last = self.bounds[end, 0]
            place, t = some.select(found[0, 0], last), self.count.get()
            self.swaps[t, 0], self.swaps[t, 1] = place, last
            self.count.set(t + 1)
            swap(code, self.A, place, last)
            swap(code, self.A.T, place, last)
            self.bounds[end, 0] = some.select(last + zero.constant(1 - 2 * end), last)

    def within(self, k) -> Flags:
        """Lanes for which a place is between lo and hi."""
        place = self.code.broadcast(k, self.lo.vector)
        return (place >= self.lo) & (place <= self.hi)

    def scale(self):
        """Make norms of rows and columns alike, by powers of two.

        They are 2-norms: others do harm to Hessenberg matrices (James, Langou and Lowery, 2014). Where squares overflow
        or underflow they are within a factor of 2^10.
        """
        code, n, reals = self.code, self.n, self.lo.vector
        self.factors = code.room(reals, self.A.n)
        with code.loop(n) as i:
            self.factors[i, 0] = code.zero(reals).constant(1)

        def once(turned):
            with code.loop(n) as i:
                self._scale_row(i, turned)

        sweep(code, reals, once, PASSES)

    def _scale_row(self, i, turned):
        code, zero = self.code, self.lo.constant(0)
        squares = code.registers(zero.vector, 2)
        squares[0, 0] = squares[1, 0] = zero
        self._add(i, squares, add_squares)
        column, row = (squares[k, 0] for k in range(2))
        least, four = LEAST[self.bits], zero.constant(4)
        alike = (row * four >= column) & (row < column * four) & (row >= least)
        with code.when((self.within(i) & ~alike).any()):
            norms = code.registers(zero.vector, 2)
            norms[0, 0], norms[1, 0] = column.sqrt(), row.sqrt()
            with code.when(((column.minimum(row) < least) | (column.maximum(row) > 1 / least)).any()):
                sums = code.registers(zero.vector, 2)
                sums[0, 0] = sums[1, 0] = zero
                self._add(i, sums, lambda x, total: total + x.abs1())
                for k in range(2):
                    norms[k, 0] = norms[k, 0].maximum(sums[k, 0] * zero.constant(2.0**-10)).minimum(sums[k, 0])
            self._scale_norms(i, turned, norms[0, 0], norms[1, 0])

    def _add(self, i, totals, add):
        """``add(x, total)`` for the numbers x of column i and of row i."""
        with self.code.loop(self.n) as j:
            inside = self.within(j)
            for k, x in enumerate((self.A[j, i], self.A[i, j])):
                totals[k, 0] = inside.select(add(x, totals[k, 0]), totals[k, 0])

    def _scale_norms(self, i, turned, column, row):
        """Scale row and column i, which have these norms, where that lessens them."""
        code, A = self.code, self.A
        one, most, former = row.constant(1), MOST[self.bits], self.factors[i, 0]
        factor = power_below((row / column).sqrt() * one.constant(2.0**0.5))
        factor = factor.minimum(one.constant(most) / former).maximum(one.constant(1 / most) / former)
        inverse, total = one / factor, former * factor
        gains = (column * factor + row * inverse) < (column + row) * one.constant(GAIN)
        scales = gains & self.within(i) & (row > 0) & (column > 0)
        turned(scales)
        with code.when(scales.any()):
            factor, inverse = (scales.select(x, one) for x in (factor, inverse))
            self.factors[i, 0] = scales.select(total, former)
            with code.loop(self.n) as j:
                A[j, i] = A[j, i] * factor
            with code.loop(self.n) as j:
                A[i, j] = A[i, j] * inverse

    def restore(self, Z: Elements):
        """Make vectors of the balanced matrix, the columns of Z, those of A."""
        code = self.code
        if self.factors:
            with code.loop(self.n) as i, code.loop(Z.n) as j:
                Z[i, j] = Z[i, j] * self.factors[i, 0]
        count = self.count.get()
        with code.loop(count) as t:
            k = count - 1 - t
            swap(code, Z, self.swaps[k, 0], self.swaps[k, 1])


def swap(code, A, p, q):
    """Swap rows p and q of A, in every lane its own."""
    found = code.registers(A.vector, 2)
    with code.loop(A.n) as j:
        found[0, 0] = found[1, 0] = code.zero(A.vector)
        with code.loop(A.m) as i:
            place = code.broadcast(i, p.vector)
            for k, which in enumerate((p, q)):
                found[k, 0] = (place == which).select(A[i, j], found[k, 0])
        with code.loop(A.m) as i:
            place = code.broadcast(i, p.vector)
            A[i, j] = (place == p).select(found[1, 0], (place == q).select(found[0, 0], A[i, j]))
