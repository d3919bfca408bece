"""How kernels are written: plain Python that runs once, while Numba compiles, and emits the code of a routine.

Indices known at that time are Python integers, the others `compactla.cpu.emit.index.Index`, with the same arithmetic;
loops.py has the loops for both. `@routine` makes a function that emits code callable from Numba functions.
"""

import functools
import inspect
import operator
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils, errors
from numba.extending import intrinsic

from compactla.cpu.emit.index import INDEX, Condition, Index, IntOrIndex, value_of
from compactla.cpu.emit.loops import Loops
from compactla.cpu.emit.matrices import Elements, Matrix, splat
from compactla.cpu.emit.prefetch import likely
from compactla.cpu.emit.vectors import Lanes, Vector, alike


class Code(Loops):
    """A function whose code is being emitted: its builder, and words for registers, loops and conditions."""

    def call(self, name: str, kinds: Sequence, emit: Callable, *values: Any, attributes: Sequence[str] = ()) -> None:
        """Call the function of this name, made by ``emit(code, *arguments)`` where the module does not have it."""
        module = self.builder.module
        function = module.globals.get(name)
        if function is None:
            function = ir.Function(module, ir.FunctionType(ir.VoidType(), kinds), name)
            function.linkage = "internal"
            for attribute in attributes:
                function.attributes.add(attribute)
            body = ir.IRBuilder(function.append_basic_block("entry"))
            emit(Code(body), *function.args)
            body.ret_void()
        self.builder.call(function, values)

    def shared(self, emit: Callable, B: Elements, *others: Any) -> None:
        """Emit ``emit(code, B, *others)``: once, as a function for all B of unknown size, if this one is."""
        if isinstance(B.m, int) and isinstance(B.n, int):
            emit(self, B, *others)
            return
        matrices = (B, *others)
        fields = ("base", "m", "n", "rs", "cs", "im")
        values = [value_of(getattr(A, field)) for A in matrices for field in fields]

        def body(code, *values):
            given = iter(values)
            emit(code, *(A._replace(code=code, **{field: next(given) for field in fields}) for A in matrices))

        name = f"{name_of(emit)}({', '.join(f'{A.vector} {A.conj} {A.stored} {A.common}' for A in matrices)})"
        self.call(name, [value.type for value in values], body, *values)

    def apart(self, emit: Callable, matrices: Sequence[Elements], info: Any, first: IntOrIndex) -> None:
        """Emit ``emit(code, matrices, info, first)`` as a function of its own, for what seldom happens.

        Its work is not mixed with what surrounds it, whose values would have to wait in memory for it.
        """
        fields = ("base", "m", "n", "rs", "cs", "im")
        known = [{field: x for field in fields if isinstance(x := getattr(A, field), int)} for A in matrices]
        passed = [[field for field in fields if field not in numbers] for numbers in known]
        values = [value_of(getattr(A, field)) for A, names in zip(matrices, passed, strict=True) for field in names]

        def body(code, info, first, *values):
            given = iter(values)
            changes = [{field: next(given) for field in names} for names in passed]
            moved = [A._replace(code=code, **change) for A, change in zip(matrices, changes, strict=True)]
            emit(code, moved, info, code.index(first))

        name = f"{name_of(emit)}({', '.join(f'{A.vector} {A.conj} {A.stored} {A.common}' for A in matrices)}, {known})"
        kinds = [INDEX.as_pointer(), INDEX, *(value.type for value in values)]
        given = self.builder.bitcast(info, INDEX.as_pointer()), value_of(first), *values
        self.call(name, kinds, body, *given, attributes=("noinline", "cold"))

    def zero(self, vector: Vector) -> Lanes:
        return Lanes.zero(self.builder, vector)

    def broadcast(self, x: Any, vector: Vector) -> Lanes:
        """A scalar in every lane: `x` is a `Number`, an index, or a Python number known now."""
        if isinstance(x, Number):
            return x.lanes(self, vector)
        zero = self.zero(vector)
        if not isinstance(x, Index):
            return zero.constant(x)
        element, b, x = vector.part.element, self.builder, x.value
        if not vector.is_integer:
            x = b.sitofp(x, element)
        elif x.type != element:
            x = b.trunc(x, element)
        return zero._new(splat(b, vector, x), *zero.parts[1:])

    def is_zero(self, lanes: Lanes) -> Condition:
        """Whether a scalar that was broadcast is zero."""
        return Condition(self.builder, self.builder.extract_element((lanes == 0).value, ir.IntType(32)(0)))

    def registers(self, vector: Vector, m: int, n: int = 1) -> "Registers":
        return Registers(self.builder, vector, m, n)

    def pivots(self, B: Elements, m: IntOrIndex, unit: bool = False) -> Elements | None:
        """Room for m reciprocals of pivots to multiply the rows of B with; None for a unit diagonal.

        For a B of unknown size they are ones then, so that one function serves all diagonals.
        """
        known = isinstance(B.m, int) and isinstance(B.n, int)
        if unit and known:
            return None
        pivots = self.room(B.vector, m)
        if unit:
            for i in range(m):
                pivots[i, 0] = self.zero(B.vector).constant(1)
        return pivots

    def room(self, vector: Vector, m: IntOrIndex, n: IntOrIndex = 1) -> Elements:
        """An m x n matrix on the stack, unset and contiguous: in registers, if it is small and indices are known."""
        step = vector.lanes * len(vector.parts)
        if isinstance(m, int) and isinstance(n, int):
            with self.builder.goto_entry_block():  # cgutils.alloca_once would write zeros, each as an instruction
                memory = self.builder.alloca(ir.ArrayType(vector.part, m * n * len(vector.parts)))
        else:
            memory = self.builder.alloca(vector.part, value_of(m * n * len(vector.parts)))
        base = self.builder.bitcast(memory, vector.part.element.as_pointer())
        return Elements(self, vector, base, m, n, n * step, step, vector.lanes)


