"""How a call reaches threads that wait for one: in compiled code, since Python would have them queue for its lock.

Each helper has a box: two locks, and what it shall call. Locks and threads are those that Python is made with, which
every platform has and which need no interpreter; what other packages put in the place of `threading` is not asked.
Kernels get their arguments from words of 64 bits in memory, see `Words`.
"""

import functools
import itertools
import re
import struct
import sys
from typing import Any

import numpy as np
from llvmlite import ir
from numba import carray, types
from numba.extending import intrinsic, register_jitable
from numba.np.arrayobj import populate_array
from numba.np.numpy_support import as_dtype, from_dtype

from compactla.cpu.compile import INT, compiled, compiled_once
from compactla.cpu.emit.call import DATA
from compactla.cpu.emit.index import INDEX
from compactla.overlap import address

# Words of a box: whether a call has it, whether there is a helper, the locks that it waits for and releases, and a
# function with its arguments; a cache line.
TAKEN, THERE, GO, DONE, FUNCTION, LO, HI, PLACE, BOX = 0, 1, 2, 3, 4, 5, 6, 7, 8
# How often a lock is tried before a thread sleeps, for 0.1 to 0.2 ms, and how often between two turns of other threads.
TRIES, IN_TURN = 4000, 50
# How numbers are put into words, by NumPy's letters, and addresses of data, "p"; other arguments are arrays.
FORMATS = {"q": "q", "d": "d", "D": "dd", "p": "q"}
DOUBLE = ir.DoubleType()

allocate = types.ExternalFunction("PyThread_allocate_lock", types.intp())
acquire = types.ExternalFunction("PyThread_acquire_lock", types.intc(types.intp, types.intc))
release = types.ExternalFunction("PyThread_release_lock", types.void(types.intp))
# Of what it returns, a long, the lower half tells whether there is a thread, also where a long has no upper half.
start_thread = types.ExternalFunction("PyThread_start_new_thread", types.int32(types.intp, types.intp))
let_others = types.ExternalFunction("SwitchToThread" if sys.platform == "win32" else "sched_yield", types.intc())


@intrinsic
def exchange(typing_context, address, value):
    """Put a word at an address, and return what was there, at once."""

    def lower(context, builder, signature, args):
        return builder.atomic_rmw("xchg", builder.inttoptr(args[0], INDEX.as_pointer()), args[1], "seq_cst")

    return INT(INT, INT), lower


@intrinsic
def pointer(typing_context: Any, address: Any) -> Any:
    def lower(context, builder, signature, args):
        return builder.inttoptr(args[0], context.get_value_type(types.voidptr))

    return types.voidptr(INT), lower


@register_jitable
def take(lock):
    for _ in range(TRIES // IN_TURN):
        for _ in range(IN_TURN):
            if acquire(lock, 0):
                return
        let_others()
    acquire(lock, 1)


@intrinsic
def call(typing_context: Any, function: Any, lo: Any, hi: Any, place: Any) -> Any:
    """Call a function of three integers at an address."""

    def lower(context, builder, signature, args):
        kind = ir.FunctionType(ir.VoidType(), [INDEX] * 3)
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])
        return context.get_dummy_value()

    return types.void(INT, INT, INT, INT), lower


@compiled_once
def serve(place):
    """Wait for calls, for ever, in the thread of the helper whose box is there."""
    box = carray(pointer(place), BOX, np.int64)
    go, done = box[GO], box[DONE]  # which are never freed: between two calls the box need not be there
    while True:
        take(go)
        call(box[FUNCTION], box[LO], box[HI], box[PLACE])
        release(done)


@register_jitable
def has_helper(box, place, server):
    """Whether a box, which is taken, has a helper: it gets one when that is asked first."""
    for lock in (GO, DONE):
        if not box[lock]:
            box[lock] = allocate()
            if not box[lock]:
                return False
            acquire(box[lock], 0)
    if not box[THERE]:
        box[THERE] = start_thread(server, place) != -1
    return box[THERE] != 0


@register_jitable
def bound(t, parts, count, offset):
    """Where part t of a range starts: items are equal, or item i is ``offset[i + 1] - offset[i]`` of the work."""
    if not len(offset):
        return count * t // parts
    lo, hi, goal = 0, count, offset[count] * t // parts
    while lo < hi:
        middle = (lo + hi) // 2
        if offset[middle] < goal:
            lo = middle + 1
        else:
            hi = middle
    return lo


@compiled_once
def hand_out(
    boxes: Any, server: int, parts: int, function: int, count: int, offset: Any, place: int, step: int
) -> None:  # fmt: skip
    """Call a function for parts of the items 0 to count - 1, the last one here, the others in helpers.

    There are fewer parts if other calls have the helpers, or there are no more threads. All is done within compiled
    code, where no interrupt comes between taking helpers and giving them back.
    """
    memory, taken = boxes.ctypes.data, np.empty(parts - 1, np.int64)
    helpers = 0
    for b in range(len(boxes)):
        if helpers == parts - 1:
            break
        if not exchange(memory + 8 * (b * BOX + TAKEN), 1):  # type: ignore[call-arg] # the first one is the compiler's
            if has_helper(boxes[b], memory + 8 * b * BOX, server):
                taken[helpers] = b
                helpers += 1
            else:
                exchange(memory + 8 * (b * BOX + TAKEN), 0)
                break
    lo = 0
    for t in range(helpers):
        box, hi = boxes[taken[t]], bound(t + 1, helpers + 1, count, offset)
        box[FUNCTION], box[LO], box[HI], box[PLACE] = function, lo, hi, place + t * step
        release(box[GO])
        lo = hi
    call(function, lo, count, place + helpers * step)  # type: ignore[call-arg] # the first one is the compiler's
    for t in range(helpers):
        take(boxes[taken[t], DONE])
        exchange(memory + 8 * (taken[t] * BOX + TAKEN), 0)


