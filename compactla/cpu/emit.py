"""How kernels are written: plain Python that runs once, while Numba compiles, and emits the code of a routine.

Indices known at that time are Python integers, the others are LLVM values; `Code` has the integer arithmetic and the
loops for both. `@routine` makes a function that emits code callable from Numba functions.
"""

import functools
import inspect
from contextlib import contextmanager

from llvmlite import ir
from numba import types
from numba.core import cgutils, errors
from numba.extending import intrinsic

from compactla.cpu.ahead import Ahead
from compactla.cpu.simd import INDEX, Elements, Matrix, index, splat
from compactla.cpu.vectors import Lanes, alike

UNROLLED = 8  # Loops of more rounds are loops in machine code too.


class Code:
    """Where code is being emitted to."""

    def __init__(self, builder):
        self.builder = builder
        self.ahead = None

    def call(self, name, kinds, emit, *values, attributes=()):
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

    def shared(self, emit, B, *others):
        """Emit ``emit(code, B, *others)``: once, as a function for all B of unknown size, if this one is."""
        if isinstance(B.m, int) and isinstance(B.n, int):
            emit(self, B, *others)
            return
        matrices = (B, *others)
        fields = ("base", "m", "n", "rs", "cs", "im")
        values = [index(getattr(A, field)) for A in matrices for field in fields]

        def body(code, *values):
            given = iter(values)
            emit(code, *(A._replace(code=code, **{field: next(given) for field in fields}) for A in matrices))

        name = f"{name_of(emit)}({', '.join(f'{A.vector} {A.conj} {A.stored} {A.common}' for A in matrices)})"
        self.call(name, [value.type for value in values], body, *values)

    def add(self, a, b):
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if isinstance(a, int) and a == 0:
            return b
        if isinstance(b, int) and b == 0:
            return a
        return self.builder.add(index(a), index(b))

    def sub(self, a, b):
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        return self.builder.sub(index(a), index(b))

    def mul(self, a, b):
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        for x, y in ((a, b), (b, a)):
            if isinstance(x, int) and x in (0, 1):
                return y if x else 0
        return self.builder.mul(index(a), index(b))

    def widened(self, a):
        """An index, of an integer that may be of fewer bits."""
        return a if isinstance(a, int) or a.type == INDEX else self.builder.sext(a, INDEX)

    def min(self, a, b):
        if isinstance(a, int) and isinstance(b, int):
            return min(a, b)
        a, b = index(a), index(b)
        return self.builder.select(self.builder.icmp_signed("<", a, b), a, b)

    @contextmanager
    def loop(self, count):
        """Emit a loop whose index goes from 0 to count - 1."""
        b = self.builder
        entry, body, after = b.block, b.append_basic_block("body"), b.append_basic_block("after")
        b.cbranch(b.icmp_signed("<", INDEX(0), index(count)), body, after)
        b.position_at_end(body)
        i = b.phi(INDEX)
        i.add_incoming(INDEX(0), entry)
        yield i
        following = b.add(i, INDEX(1))
        i.add_incoming(following, b.block)
        again = b.cbranch(b.icmp_signed("<", following, index(count)), body, after)
        again.set_metadata("llvm.loop", never_unrolled(b.module))
        b.position_at_end(after)

    def each(self, count):
        """Yield 0 to count - 1: as Python integers if `count` is a small one, else as the index of a loop."""
        if isinstance(count, int) and count <= UNROLLED:
            yield from range(count)
        else:
            with self.loop(count) as i:
                yield i

    def rounds(self, count):
        """`each`, in an innermost loop: what is ahead is fetched there, bit by bit."""
        start = self.ahead.advance(count) if self.ahead else None
        for p in self.each(count):
            if start:
                self.ahead.fetch(start, p)
            yield p

    def fetch_ahead(self, matrices, rounds):
        """Let the `rounds` rounds of innermost loops to come, if there are any, fetch matrices of known size."""
        if not all(isinstance(size, int) for A in matrices for size in (A.m, A.n)):
            raise ValueError("ahead is for matrices of known size, must be empty for others")
        if rounds:
            self.ahead = Ahead(self, matrices, rounds)

    def spans(self, size, largest):
        """Cut `size` into spans that differ by at most one: yields (start, extent).

        What the caller emits between two yields is a loop body. If `size` is a Python integer so are the extents.
        """
        if isinstance(size, int):
            for start, count, width in grid(size, largest):
                for t in self.each(1 if count == 1 else index(count)):
                    yield self.add(start, self.mul(t, width)), width
            return
        b = self.builder
        small = ir.IntType(32)
        size = b.trunc(size, small)
        count = b.udiv(b.add(size, small(largest - 1)), small(largest))
        count = b.select(b.icmp_unsigned("==", count, small(0)), small(1), count)
        extent = b.udiv(size, count)
        wider = b.zext(b.sub(size, b.mul(extent, count)), INDEX)
        count, extent = b.zext(count, INDEX), b.zext(extent, INDEX)
        with self.loop(count) as t:
            start = b.add(b.mul(t, extent), self.min(t, wider))
            yield start, b.add(extent, b.zext(b.icmp_signed("<", t, wider), INDEX))

    def blocks(self, size, largest):
        """Spans of `size` with what follows them: yields (start, extent, rest).

        ``rest(end)`` yields the spans from there to `end`, which is at least `size`.
        """
        if not isinstance(size, int):
            for start, extent in self.spans(size, largest):
                behind = self.add(start, extent)
                yield start, extent, functools.partial(self._whole, behind)
            return
        groups = grid(size, largest)
        if sum(count for _, count, _ in groups) <= 3:  # known starts make faster code
            groups = [(first + t * width, 1, width) for first, count, width in groups for t in range(count)]
        for g, (first, count, width) in enumerate(groups):
            for t in self.each(1 if count == 1 else index(count)):
                start = self.add(first, self.mul(t, width))
                left = self.sub(count - 1, t)
                yield start, width, functools.partial(self._rest, start, left, width, groups[g + 1 :], size, largest)

    def _whole(self, start, end):
        return [(start, self.sub(end, start))]

    def _rest(self, start, left, width, groups, size, largest, end):
        """`left` more spans of `width` behind the one at `start`, then those of `groups`, then those from `size`."""
        following = [(self.add(start, width), left, width)] if left != 0 else []
        beyond = [(size + first, count, width) for first, count, width in grid(end - size, largest)]
        yield from self._spans_of([*following, *groups, *beyond])

    def _spans_of(self, groups):
        """The spans of (start of the first, how many, extent) for each of the groups."""
        for first, count, width in groups:
            for t in self.each(1 if count == 1 else index(count)):
                yield self.add(first, self.mul(t, width)), width

    def rows_of_triangle(self, size, largest):
        """Spans of `size` with what precedes them: yields (start, extent, before).

        ``before()`` yields the spans up to the start.
        """
        if not isinstance(size, int):
            for start, extent in self.spans(size, largest):
                yield start, extent, functools.partial(self.spans, start, largest)
            return
        groups = grid(size, largest)
        if sum(count for _, count, _ in groups) <= 3:
            groups = [(first + t * width, 1, width) for first, count, width in groups for t in range(count)]
        for g, (first, count, width) in enumerate(groups):
            for t in self.each(1 if count == 1 else index(count)):
                done = [*groups[:g], *([] if count == 1 else [(first, t, width)])]
                yield self.add(first, self.mul(t, width)), width, functools.partial(self._spans_of, done)

    def cases(self, extent, largest):
        """Yield `extent` as a Python integer: what the caller emits is emitted for all up to `largest` if need be."""
        if isinstance(extent, int):
            yield extent
            return
        b = self.builder
        done = b.append_basic_block("done")
        switch = b.switch(extent, done)
        for known in range(1, largest + 1):
            block = b.append_basic_block(f"case{known}")
            switch.add_case(INDEX(known), block)
            b.position_at_end(block)
            yield known
            b.branch(done)
        b.position_at_end(done)

    def tiles(self, size, largest):
        """Spans of `size` whose extents are Python integers."""
        for start, extent in self.spans(size, largest):
            for known in self.cases(extent, largest):
                yield start, known

    def zero(self, vector):
        return Lanes.zero(self.builder, vector)

    def broadcast(self, x, vector):
        """A scalar in every lane: `x` is a `Number`, an index, or a Python number known now."""
        if isinstance(x, Number):
            return x.lanes(self, vector)
        zero = self.zero(vector)
        if not isinstance(x, ir.Value):
            return zero.constant(x)
        element, b = vector.part.element, self.builder
        if not vector.is_integer:
            x = b.sitofp(x, element)
        elif x.type != element:
            x = b.trunc(x, element)
        return zero._new(splat(b, vector, x), *zero.parts[1:])

    def is_zero(self, lanes):
        """Whether a scalar that was broadcast is zero."""
        return self.builder.extract_element((lanes == 0).value, ir.IntType(32)(0))

    def registers(self, vector, m, n=1):
        return Registers(self.builder, vector, m, n)

    def pivots(self, B, m, unit=False):
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

    def room(self, vector, m, n=1):
        """An m x n matrix on the stack, unset and contiguous: in registers, if it is small and indices are known."""
        step = vector.lanes * len(vector.parts)
        if isinstance(m, int) and isinstance(n, int):
            with self.builder.goto_entry_block():  # cgutils.alloca_once would write zeros, each as an instruction
                memory = self.builder.alloca(ir.ArrayType(vector.part, m * n * len(vector.parts)))
        else:
            memory = self.builder.alloca(vector.part, index(self.mul(self.mul(m, n), len(vector.parts))))
        base = self.builder.bitcast(memory, vector.part.element.as_pointer())
        return Elements(self, vector, base, m, n, self.mul(n, step), step, vector.lanes)


