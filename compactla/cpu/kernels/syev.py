"""syev at the pack level: Jacobi's method, two-sided for small sizes, and one-sided for others.

Others are first factored, A + shift = L L^H, where the shift is 0 for matrices that are positive definite, and then the
columns of L are made orthogonal: their lengths are the roots of the eigenvalues, and their directions eigenvectors. So
A is all the memory that this takes, and positive definite matrices keep the digits of their small eigenvalues.
"""

import math

from llvmlite import ir
from numba import types
from numba.core import cgutils

from compactla.checks import option
from compactla.cpu.emit import Code, check_fit, routine
from compactla.cpu.info import report
from compactla.cpu.kernels.jacobi import (
    Order,
    Rotation,
    Scaling,
    Shears,
    exchanged,
    larger,
    matters,
    orthogonalize,
    rounding,
    scaling,
    squared,
    sweep,
)
from compactla.cpu.kernels.potrf import potrf
from compactla.cpu.simd import INDEX, Elements, index
from compactla.cpu.vectors import Flags, Lanes, Vector

UNROLLED = 4  # Larger matrices are in memory while they are turned, and the rounds of a sweep are a loop,
WRITTEN = 8  # and so are the pairs of a round for larger ones.
LARGEST = 16  # of those that are turned from both sides
EXPONENT = {64: 480, 32: 48}  # of scaled matrices: their squares do not overflow, nor underflow before they must
FLOOR = 10  # A shift is larger than what makes a matrix definite by 2 ** -10 of its largest element, or more.


class Hermitian:
    """A Hermitian matrix of which the upper triangle is kept, in registers or in memory."""

    def __init__(self, above, diagonal):
        self.above, self.diagonal = above, diagonal