@functools.cache
def server() -> int:
    """Address of the function that helpers run."""
    serve.compile(types.void(INT))
    return c_address(serve)


class Words:
    """The arguments of a kernel after the range, as words in memory, and the function that calls the kernel with them.

    The first word is the kernel's address. Complex numbers take two words, arrays, which have to be C-contiguous and of
    the kernel's type, their address and size. The last of a kernel's arguments may be a tuple of all that follow.
    What a kernel raised would be lost: kernels for several threads do not.
    """

    def __init__(self, kernel):
        *kinds, last = kernel.signatures[0][2:]
        rest = [*last] if isinstance(last, types.BaseTuple) else []
        kinds = kinds if rest else [*kinds, last]
        self.name = kernel.py_func.__qualname__
        self.dtypes = [as_dtype(kind.dtype) if isinstance(kind, types.Array) else None for kind in (*kinds, *rest)]
        codes, others = ([code_of(kind) for kind in some] for some in (kinds, rest))
        self.codes = codes + others
        self.plain = set(self.codes) <= {"q", "d"}
        self.struct = struct.Struct("q" + "".join(FORMATS.get(code, "qq") for code in self.codes))
        of_caller = "".join(codes) + f"({''.join(others)})" * bool(rest)
        self.kernel, self.function = c_address(kernel), c_address(caller(of_caller))

    def filled(self, rows):
        """Memory with the words of several sets of arguments."""
        memory = bytearray(self.struct.size * len(rows))
        for place, args in zip(range(0, len(memory), self.struct.size), rows, strict=True):
            if args and type(args[-1]) is tuple:
                args = *args[:-1], *args[-1]
            self.struct.pack_into(memory, place, self.kernel, *(args if self.plain else self.numbers(args)))
        return memory

    def numbers(self, args):
        for code, dtype, x in zip(self.codes, self.dtypes, args, strict=True):
            if dtype is not None:
                if x.dtype != dtype or not x.flags.c_contiguous:
                    has = f"of {x.dtype}, with strides {x.strides} and shape {x.shape}"
                    raise TypeError(f"an array for {self.name} is {has}, must be of {dtype} and C-contiguous")
                yield from (address(x), x.size)
            elif code == "D":
                yield from (x.real, x.imag)
            elif code == "p":
                yield address(x)
            else:
                yield x


words_of = functools.cache(Words)


def code_of(kind):
    """Letter of a type of numbers, as in NumPy, and after a bracket for an array; "p" where only its address is passed.

    Integers are "q" of 64 bits or "i" of 32: which of them "l" is depends on the system.
    """
    if isinstance(kind, types.Array):
        return "[" + code_of(kind.dtype)
    return {types.int64: "q", types.int32: "i", DATA: "p"}.get(kind) or as_dtype(kind).char


def parse(codes):
    for code in re.findall(r"\[?\w", codes):
        number = from_dtype(np.dtype(code[-1]))
        yield number[::1] if code.startswith("[") else number


def c_address(kernel: Any) -> int:
    """Address of a kernel as a function of C."""
    result = kernel.overloads[kernel.signatures[0]]
    return result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name)


@functools.cache
def caller(codes):
    return compiled(call_batch, (INT,), codes)


def call_batch(codes):
    """Kernel that calls another for its range, with the arguments in the words at `place`.

    They are of the types that `codes` are letters of; those in brackets are one tuple.
    """

    def kernel(lo, hi, place):
        call_with_words(lo, hi, place, codes)

    return kernel


@intrinsic(prefer_literal=True)
def call_with_words(typing_context, lo, hi, place, codes):
    plain, _, rest = codes.literal_value.partition("(")
    kinds, rest = list(parse(plain)), list(parse(rest.rstrip(")")))

    def lower(context, builder, signature, args):
        words, values = itertools.count(), []

        def load(kind):
            pointer = builder.inttoptr(builder.add(args[2], INDEX(8 * next(words))), kind.as_pointer())
            return builder.load(pointer, typ=kind)

        function = load(INDEX)
        for kind in (*kinds, *rest):
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
        if rest:
            values[len(kinds) :] = [context.make_tuple(builder, types.Tuple(rest), values[len(kinds) :])]
        values = [*args[:2], *values]
        shape = ir.FunctionType(ir.VoidType(), [value.type for value in values])
        builder.call(builder.inttoptr(function, shape.as_pointer()), values)
        return context.get_dummy_value()

    return types.void(INT, INT, INT, codes), lower