def never_unrolled(module):
    """Metadata of a loop that LLVM is not to unroll: it would spend most of the compile time there, for little."""
    hint = module.add_metadata([ir.MetaDataString(module, "llvm.loop.unroll.disable")])
    loop = ir.values.MDValue(module, [], name=str(len(module.metadata)))
    loop.operands = loop, hint  # LLVM wants a loop's metadata to begin with itself
    return loop


def grid(size, largest):
    """Cut a known size into as few spans of at most `largest` as do: [(start, count, extent)], with two extents."""
    if not isinstance(size, int):
        raise ValueError("ahead is for matrices of known size, must be empty for others")
    count = -(-size // largest)
    extent, wider = divmod(size, max(count, 1))
    groups = (0, wider, extent + 1), (wider * (extent + 1), count - wider, extent)
    return [group for group in groups if group[1]]


def starts(size, largest):
    """Where the spans of a known size start."""
    return [first + t * extent for first, count, extent in grid(size, largest) for t in range(count)]


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

    def __init__(self, context, kind, value):
        self.context, self.kind, self.value = context, kind, value

    def index(self, code):
        """The number as an index."""
        return self.context.cast(code.builder, self.value, self.kind, types.intp)

    def lanes(self, code, vector):
        """The number in every lane."""
        b = code.builder
        value = self.context.cast(b, self.value, self.kind, vector.dtype)
        parts = [b.extract_value(value, i) for i in range(2)] if vector.is_complex else [value]
        return Lanes(b, vector, *(splat(b, vector, part) for part in parts))


def routine(emit):
    """Make ``emit(code, A, B, ...)`` callable from Numba functions.

    Matrices arrive in `emit` as `Elements`, arrays as pointers, literals (strings, integers) and defaults as Python
    values, other scalars as `Number`.
    """
    parameters = inspect.signature(emit)

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
            emit(code, *(operand(context, code, kind, values) for kind in signature.args))

        name = f"{name_of(emit)}({', '.join(map(str, signature.args))})"
        Code(builder).call(name, kinds, body, *(value for _, value in passed))
        return context.get_dummy_value()

    define.__signature__ = parameters
    define.__doc__ = emit.__doc__
    define.__name__ = emit.__name__
    result = intrinsic(prefer_literal=True)(define)
    result.emit = emit  # for other code that is emitted
    return result


def name_of(emit):
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
        elif not isinstance(kind, Matrix | types.Number | types.Boolean | types.Literal | types.Omitted):
            raise errors.TypingError(f"{name}: argument is {kind}, must be a matrix, a number or a constant")


def check_fit(name, sizes, needed):
    """Refuse sizes that are known not to fit."""
    if any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(sizes, needed, strict=True)):
        raise ValueError(f"{name} has sizes {sizes}, must have {needed}")


def is_constant(kind):
    return isinstance(kind, types.Literal | types.Omitted)


def operand(context, code, kind, values):
    if isinstance(kind, types.Literal):
        return kind.literal_value
    if isinstance(kind, types.Omitted):
        return kind.value
    value = next(values)
    if isinstance(kind, types.BaseTuple):
        members = (code.builder.extract_value(value, i) for i in range(len(kind)))
        return [operand(context, code, member, members) for member in kind]
    if isinstance(kind, Matrix):
        return elements(context, code, kind, value)
    if isinstance(kind, types.Array):
        return context.make_array(kind)(context, code.builder, value).data
    return Number(context, kind, value)


def elements(context, code, kind, value):
    proxy = cgutils.create_struct_proxy(kind)(context, code.builder, value)
    known = (kind.m, kind.n, kind.rs, kind.cs)
    passed = (proxy.m, proxy.n, proxy.rs, proxy.cs)
    size = [value if number is None else number for number, value in zip(known, passed, strict=True)]
    return Elements(code, kind.vector, proxy.base, *size, proxy.im, kind.conj, kind.stored)
