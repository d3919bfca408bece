"""syev at the pack level: Jacobi's method, in registers for small sizes, and one-sided in memory for others.

Others are first factored, A + shift = L L^H, where the shift is 0 for matrices that are positive definite, and then the
columns of L are made orthogonal: their lengths are the roots of the eigenvalues, and their directions eigenvectors. So
A is all the memory that this takes, and positive definite matrices keep the digits of their small eigenvalues.
"""

import functools
import math
import operator

from llvmlite import ir
from numba.core import cgutils

from compactla.checks import option
from compactla.cpu.emit import Code, check_fit, routine
from compactla.cpu.info import report
from compactla.cpu.kernels.jacobi import (
    Order,
    Rotation,
    Scaling,
    exchanged,
    matters,
    orthogonalize,
    rounding,
    rounds,
    scaling,
    scratch,
    squared,
    sweep,
)  # fmt: skip
from compactla.cpu.kernels.potrf import potrf
from compactla.cpu.simd import INDEX, Elements, index
from compactla.cpu.vectors import Flags, Lanes

LARGEST = {1: 8, 2: 6}  # of the sizes in registers, by the parts of a number
EXPONENT = {64: 480, 32: 48}  # of scaled matrices: their squares do not overflow, nor underflow before they must
FLOOR = 10  # A shift is larger than what makes a matrix definite by 2 ** -10 of its largest element, or more.


class Hermitian:
    """A Hermitian matrix of known size in registers, of which one triangle is kept."""

    def __init__(self, code: Code, vector, n):
        self.diagonal = code.registers(vector.reals, n)
        self.above = code.registers(vector, n, n)

    def __getitem__(self, ij):
        i, j = ij
        return self.above[i, j] if i < j else self.above[j, i].conjugate()

    def __setitem__(self, ij, x):
        i, j = ij
        self.above[min(ij), max(ij)] = x if i < j else x.conjugate()


def size_of(x: Lanes) -> Lanes:
    """The larger of |re| and |im|."""
    return abs(x.real).maximum(abs(x.imag)) if x.vector.is_complex else abs(x)


def in_registers(code: Code, A: Elements, w: Elements, lower: Elements, vectors: bool) -> Flags:
    """Two-sided Jacobi for a matrix of known size; returns flags of lanes without a result."""
    n, vector = A.n, A.vector
    a, V = Hermitian(code, vector, n), code.registers(vector, n, n)
    given = {(i, j): lower[i, j] for i in range(n) for j in range(i)}
    diagonal = [lower[i, i].real for i in range(n)]
    scale = scaling(functools.reduce(Lanes.maximum, map(size_of, [*given.values(), *diagonal])), exponent(A))
    for (i, j), x in given.items():
        a[i, j] = scale.scaled(x)
    for i, x in enumerate(diagonal):
        a.diagonal[i, 0] = scale.scaled(x)
        for j in range(n):
            V[i, j] = code.zero(vector).constant(i == j)
    tolerance = a.diagonal[0, 0].constant(rounding(vector))

    def turns(p, q):
        return matters(a.diagonal[p, 0], a.diagonal[q, 0], a[p, q], tolerance)

    def once(note):
        every = [turns(p, q) for together in rounds(n) for p, q in together]
        if not every:
            return
        note(functools.reduce(operator.or_, every))
        with code.builder.if_then(functools.reduce(operator.or_, every).any()):
            for together in rounds(n):
                triples = [(a.diagonal[p, 0], a.diagonal[q, 0], a[p, q]) for p, q in together]
                rotations = [Rotation(*x, turns(p, q)) for x, (p, q) in zip(triples, together, strict=True)]
                for (p, q), (x, y, between), rotation in zip(together, triples, rotations, strict=True):
                    a.diagonal[p, 0], a.diagonal[q, 0] = rotation.diagonal(x, y, between)
                    a[p, q] = rotation.turns.select(between.constant(0), between)
                    for r in range(n):
                        if r not in (p, q):
                            a[r, p], a[r, q] = rotation.turned(a[r, p], a[r, q])
                        if vectors:
                            V[r, p], V[r, q] = rotation.turned(V[r, p], V[r, q])

    failed = sweep(code, vector, once) | scale.unknown
    for end in range(n - 1, 0, -1):
        for i in range(end):
            swap = a.diagonal[i, 0] > a.diagonal[i + 1, 0]
            a.diagonal[i, 0], a.diagonal[i + 1, 0] = exchanged(swap, a.diagonal[i, 0], a.diagonal[i + 1, 0])
            for r in range(n if vectors else 0):
                V[r, i], V[r, i + 1] = exchanged(swap, V[r, i], V[r, i + 1])
    for i in range(n):
        w[i, 0] = result(scale.restored(a.diagonal[i, 0]), failed)
        for j in range(n if vectors else 0):
            A[i, j] = result(V[i, j], failed)
    return failed


def result(x: Lanes, failed: Flags) -> Lanes:
    """What is returned: NaN where there is no result; zeros are positive, whatever happened to them meanwhile."""
    return failed.select(x.constant(math.nan), x + x.constant(0))


def exponent(A):
    return EXPONENT[A.vector.real.bitwidth]


def in_memory(code: Code, A: Elements, w: Elements, lower: Elements, vectors: bool) -> Flags:
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
        largest[0, 0] = largest[0, 0].maximum(abs(w[i, 0]))
        with code.loop(i) as j:
            largest[0, 0] = largest[0, 0].maximum(size_of(lower[i, j]))
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
    b, n, V = code.builder, A.n, A.vector.lanes
    shift = code.registers(w.vector, 1)
    shift[0, 0] = code.zero(w.vector)
    info = scratch(code, INDEX, V)
    again = cgutils.alloca_once_value(b, ir.IntType(1)(1))
    with code.loop(2), b.if_then(b.load(again, typ=again.type.pointee)):
        with code.loop(n) as i:
            A[i, i] = w[i, 0] + shift[0, 0]
            with code.loop(i) as j:
                A[i, j] = A[j, i].conjugate()
        with code.loop(V) as lane:
            b.store(INDEX(0), b.gep(info, [lane], source_etype=INDEX))
        potrf.emit(code, A, info)
        entered = b.load(b.bitcast(info, ir.VectorType(INDEX, V).as_pointer()), align=8, typ=ir.VectorType(INDEX, V))
        failed = Flags(b, b.icmp_unsigned("!=", entered, entered.type(None)))
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
    if isinstance(A.n, int) and A.n <= LARGEST[len(A.vector.parts)]:
        if not A.n:
            return
        if ahead:
            code.fetch_ahead(ahead[:1], 1)
        for _ in code.rounds(1):
            failed = in_registers(code, A, w, lower, vectors)
    else:
        failed = in_memory(code, A, w, lower, vectors)
    report(code, [failed], info, index(A.n))
