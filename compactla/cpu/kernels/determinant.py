"""Determinants that neither overflow nor underflow, each as a number and a power of two, and logarithms of numbers."""

import math
from collections import namedtuple

from llvmlite import ir

from compactla.cpu.emit.code import Code
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.emit.vectors import Lanes, Vector
from compactla.cpu.kernels.laswp import integers

# Of log((1 + s) / (1 - s)) / s - 2 by powers of s^2, highest first: the coefficients of FreeBSD's e_log.c.
SERIES = (
    *(1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01, 2.222219843214978396e-01),
    *(2.857142874366239149e-01, 3.999999999940941908e-01, 6.666666666666735130e-01),
)
# By the bits of a real number: bits of its mantissa, the exponent of 1 as it is stored, and log(2) in two parts.
Form = namedtuple("Form", "mantissa one log2 rest")
FORMS = {
    64: Form(52, 1023, 6.93147180369123816490e-01, 1.90821492927058770002e-10),
    32: Form(23, 127, 6.9313812256e-01, 9.0580006145e-06),
}


def determinant(code: Code, LU: Elements, ipiv: Elements) -> tuple[Lanes, Lanes]:
    """Numbers and exponents of two, of the determinants of the matrices that getrf makes these factors of.

    The modulus of the numbers is at least 1, up to rounding, unless there are pivots that are zero or subnormal.
    """
    number, exponent = code.registers(LU.vector, 1), code.registers(ipiv.vector, 1)
    number[0, 0], exponent[0, 0] = code.zero(LU.vector).constant(1), code.zero(ipiv.vector)
    for q in code.each(LU.n):
        pivot, power = split(LU[q, q])
        pivot = (ipiv[q, 0] == code.broadcast(q, ipiv.vector)).select(pivot, -pivot)
        number[0, 0] = number[0, 0] * pivot
        exponent[0, 0] = exponent[0, 0] + power
    return number[0, 0], exponent[0, 0]


def split(x):
    """Numbers of which the larger part is at least 1 and less than 4, and exponents of two."""
    b, kind, form = x.builder, integers(x.vector), FORMS[x.vector.real.bitwidth]
    size = abs(x.real)
    if x.vector.is_complex:
        other = abs(x.imag)
        size = (size < other).select(other, size)
    bits = b.bitcast(size.parts[0], kind.part)
    stored = Lanes(b, kind, b.lshr(bits, ir.Constant(kind.part, [form.mantissa] * kind.lanes)))
    largest = stored.constant(2 * form.one - 1)
    exponent = (stored < largest).select(stored, largest) - stored.constant(form.one)
    return x * power_of_two(x.vector.reals, -exponent), exponent


def power_of_two(vector: Vector, exponent: Lanes) -> Lanes:
    """2^exponent, of one whose magnitude is less than that of the largest."""
    b, form = exponent.builder, FORMS[vector.real.bitwidth]
    stored = (exponent + exponent.constant(form.one)).parts[0]
    bits = b.shl(stored, ir.Constant(stored.type, [form.mantissa] * vector.lanes))
    return Lanes(b, vector, b.bitcast(bits, vector.part))


def scaled(x: Lanes, exponent: Lanes) -> Lanes:
    """x 2^exponent, of any exponent"""
    vector = x.vector.reals
    most = exponent.constant(FORMS[vector.real.bitwidth].one - 1)
    for _ in range(3):
        step = (exponent < most).select((exponent > -most).select(exponent, -most), most)
        x, exponent = x * power_of_two(vector, step), exponent - step
    return x


def log(x: Lanes, exponent: Lanes) -> Lanes:
    """The logarithm of x 2^exponent, for positive numbers x."""
    form = FORMS[x.vector.real.bitwidth]
    x, further = split(x)
    large = x > math.sqrt(2)
    x, one = large.select(x * x.constant(0.5), x), exponent.constant(1)
    exponent = exponent + further + large.select(one, one.constant(0))
    f = x - x.constant(1)
    s = f / (f + f.constant(2))
    square, half = s * s, f * f * f.constant(0.5)
    series, *terms = map(f.constant, SERIES)
    for term in terms:
        series = series.fma(square, term)
    e = exponent.astype(x.vector.dtype)
    small = s.fma(series.fma(square, half), e * e.constant(form.rest))
    return e.fma(e.constant(form.log2), f - (half - small))
