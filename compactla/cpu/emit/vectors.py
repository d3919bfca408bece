"""The lane types: V numbers, or V truth values, as one value, and what is computed with them.

`Vector(float64, 8)` is LLVM's ``<8 x double>``, its complex twin a pair of them, and `Vector(int64, 8)` ``<8 x i64>``;
`Mask(8)`, ``<8 x i1>``, says yes or no for each lane. `Lanes` and `Flags` are the same while code is emitted;
`compactla.cpu.emit.numba_vectors` is what Numba functions use.
"""

import functools
import math
import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import models, register_model

from compactla.cpu.emit import choices
from compactla.cpu.emit.index import Condition, once
from compactla.cpu.emit.machine import machine

FLOATS = {types.float32: ir.FloatType(), types.float64: ir.DoubleType()}


class Vector(types.Type):
    """V real numbers, or V complex numbers as real and imaginary parts, or V integers."""

    def __init__(self, dtype: Any, lanes: int) -> None:
        self.dtype, self.lanes = dtype, lanes
        self.is_complex = isinstance(dtype, types.Complex)
        self.is_integer = isinstance(dtype, types.Integer)
        self.real = dtype.underlying_float if self.is_complex else dtype
        self.parts = ("re", "im") if self.is_complex else ("re",)
        super().__init__(name=f"Vector({dtype}, {lanes})")

    @property
    def part(self) -> ir.VectorType:
        """LLVM type of the V integers, or real (or imaginary) parts."""
        return _part(self)

    @property
    def reals(self) -> "Vector":
        """The vector of its real (or imaginary) parts."""
        return Vector(self.real, self.lanes)

    @property
    def twin(self) -> "Vector":
        """The complex vector of such parts."""
        return Vector(types.complex128 if self.real.bitwidth == 64 else types.complex64, self.lanes)


@functools.cache
def _part(vector):
    return ir.VectorType(FLOATS.get(vector.real) or ir.IntType(vector.real.bitwidth), vector.lanes)


@functools.cache
def _filled(vector, number):
    """A constant with the number, as Python writes it, in every lane."""
    x = (int if vector.is_integer else float)(number)
    return ir.Constant(vector.part, None if number in ("0", "0.0") else [x] * vector.lanes)


@register_model(Vector)
class VectorModel(models.PrimitiveModel):
    def __init__(self, dmm, vector):
        part = vector.part
        super().__init__(dmm, vector, ir.LiteralStructType([part, part]) if vector.is_complex else part)


