"""Sums of squares and largest elements, and the powers of two that keep them from overflow and underflow."""

import math
from typing import NamedTuple

from llvmlite import ir

from compactla.cpu.emit.code import Code
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.emit.vectors import Flags, Lanes

# Sums of squares from 2**-RANGE to 2**RANGE are right; numbers whose squares leave it come back to it, or to where no
# square is lost, if they are multiplied or divided by 2**RANGE. By the bits of a real number.
RANGE = {32: 90, 64: 630}


def squared(x: Lanes) -> Lanes:
    """|x|^2, which is real."""
    return x.imag.fma(x.imag, x.real * x.real) if x.vector.is_complex else x * x


def add_squares(x: Lanes, total: Lanes) -> Lanes:
    """|x|^2 + total"""
    for part in (x.real, x.imag) if x.vector.is_complex else (x,):
        total = part.fma(part, total)
    return total


def is_right(squares: Lanes) -> Flags:
    """Flags of lanes where a sum of squares is in range."""
    limit = 2.0 ** RANGE[squares.vector.real.bitwidth]
    return (squares >= 1 / limit) & (squares <= limit)


def into_range(squares: Lanes) -> tuple[Lanes, Lanes]:
    """The factor that brings numbers with this sum of squares into range, and its inverse."""
    limit = 2.0 ** RANGE[squares.vector.real.bitwidth]
    one, up, down = (squares.constant(number) for number in (1, limit, 1 / limit))
    less, more = squares < 1 / limit, squares > limit
    return less.select(up, more.select(down, one)), less.select(down, more.select(up, one))


def largest(code: Code, A: Elements) -> Lanes:
    """The largest |re| + |im| of all elements; NaN counts as nothing."""
    found = code.registers(A.vector.reals, 1)
    found[0, 0] = code.zero(A.vector.reals)
    with code.loop(A.m) as i, code.loop(A.n) as j:
        size = A[i, j].abs1()
        found[0, 0] = (size > found[0, 0]).select(size, found[0, 0])
    return found[0, 0]


def larger(x: Lanes, y: Lanes) -> Lanes:
    """The larger |re| or |im| of two numbers, of which the first may be what this returns; NaN where one is.

    The bits of numbers that are not negative are in the order of the numbers, and NaN is above all.
    """
    b = x.builder
    kind = ir.VectorType(ir.IntType(x.vector.real.bitwidth), x.vector.lanes)
    for part in (y.real, y.imag) if y.vector.is_complex else (y,):
        first, second = (b.bitcast(z.parts[0], kind) for z in (x, abs(part)))
        largest = b.select(b.icmp_signed(">", first, second), first, second)
        x = x._new(b.bitcast(largest, x.vector.part))
    return x


class Scaling(NamedTuple):
    """Powers of two, each as two factors, since one alone may overflow."""

    up: tuple[Lanes, Lanes]
    down: tuple[Lanes, Lanes]
    unknown: Flags  # lanes that hold NaN or infinities, and are made NaN

    def scaled(self, x: Lanes) -> Lanes:
        return x * self.up[0] * self.up[1]

    def restored(self, x: Lanes) -> Lanes:
        return x * self.down[0] * self.down[1]


def quotient(of_matrix: Scaling, of_right: Scaling) -> list[Lanes]:
    """Factors that restore solutions; after the first one, numbers are in the middle between those before and after."""
    return [up * down for up, down in zip(of_matrix.up, of_right.down, strict=True)]


def power_below(x: Lanes) -> Lanes:
    """The largest power of two that is not above x, of normal numbers that are positive."""
    b, kind = x.builder, ir.VectorType(ir.IntType(x.vector.real.bitwidth), x.vector.lanes)
    exponents = 0x7FF << 52 if x.vector.real.bitwidth == 64 else 0xFF << 23
    mask = ir.Constant(kind, [exponents] * x.vector.lanes)
    return x._new(b.bitcast(b.and_(b.bitcast(x.parts[0], kind), mask), x.vector.part))


def scaling(largest: Lanes, exponent: int) -> Scaling:
    """Factors that make numbers of which this is the largest as large as 2 ** exponent; NaN where it is not finite."""
    b, part, bits = largest.builder, largest.vector.part, largest.vector.real.bitwidth
    digits = 52 if bits == 64 else 23
    bias = (1 << (bits - digits - 2)) - 1
    kind = ir.VectorType(ir.IntType(bits), part.count)

    def constant(x):
        return ir.Constant(kind, [x] * part.count)

    def power(exponents):
        shifted = b.shl(b.add(exponents, constant(bias)), constant(digits))
        return largest._new(b.bitcast(shifted, part))

    subnormal = largest < 2.0 ** (1 - bias)
    normal = subnormal.select(largest * largest.constant(2.0**digits), largest)
    stored = b.lshr(b.bitcast(normal.parts[0], kind), constant(digits))
    stored = b.select(subnormal.value, b.sub(stored, constant(digits)), stored)
    total = b.sub(constant(exponent + bias), stored)
    halves = b.ashr(total, constant(1))
    halves = halves, b.sub(total, halves)
    up, down = ([power(x if sign > 0 else b.neg(x)) for x in halves] for sign in (1, -1))
    finite = largest < math.inf
    up[0] = finite.select(up[0], up[0].constant(math.nan))
    return Scaling(tuple(up), tuple(down), ~finite)