class Sweeps:
    """Two-sided Jacobi for a matrix of known size, with eigenvectors V or None.

    A round of rotations turns a matrix into another, whose rows and columns have moved on by one, but for the first of
    an even number, which stays, so that the next round turns the same pairs: (p, last - p), and that of the first, or
    what is left alone. As in a tournament all have met after `rounds`, and are where they were.
    """

    def __init__(self, code: Code, vector, n, V):
        self.code, self.vector, self.n, self.V = code, vector, n, V
        self.odd, self.last = n % 2, n - 1 - n % 2
        self.rounds = self.last + 2 * self.odd
        self.tolerance = code.zero(vector.reals).constant(rounding(vector))
        self.unrolled = n <= UNROLLED
        self.rotations: dict | Kept = {}
        if self.unrolled:
            kinds = vector, vector.reals
            self.both = [Hermitian(*(code.registers(kind, n, n) for kind in kinds)) for _ in range(2)]
            return
        self.memory, self.row = code.room(vector, 2 * n, n), cgutils.alloca_once(code.builder, INDEX)
        code.builder.store(INDEX(0), self.row)
        if n > WRITTEN:
            self.rotations = Kept(code.room(vector, n // 2, 2))

    def ends(self):
        """The matrix that is there, and the one that the next round makes."""
        if self.unrolled:
            return self.both
        row = self.code.builder.load(self.row, typ=INDEX)
        ends = [self.memory.block(i, 0, self.n, self.n) for i in (row, self.code.sub(self.n, row))]
        return [Hermitian(A, A._replace(vector=self.vector.reals)) for A in ends]

    def advance(self):
        """The one that was made is there."""
        if self.unrolled:
            self.both.reverse()
        else:
            b = self.code.builder
            b.store(b.sub(INDEX(self.n), b.load(self.row, typ=INDEX)), self.row)

    def above(self):
        """All places above the diagonal."""
        for j in self.each(self.n):
            for i in self.each(j):
                yield i, j

    def each(self, count):
        """0 to count - 1: numbers, or the index of a loop."""
        if self.unrolled:
            yield from range(count)
        else:
            with self.code.loop(count) as i:
                yield i

    def pairs(self, first):
        """The pairs of a round, but for one with the first of an even number, from a column on."""
        code, count = self.code, self.code.sub(self.n // 2, first)
        for i in range(count) if self.n <= WRITTEN else self.each(count):
            p = code.add(first, i)
            yield p, code.sub(self.last, p)

    def run(self) -> Flags:
        """Sweep; returns flags of the lanes that are not diagonal after the last sweep."""
        return sweep(self.code, self.vector, self.once) if self.n > 1 else self.tolerance < 0

    def once(self, turned):
        a, _ = self.ends()
        for i, j in self.above():
            turned(matters(a.diagonal[i, i], a.diagonal[j, j], a.above[i, j], self.tolerance))
        with self.code.builder.if_then(turned.flags.any()):
            for _ in self.each(self.rounds):
                self.round()
            if self.unrolled and self.rounds % 2:  # the first of both is the one that is there
                self.both.reverse()
                a, after = self.both
                for i in range(self.n):
                    a.diagonal[i, i] = after.diagonal[i, i]
                for ij in self.above():
                    a.above[ij] = after.above[ij]

    def round(self):
        """Turn the pairs of a round, all angles first: rows and columns of A, and columns of V."""
        (a, after), n, add = self.ends(), self.n, self.code.add
        rotations = self.rotations
        first = 1 - self.odd  # of the pairs that move on
        for p, q in self.pairs(first):
            rotations[p] = self.angle(p, q, add(p, 1), add(q, 1))
        if first:
            rotations[0] = whole = self.angle(0, n - 1, 0, 1)
            for r, s in self.pairs(1):
                ends = [a.above[i, n - 1].conjugate() for i in (r, s)]
                above, below = turned_block(whole, rotations[r], [a.above[0, i] for i in (r, s)], ends)
                for i, x, y in zip((r, s), above, below, strict=True):
                    after.above[0, add(i, 1)], after.above[1, add(i, 1)] = x, y
        else:
            after.diagonal[0, 0] = a.diagonal[n - 1, n - 1]
            for r, s in self.pairs(0):
                x, y = rotations[r].turned(*(a.above[i, n - 1].conjugate() for i in (r, s)))
                after.above[0, add(r, 1)], after.above[0, add(s, 1)] = x, y
        for p, q in self.pairs(first):
            rotation = rotations[p]
            for r, s in self.pairs(add(p, 1)):
                ends = [a.above[i, q].conjugate() for i in (r, s)]
                above, below = turned_block(rotation, rotations[r], [a.above[p, i] for i in (r, s)], ends)
                for i, x, y in zip((r, s), above, below, strict=True):
                    after.above[add(p, 1), add(i, 1)], after.above[add(i, 1), add(q, 1)] = x, y.conjugate()
        for i in self.each(n) if self.V else ():
            V = self.V if self.unrolled else self.V.block(i, 0, 1, n)
            i = i if self.unrolled else 0
            row = {(r + 1) % n: V[i, r] for r in range(n) if self.odd and r == n - 1}
            for p in range(n // 2):
                q = self.last - p if p >= first else n - 1
                x, y = rotations[p].turned(V[i, p], V[i, q])
                row[p + 1 if p >= first else 0], row[q + 1 if p >= first else 1] = x, y
            for j, x in row.items():
                V[i, j] = x
        self.advance()

    def angle(self, p, q, i, j) -> Rotation:
        """The rotation of a pair, whose own elements are turned; they become (i, i), (j, j) and (i, j)."""
        a, after = self.ends()
        x, y, between = a.diagonal[p, p], a.diagonal[q, q], a.above[p, q]
        turns = matters(x, y, between, self.tolerance)
        rotation = Rotation(x, y, between, turns)
        after.diagonal[i, i], after.diagonal[j, j] = rotation.diagonal(x, y, between)
        after.above[i, j] = turns.select(between.constant(0), between)
        return rotation


class Kept:
    """Rotations in memory, by the first column of their pairs."""

    def __init__(self, numbers: Elements):
        self.numbers = numbers

    def __getitem__(self, p) -> Shears:
        return Shears(self.numbers[p, 0], self.numbers[p, 1])

    def __setitem__(self, p, rotation: Shears):
        self.numbers[p, 0], self.numbers[p, 1] = rotation.sine, rotation.shear


def turned_block(rotation, other, above, below):
    """Elements of rows p and q in columns r and s, turned from both sides."""
    pairs = zip(other.turned(*above), other.turned(*below), strict=True)
    turned = [rotation.turned(x.conjugate(), y.conjugate()) for x, y in pairs]
    return [x.conjugate() for x, _ in turned], [y.conjugate() for _, y in turned]


def two_sided(code: Code, A: Elements, w: Elements, lower: Elements, vectors: bool) -> Flags:
    """Two-sided Jacobi for a matrix of known size; returns flags of lanes without a result."""
    n, zero = A.n, code.zero(A.vector)
    V = code.registers(A.vector, n, n) if n <= UNROLLED else A
    sweeps = Sweeps(code, A.vector, n, V if vectors else None)
    a, _ = sweeps.ends()
    largest = code.registers(w.vector, 1)
    largest[0, 0] = zero.real
    for i in sweeps.each(n):
        a.diagonal[i, i] = lower[i, i].real
        largest[0, 0] = larger(largest[0, 0], a.diagonal[i, i])
    for i, j in sweeps.above():
        a.above[i, j] = lower[j, i].conjugate()
        largest[0, 0] = larger(largest[0, 0], a.above[i, j])
    scale = scaling(largest[0, 0], exponent(A))
    for i, j in sweeps.above():
        a.above[i, j] = scale.scaled(a.above[i, j])
    for i in sweeps.each(n):
        a.diagonal[i, i] = scale.scaled(a.diagonal[i, i])
    for i in sweeps.each(n) if vectors else ():
        for j in sweeps.each(n):
            V[i, j] = zero
        V[i, i] = zero.constant(1)
    failed = sweeps.run() | scale.unknown
    a, _ = sweeps.ends()
    if n <= UNROLLED:
        sort(a.diagonal, V if vectors else None, n)
    for i in sweeps.each(n):
        w[i, 0] = result(scale.restored(a.diagonal[i, i]), failed)
    for i in sweeps.each(n) if vectors else ():
        for j in sweeps.each(n):
            A[i, j] = result(V[i, j], failed)
    if n > UNROLLED:
        order = Order(code, w)
        if vectors:
            order.arrange(A)
    return failed


def sort(diagonal, V, n):
    """Compare and exchange neighbours on the diagonal, with columns of V, until they ascend in every lane."""
    for i in (i for end in range(n - 1, 0, -1) for i in range(end)):
        swap = diagonal[i, i] > diagonal[i + 1, i + 1]
        diagonal[i, i], diagonal[i + 1, i + 1] = exchanged(swap, diagonal[i, i], diagonal[i + 1, i + 1])
        for r in range(n) if V else ():
            V[r, i], V[r, i + 1] = exchanged(swap, V[r, i], V[r, i + 1])


def result(x: Lanes, failed: Flags) -> Lanes:
    """What is returned: NaN where there is no result; zeros are positive, whatever happened to them meanwhile."""
    return failed.select(x.constant(math.nan), x + x.constant(0))


def exponent(A):
    return EXPONENT[A.vector.real.bitwidth]


def one_sided(code: Code, A: Elements, w: Elements, lower: Elements, vectors: bool) -> Flags:
    """One-sided Jacobi, of the factor of a positive definite matrix; returns flags of lanes without a result."""
    n, zero = A.n, code.zero(A.vector)
    scale = spread(code, A, w, lower)
    shift = factor(code, A, w)
    with code.loop(n) as j, code.loop(j) as i:
        A[i, j] = zero
    failed = orthogonalize(code, A) | scale.unknown
    with code.loop(n) as j:
        length = code.registers(zero.vector.reals, 1)
        length[0, 0] = zero.real
        with code.loop(n) as i:
            length[0, 0] = length[0, 0] + squared(A[i, j])
        square = length[0, 0]
        w[j, 0] = result(scale.restored(square - shift), failed)
        if vectors:
            inverse = square.rsqrt()
            with code.loop(n) as i:
                A[i, j] = result(A[i, j] * inverse, failed)
    order = Order(code, w)
    if vectors:
        order.arrange(A)
    return failed


def spread(code: Code, A: Elements, w: Elements, lower: Elements) -> Scaling:
    """Scale the one triangle that is given, write it to both of A, and the diagonal to w; returns the scaling."""
    largest = code.registers(w.vector, 1)
    largest[0, 0] = code.zero(w.vector)
    with code.loop(A.n) as i:
        w[i, 0] = lower[i, i].real
        largest[0, 0] = larger(largest[0, 0], w[i, 0])
        with code.loop(i) as j:
            largest[0, 0] = larger(largest[0, 0], lower[i, j])
    scale = scaling(largest[0, 0], exponent(A))
    with code.loop(A.n) as i:
        w[i, 0] = scale.scaled(w[i, 0])
        with code.loop(i) as j:
            x = scale.scaled(lower[i, j])
            A[i, j], A[j, i] = x, x.conjugate()
    return scale


def factor(code: Code, A: Elements, w: Elements) -> Lanes:
    """Make the lower triangle of A, whose diagonal is in w, that of L in A + shift = L L^H; returns the shift.

    That is 0 unless A is not positive definite; then it is what makes the diagonal dominant, and a little more.
    """
    b, n = code.builder, A.n
    shift = code.registers(w.vector, 1)
    shift[0, 0] = code.zero(w.vector)
    info = code.room(Vector(types.int64, A.vector.lanes), 1)
    again = cgutils.alloca_once_value(b, ir.IntType(1)(1))
    with code.loop(2), b.if_then(b.load(again, typ=again.type.pointee)):
        with code.loop(n) as i:
            A[i, i] = w[i, 0] + shift[0, 0]
            with code.loop(i) as j:
                A[i, j] = A[j, i].conjugate()
        info[0, 0] = code.zero(info.vector)
        potrf.emit(code, A, info.base)
        failed = info[0, 0] != 0
        b.store(failed.any(), again)
        with b.if_then(failed.any()):
            least = code.registers(w.vector, 2)
            least[1, 0] = code.zero(w.vector)
            with code.loop(n) as i:
                least[0, 0] = -w[i, 0]
                with code.loop(n) as j, b.if_then(b.icmp_unsigned("!=", i, j)):
                    above = b.icmp_signed("<", i, j)
                    least[0, 0] = least[0, 0] + A.block(b.select(above, i, j), b.select(above, j, i), 1, 1)[0, 0].abs1()
                least[1, 0] = least[1, 0].maximum(least[0, 0])
            bound = least[1, 0]
            more = bound.fma(bound.constant(1.125), bound.constant(2.0 ** (exponent(A) - FLOOR)))
            shift[0, 0] = failed.select(more, shift[0, 0])
    return shift[0, 0]


@routine
def syev(code, A, w, info, uplo="L", jobz="V", ahead=()):
    """w <- eigenvalues of Hermitian A, and A <- eigenvectors, for the V matrices of a pack, in a Numba function.

    Parameters
    ----------
    A : matrix
        n x n, from `matrix`; only one triangle is read, and the real part of the diagonal.
    w : matrix
        n x 1, real: the eigenvalues, ascending.
    info : array of V int64
        Set to n for matrices with NaN or infinities, and those whose iteration did not end, whose results are NaN;
        otherwise left alone.
    uplo : str
        Which triangle: the constant "L" or "U".
    jobz : str
        The constant "V"; or "N", where A holds anything afterwards.
    ahead : tuple of matrices
        Of known size, and contiguous: the first is fetched into the cache meanwhile, where that is worth it.
    """
    lower = A if option("uplo", uplo, "LU") == "L" else A.H
    vectors = option("jobz", jobz, "NV") == "V"
    check_fit("A", (A.m, A.n), (A.n, A.n))
    check_fit("w", (w.m, w.n), (A.n, 1))
    if isinstance(A.n, int) and A.n <= LARGEST:
        if not A.n:
            return
        if ahead:
            code.fetch_ahead(ahead[:1], 1)
        for _ in code.rounds(1):
            failed = two_sided(code, A, w, lower, vectors)
    else:
        failed = one_sided(code, A, w, lower, vectors)
    report(code, [failed], info, index(A.n))
