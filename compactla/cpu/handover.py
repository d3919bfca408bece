"""How a call reaches threads that wait for one: in compiled code, since Python would have them queue for its lock.

Each helper has a box: two locks, and what it shall call. The locks are Python's own, which every platform has and which
need no interpreter. Kernels get their arguments from words of 64 bits in memory, see `Words`.
"""

import ctypes
import functools
import itertools
import re
import struct
import sys

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, register_jitable
from numba.np.arrayobj import populate_array
from numba.np.numpy_support import as_dtype, from_dtype

from compactla.cpu.kernel import INT, INTS, compiled
from compactla.cpu.simd import INDEX

# Words of a box: the locks that a helper waits for and releases, and a function with its arguments; a cache line.
GO, DONE, FUNCTION, LO, HI, PLACE, BOX = 0, 1, 2, 3, 4, 5, 8
# How often a lock is tried before a thread sleeps, for 0.1 to 0.2 ms, and how often between two turns of other threads.
TRIES, IN_TURN = 4000, 50
# How numbers are put into words, by NumPy's letters; other arguments are arrays.
FORMATS = {"q": "q", "d": "d", "D": "dd"}
DOUBLE = ir.DoubleType()

acquire = types.ExternalFunction("PyThread_acquire_lock", types.intc(types.intp, types.intc))
let_others = types.ExternalFunction("SwitchToThread" if sys.platform == "win32" else "sched_yield", types.intc())
release = types.ExternalFunction("PyThread_release_lock", types.void(types.intp))


def new_lock():
    """Address of a lock that is taken; it is never freed, as helpers wait for it until the process ends."""
    allocate = ctypes.pythonapi["PyThread_allocate_lock"]
    allocate.restype = ctypes.c_void_p
    lock = allocate()
    if not lock:
        raise RuntimeError("can't allocate lock")
    ctypes.pythonapi["PyThread_acquire_lock"](ctypes.c_void_p(lock), 1)
    return lock


@register_jitable
def take(lock):
    for _ in range(TRIES // IN_TURN):
        for _ in range(IN_TURN):
            if acquire(lock, 0):
                return
        let_others()
    acquire(lock, 1)


@intrinsic
def call(typing_context, function, lo, hi, place):
    """Call a function of three integers at an address."""

    def lower(context, builder, signature, args):
        kind = ir.FunctionType(INDEX, [INDEX] * 3)
        return builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])

    return INT(INT, INT, INT, INT), lower


def serve_batch(identity):
    """Kernel in which helper `lo` waits for calls, for ever."""

    def kernel(lo, hi, boxes):
        box = lo * BOX
        while lo < hi:
            take(boxes[box + GO])
            call(boxes[box + FUNCTION], boxes[box + LO], boxes[box + HI], boxes[box + PLACE])
            release(boxes[box + DONE])
        return identity

    return kernel


def hand_out_batch(identity):
    """Kernel that lets helpers[lo:hi] call a function for a part of the range each, and calls it for the last part."""

    def kernel(lo, hi, boxes, helpers, function, bounds, place, step):
        for t in range(lo, hi):
            box = helpers[t] * BOX
            boxes[box + FUNCTION], boxes[box + PLACE] = function, place + t * step
            boxes[box + LO], boxes[box + HI] = bounds[t], bounds[t + 1]
            release(boxes[box + GO])
        if lo < hi:
            call(function, bounds[hi], bounds[hi + 1], place + hi * step)
        for t in range(lo, hi):
            take(boxes[helpers[t] * BOX + DONE])
        return identity

    return kernel


@functools.cache
def serve():
    return compiled(serve_batch, (INTS,))


@functools.cache
def hand_out():
    return compiled(hand_out_batch, (INTS, INTS, INT, INTS, INT, INT))


class Words:
    """The arguments of a kernel after the range, as words in memory, and the function that calls the kernel with them.

    The first word is the kernel's address. Complex numbers take two words, arrays, which have to be C-contiguous and of
    the kernel's type, their address and size. What a kernel raised would be lost: kernels for several threads do not.
    """

    def __init__(self, kernel):
        self.codes = [code_of(kind) for kind in kernel.signatures[0][2:]]
        self.plain = set(self.codes) <= {"q", "d"}
        self.struct = struct.Struct("q" + "".join(FORMATS.get(code, "qq") for code in self.codes))
        self.kernel, self.function = c_address(kernel), c_address(caller("".join(self.codes)))

    def filled(self, rows):
        """Memory with the words of several sets of arguments."""
        memory = bytearray(self.struct.size * len(rows))
        for place, args in zip(range(0, len(memory), self.struct.size), rows, strict=True):
            self.struct.pack_into(memory, place, self.kernel, *(args if self.plain else self.numbers(args)))
        return memory

    def numbers(self, args):
        for code, x in zip(self.codes, args, strict=True):
            if code.startswith("["):
                yield from (x.ctypes.data, x.size)
            elif code == "D":
                yield from (x.real, x.imag)
            else:
                yield x


words_of = functools.cache(Words)


def code_of(kind):
    """Letter of a type of numbers, as in NumPy, and after a bracket for an array.

    Integers are "q" of 64 bits or "i" of 32: which of them "l" is depends on the system.
    """
    if isinstance(kind, types.Array):
        return "[" + code_of(kind.dtype)
    return {types.int64: "q", types.int32: "i"}.get(kind) or as_dtype(kind).char


def parse(codes):
    for code in re.findall(r"\[?\w", codes):
        number = from_dtype(np.dtype(code[-1]))
        yield number[::1] if code.startswith("[") else number


def c_address(kernel):
    """Address of a kernel as a function of C."""
    result = kernel.overloads[kernel.signatures[0]]
    return result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name)


@functools.cache
def caller(codes):
    return compiled(call_batch, (INT,), codes)


def call_batch(codes, identity):
    """Kernel that calls another for its range, with the arguments in the words at `place`."""

    def kernel(lo, hi, place):
        if lo < hi:
            call_with_words(lo, hi, place, codes)
        return identity

    return kernel


@intrinsic(prefer_literal=True)
def call_with_words(typing_context, lo, hi, place, codes):
    kinds = list(parse(codes.literal_value))

    def lower(context, builder, signature, args):
        words, values = itertools.count(), []

        def load(kind):
            pointer = builder.inttoptr(builder.add(args[2], INDEX(8 * next(words))), kind.as_pointer())
            return builder.load(pointer, typ=kind)

        function = load(INDEX)
        for kind in kinds:
            if isinstance(kind, types.Array):
                array = context.make_array(kind)(context, builder)
                item = INDEX(as_dtype(kind.dtype).itemsize)
                data = builder.inttoptr(load(INDEX), array.data.type)
                populate_array(array, data, [load(INDEX)], [item], item, None)
                values.append(array._getvalue())
            elif isinstance(kind, types.Complex):
                number = context.make_complex(builder, kind)
                number.real, number.imag = load(DOUBLE), load(DOUBLE)
                values.append(number._getvalue())
            else:
                values.append(load(context.get_value_type(kind)))
        values = [*args[:2], *values]
        shape = ir.FunctionType(INDEX, [value.type for value in values])
        return builder.call(builder.inttoptr(function, shape.as_pointer()), values)

    return INT(INT, INT, INT, codes), lower