class Registers:
    """m x n variables of a vector type, which LLVM keeps in registers."""

    def __init__(self, builder, vector, m, n):
        self.builder, self.vector = builder, vector
        parts = range(2 if vector.is_complex else 1)
        self.slots = {
            (i, j): [cgutils.alloca_once(builder, vector.part) for _ in parts] for i in range(m) for j in range(n)
        }

    def __getitem__(self, ij):
        values = [self.builder.load(slot, typ=self.vector.part) for slot in self.slots[ij]]
        return Lanes(self.builder, self.vector, *values)

    def __setitem__(self, ij, lanes):
        lanes, _ = alike(lanes, Lanes.zero(self.builder, self.vector))
        for slot, value in zip(self.slots[ij], lanes.parts, strict=True):
            self.builder.store(value, slot)


class Number:
    """A scalar argument of a routine whose value is not known when the code is emitted."""

    def __init__(self, context: Any, kind: Any, value: Any) -> None:
        self.context, self.kind, self.value = context, kind, value

    def index(self, code: Code) -> Index:
        """The number as an index."""
        return Index(code.builder, self.context.cast(code.builder, self.value, self.kind, types.intp))

    def lanes(self, code: Code, vector: Vector) -> Lanes:
        """The number in every lane."""
        b = code.builder
        value = self.context.cast(b, self.value, self.kind, vector.dtype)
        parts = [b.extract_value(value, i) for i in range(2)] if vector.is_complex else [value]
        return Lanes(b, vector, *(splat(b, vector, part) for part in parts))


def routine(emit: Callable) -> Any:
    """Make ``emit(code, A, B, ...)`` callable from Numba functions.

    Matrices arrive in `emit` as `Elements`, arrays as pointers, literals (strings, integers) and defaults as Python
    values, other scalars as `Number`. Where the last one is ``ahead=()``, the default is what is `likely` to
    come next.
    """
    parameters = inspect.signature(emit)
    names = list(parameters.parameters)[1:]
    ahead = parameters.parameters.get("ahead")
    fetches = ahead is not None and ahead.default == ()

    def define(typing_context, *args, **kwargs):
        given = parameters.bind(typing_context, *args, **kwargs).arguments
        kinds = [given.get(name, types.Omitted(p.default)) for name, p in list(parameters.parameters.items())[1:]]
        check_kinds(emit.__name__, kinds)
        return types.void(*kinds), lower

    def lower(context, builder, signature, args):
        passed = [(kind, value) for kind, value in zip(signature.args, args, strict=True) if not is_constant(kind)]
        kinds = [context.get_value_type(kind) for kind, _ in passed]

        def body(code, *values):
            values = iter(values)
            operands = [operand(context, code, kind, values) for kind in signature.args]
            if fetches:  # which is the last one
                omitted = isinstance(signature.args[-1], types.Omitted)
                uplo = operands[names.index("uplo")] if "uplo" in names else ""
                known = likely(emit.__name__, operands, uplo) if omitted else operands[-1]
                operands[-1] = known if omitted else tuple(A._replace(ahead=0) for A in known)
            emit_for_strides(code, emit, operands)

        keep_once(builder)
        name = f"{name_of(emit)}({', '.join(map(str, signature.args))})"
        Code(builder).call(name, kinds, body, *(value for _, value in passed))
        return context.get_dummy_value()

    define.__signature__ = parameters  # type: ignore[attr-defined] # Numba reads it
    define.__doc__ = emit.__doc__
    define.__name__ = emit.__name__
    result: Any = intrinsic(prefer_literal=True)(define)
    result.emit = emit  # for other code that is emitted
    return result


