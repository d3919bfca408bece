"""The lane type: V numbers, real or complex, as one value.

`Vector(float64, 8)` is LLVM's ``<8 x double>``, and its complex twin a pair of them; `Mask(8)` says yes or no for each
lane. `Matrix` is a matrix of vectors in memory: one pack, or a view of it. `Lanes`, `Flags` and `Elements` are the same
three things while code is emitted, and hold what there is of arithmetic and addresses; `compactla.cpu.lanes` is what
Numba functions use.
"""

import functools
import math
import operator

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.extending import models, register_model

INDEX = ir.IntType(64)
TALLEST = 6
# LLVM types of numbers in memory that are computed with as wider ones; those of bfloat16 have no type of their own.
HALF, BFLOAT = ir.HalfType(), ir.IntType(16)
STORED = {"float32": ir.FloatType(), "float16": HALF, "bfloat16": BFLOAT}


def index(x):
    """LLVM value of an index; Python integers are those known when the code is emitted."""
    return ir.Constant(INDEX, x) if isinstance(x, int) else x


class Vector(types.Type):
    """V real numbers, or V complex numbers as real and imaginary parts."""

    def __init__(self, dtype, lanes):
        self.dtype, self.lanes = dtype, lanes
        self.is_complex = isinstance(dtype, types.Complex)
        self.real = dtype.underlying_float if self.is_complex else dtype
        self.parts = ("re", "im") if self.is_complex else ("re",)
        super().__init__(name=f"Vector({dtype}, {lanes})")

    @property
    def part(self):
        """LLVM type of the V real (or imaginary) parts."""
        return ir.VectorType(ir.DoubleType() if self.real == types.float64 else ir.FloatType(), self.lanes)

    @property
    def reals(self):
        """The vector of its real (or imaginary) parts."""
        return Vector(self.real, self.lanes)


@register_model(Vector)
class VectorModel(models.PrimitiveModel):
    def __init__(self, dmm, vector):
        part = vector.part
        super().__init__(dmm, vector, ir.LiteralStructType([part, part]) if vector.is_complex else part)


class Mask(types.Type):
    """Yes or no for each of V lanes."""

    def __init__(self, lanes):
        self.lanes = lanes
        super().__init__(name=f"Mask({lanes})")


@register_model(Mask)
class MaskModel(models.PrimitiveModel):
    def __init__(self, dmm, mask):
        super().__init__(dmm, mask, ir.VectorType(ir.IntType(1), mask.lanes))


class Flags:
    """A `Mask` while code is emitted."""

    def __init__(self, builder, value):
        self.builder, self.value = builder, value

    @property
    def bits(self):
        """The mask as an integer: bit k is that of lane k."""
        return self.builder.bitcast(self.value, ir.IntType(self.value.type.count))

    def __and__(self, other):
        return Flags(self.builder, self.builder.and_(self.value, other.value))

    def __or__(self, other):
        return Flags(self.builder, self.builder.or_(self.value, other.value))

    def __invert__(self):
        return Flags(self.builder, self.builder.not_(self.value))

    def __bool__(self):
        raise TypeError("mask is not known while code is emitted, must be asked by any() or all()")

    def any(self):
        """Whether a lane is set, as LLVM's i1."""
        return self.builder.icmp_unsigned("!=", self.bits, self.bits.type(0))

    def all(self):
        """Whether all lanes are set, as LLVM's i1."""
        return self.builder.icmp_unsigned("==", self.bits, self.bits.type(-1))

    def select(self, a, b):
        """The lanes of `a` where the mask is set, else those of `b`."""
        a, b = alike(a, b)
        return a._new(*(self.builder.select(self.value, x, y) for x, y in zip(a.parts, b.parts, strict=True)))


def alike(*lanes):
    """Lanes of one type: real ones become complex if there are complex ones."""
    complex_ones = [x for x in lanes if x.vector.is_complex]
    if not complex_ones:
        return lanes
    zero = complex_ones[0].constant(0).parts[1]
    return [x if x.vector.is_complex else complex_ones[0]._new(x.parts[0], zero) for x in lanes]