class Mask(types.Type):
    """Yes or no for each of V lanes."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        super().__init__(name=f"Mask({lanes})")


@register_model(Mask)
class MaskModel(models.PrimitiveModel):
    def __init__(self, dmm, mask):
        super().__init__(dmm, mask, ir.VectorType(ir.IntType(1), mask.lanes))


class Flags(Condition):
    """A `Mask` while code is emitted: a condition for each lane."""

    @property
    def mask(self) -> Mask:
        """The type of the flags."""
        return Mask(self.value.type.count)

    @property
    def bits(self) -> Any:
        """The mask as an integer: bit k is that of lane k."""
        return self.builder.bitcast(self.value, ir.IntType(self.value.type.count))

    def __bool__(self):
        raise TypeError("mask is not known while code is emitted, must be asked by any() or all()")

    def any(self) -> Condition:
        """Whether a lane is set."""
        return Condition(self.builder, self.builder.icmp_unsigned("!=", self.bits, self.bits.type(0)))

    def all(self) -> Condition:
        """Whether all lanes are set."""
        return Condition(self.builder, self.builder.icmp_unsigned("==", self.bits, self.bits.type(-1)))

    def select(self, a: Any, b: Any) -> Any:
        """The lanes of `a` where the mask is set, else those of `b`."""
        a, b = alike(a, b)
        if a.vector.lanes != self.value.type.count:
            raise TypeError(f"mask is {self.mask}, must have the {a.vector.lanes} lanes of what it selects from")
        return super().select(a, b)


def alike(*lanes):
    """Lanes of one type: real ones become complex if there are complex ones."""
    model = next((x for x in lanes if x.vector.is_complex), None)
    if model is None or all(x.vector.is_complex for x in lanes):
        return lanes
    zero = model.constant(0).parts[1]
    return [x if x.vector.is_complex else model._new(x.parts[0], zero) for x in lanes]


class Lanes:
    """A `Vector` while code is emitted, with its arithmetic."""

    def __init__(self, builder: ir.IRBuilder, vector: Vector, *parts: Any) -> None:
        self.builder, self.vector, self.parts = builder, vector, parts

    @classmethod
    def unwrap(cls, builder: ir.IRBuilder, vector: Vector, value: Any) -> "Lanes":
        if not vector.is_complex:
            return cls(builder, vector, value)
        return cls(builder, vector, *(builder.extract_value(value, i) for i in range(2)))

    def wrap(self) -> Any:
        if not self.vector.is_complex:
            return self.parts[0]
        pair = ir.Constant(ir.LiteralStructType([self.vector.part] * 2), ir.Undefined)
        for i, part in enumerate(self.parts):
            pair = self.builder.insert_value(pair, part, i)
        return pair

    def _new(self, *parts):
        return Lanes(self.builder, self.vector, *parts)

    @classmethod
    def zero(cls, builder: ir.IRBuilder, vector: Vector) -> "Lanes":
        return cls(builder, vector, *[None] * len(vector.parts)).constant(0)

    def constant(self, x: Any) -> "Lanes":
        """The real number `x` in every lane."""
        number = int if self.vector.is_integer else float
        return self._new(*(_filled(self.vector, repr(number(value))) for value in (x, 0)[: len(self.parts)]))

    @property
    def real(self) -> "Lanes":
        return Lanes(self.builder, self.vector.reals, self.parts[0])

    @property
    def imag(self) -> "Lanes":
        return Lanes(self.builder, self.vector.reals, self.parts[1]) if self.vector.is_complex else self.constant(0)

    def __add__(self, other):
        return self._each("add", *alike(self, other))

    def __sub__(self, other):
        return self._each("sub", *alike(self, other))

    def __neg__(self):
        return self._each("neg", self) if self.vector.is_integer else self._new(*map(self._negative, self.parts))

    def __mul__(self, other):
        if not (self.vector.is_complex and other.vector.is_complex):
            scaled, scale = self._scaled(other)
            return scaled._new(*(self._instruction("mul")(part, scale) for part in scaled.parts))
        multiply = self.builder.fmul
        (a, b), (c, d) = self.parts, other.parts
        negative = self._negative(b)
        return self._new(self._fma(negative, d, multiply(a, c)), self._fma(b, c, multiply(a, d)))

    def __truediv__(self, other):
        self._check_floats()
        if not other.vector.is_complex:
            return self._new(*(self.builder.fdiv(part, other.parts[0]) for part in self.parts))
        return self * other.reciprocal()

    def fma(self, other: "Lanes", addend: "Lanes") -> "Lanes":
        """self * other + addend"""
        self._check_floats()
        if not (self.vector.is_complex and other.vector.is_complex):
            scaled, scale = self._scaled(other)
            scaled, addend = alike(scaled, addend)
            return scaled._new(*(self._fma(x, scale, y) for x, y in zip(scaled.parts, addend.parts, strict=True)))
        (a, b), (c, d), (re, im) = self.parts, other.parts, alike(self, addend)[1].parts
        negative = self._negative(b)
        return self._new(
            self._fma(negative, d, self._fma(a, c, re)),
            self._fma(b, c, self._fma(a, d, im)),
        )

    def _scaled(self, other):
        """Sort two factors: lanes that are complex, if any are, and the real numbers to multiply them with."""
        scaled, scale = (other, self) if other.vector.is_complex else (self, other)
        return scaled, scale.parts[0]

    def with_imag(self, imag: "Lanes") -> "Lanes":
        """Complex numbers of real ones, and their imaginary parts."""
        return Lanes(self.builder, self.vector.twin, self.parts[0], imag.parts[0])

    def conjugate(self) -> "Lanes":
        if not self.vector.is_complex:
            return self
        return self._new(self.parts[0], self._negative(self.parts[1]))

    def reciprocal(self, many: bool = False, regular: bool = False) -> "Lanes":
        """1 / self; complex numbers are scaled first, so that their squares cannot overflow.

        With `many` independent ones at a time Newton's iteration is faster than the machine's division, where there is
        an estimate to start from and the CPU does not divide as fast. It may be NaN for zeros and infinities where
        `regular` says that there are none, of real numbers.
        """
        b = self.builder
        if not self.vector.is_complex:
            return self._new(self._inverse(self.parts[0], many, regular))
        absolute = [self._call("llvm.fabs", part) for part in self.parts]
        largest = b.select(b.fcmp_ordered(">", *absolute), *absolute)
        scale = self._inverse(largest, many)
        re, im = (b.fmul(part, scale) for part in self.parts)
        factor = b.fmul(scale, self._inverse(self._fma(re, re, b.fmul(im, im)), many))
        return self._new(b.fmul(re, factor), b.fneg(b.fmul(im, factor)))

    def _inverse(self, x, many, regular=False):
        b, one = self.builder, self.real.constant(1).parts[0]
        rcp14 = self._estimate("rcp14") if many and not choices.divides(self.vector.real.bitwidth) else None
        if rcp14 is None:
            return b.fdiv(one, x)
        estimate = result = rcp14(x)
        for _ in range(2 if self.vector.real.bitwidth == 64 else 1):
            result = self._fma(result, self._fma(b.fneg(x), result, one), result)
        if regular:
            return result
        undefined = b.fcmp_unordered("uno", result, result)
        return b.select(undefined, estimate, result)  # which is right for zeros and infinities

    def sqrt(self) -> "Lanes":
        """The square root of real numbers; NaN for negative ones."""
        self._check_floats(real=True)
        return self._new(self._call("llvm.sqrt", self.parts[0]))

    def rsqrt(self, factor: "Lanes | None" = None, regular: bool = False) -> "Lanes":
        """1 / sqrt(self) of real numbers, or `factor` / sqrt(self), to 2 units in the last place; NaN if negative.

        Where there is an estimate to start from, a few terms of a series are faster than the machine's root and
        division. A factor that is given waits for less of them than one that is multiplied with the result. It may be
        NaN for zeros and infinities where `regular` says that there are none.
        """
        self._check_floats(real=True)
        one, rsqrt14 = self.constant(1), self._estimate("rsqrt14")
        if rsqrt14 is None:
            inverse = one / self.sqrt()
            return inverse if factor is None else factor * inverse
        estimate = self._new(rsqrt14(self.parts[0]))
        error = (-(self * estimate)).fma(estimate, one)
        terms = [5 / 16, 3 / 8, 1 / 2] if self.vector.real.bitwidth == 64 else [3 / 8, 1 / 2]
        series, *others = map(self.constant, terms)
        for term in others:
            series = series.fma(error, term)
        start = estimate if factor is None else factor * estimate
        refined = (start * error).fma(series, start)
        if regular:
            return refined
        return ((self > 0) & (self < math.inf)).select(refined, start)  # which is right for zeros and infinities

    @property
    def is_estimated(self) -> bool:
        """Whether `rsqrt` starts from an estimate, and is faster where numbers are `regular`."""
        return self._estimate("rsqrt14") is not None

    def _estimate(self, name):
        """The machine's function of V real numbers, of which it gets 14 bits right; None where it has none."""
        kind, b, count = self.vector.part, self.builder, 512 // self.vector.real.bitwidth
        if machine()[0] != 64 or kind.count not in (count, 2 * count):
            return None
        register, mask = ir.VectorType(kind.element, count), ir.IntType(count)
        name = f"llvm.x86.avx512.{name}.p{'d' if count == 8 else 's'}.512"
        estimate = cgutils.get_or_insert_function(b.module, ir.FunctionType(register, [register, register, mask]), name)

        def cut(x, y, i, k):
            return b.shuffle_vector(x, y, ir.Constant(ir.VectorType(ir.IntType(32), k - i), [*range(i, k)]))

        def of(x):
            starts = range(0, kind.count, count)
            found = [b.call(estimate, [cut(x, x, k, k + count), ir.Constant(register, None), mask(-1)]) for k in starts]
            return cut(found[0], found[-1], 0, kind.count)

        return of

    def __abs__(self):
        """|self|, which is real; of complex numbers it is scaled so that no square overflows."""
        if self.vector.is_integer:
            return (self < 0).select(-self, self)
        if not self.vector.is_complex:
            return self._new(self._call("llvm.fabs", self.parts[0]))
        re, im = abs(self.real), abs(self.imag)
        swapped = im > re
        large, small = swapped.select(im, re), swapped.select(re, im)
        one, infinity = (re.constant(x) for x in (1, math.inf))
        slope = small / (large == 0).select(one, large)
        modulus = large * slope.fma(slope, one).sqrt()
        return ((re == infinity) | (im == infinity)).select(infinity, modulus)

    def abs1(self) -> "Lanes":
        """|re| + |im|, which is real."""
        return abs(self.real) + abs(self.imag) if self.vector.is_complex else abs(self)

    def copysign(self, other: "Lanes") -> "Lanes":
        """Real numbers with the signs of others."""
        self._check_floats(real=True)
        other._check_floats(real=True)
        return self._new(self._call("llvm.copysign", self.parts[0], other.parts[0]))

    def minimum(self, other: "Lanes") -> "Lanes":
        """The smaller of two real numbers; NaN where one is."""
        return (self != self).select(self, (self < other).select(self, other))

    def maximum(self, other: "Lanes") -> "Lanes":
        """The larger of two real numbers; NaN where one is."""
        return (self != self).select(self, (self > other).select(self, other))

    def __eq__(self, other):
        return self._compare("==", other)

    def is_zero_or_nan(self) -> Flags:
        """Flags of zeros and NaNs; of complex numbers, where both parts are one of them."""
        zero = self.real.constant(0).parts[0]
        flags = [Flags(self.builder, self.builder.fcmp_unordered("==", x, zero)) for x in self.parts]
        return functools.reduce(operator.and_, flags)

    def __ne__(self, other):
        return ~(self == other)

    def __lt__(self, other):
        return self._compare("<", other)

    def __le__(self, other):
        return self._compare("<=", other)

    def __gt__(self, other):
        return self._compare(">", other)

    def __ge__(self, other):
        return self._compare(">=", other)

    def _compare(self, relation, other):
        """Flags of the lanes where it holds, which it never does for NaN; `other` may be a Python number."""
        a, b = alike(self, other if isinstance(other, Lanes) else self.constant(other))
        if a.vector.is_complex and relation != "==":
            raise TypeError(f"operands of {relation} are {self.vector} and {other.vector}, must be real")
        compare = self.builder.icmp_signed if a.vector.is_integer else self.builder.fcmp_ordered
        flags = [Flags(self.builder, compare(relation, x, y)) for x, y in zip(a.parts, b.parts, strict=True)]
        return functools.reduce(operator.and_, flags)

    def astype(self, dtype: Any) -> "Lanes":
        """The numbers in another of Numba's types; integers from real numbers are cut towards zero.

        Integers of what is too large for them are the largest there are, those of NaN are 0.
        """
        target = Vector(dtype, self.vector.lanes)
        if self.vector.is_complex and not target.is_complex:
            raise TypeError(f"dtype is {dtype}, must be complex as {self.vector} is: take x.real or x.imag")
        parts = [self._converted(part, target) for part in self.parts]
        zero = Lanes.zero(self.builder, target)
        return zero._new(*parts, *zero.parts[len(parts) :])

    def _converted(self, part, target):
        """Numbers of one part in the type of the parts of `target`."""
        b, kind = self.builder, target.part
        if part.type == kind:
            return part
        wider = target.real.bitwidth > self.vector.real.bitwidth
        if self.vector.is_integer and target.is_integer:
            return b.sext(part, kind) if wider else b.trunc(part, kind)
        if self.vector.is_integer:
            return b.sitofp(part, kind)
        if not target.is_integer:
            return b.fpext(part, kind) if wider else b.fptrunc(part, kind)
        suffix = f"v{kind.count}i{kind.element.width}.v{kind.count}f{self.vector.real.bitwidth}"
        function = ir.FunctionType(kind, [part.type])
        return b.call(cgutils.get_or_insert_function(b.module, function, f"llvm.fptosi.sat.{suffix}"), [part])

    def _check_floats(self, real=False):
        if self.vector.is_integer or (real and self.vector.is_complex):
            raise TypeError(f"x is {self.vector}, must be of {'real' if real else 'real or complex'} numbers")

    def _instruction(self, name):
        return getattr(self.builder, name if self.vector.is_integer else f"f{name}")

    def _each(self, name, *operands):
        """Apply an instruction to every part of lanes of one type."""
        return operands[0]._new(*map(self._instruction(name), *(x.parts for x in operands)))

    def _negative(self, x):
        """-x; x itself of what is one already."""
        if isinstance(x, ir.Instruction) and x.opname == "fneg":
            return x.operands[0]
        return once(self.builder, ("fneg", x), lambda: self.builder.fneg(x))

    def _fma(self, a, b, c):
        # fmuladd, unlike fma, becomes a multiplication and an addition on machines without the instruction.
        return self._call("llvm.fmuladd", a, b, c)

    def _call(self, name, *args):
        part = self.vector.part
        suffix = f"v{self.vector.lanes}f{self.vector.real.bitwidth}"
        kind = ir.FunctionType(part, [part] * len(args))
        return self.builder.call(cgutils.get_or_insert_function(self.builder.module, kind, f"{name}.{suffix}"), args)
