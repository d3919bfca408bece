"""lstsq: singular values of R, and rotations of its rows that are those of Q^H B too."""

from compactla.cpu.emit.code import Code
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.emit.vectors import Lanes
from compactla.cpu.kernels.gemm import gemm
from compactla.cpu.kernels.gesvd import LARGEST, SMALL, copy, largest_part, parts, products, rotate_all, triangularise
from compactla.cpu.kernels.householder import reflect
from compactla.cpu.kernels.jacobi import sweep
from compactla.cpu.kernels.laswp import integers
from compactla.cpu.kernels.norms import add_squares, quotient, scaling
from compactla.cpu.linalg.stacks import UNSURE


def lstsq(code, vector, A, B, rcond, X, residuals, rank, s, status):
    """X <- the smallest of all X with the smallest norm of B - A X, for A with no more columns than rows"""
    W, C, limit = code.room(vector, A.m, A.n), code.room(vector, A.m, B.n), code.room(vector.reals, 1)
    A.read(W)
    B.read(C)
    rcond.read(limit)
    found = LeastSquares(code, W, C, limit[0, 0])
    found.write(residuals, rank, s, status)
    X.write(found.x)
    status.check(found.x)


class LeastSquares:
    """Solutions of W x = C for a W of no more columns than rows, while code is emitted; W and C are overwritten.

    W = Q R, and rotations G of rows make G R = S Vh: so x = V inv(S) G Q^H C, without the singular values that count as
    zeros. Nothing overflows or underflows but results that are too large or small.
    """

    def __init__(self, code: Code, W: Elements, C: Elements, rcond: Lanes):
        self.code, vector, m, n, r = code, W.vector, W.m, W.n, C.n
        kept = isinstance(m, int) and m <= SMALL
        Q, self.s = code.room(vector, m, n), code.room(vector.reals, n)
        self.x, self.residuals = code.room(vector, n, r), code.room(vector.reals, r)
        self.rank = code.room(integers(vector), 1)
        if not kept:  # no loop is written out
            W, C, Q = (X._replace(m=code.unknown(X.m), n=code.unknown(X.n)) for X in (W, C, Q))
            m, n, r = W.m, W.n, C.n
        scale, scale_of_c = self._scale(W), self._scale(C)
        triangularise(code, W, Q, self.s)
        for k in code.each(n):
            v, top, rest = parts(code, C, Q, k)
            reflect(code, v, Q[k, k].conjugate(), top, rest)
        R, c = W.block(0, 0, n, n), C.block(0, 0, n, r)
        self.failed = sweep(code, vector, lambda turned: rotate_all(code, R, c.H, kept, turned))
        self._values(R, c, rcond)
        gemm.emit(code, R.H, c, self.x)
        factors = quotient(scale, scale_of_c)
        zero = code.zero(vector)  # no zero is negative: turns of other lanes would tell
        copy(code, self.x, self.x, lambda x: times(x, factors) + zero)
        copy(code, self.s, self.s, scale.restored)
        self._remains(C.block(n, 0, m - n, r), n, [f for f in scale_of_c.down for _ in range(2)])

    def _scale(self, A):
        """Multiply by a power of two so that no square overflows."""
        scale = scaling(largest_part(self.code, A), LARGEST[A.vector.real.bitwidth])
        copy(self.code, A, A, scale.scaled)
        return scale

    def _values(self, R, c, rcond):
        """Singular values and rank; rows of R and of c are divided by these, or become zero."""
        code = self.code
        zero, least = code.zero(R.vector.reals), 2.0 ** (1 - LARGEST[R.vector.real.bitwidth])
        count = code.zero(self.rank.vector)
        self.rank[0, 0] = count
        for i in code.each(R.n):
            (square,) = products(code, R.block(i, 0, 1, R.n).T)
            self.s[i, 0] = (square < least * least).select(zero, square.sqrt())
            counts = (self.s[i, 0] > 0) & ~(self.s[i, 0] <= rcond * self.s[0, 0])
            self.rank[0, 0] = self.rank[0, 0] + counts.select(count.constant(1), count)
            inverse = counts.select(square.rsqrt(), zero)
            for X in (R, c):
                for j in code.each(X.n):
                    X[i, j] = X[i, j] * inverse

    def _remains(self, C, n, factors):
        """Squared norms of the columns of C that no solution changes; NaN for a matrix of a smaller rank than n."""
        code, rank = self.code, self.rank
        full = rank[0, 0] == code.broadcast(n, rank.vector)
        total = code.registers(C.vector.reals, 1)
        for j in code.each(C.n):
            total[0, 0] = code.zero(C.vector.reals)
            for i in code.each(C.m):
                total[0, 0] = add_squares(C[i, j], total[0, 0])
            self.residuals[j, 0] = full.select(times(total[0, 0], factors), total[0, 0].constant(float("nan")))

    def write(self, residuals, rank, s, status):
        """Write all results but x, and enter the matrices for which this failed."""
        residuals.write(self.residuals)
        rank.write(self.rank)
        s.write(self.s)
        status.enter(UNSURE, self.failed)


def times(x, factors):
    for factor in factors:
        x = x * factor
    return x
