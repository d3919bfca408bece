"""expm: scaling and squaring, with the Pade approximant of order 13.

The powers of two are those of Al-Mohy and Higham, "A New Scaling and Squaring Algorithm for the Matrix Exponential",
SIAM J. Matrix Anal. Appl. 31 (2009), and differ from lane to lane, so that a matrix is not told by its neighbours how
it is computed.
"""

import functools
import math

from llvmlite import ir
from numba import types

from compactla.cpu.emit.index import value_of
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.emit.vectors import Lanes
from compactla.cpu.kernels.determinant import FORMS, power_of_two
from compactla.cpu.kernels.gemm import gemm
from compactla.cpu.kernels.getrf import getrf
from compactla.cpu.kernels.laswp import integers
from compactla.cpu.kernels.trsm import trsm

PADE = [math.factorial(26 - k) // (math.factorial(13 - k) * math.factorial(k)) for k in range(14)]
THETA = 4.25  # as large as norms may be
PLAIN = 5.3  # a norm up to which powers of |A| need not be looked at: THETA is below it
# log2 of the first term that the approximant lacks, of the power 27, over the unit of rounding.
MISSING = math.log2(math.factorial(13) ** 2 / (math.factorial(26) * math.factorial(27)) * 2**53)


def expm(code, vector, A, X, status):
    """X <- exp(A)"""
    n = A.n
    W, A2, A4, A6, T, U, V = (code.room(vector, n, n) for _ in range(7))
    # Powers of A, and s, by which it is halved so that the approximation is accurate; then powers of A / 2^s.
    A.read(W)
    status.check(W)
    product(code, W, W, A2)
    product(code, A2, A2, A4)
    product(code, A2, A4, A6)
    diagonal, triangular = code.room(vector, n, 1), is_triangular(code, W)
    for i in code.each(n):
        diagonal[i, 0] = W[i, i]
    s = scaling(code, W, A4, A6, T)
    half = power(s)
    square = half * half
    for P, factor in (W, half), (A2, square), (A4, square * square), (A6, square * square * square):
        fill(code, P, functools.partial(scaled, P, factor))
    # Pade's approximation, inv(V - T) (V + T) = 1 + 2 inv(V - T) T, with even powers in V and odd ones in T.
    polynomial(code, (A6, A4, A2), PADE[::-2], T, U)
    polynomial(code, (A6, A4, A2), PADE[-2::-2], T, V)
    product(code, W, U, T)
    both = code.room(vector, n, n + n)
    left, right = both.block(0, 0, n, n), both.block(0, n, n, n)
    fill(code, left, lambda i, j: V[i, j] - T[i, j])
    fill(code, right, lambda i, j: T[i, j] + T[i, j])
    getrf.emit(code, both, code.room(integers(vector), n, 1), status.info, left=False)
    trsm.emit(code, left, right, uplo="U")
    fill(code, W, lambda i, j: right[i, j])
    for i in code.each(n):
        W[i, i] = W[i, i] + code.zero(vector.reals).constant(1)
    exact(code, W, diagonal, half, triangular & (s > 0))
    # Square it s times, in each lane as often as it was halved; diagonals of triangular matrices are computed anew.
    with code.loop(most(code, s)) as t:
        product(code, W, W, T)
        flags = s > code.broadcast(t, s.vector)
        fill(code, W, lambda i, j: flags.select(T[i, j], W[i, j]))
        done = code.broadcast(t + 1, s.vector)
        exact(code, W, diagonal, power((s > done).select(s - done, s.constant(0))), triangular & flags)
    X.write(W)
    status.check(W)


def is_triangular(code, A):
    """Flags of the matrices that are triangular."""
    below = code.registers(A.vector.reals, 2)
    below[0, 0] = below[1, 0] = code.zero(A.vector.reals)
    with code.loop(A.m) as i, code.loop(i) as j:
        for side, x in enumerate((A[i, j], A[j, i])):
            below[side, 0] = below[side, 0] + x.abs1()
    return (below[0, 0] == 0) | (below[1, 0] == 0)


def exact(code, A, diagonal, factor, flags):
    """The diagonal of A <- exp(factor * diagonal) where flags are set: squares of it would be less accurate."""
    with code.when(flags.any(), likely=False), code.loop(A.m) as i:
        A[i, i] = flags.select(exponential(diagonal[i, 0] * factor), A[i, i])


def exponential(x):
    """exp(x)"""
    size = x.real._new(x._call("llvm.exp", x.parts[0]))
    if not x.vector.is_complex:
        return size
    return x._new(*(x._call(f"llvm.{name}", x.parts[1]) for name in ("cos", "sin"))) * size


def scaled(A, factor, i, j):
    return A[i, j] * factor


def product(code, A, B, C):
    """C <- A B, of contiguous square matrices: a function, since there are many."""
    vector, n = A.vector, A.n

    def body(code, a, b, c, size):
        size = n if isinstance(n, int) else size
        step = vector.lanes * len(vector.parts)
        rest = size, size, size * step, step, vector.lanes
        gemm.emit(code, *(Elements(code, vector, base, *rest) for base in (a, b, c)))

    given = A.base, B.base, C.base, value_of(n)
    name = f"compactla.expm.product.{vector}.{n if isinstance(n, int) else ''}"
    code.call(name, [x.type for x in given], body, *given, attributes=("noinline",))


def fill(code, A, element):
    """A[i, j] <- element(i, j)"""
    with code.loop(A.m) as i:
        for j in code.each(A.n):
            A[i, j] = element(i, j)


def polynomial(code, powers, factors, T, P):
    """P <- A^6 times a sum of A^6, A^4, A^2, and another of these and the identity; T is work space."""
    scales = [code.zero(P.vector.reals).constant(x) for x in factors]

    def combined(i, j, scales):
        x = powers[0][i, j] * scales[0]
        for A, scale in zip(powers[1:], scales[1:3], strict=True):
            x = A[i, j].fma(scale, x)
        return x

    fill(code, T, lambda i, j: combined(i, j, scales[:3]))
    product(code, powers[0], T, P)
    fill(code, P, lambda i, j: P[i, j] + combined(i, j, scales[3:]))
    for i in code.each(P.m):
        P[i, i] = P[i, i] + scales[-1]


def norm(code, A):
    """The largest sum of a column's absolute values."""
    real = A.vector.reals
    sums, largest = code.registers(real, 1), code.registers(real, 1)
    largest[0, 0] = code.zero(real)
    with code.loop(A.n) as j:
        sums[0, 0] = code.zero(real)
        with code.loop(A.m) as i:
            sums[0, 0] = sums[0, 0] + A[i, j].abs1()
        largest[0, 0] = largest[0, 0].maximum(sums[0, 0])
    return largest[0, 0]


def exponent(x):
    """The least e, as real numbers, with x < 2^e."""
    b, kind, form = x.builder, integers(x.vector), FORMS[x.vector.real.bitwidth]
    raw = b.lshr(b.bitcast(x.parts[0], kind.part), Lanes.zero(b, kind).constant(form.mantissa).parts[0])
    return Lanes(b, kind, raw).astype(x.vector.real) - x.constant(form.one - 1)


def power(s):
    """2^-s"""
    return power_of_two(s.vector, (-s).astype(integers(s.vector).dtype))


def over(e, divisor):
    """e / divisor, rounded up to integers from 0 on."""
    kind = types.int64 if e.vector.real.bitwidth == 64 else types.int32
    e = e.maximum(e.constant(0)) + e.constant(divisor - 1)
    return (e * e.constant(1 / divisor) + e.constant(1 / (2 * divisor))).astype(kind).astype(e.vector.real)


def halvings(code, P, p):
    """How often A is halved until the norm of A^p, which P is, is that of THETA^p."""
    return over(exponent(norm(code, P) * code.zero(P.vector.reals).constant(THETA**-p)), p)


def scaling(code, A, A4, A6, T):
    """How often A is halved: real numbers. T is work space."""
    h4, h6 = halvings(code, A4, 4), halvings(code, A6, 6)
    s = h4.maximum(h6)
    size, result = norm(code, A), code.registers(A.vector.reals, 1)
    most = size.constant(FORMS[A.vector.real.bitwidth].one - 1)
    result[0, 0] = s
    large = size * power(s) > PLAIN
    with code.when(large.any(), likely=False):
        product(code, A4, A4, T)
        h8 = halvings(code, T, 8)
        product(code, A4, A6, T)
        h10 = halvings(code, T, 10)
        s = s.minimum(h6.maximum(h8)).minimum(h8.maximum(h10))
        k = exponent(size)
        missing = over((k - s) * k.constant(26) + exponents_of_power(code, A, k), 26)
        result[0, 0] = large.select(s + missing, result[0, 0])
    return (result[0, 0] < most).select(result[0, 0], most)


def exponents_of_power(code, A, k):
    """log2 of || |A| / 2^k ||^27, with that of the term that the approximant lacks; low where it is zero."""
    real = A.vector.reals
    scale = power(k)
    v, w = code.room(real, A.n), code.room(real, A.n)
    with code.loop(A.n) as j:
        v[j, 0] = code.zero(real).constant(1)
    largest = code.registers(real, 1)
    with code.loop(27):
        largest[0, 0] = code.zero(real)
        with code.loop(A.n) as j:
            w[j, 0] = code.zero(real)
            with code.loop(A.m) as i:
                w[j, 0] = (A[i, j].abs1() * scale).fma(v[i, 0], w[j, 0])
            largest[0, 0] = largest[0, 0].maximum(w[j, 0])
        with code.loop(A.n) as j:
            v[j, 0] = w[j, 0]
    found = exponent(largest[0, 0]) + largest[0, 0].constant(math.ceil(MISSING) + 1)
    return (largest[0, 0] > 0).select(found, found.constant(-(2**20)))


def most(code, s):
    """The largest of V integers, as an index."""
    b, x = code.builder, s.astype(types.int64)
    lanes = [b.extract_element(x.parts[0], ir.IntType(32)(lane)) for lane in range(s.vector.lanes)]
    return functools.reduce(lambda largest, lane: code.max(lane, largest), map(code.index, lanes))