class Lanes:
    """A `Vector` while code is emitted, with its arithmetic."""

    def __init__(self, builder, vector, *parts):
        self.builder, self.vector, self.parts = builder, vector, parts

    @classmethod
    def unwrap(cls, builder, vector, value):
        if not vector.is_complex:
            return cls(builder, vector, value)
        return cls(builder, vector, *(builder.extract_value(value, i) for i in range(2)))

    def wrap(self):
        if not self.vector.is_complex:
            return self.parts[0]
        pair = ir.Constant(ir.LiteralStructType([self.vector.part] * 2), ir.Undefined)
        for i, part in enumerate(self.parts):
            pair = self.builder.insert_value(pair, part, i)
        return pair

    def _new(self, *parts):
        return Lanes(self.builder, self.vector, *parts)

    @classmethod
    def zero(cls, builder, vector):
        return cls(builder, vector, *[None] * len(vector.parts)).constant(0)

    def constant(self, x):
        """The real number `x` in every lane."""
        fill = [ir.Constant(self.vector.part, [value] * self.vector.lanes) for value in (float(x), 0.0)]
        return self._new(*fill[: len(self.parts)])

    def __add__(self, other):
        a, b = alike(self, other)
        return a._new(*map(self.builder.fadd, a.parts, b.parts))

    def __sub__(self, other):
        a, b = alike(self, other)
        return a._new(*map(self.builder.fsub, a.parts, b.parts))

    def __neg__(self):
        return self._new(*map(self.builder.fneg, self.parts))

    def __mul__(self, other):
        multiply = self.builder.fmul
        if not (self.vector.is_complex and other.vector.is_complex):
            scaled, scale = (other, self) if other.vector.is_complex else (self, other)
            return scaled._new(*(multiply(part, scale.parts[0]) for part in scaled.parts))
        (a, b), (c, d) = self.parts, other.parts
        negative = self.builder.fneg(b)
        return self._new(self._fma(negative, d, multiply(a, c)), self._fma(b, c, multiply(a, d)))

    def __truediv__(self, other):
        if not other.vector.is_complex:
            return self._new(*(self.builder.fdiv(part, other.parts[0]) for part in self.parts))
        return self * other.reciprocal()

    def conjugate(self):
        if not self.vector.is_complex:
            return self
        return self._new(self.parts[0], self.builder.fneg(self.parts[1]))

    def reciprocal(self, many=False):
        """1 / self; complex numbers are scaled first, so that their squares cannot overflow.

        With `many` independent ones at a time Newton's iteration is faster than the machine's division, where there is
        an estimate to start from.
        """
        b = self.builder
        if not self.vector.is_complex:
            return self._new(self._inverse(self.parts[0], many))
        absolute = [self._call("llvm.fabs", part) for part in self.parts]
        largest = b.select(b.fcmp_ordered(">", *absolute), *absolute)
        scale = self._inverse(largest, many)
        re, im = (b.fmul(part, scale) for part in self.parts)
        factor = b.fmul(scale, self._inverse(self._fma(re, re, b.fmul(im, im)), many))
        return self._new(b.fmul(re, factor), b.fneg(b.fmul(im, factor)))

    def _inverse(self, x, many):
        b, one = self.builder, self.real.constant(1).parts[0]
        rcp14 = self._estimate("rcp14") if many else None
        if rcp14 is None:
            return b.fdiv(one, x)
        estimate = result = rcp14(x)
        for _ in range(2 if self.vector.real.bitwidth == 64 else 1):
            result = self._fma(result, self._fma(b.fneg(x), result, one), result)
        undefined = b.fcmp_unordered("uno", result, result)
        return b.select(undefined, estimate, result)  # which is right for zeros and infinities

    def _estimate(self, name):
        """The machine's function of V real numbers, of which it gets 14 bits right; None where it has none."""
        kind, bits = self.vector.part, self.vector.real.bitwidth
        if machine()[0] != 64 or kind.count * bits != 512:
            return None
        mask = ir.IntType(kind.count)
        name = f"llvm.x86.avx512.{name}.p{'d' if bits == 64 else 's'}.512"
        function = ir.FunctionType(kind, [kind, kind, mask])
        estimate = cgutils.get_or_insert_function(self.builder.module, function, name)
        zero = self.real.constant(0).parts[0]
        return lambda x: self.builder.call(estimate, [x, zero, mask(-1)])

    def fma(self, other, addend):
        """self * other + addend"""
        if not (self.vector.is_complex and other.vector.is_complex):
            scaled, scale = (other, self) if other.vector.is_complex else (self, other)
            scaled, addend = alike(scaled, addend)
            products = (self._fma(x, scale.parts[0], y) for x, y in zip(scaled.parts, addend.parts, strict=True))
            return scaled._new(*products)
        (a, b), (c, d), (re, im) = self.parts, other.parts, addend.parts
        negative = self.builder.fneg(b)
        return self._new(
            self._fma(negative, d, self._fma(a, c, re)),
            self._fma(b, c, self._fma(a, d, im)),
        )

    @property
    def real(self):
        return Lanes(self.builder, self.vector.reals, self.parts[0])

    @property
    def imag(self):
        return Lanes(self.builder, self.vector.reals, self.parts[1]) if self.vector.is_complex else self.constant(0)

    def __eq__(self, other):
        return self._compare("==", other)

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
        other = other if isinstance(other, Lanes) else self.constant(other)
        a, b = alike(self, other)
        if a.vector.is_complex and relation != "==":
            raise TypeError(f"{relation} is between complex numbers, must be between real ones")
        equal = [self.builder.fcmp_ordered(relation, x, y) for x, y in zip(a.parts, b.parts, strict=True)]
        return functools.reduce(operator.and_, [Flags(self.builder, mask) for mask in equal])

    def sqrt(self):
        """The square root of real numbers; NaN for negative ones."""
        return self._new(self._call("llvm.sqrt", self._real()))

    def rsqrt(self, factor=None):
        """1 / sqrt(self) of real numbers, or `factor` / sqrt(self), to 2 units in the last place; NaN if negative.

        Where there is an estimate to start from, a few terms of a series are faster than the machine's root and
        division. A factor that is given waits for less of them than one that is multiplied with the result.
        """
        one, rsqrt14 = self.constant(1), self._estimate("rsqrt14")
        if rsqrt14 is None:
            inverse = one / self.sqrt()
            return inverse if factor is None else factor * inverse
        estimate = self._new(rsqrt14(self._real()))
        error = (-(self * estimate)).fma(estimate, one)
        terms = [5 / 16, 3 / 8, 1 / 2] if self.vector.real.bitwidth == 64 else [3 / 8, 1 / 2]
        series, *terms = map(self.constant, terms)
        for term in terms:
            series = series.fma(error, term)
        start = estimate if factor is None else factor * estimate
        refined = (start * error).fma(series, start)
        return ((self > 0) & (self < math.inf)).select(refined, start)  # which is right for zeros and infinities

    def _real(self):
        if self.vector.is_complex:
            raise TypeError(f"x is {self.vector}, must be real")
        return self.parts[0]

    def __abs__(self):
        """|self|, which is real; of complex numbers it is scaled so that no square overflows."""
        b = self.builder
        parts = [self._call("llvm.fabs", part) for part in self.parts]
        if len(parts) == 1:
            return self._new(*parts)
        zero, one = (self.real.constant(number).parts[0] for number in (0, 1))
        swapped = b.fcmp_ordered(">", parts[1], parts[0])
        large, small = b.select(swapped, *parts[::-1]), b.select(swapped, *parts)
        slope = b.fdiv(small, b.select(b.fcmp_ordered("==", large, zero), one, large))
        return self.real._new(b.fmul(large, self._call("llvm.sqrt", self._fma(slope, slope, one))))

    def abs1(self):
        """|re| + |im|, which is real."""
        re, *im = (self._call("llvm.fabs", part) for part in self.parts)
        return self.real._new(self.builder.fadd(re, *im) if im else re)

    def copysign(self, other):
        """Real numbers with the signs of others."""
        return self._new(self._call("llvm.copysign", self._real(), other._real()))

    def _fma(self, a, b, c):
        # fmuladd, unlike fma, becomes a multiplication and an addition on machines without the instruction.
        return self._call("llvm.fmuladd", a, b, c)

    def _call(self, name, *args):
        part = self.vector.part
        suffix = f"v{self.vector.lanes}f{self.vector.real.bitwidth}"
        kind = ir.FunctionType(part, [part] * len(args))
        return self.builder.call(cgutils.get_or_insert_function(self.builder.module, kind, f"{name}.{suffix}"), args)


