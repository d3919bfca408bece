"""gelsy at the pack level."""

from numba import types

from compactla.cpu.emit.code import Code, routine
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.emit.vectors import Flags, Lanes, Vector
from compactla.cpu.kernels.gels import clear, multiply, multiply_by, scale, substitute
from compactla.cpu.kernels.geqp3 import geqp3
from compactla.cpu.kernels.householder import reflect, reflector
from compactla.cpu.kernels.laswp import swap_columns
from compactla.view import lower_left


class LeadingRows(Elements):
    """A matrix of which only some rows are there in each lane: others are zero, and keep what they hold."""

    def __init__(self, wanted, **fields):
        super().__init__(**fields)
        self.wanted = wanted

    def __getitem__(self, ij):
        x = super().__getitem__(ij)
        return self.wanted(ij[0]).select(x, x.constant(0))

    def __setitem__(self, ij, lanes):
        super().__setitem__(ij, self.wanted(ij[0]).select(lanes, super().__getitem__(ij)))


class Ranks:
    """How many pivots count in each lane, and what follows from it; they are real numbers, as what they select."""

    def __init__(self, code: Code, R: Elements, rcond: Lanes):
        """The ranks of V upper trapezoidal matrices R with real diagonals, whose first elements are the largest."""
        self.code, self.vector, self.columns = code, R.vector.reals, R.n
        found = code.registers(self.vector, 1)
        found[0, 0] = code.zero(self.vector)
        with code.loop(code.min(R.m, R.n)) as q:
            pivot, largest = abs(R[q, q].real), abs(R[0, 0].real)
            counts = ~(pivot < rcond * largest) & ~(pivot == 0) & (found[0, 0] == self.number(q))
            found[0, 0] = counts.select(self.number(q + 1), found[0, 0])
        self.found = found[0, 0]

    def number(self, q) -> Lanes:
        return self.code.broadcast(q, self.vector)

    def has(self, q) -> Flags:
        """Whether pivot q counts."""
        return self.found > self.number(q)

    @property
    def short(self) -> Flags:
        """Whether they are less than there are columns."""
        return self.found < self.number(self.columns)

    def top(self, A: Elements, q) -> Elements:
        """Row q of what reflector q is applied to."""
        return LeadingRows(lambda i: self.has(q) & self.short, **A.block(q, 0, 1, A.n).__dict__)

    def rest(self, A: Elements, q) -> Elements:
        """The other rows, those from the rank on."""
        first = q + 1
        below = A.block(first, 0, A.m - first, A.n)
        return LeadingRows(lambda i: self.has(q) & ~self.has(first + i), **below.__dict__)


def reduce(code: Code, R: Elements, tau: Elements, ranks: Ranks):
    """R <- T with R = [T 0] Z for as many rows as the rank is; Z is that of reflectors, one in each row."""
    k = code.min(R.m, R.n)
    with code.loop(k) as i:
        q = k - i - 1
        column, above = R.H.block(0, q, R.n, 1), R.H.block(0, 0, R.n, q)
        v = ranks.rest(column, q)
        R[q, q], tau[q, 0] = _, t = reflector(code, R[q, q], v)
        reflect(code, v, t.conjugate(), ranks.top(above, q), ranks.rest(above, q))


def expand(code: Code, R: Elements, tau: Elements, ranks: Ranks, B: Elements):
    """B <- Z^H B"""
    with code.loop(code.min(R.m, R.n)) as q:
        reflect(code, ranks.rest(R.H.block(0, q, R.n, 1), q), tau[q, 0], ranks.top(B, q), ranks.rest(B, q))


@routine
def gelsy(code, A, B, jpvt, tau, rank, rcond, ahead=()):
    """B <- the X of the smallest norm of min ||B - A X||, for A of any rank, for the V matrices of a pack.

    Parameters
    ----------
    A : matrix
        m x n, from `matrix`. It is overwritten.
    B : matrix
        max(m, n) x r, of which the first m rows are read, and the first n hold X in the end.
    jpvt, tau : matrix
        Room for n x 1 integers and for min(m, n) x 1.
    rank : array of V int64
        Set to how many pivots count in each matrix.
    rcond : number
        Pivots below this times the largest do not count.
    ahead : tuple of matrices
        Nothing is fetched ahead.
    """
    m, n, k = A.m, A.n, code.min(A.m, A.n)
    b, x = B.block(0, 0, m, B.n), B.block(0, 0, n, B.n)
    size, size_of_b = scale(code, A, b)
    geqp3.emit(code, A, jpvt, tau)
    multiply(code, A, tau, b, adjoint=True)
    ranks = Ranks(code, A, code.broadcast(rcond, A.vector).real)
    kept = Vector(types.int64, A.vector.lanes)
    Elements(code, kept, rank, 1, 1, 0, 0, 0)[0, 0] = ranks.found.astype(kept.dtype)
    short = ranks.short.any()
    with code.when(short):
        reduce(code, A, tau, ranks)
    last = k - 1
    T, y = lower_left(A.block(0, 0, k, k), B.block(0, 0, k, B.n), "L", "U", "N")
    substitute(code, T, y, lambda q: ranks.has(last - q))
    clear(code, B.block(k, 0, n - k, B.n))
    with code.when(short):
        expand(code, A, tau, ranks, x)
    with code.loop(n) as i:
        after = i + 1
        with code.loop(n - after) as j:
            other = after + j
            wanted = jpvt[other, 0] == code.broadcast(i, jpvt.vector)
            with code.when(wanted.any()):
                for M in (x, jpvt):
                    swap_columns(code, M.block(i, 0, 1, M.n).T, M.block(other, 0, 1, M.n).T, wanted)
    multiply_by(code, x, size / size_of_b)
    multiply_by(code, B.block(n, 0, B.m - n, B.n), size.constant(1) / size_of_b)
