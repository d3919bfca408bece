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
from numba import types
from numba.extending import intrinsic, register_jitable
from numba.np.arrayobj import populate_array
from numba.np.numpy_support import as_dtype, from_dtype

from compactla.cpu.compile import INT, compiled, compiled_in_place
from compactla.cpu.emit.call import DATA
from compactla.cpu.emit.index import INDEX
from compactla.cpu.emit.numba_words import call, claim, exchange, put, word
from compactla.overlap import address

# Words of a box: the box that the same call took before, `NONE` for the first, or 0 while no call has it; whether there
# is a helper, the locks that it waits for and releases, and a function with its arguments; a cache line.
TAKEN, THERE, GO, DONE, FUNCTION, LO, HI, PLACE, BYTES = range(0, 72, 8)
BOX, NONE = BYTES // 8, 1
# How often a lock is tried before a thread sleeps, for 0.1 to 0.2 ms, and how often between two turns of other threads.
TRIES, IN_TURN = 4000, 50
# How numbers are put into words, by NumPy's letters, and addresses of data, "p"; other arguments are arrays.
FORMATS = {"q": "q", "d": "d", "D": "dd", "p": "q"}
DOUBLE = ir.DoubleType()
plain = functools.partial(compiled_in_place, error_model="numpy")

allocate = types.ExternalFunction("PyThread_allocate_lock", types.intp())
acquire = types.ExternalFunction("PyThread_acquire_lock", types.intc(types.intp, types.intc))
release = types.ExternalFunction("PyThread_release_lock", types.void(types.intp))
# Of what it returns, a long, the lower half tells whether there is a thread, also where a long has no upper half.
start_thread = types.ExternalFunction("PyThread_start_new_thread", types.int32(types.intp, types.intp))
let_others = types.ExternalFunction("SwitchToThread" if sys.platform == "win32" else "sched_yield", types.intc())


@register_jitable
def take(lock):
    for _ in range(TRIES // IN_TURN):
        for _ in range(IN_TURN):
            if acquire(lock, 0):
                return
        let_others()
    acquire(lock, 1)


@plain
def serve(box):
    """Wait for calls, for ever, in the thread of the helper whose box is there."""
    go, done = word(box + GO), word(box + DONE)  # which are never freed: between two calls the box need not be there
    while True:
        take(go)
        call(word(box + FUNCTION), word(box + LO), word(box + HI), word(box + PLACE))
        release(done)


@register_jitable
def has_lock(place):
    """Whether there is a lock, which is made when that is asked first, and is taken."""
    if not word(place):
        put(place, allocate())
        if word(place):
            acquire(word(place), 0)
    return word(place) != 0


@register_jitable
def has_helper(box, server):
    """Whether a box, which is taken, has a helper: it gets one when that is asked first."""
    if not (has_lock(box + GO) and has_lock(box + DONE)):
        return False
    if not word(box + THERE):
        put(box + THERE, start_thread(server, box) != -1)
    return word(box + THERE) != 0


@register_jitable
def bound(t, parts, count, offset):
    """Where part t of a range starts: items are equal, or item i is ``offset[i + 1] - offset[i]`` of the work."""
    if not offset:
        return count * t // parts
    lo, hi, goal = 0, count, word(offset + 8 * count) * t // parts
    while lo < hi:
        middle = (lo + hi) // 2
        if word(offset + 8 * middle) < goal:
            lo = middle + 1
        else:
            hi = middle
    return lo


@plain
def hand_out(
    boxes: int, helpers: int, server: int, parts: int, function: int, count: int, offset: int, place: int, step: int
) -> None:  # fmt: skip
    """Call a function for parts of the items 0 to count - 1, the last one here, the others in helpers.

    There are fewer parts if other calls have the helpers, or there are no more threads. All is done within compiled
    code, where no interrupt comes between taking helpers and giving them back. Boxes and offsets, if there are any, are
    at addresses.
    """
    last, taken = NONE, 0
    for b in range(helpers):
        if taken == parts - 1:
            break
        box = boxes + BYTES * b
        if claim(box + TAKEN, last):  # type: ignore[call-arg] # the first one is the compiler's
            if not has_helper(box, server):
                exchange(box + TAKEN, 0)
                break
            last, taken = box, taken + 1
    box, t, own = last, taken, bound(taken, taken + 1, count, offset)
    hi = own
    while box != NONE:
        t -= 1
        lo = bound(t, taken + 1, count, offset)
        put(box + FUNCTION, function)
        put(box + LO, lo)
        put(box + HI, hi)
        put(box + PLACE, place + t * step)
        release(word(box + GO))
        box, hi = word(box + TAKEN), lo
    call(function, own, count, place + taken * step)  # type: ignore[call-arg] # the first one is the compiler's
    while last != NONE:
        take(word(last + DONE))
        last = exchange(last + TAKEN, 0)


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
