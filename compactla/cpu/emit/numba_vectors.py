"""Operators, functions and masks of vectors of lanes in Numba functions.

``+ - * /``, ``-x``, ``abs(x)``, ``x.real``, ``x.imag``, ``x.astype(np.float32)`` and the functions below work on
vectors of one type. Real vectors go with complex ones of their precision, and numbers with all: ``2 * x``, ``x > 0``.
Comparisons make masks: ``&``, ``|`` and ``~`` combine them, ``mask.any()`` and ``mask.all()`` are what `if` takes, and
`select` chooses by them, lane by lane.
"""

import inspect
import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import errors
from numba.core.typing.templates import (
    AbstractTemplate,
    AttributeTemplate,
    bound_function,
    infer_getattr,
    infer_global,
    signature,
)
from numba.extending import intrinsic, lower_builtin, lower_getattr

from compactla.cpu.emit.code import Code, Number
from compactla.cpu.emit.index import Condition
from compactla.cpu.emit.vectors import Flags, Lanes, Mask, Vector


def fits(kind, vector):
    """Whether numbers or vectors of this type can be in lanes of `vector`."""
    if isinstance(kind, Vector):
        return kind.reals == vector.reals and kind.is_complex <= vector.is_complex
    if isinstance(kind, types.Complex):
        return vector.is_complex
    return isinstance(kind, types.Integer) or (isinstance(kind, types.Float) and not vector.is_integer)


def operands_type(kinds):
    """The type of vector that operands are computed in; an error says what does not fit."""
    vectors = [kind for kind in kinds if isinstance(kind, Vector)]
    if not vectors:
        return None
    widest = next((vector for vector in vectors if vector.is_complex), vectors[0])
    if not all(isinstance(kind, Mask) or fits(kind, widest) for kind in kinds):
        raise errors.TypingError(f"operands are {', '.join(map(str, kinds))}, must be of one type")
    return widest


def lift(context, builder, kind, value, vector):
    """A value of Numba's as what code is emitted with: numbers as all lanes of a vector, complex only if they are."""
    if isinstance(kind, Mask):
        return Flags(builder, value)
    if isinstance(kind, Vector):
        return Lanes.unwrap(builder, kind, value)
    kind_of_lanes = vector if isinstance(kind, types.Complex) else vector.reals
    return Number(context, kind, value).lanes(Code(builder), kind_of_lanes)


def lower(x):
    """Emitted code as a value of Numba's."""
    if isinstance(x, Lanes):
        return x.wrap()
    return x.value if isinstance(x, Condition) else x


def result_type(apply, kinds):
    """Type of ``apply(x, ...)``, found by emitting it to a module that is thrown away; what it refuses is an error."""
    vector = operands_type(kinds)
    function = ir.Function(ir.Module(), ir.FunctionType(ir.VoidType(), []), "trial")
    builder = ir.IRBuilder(function.append_basic_block())
    operands = []
    for kind in kinds:
        if isinstance(kind, Mask):
            operands.append(Flags(builder, ir.Constant(ir.VectorType(ir.IntType(1), kind.lanes), ir.Undefined)))
        else:
            real = not isinstance(kind, Vector | types.Complex)
            shape = kind if isinstance(kind, Vector) else vector.reals if real else vector
            operands.append(Lanes.zero(builder, shape))
    try:
        result = apply(*operands)
    except TypeError as refusal:
        raise errors.TypingError(str(refusal)) from None
    if isinstance(result, Lanes):
        return result.vector
    return result.mask if isinstance(result, Flags) else types.boolean


def emitted(apply):
    """How Numba lowers ``apply(x, ...)``."""

    def emit(context, builder, signature, args):
        vector = operands_type(signature.args)
        pairs = zip(signature.args, args, strict=True)
        return lower(apply(*(lift(context, builder, kind, value, vector) for kind, value in pairs)))

    return emit


def define_operator(operation, words, *forms):
    """Let Numba functions apply an operator of `Lanes` or `Flags` to operands of each of these forms."""

    @infer_global(operation)
    class Operator(AbstractTemplate):
        def generic(self, args, kws):
            if not any(isinstance(kind, Vector | Mask) for kind in args):
                return None
            if not any(len(form) == len(args) and all(map(isinstance, args, form)) for form in forms):
                raise errors.TypingError(f"operands are {', '.join(map(str, args))}, must be {words}")
            return signature(result_type(operation, args), *args)

    for form in forms:
        lower_builtin(operation, *form)(emitted(operation))


ARITHMETIC = operator.add, operator.sub, operator.mul, operator.truediv
IN_PLACE = operator.iadd, operator.isub, operator.imul, operator.itruediv
COMPARISONS = operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge
for binary in ARITHMETIC + IN_PLACE + COMPARISONS:
    define_operator(binary, "vectors", (Vector, Vector), (Vector, types.Number), (types.Number, Vector))
