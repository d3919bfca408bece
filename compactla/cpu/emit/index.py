"""Indices: integers of 64 bits with Python's arithmetic, as `2 * p + k`, and comparisons, as `p < k`, of code to come.

Sizes, strides and indices are Python integers where they are known while code is emitted. The others are `Index`es: an
operator on two integers is Python's, one that has an `Index` among its operands emits an instruction. Quotients of
these are cut towards zero, and `~` is for a `Condition`, not for Python's bool. LLVM's own
functions take `value_of` both.

What was computed before in the same block of code is not computed again. LLVM would see to that too, but instructions
take time to write and read, which is a good part of that of compiling.
"""

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

from llvmlite import ir
from numba.core import cgutils

INDEX = ir.IntType(64)
# A Python integer where it is known while code is emitted, else an `Index`.
IntOrIndex: TypeAlias = Any


def value_of(x: Any) -> Any:
    """The LLVM value of an index, of a condition, or of what is one."""
    if isinstance(x, int):
        return _number(x)
    return x.value if isinstance(x, Index | Condition) else x


@functools.lru_cache(4096)
def _number(x):
    return ir.Constant(INDEX, x)


def once(builder: ir.IRBuilder, key: tuple, make: Callable[[], Any]) -> Any:
    """The value that `make` emits at its first call with this key in a block: the key says all that it depends on."""
    emitted = vars(builder.block).setdefault("emitted", {})
    if key not in emitted:
        emitted[key] = make()
    return emitted[key]


class Index:
    """An integer that is not known while code is emitted; a quotient is cut towards zero, as in C."""

    def __init__(self, builder: ir.IRBuilder, value: Any) -> None:
        self.builder, self.value = builder, value

    def _emitted(self, instruction, a, b):
        values = value_of(a), value_of(b)
        return Index(
            self.builder,
            once(self.builder, (instruction, *values), lambda: getattr(self.builder, instruction)(*values)),
        )

    def __add__(self, other):
        return self if is_known(other, 0) else self._emitted("add", self, other)

    def __radd__(self, other):
        return self if is_known(other, 0) else self._emitted("add", other, self)

    def __sub__(self, other):
        return self._emitted("sub", self, other)

    def __rsub__(self, other):
        return self._emitted("sub", other, self)

    def __neg__(self):
        return 0 - self

    def __mul__(self, other):
        return self._times(other, self, other)

    def __rmul__(self, other):
        return self._times(other, other, self)

    def _times(self, factor, *both):
        if is_known(factor, 0):
            return 0
        return self if is_known(factor, 1) else self._emitted("mul", *both)

    def __floordiv__(self, other):
        return self._emitted("sdiv", self, other)

    def __rfloordiv__(self, other):
        return self._emitted("sdiv", other, self)

    def __mod__(self, other):
        return self._emitted("srem", self, other)

    def __rmod__(self, other):
        return self._emitted("srem", other, self)

    def _compared(self, relation, other):
        return Condition(self.builder, self.builder.icmp_signed(relation, self.value, value_of(other)))

    def __lt__(self, other):
        return self._compared("<", other)

    def __le__(self, other):
        return self._compared("<=", other)

    def __gt__(self, other):
        return self._compared(">", other)

    def __ge__(self, other):
        return self._compared(">=", other)

    def __eq__(self, other):
        return self._compared("==", other)

    def __ne__(self, other):
        return self._compared("!=", other)

    def __bool__(self):
        raise TypeError("index is not known while code is emitted, must be compared, for code.when() or select()")


class Condition:
    """Yes or no while code is emitted, for `code.when` and `code.either`."""

    def __init__(self, builder: ir.IRBuilder, value: Any) -> None:
        self.builder, self.value = builder, value

    def __and__(self, other):
        return type(self)(self.builder, self.builder.and_(self.value, other.value))

    def __or__(self, other):
        return type(self)(self.builder, self.builder.or_(self.value, other.value))

    def __invert__(self):
        return type(self)(self.builder, self.builder.not_(self.value))

    def __bool__(self):
        raise TypeError("condition is not known while code is emitted, must be asked by code.when() or select()")

    def select(self, a: Any, b: Any) -> Any:
        """`a` where it holds, else `b`: indices, or lanes of one type."""
        choose = self.builder.select
        if isinstance(a, int | Index):
            return Index(self.builder, choose(self.value, value_of(a), value_of(b)))
        return a._new(*(choose(self.value, x, y) for x, y in zip(a.parts, b.parts, strict=True)))


class Variable:
    """An index on the stack, which code changes."""

    def __init__(self, builder, start=None):
        self.builder, self.slot = builder, cgutils.alloca_once(builder, INDEX)
        if start is not None:
            self.set(start)

    def get(self):
        return Index(self.builder, self.builder.load(self.slot, typ=INDEX))

    def set(self, x):
        self.builder.store(value_of(x), self.slot)


def is_known(x: IntOrIndex, number: int) -> bool:
    """Whether an index is known to be a number."""
    return isinstance(x, int) and x == number
