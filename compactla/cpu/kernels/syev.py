"""syev at the pack level: Jacobi's method, two-sided for small sizes, and one-sided for others.

Others are first factored, A + shift = L L^H, where the shift is 0 for matrices that are positive definite, and then the
columns of L are made orthogonal: their lengths are the roots of the eigenvalues, and their directions eigenvectors. So
A is all the memory that this takes, and positive definite matrices keep the digits of their small eigenvalues.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from compactla.checks import option
from compactla.cpu.emit.code import Code, check_fit, routine
from compactla.cpu.emit.failures import report
from compactla.cpu.emit.index import Condition, IntOrIndex
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.emit.vectors import Flags, Lanes, Vector
from compactla.cpu.kernels.jacobi import Order, orthogonalize
from compactla.cpu.kernels.norms import Scaling, larger, scaling, squared
from compactla.cpu.kernels.potrf import potrf
from compactla.cpu.kernels.twosided import TwoSided, exponent, result

LARGEST = 16  # of those that are turned from both sides
FLOOR = 10  # A shift is larger than what makes a matrix definite by 2 ** -10 of its largest element, or more.


def one_sided(code: Code, A: Elements, w: Elements, lower: Elements, vectors: bool) -> Flags:
    """Solve by one-sided Jacobi on the factor of a positive definite matrix; returns flags of lanes that failed."""
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
    with code.loop(2), code.when(Condition(b, b.load(again, typ=again.type.pointee))):
        with code.loop(n) as i:
            A[i, i] = w[i, 0] + shift[0, 0]
            with code.loop(i) as j:
                A[i, j] = A[j, i].conjugate()
        info[0, 0] = code.zero(info.vector)
        potrf.emit(code, A, info.base)
        failed = info[0, 0] != 0
        b.store(failed.any().value, again)
        with code.when(failed.any()):
            least = code.registers(w.vector, 2)
            least[1, 0] = code.zero(w.vector)
            with code.loop(n) as i:
                least[0, 0] = -w[i, 0]
                with code.loop(n) as j, code.when(i != j):
                    above = i < j
                    least[0, 0] = least[0, 0] + A[above.select(i, j), above.select(j, i)].abs1()
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
    A : matrix, or tuple of matrices
        n x n, from `matrix`; only one triangle is read, and the real part of the diagonal. Several packs of one size
        are worked on side by side, which is faster for small ones.
    w : matrix, or tuple of matrices
        n x 1, real: the eigenvalues, ascending.
    info : array of V int64, or of V for each pack
        Set to n for matrices with NaN or infinities, and those whose iteration did not end, whose results are NaN;
        otherwise left alone.
    uplo : str
        Which triangle: the constant "L" or "U".
    jobz : str
        The constant "V"; or "N", where A holds anything afterwards.
    ahead : tuple of matrices
        Of one known size, and contiguous: they are fetched into the cache meanwhile, where A is small.
    """
    upper = option("uplo", uplo, "LU") == "U"
    vectors = option("jobz", jobz, "NV") == "V"
    given = [(A, w)] if isinstance(A, Elements) else list(zip(A, w, strict=True))
    for X, values in given:
        check_fit("A", (X.m, X.n), (given[0][0].n, given[0][0].n))
        check_fit("w", (values.m, values.n), (X.n, 1))
    n = given[0][0].n
    if isinstance(n, int) and n <= LARGEST:
        if ahead:
            code.fetch_ahead(ahead, 1)
        for _ in code.rounds(min(n, 1)):  # which may be a loop: what it finds is not known behind it
            packs = [TwoSided(code, X, values, X.H if upper else X, vectors) for X, values in given]
            TwoSided.run(code, packs)
            enter(code, info, n, [pack.finish() for pack in packs])
        return
    enter(code, info, n, [one_sided(code, X, values, X.H if upper else X, vectors) for X, values in given])


def enter(code: Code, info: Any, n: IntOrIndex, failed: list[Flags]) -> None:
    """Enter n for lanes of each pack that failed."""
    for t, flags in enumerate(failed):
        report(code, [flags], code.address(info, t * flags.mask.lanes), n)