@functools.cache
def machine():
    """Bytes of a vector register and number of vector registers of the CPU that Numba compiles for."""
    features = set(cpu_target.target_context.codegen().magic_tuple()[2].split(","))
    if "+avx512f" in features:
        return 64, 32
    if "+avx" in features:
        return 32, 16
    return 16, 32 if "+neon" in features else 16


@functools.cache
def has_half():
    """Whether the CPU that Numba compiles for converts numbers of 16 bits."""
    triple, _, features = cpu_target.target_context.codegen().magic_tuple()
    return "+f16c" in features.split(",") or triple.startswith("aarch64")


def native_width(dtype):
    """Real numbers of this dtype in a vector register."""
    return machine()[0] // (dtype.itemsize // (2 if dtype.kind == "c" else 1))


def tile_size(vector, m, n):
    """Rows and columns of a register tile of an m x n matrix.

    Its numbers, one of its rows and one more fit the registers, of which one is left for LLVM where it can be.
    Where an extent is not known, code is emitted for every tile up to this size, which has to stay little.
    """
    size, registers = machine()
    values = len(vector.parts) * -(-vector.lanes * vector.real.bitwidth // (8 * size))
    room = registers // values - 1
    known = isinstance(m, int) and isinstance(n, int)
    square = next(t for t in range(5 if known else 4, 0, -1) if t == 1 or t * (t + 1) <= room)
    if not known:
        return square, square
    columns = max(n, 1) if n <= square + 1 else square
    return max(1, min((room - 1) // columns - 1, TALLEST)), columns


class Matrix(types.Type):
    """An m x n matrix of vectors in memory; sizes and strides are integers where code is for them alone, else None.

    `stored` says as what its numbers are in memory: "" as what they are, else a key of `STORED`.
    """

    def __init__(self, vector, m=None, n=None, rs=None, cs=None, conj=False, stored=""):
        self.vector, self.m, self.n, self.rs, self.cs, self.conj = vector, m, n, rs, cs, conj
        self.stored = stored
        super().__init__(name=f"Matrix({vector}, {m}, {n}, {rs}, {cs}, {conj}, {stored})")


@register_model(Matrix)
class MatrixModel(models.StructModel):
    def __init__(self, dmm, matrix):
        members = [("base", types.CPointer(matrix.vector.real))]
        members += [(name, types.intp) for name in ("m", "n", "rs", "cs", "im")]
        super().__init__(dmm, matrix, members)


def shifted(builder, pointer, offset, element):
    """The pointer, by so many numbers of an LLVM type behind."""
    there = builder.gep(builder.bitcast(pointer, element.as_pointer()), [offset], source_etype=element)
    return builder.bitcast(there, pointer.type)


def itemsize(element):
    """Bytes of a number of an LLVM type."""
    return {ir.DoubleType(): 8, ir.FloatType(): 4}.get(element, 2)


def widened(builder, x, part):
    """A vector of stored numbers as one of the type `part`."""
    if x.type.element == BFLOAT:
        wide = ir.VectorType(ir.IntType(32), x.type.count)
        upper = builder.shl(builder.zext(x, wide), ir.Constant(wide, [16] * x.type.count))
        x = builder.bitcast(upper, ir.VectorType(ir.FloatType(), x.type.count))
    return x if x.type == part else builder.fpext(x, part)


def rounded(builder, x, element):
    """A vector as one of stored numbers, each the nearest; to 16 bits by way of 32."""
    count = x.type.count
    single = ir.VectorType(ir.FloatType(), count)
    x = x if x.type == single else builder.fptrunc(x, single)
    if element == HALF:
        return builder.fptrunc(x, ir.VectorType(HALF, count))
    if element == BFLOAT:
        kind = ir.VectorType(ir.IntType(32), count)
        one, most, sixteen = (ir.Constant(kind, [number] * count) for number in (1, 0x7FFF, 16))
        bits = builder.bitcast(x, kind)
        odd = builder.and_(builder.lshr(bits, sixteen), one)
        nearest = builder.add(bits, builder.add(odd, most))
        nearest = builder.select(builder.fcmp_unordered("uno", x, x), bits, nearest)  # NaN stays NaN
        return builder.trunc(builder.lshr(nearest, sixteen), ir.VectorType(BFLOAT, count))
    return x


class Elements:
    """A `Matrix` while code is emitted: strides and the offset `im` of imaginary parts count real numbers."""

    def __init__(self, code, vector, base, m, n, rs, cs, im, conj=False, stored="", stream=False):
        self.code, self.vector, self.base, self.stored = code, vector, base, stored
        self.m, self.n, self.rs, self.cs, self.im, self.conj, self.stream = m, n, rs, cs, im, conj, stream

    def _replace(self, **changes):
        fields = dict(self.__dict__)
        fields.update(changes)
        return Elements(**fields)

    @property
    def T(self):
        return self._replace(m=self.n, n=self.m, rs=self.cs, cs=self.rs)

    @property
    def H(self):
        return self.T._replace(conj=not self.conj)

    @property
    def rows_reversed(self):
        last = self.code.sub(self.m, 1)
        return self._replace(base=self._at(last, 0), rs=self.code.sub(0, self.rs))

    @property
    def reversed(self):
        return self.rows_reversed.T.rows_reversed.T

    @property
    def lowest(self):
        """Where in memory a matrix of known size and strides begins."""
        extents = (self.m - 1) * self.rs, (self.n - 1) * self.cs
        return self._replace(rs=1)._at(sum(min(extent, 0) for extent in extents), 0)

    def following(self, stride, lane, lanes):
        """What to fetch for the pack that is `stride` real numbers on, while the lanes from `lane` on are at work."""
        b = self.code.builder
        stride, lane, lanes = (x.index(self.code) for x in (stride, lane, lanes))
        distance = b.sub(b.add(stride, b.mul(b.sdiv(stride, lanes), lane)), lane)
        return self._replace(base=self._shifted(distance))

    def block(self, i, j, m, n):
        return self._replace(base=self._at(i, j), m=m, n=n)

    def _at(self, i, j, im=0):
        code = self.code
        offset = code.add(code.add(code.mul(i, self.rs), code.mul(j, self.cs)), im)
        return self.base if offset == 0 else self._shifted(index(offset))

    def _shifted(self, offset):
        """The address of the real number that is so many of them behind the first."""
        return shifted(self.code.builder, self.base, offset, self.element)

    @property
    def element(self):
        """LLVM type of a real number in memory."""
        return STORED.get(self.stored, self.vector.part.element)

    def __getitem__(self, ij):
        builder, part = self.code.builder, self.vector.part
        parts = []
        for im in (0, self.im) if self.vector.is_complex else (0,):
            kind = ir.VectorType(self.element, self.vector.lanes)
            pointer = builder.bitcast(self._at(*ij, im), kind.as_pointer())
            stored = builder.load(pointer, align=itemsize(self.element), typ=kind)
            parts.append(widened(builder, stored, part) if self.stored else stored)
        lanes = Lanes(builder, self.vector, *parts)
        return lanes.conjugate() if self.conj else lanes

    def __setitem__(self, ij, lanes):
        builder = self.code.builder
        lanes, _ = alike(lanes, Lanes.zero(builder, self.vector))
        if self.conj:
            lanes = lanes.conjugate()
        for im, value in zip((0, self.im), lanes.parts, strict=False):
            value = rounded(builder, value, self.element) if self.stored else value
            pointer = builder.bitcast(self._at(*ij, im), value.type.as_pointer())
            store = builder.store(value, pointer, align=itemsize(self.element))
            if self.stream:
                store.align *= self.vector.lanes
                store.set_metadata("nontemporal", builder.module.add_metadata([ir.IntType(32)(1)]))
