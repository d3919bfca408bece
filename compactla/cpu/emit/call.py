"""How kernels are described, and how they get their arguments.

A kernel is a Numba function of a range of packs, ``kernel(lo, hi, ...)``, whose loop calls a function that emits the
work on one of them. What is known when it is compiled is its description: a named tuple of literals, and of tuples of
literals. What is not known are its arguments. Every front end has a description of its own; the way into machine code
is the same for all of them:

1. The front end makes a description, and with `text_of` a string of it: a key of `compactla.cpu.compile.compiled`.
2. The factory of the kernel writes the loop, and hands the string to the emitting function. Numba knows it as a
   literal, so there is one piece of machine code for each description.
3. `emitted` makes the description again from the string, and calls the emitting function with it while Numba compiles.
4. That takes its arguments from `Arguments`, in the order in which the front end has put them: sizes that are not
   known, scalars, addresses and strides of operands. They are in a tuple, or in words of 64 bits in memory.

For example, ``gemm(A, B, C)`` with packs of eight 3 x 3 matrices of float64, on a processor with AVX-512::

    description  RoutineCall(
                     routine="gemm", sizes="mnk", options=(), scalars=(("alpha", 1), ("beta", 0)), outputs=(),
                     operands=(("mk", "near", "d8 3,3,24,8"), ("kn", "near", "d8 3,3,24,8"), ("mn", "near", ...)),
                 )
    text         "('gemm', 'mnk', (), (('alpha', 1), ('beta', 0)), (), (('mk', 'near', 'd8 3,3,24,8'), ...))"
    kernel       for p in range(lo, hi):
                     call(text, 1, p, 0, 8, args)
    arguments    lo = 0, hi = number of packs, V = 8 and
                 args = (3, 3, 3, 1.0, 0.0, address of A, 72, 24, 8, address of B, 72, 24, 8, address of C, 72, 24, 8)
    emitted      18 loads, 27 multiply-adds and 9 stores of vectors of eight numbers, at fixed distances: of the
                 arguments only addresses and steps from pack to pack are looked at

Of 40 x 40 matrices the operands have the form "d8 ?,?,?,?". Loops are emitted then, up to the sizes in the arguments.
"""

import ast
import functools
import itertools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numba import types
from numba.extending import NativeValue, models, register_model, unbox

from compactla.cpu.emit.code import Code, Number, routine
from compactla.cpu.emit.index import INDEX, IntOrIndex, value_of
from compactla.cpu.emit.prefetch import BYTE, BYTES
from compactla.overlap import DATA as OFFSET

WORD = 8  # bytes


def text_of(description: tuple) -> str:
    """Write a description, or another tuple of literals, as a string."""
    return repr(literal(description))


def literal(x):
    """Turn a value into one of Python's own, and named tuples into plain ones."""
    if isinstance(x, tuple):
        return tuple(map(literal, x))
    return x.item() if isinstance(x, np.generic) else x


def emitted(description: type) -> Callable:
    """Make ``emit(code, description, *arguments)`` callable from kernels, as ``emit(text, *arguments)``.

    It has a name for each argument. Integers arrive as `Index`, or as Python integers if they are literals,
    floating-point numbers as `Number`, arrays as pointers to their data, and tuples as lists.

    Parameters
    ----------
    description : type
        Class of the descriptions.
    """

    def decorate(emit):
        @functools.wraps(emit)
        def call(code, text, *arguments):
            emit(code, description(*ast.literal_eval(text)), *(argument(code, x) for x in arguments))

        return routine(call)

    return decorate


def argument(code, x):
    """Make an index of an argument of `routine` that is an integer or an address."""
    if isinstance(x, list):
        return [argument(code, part) for part in x]
    return code.index(x.value) if isinstance(x, Number) and isinstance(x.kind, types.Integer | ArrayData) else x


class ArrayData(types.Opaque):
    """An array as an argument of which a kernel sees nothing but the address of its data.

    That is much faster than arrays as Numba has them: what else there is to know is in the description.
    """


DATA = ArrayData("ArrayData")


@register_model(ArrayData)
class ArrayDataModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, INDEX)


@unbox(ArrayData)
def unbox_array_data(kind, array, c):
    """Emit what NumPy has as ``PyArray_DATA(array)``."""
    start = c.builder.gep(c.builder.bitcast(array, BYTES), [INDEX(OFFSET)], source_etype=BYTE)
    return NativeValue(c.builder.load(c.builder.bitcast(start, INDEX.as_pointer()), typ=INDEX))


class Arguments:
    """Arguments of a kernel while code is emitted: each is taken once, in order.

    Parameters
    ----------
    values : iterable
        The arguments.
    """

    def __init__(self, values: Iterable) -> None:
        self._values = iter(values)

    @classmethod
    def at(cls, code: Code, address: IntOrIndex) -> "Arguments":
        """Read words at an address; each is loaded when it is taken."""
        words = code.builder.inttoptr(value_of(address), INDEX.as_pointer())
        return cls(code.entry(words, i) for i in itertools.count())

    def one(self) -> Any:
        """Take the next argument."""
        return next(self._values)

    def some(self, count: int) -> list:
        """Take a list of so many arguments."""
        return [self.one() for _ in range(count)]

    def unless_known(self, number: int | None) -> Any:
        """Take an argument only if a number is not known: None."""
        return self.one() if number is None else number
