"""Memory and functions at addresses, as Numba functions see them: an address is an integer.

Functions that have no arrays but these are compiled in a fraction of the time.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from compactla.cpu.emit.index import INDEX

INT = types.int64


@intrinsic
def pointer(typing_context: Any, address: Any) -> Any:
    """An address as `numba.carray` takes it."""

    def lower(context, builder, signature, args):
        return builder.inttoptr(args[0], context.get_value_type(types.voidptr))

    return types.voidptr(INT), lower


def reader(kind: ir.Type) -> Callable:
    """A function that reads an integer of a type of LLVM at an address."""

    @intrinsic
    def read(typing_context, address):
        def lower(context, builder, signature, args):
            value = builder.load(builder.inttoptr(args[0], kind.as_pointer()), typ=kind)
            return value if kind == INDEX else builder.sext(value, INDEX)

        return INT(INT), lower

    return read


def writer(kind: ir.Type) -> Callable:
    """A function that writes an integer at an address."""

    @intrinsic
    def write(typing_context, address, value):
        def lower(context, builder, signature, args):
            value = args[1] if kind == INDEX else builder.trunc(args[1], kind)
            builder.store(value, builder.inttoptr(args[0], kind.as_pointer()))
            return context.get_dummy_value()

        return types.void(INT, INT), lower

    return write


word, put = reader(INDEX), writer(INDEX)


@intrinsic
def claim(typing_context: Any, address: Any, value: Any) -> Any:
    """Put a word at an address where there is zero; return whether there was, at once."""

    def lower(context, builder, signature, args):
        place = builder.inttoptr(args[0], INDEX.as_pointer())
        found = builder.cmpxchg(place, INDEX(0), args[1], "seq_cst", "seq_cst")
        return builder.zext(builder.extract_value(found, 1), context.get_value_type(types.boolean))

    return types.boolean(INT, INT), lower


@intrinsic
def exchange(typing_context: Any, address: Any, value: Any) -> Any:
    """Put a word at an address, and return what was there, at once."""

    def lower(context, builder, signature, args):
        return builder.atomic_rmw("xchg", builder.inttoptr(args[0], INDEX.as_pointer()), args[1], "seq_cst")

    return INT(INT, INT), lower


@intrinsic
def call(typing_context: Any, function: Any, lo: Any, hi: Any, place: Any) -> Any:
    """Call a function of three integers at an address."""

    def lower(context, builder, signature, args):
        kind = ir.FunctionType(ir.VoidType(), [INDEX] * 3)
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])
        return context.get_dummy_value()

    return types.void(INT, INT, INT, INT), lower