define_operator(operator.neg, "vectors", (Vector,))
define_operator(abs, "vectors", (Vector,))
for binary in (operator.and_, operator.or_, operator.iand, operator.ior):
    define_operator(binary, "masks", (Mask, Mask))
define_operator(operator.invert, "masks", (Mask,))


@infer_getattr
class MaskAttributes(AttributeTemplate):
    key = Mask

    @bound_function("mask.any")
    def resolve_any(self, mask, args, kws):
        return signature(types.boolean, recvr=mask)

    @bound_function("mask.all")
    def resolve_all(self, mask, args, kws):
        return signature(types.boolean, recvr=mask)


lower_builtin("mask.any", Mask)(emitted(Flags.any))
lower_builtin("mask.all", Mask)(emitted(Flags.all))


@infer_getattr
class VectorAttributes(AttributeTemplate):
    key = Vector

    def resolve_real(self, vector):
        return vector.reals

    resolve_imag = resolve_real

    @bound_function("vector.astype")
    def resolve_astype(self, vector, args, kws):
        if len(args) != 1 or kws:
            raise errors.TypingError(f"astype has {len(args)} arguments and {len(kws)} keywords, must have one: dtype")
        dtype = getattr(args[0], "dtype", None)
        if isinstance(dtype, types.Float | types.Complex) or dtype in (types.int32, types.int64):
            return signature(result_type(lambda x: x.astype(dtype), [vector]), args[0], recvr=vector)
        raise errors.TypingError(f"dtype is {args[0]}, must be a real or complex type, int32 or int64")


@lower_getattr(Vector, "real")
def lower_real(context, builder, kind, value):
    return Lanes.unwrap(builder, kind, value).real.wrap()


@lower_getattr(Vector, "imag")
def lower_imag(context, builder, kind, value):
    return Lanes.unwrap(builder, kind, value).imag.wrap()


@lower_builtin("vector.astype", Vector, types.DTypeSpec)
def lower_astype(context, builder, signature, args):
    return Lanes.unwrap(builder, signature.args[0], args[0]).astype(signature.return_type.dtype).wrap()


def function(apply):
    """Make ``apply(x, ...)``, of vectors, masks and numbers, callable from Numba functions."""

    def define(typing_context, *kinds):
        if any(isinstance(kind, Vector) for kind in kinds):
            return result_type(apply, kinds)(*kinds), emitted(apply)
        raise errors.TypingError(f"operands are {', '.join(map(str, kinds))}, must have a vector among them")

    define.__name__, define.__doc__ = apply.__name__, apply.__doc__
    context = inspect.Parameter("typing_context", inspect.Parameter.POSITIONAL_ONLY)
    define.__signature__ = inspect.Signature([context, *inspect.signature(apply).parameters.values()])
    return intrinsic(define)


@function
def fma(a: Any, b: Any, c: Any) -> Any:
    """a b + c, rounded once where the machine can."""
    return a.fma(b, c)


@function
def fnma(a: Any, b: Any, c: Any) -> Any:
    """c - a b, rounded once where the machine can."""
    return (-a).fma(b, c)


@function
def conj(a: Any) -> Any:
    """The complex conjugate."""
    return a.conjugate()


@function
def sqrt(x: Any) -> Any:
    """The square root of a real vector; NaN for negative numbers."""
    return x.sqrt()


@function
def rsqrt(x: Any) -> Any:
    """1 / sqrt(x) of a real vector, to 2 units in the last place; NaN for negative numbers.

    It is faster than the two operations where the machine has an estimate to start from: with AVX-512, for vectors that
    fill a register.
    """
    return x.rsqrt()


@function
def abs1(x: Any) -> Any:
    """``|re| + |im|``, a real vector."""
    return x.abs1()


@function
def copysign(x: Any, y: Any) -> Any:
    """The real vector `x` with the signs of `y`."""
    return x.copysign(y)


@function
def minimum(x: Any, y: Any) -> Any:
    """The smaller of two numbers, lane by lane, as NumPy's: NaN where one of them is."""
    return x.minimum(y)


@function
def maximum(x: Any, y: Any) -> Any:
    """The larger of two numbers, lane by lane, as NumPy's: NaN where one of them is."""
    return x.maximum(y)


@function
def select(mask: Any, a: Any, b: Any) -> Any:
    """The lanes of `a` where the mask is set, else those of `b`, as NumPy's `where`."""
    if not isinstance(mask, Flags):
        raise TypeError(f"mask is {mask.vector}, must be a mask")
    return mask.select(a, b)


@intrinsic
def broadcast(typing_context: Any, x: Any, like: Any) -> Any:
    """The number `x` in every lane of a vector of the type of `like`."""
    if not isinstance(like, Vector) or isinstance(x, Vector) or not fits(x, like):
        raise errors.TypingError(f"x is {x}, must be a number that fits like, which is {like}")

    def emit(context, builder, signature, args):
        return Number(context, signature.args[0], args[0]).lanes(Code(builder), like).wrap()

    return like(x, like), emit