def keep_once(builder):
    """Keep LLVM from repeating this place in a loop: steps between packs are not known, and fill the registers then."""
    nothing = ir.InlineAsm(ir.FunctionType(ir.VoidType(), []), "", "", side_effect=True)
    builder.call(nothing, []).attributes.update(("convergent", "nounwind", "readnone"))


def emit_for_strides(code, emit, given):
    """Emit ``emit(code, *given)``; where sizes are known but strides are not, also for contiguous matrices."""
    strided = [A for A in given if isinstance(A, Elements) and A.is_strided]
    if not strided:
        emit(code, *given)
        return
    with code.either(functools.reduce(operator.and_, (A.is_contiguous for A in strided))) as (contiguous, otherwise):
        with contiguous:
            emit(code, *(A.contiguous if A in strided else A for A in given))
        code.ahead = None
        with otherwise:
            emit(code, *given)


def name_of(emit: Callable) -> str:
    """Name of a function that emits code, which no other has: factories make several of one qualified name."""
    return f"{emit.__module__}.{emit.__qualname__}.{id(emit):x}"


def check_kinds(name, kinds):
    """Refuse arguments that a routine cannot have, while Numba infers types; integers may come with any numbers."""
    vectors = {kind.vector for kind in kinds if isinstance(kind, Matrix)}
    if len({v.reals for v in vectors if not v.is_integer}) > 1 or len({v.lanes for v in vectors}) > 1:
        raise errors.TypingError(f"{name}: matrices are of {' and '.join(map(str, vectors))}, must be of one type")
    for kind in kinds:
        if isinstance(kind, types.Array):
            if (kind.ndim, kind.layout, kind.dtype, kind.mutable) != (1, "C", types.int64, True):
                raise errors.TypingError(f"{name}: info is {kind}, must be a contiguous array of int64")
        elif isinstance(kind, types.BaseTuple):
            check_kinds(name, kind)
        elif not isinstance(kind, Matrix | types.Number | types.Boolean | types.Literal | types.Omitted | types.Opaque):
            raise errors.TypingError(f"{name}: argument is {kind}, must be a matrix, a number or a constant")


def check_fit(name: str, sizes: Sequence, needed: Sequence) -> None:
    """Refuse sizes that are known not to fit."""
    if any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(sizes, needed, strict=True)):
        raise ValueError(f"{name} has sizes {sizes}, must have {needed}")


def is_constant(kind):
    return isinstance(kind, types.Literal | types.Omitted)


def operand(context: Any, code: Code, kind: Any, values: Any) -> Any:
    if isinstance(kind, types.Literal):
        return kind.literal_value
    if isinstance(kind, types.Omitted):
        return kind.value
    value = next(values)
    if isinstance(kind, types.BaseTuple):
        members = (code.builder.extract_value(value, i) for i in range(len(kind)))
        return [operand(context, code, member, members) for member in kind]  # type: ignore[attr-defined] # Numba's tuple
    if isinstance(kind, Matrix):
        return elements(context, code, kind, value)
    if isinstance(kind, types.Array):
        return context.make_array(kind)(context, code.builder, value).data
    return Number(context, kind, value)


def elements(context, code, kind, value):
    proxy = cgutils.create_struct_proxy(kind)(context, code.builder, value)
    known = (kind.m, kind.n, kind.rs, kind.cs, kind.im)
    passed = (proxy.m, proxy.n, proxy.rs, proxy.cs, proxy.im)
    size = [value if number is None else number for number, value in zip(known, passed, strict=True)]
    ahead = proxy.ahead if kind.followed else 0
    return Elements(code, kind.vector, proxy.base, *size, kind.conj, kind.stored, ahead=ahead)
