"""What XLA calls on a CPU: compiled code, which takes no lock of Python.

It finds the plan of a call by its key, the memory in the call frame, and shares the matrices out over our threads. All
functions have this one handler. Python is called only for a key that this process has no plan for, as that of a program
that was compiled in another one.
"""

import numpy as np
from llvmlite import ir
from numba import carray, types
from numba.extending import intrinsic, register_jitable

from compactla.cpu.compile import INT, compiled_once
from compactla.cpu.emit.index import INDEX
from compactla.cpu.emit.numba_words import call, pointer, put, reader, word, writer
from compactla.cpu.linalg.stacks import FAILED
from compactla.cpu.threads.pool import hand_out
from compactla.cpu.threads.sharing import GRAIN
from compactla.jax import frame
from compactla.jax.frame import Attributes, Buffer, Buffers, Extension, Frame, Metadata, Scalar, Text, offset

SYMBOL = "compactla_xla_state"  # the words of a process: the handler finds them by name, for its code is kept on disk
# These words: the table of plans, the functions that make one and the error that there is no memory, the boxes of
# helpers and how many there are, and what helpers run.
STATE = 6
TABLE, MAKE, REFUSE, BOXES, HELPERS, SERVER = range(STATE)
KEY, TEXT = "key", "plan"  # attributes of a call
# Words of a plan: the function that calls the kernel for a range, the kernel, its cost for a pack and the matrices of a
# pack, how many inputs and outputs there are, the input that says how many matrices (-1: one), which matrices are blank
# for want of a result (`NONE`, `THOSE` that failed, or `ALL` that are doubtful), how many words the kernel has, and
# where. Three more for each output: its bytes, those of an item, and the item that makes it blank.
FUNCTION, KERNEL, COST, LANES, INPUTS, OUTPUTS, LEADER, FILLED, WORDS, PLACE, MADE = range(11)
NONE, THOSE, ALL = 0, 1, 2
INITIAL = ord(KEY[0])

# Where things are in the call frame
EXTENSION, STAGE, INTERFACE = (offset(Frame, name) for name in ("extension", "stage", "interface"))
ARGUMENTS, RESULTS, ATTRIBUTES = (offset(Frame, name) for name in ("arguments", "results", "attributes"))
EXTENSION_TYPE, METADATA = offset(Extension, "type"), offset(Extension, "metadata")
MAJOR, MINOR = offset(Metadata, "version", "major"), offset(Metadata, "version", "minor")
TRAITS, ENTRIES = offset(Metadata, "traits"), offset(Buffers, "entries")
DATA, RANK, SHAPE = (offset(Buffer, name) for name in ("data", "rank", "shape"))
COUNT, NAMES, VALUES = (offset(Attributes, name) for name in ("count", "names", "entries"))
NAME_START, VALUE = offset(Text, "start"), offset(Scalar, "value")
ASKS, RUNS = frame.METADATA, frame.EXECUTE
VERSION_MAJOR, VERSION_MINOR = frame.VERSION

allocate = types.ExternalFunction("NRT_Allocate", types.intp(types.uintp))
free = types.ExternalFunction("NRT_Free", types.void(types.intp))


half, byte, put_half = reader(ir.IntType(32)), reader(ir.IntType(8)), writer(ir.IntType(32))


@intrinsic
def state(typing_context):
    """Address of the words of this process."""

    def lower(context, builder, signature, args):
        module = builder.module
        known = module.globals.get(SYMBOL)
        return builder.ptrtoint(known or ir.GlobalVariable(module, INDEX, SYMBOL), INDEX)

    return INT(), lower


@intrinsic
def ask(typing_context, function, frame):
    """Call a function of a call frame at an address, which returns an address."""

    def lower(context, builder, signature, args):
        kind = ir.FunctionType(INDEX, [INDEX])
        return builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])

    return INT(INT, INT), lower


@register_jitable
def key_of(frame):
    """The key among the attributes, which is the only one with this initial."""
    attributes = frame + ATTRIBUTES
    for i in range(word(attributes + COUNT)):
        name = word(word(attributes + NAMES) + 8 * i)
        if byte(word(name + NAME_START)) == INITIAL:
            return word(word(word(word(attributes + VALUES) + 8 * i) + VALUE))
    return 0


@register_jitable
def find(key):
    """The address of the plan with this key, 0 if there is none."""
    table = word(state() + 8 * TABLE)
    mask = word(table)
    i = key & mask
    while True:
        place = table + 8 * (1 + 2 * i)
        found = word(place)
        if found == key:
            return word(place + 8)
        if found == 0:
            return 0
        i = (i + 1) & mask


@register_jitable
def memory(frame, buffers, i):
    """The buffer of an argument or a result."""
    return word(word(frame + buffers + ENTRIES) + 8 * i)


@register_jitable
def matrices(buffer):
    """How many matrices there are in a buffer: along all axes but the last two."""
    count = 1
    for axis in range(word(buffer + RANK) - 2):
        count *= word(word(buffer + SHAPE) + 8 * axis)
    return count


@register_jitable
def run(plan, frame):
    """Compute what a plan is for; 1 if there is no memory."""
    inputs, outputs = word(plan + 8 * INPUTS), word(plan + 8 * OUTPUTS)
    leader, words = word(plan + 8 * LEADER), word(plan + 8 * WORDS)
    nm = 1 if leader < 0 else matrices(memory(frame, ARGUMENTS, leader))
    if nm == 0:
        return 0

    # Arguments of the kernel: its address, its words, the status, inputs and outputs; its words; the status
    count = 3 + inputs + outputs
    block = allocate(np.uintp(8 * (count + words) + nm + 1))
    if block == 0:
        return 1
    own, status = block + 8 * count, block + 8 * (count + words)
    put(block, word(plan + 8 * KERNEL))
    put(block + 8, own)
    put(block + 16, status)
    for i in range(inputs):
        put(block + 8 * (3 + i), word(memory(frame, ARGUMENTS, i) + DATA))
    for i in range(outputs):
        put(block + 8 * (3 + inputs + i), word(memory(frame, RESULTS, i) + DATA))
    put(own, nm)
    for i in range(1, words):
        put(own + 8 * i, word(word(plan + 8 * PLACE) + 8 * i))
    entries = carray(pointer(status), nm + 1, np.uint8)
    entries[:] = 0

    # The matrices, in as many parts as they are worth
    lanes, cost = word(plan + 8 * LANES), word(plan + 8 * COST)
    npack, helpers = (nm + lanes - 1) // lanes, word(state() + 8 * HELPERS)
    parts = min(helpers + 1, npack, npack * cost // GRAIN)
    if parts < 2 or npack * cost * (parts - 1) < 3 * GRAIN * parts:
        call(word(plan + 8 * FUNCTION), 0, npack, block)
    else:
        boxes, server, function = word(state() + 8 * BOXES), word(state() + 8 * SERVER), word(plan + 8 * FUNCTION)
        hand_out(boxes, helpers, server, parts, function, npack, 0, block, 0)

    # Matrices without a result
    strict = word(plan + 8 * FILLED)
    if strict and entries[nm]:
        for q in range(nm):
            if entries[q] == FAILED or (entries[q] and strict == ALL):
                for i in range(outputs):
                    size = word(plan + 8 * (MADE + 3 * i))
                    item = word(plan + 8 * (MADE + 3 * i + 1))
                    blank = word(plan + 8 * (MADE + 3 * i + 2))
                    start = word(block + 8 * (3 + inputs + i)) + q * size
                    for k in range(0, size, item):
                        if item == 8:
                            put(start + k, blank)
                        else:
                            put_half(start + k, blank)
    free(block)
    return 0


@compiled_once
def handle(frame):
    """Answer XLA: what a call frame asks for, or None, or the address of an error."""
    extension = word(frame + EXTENSION)
    if extension and half(extension + EXTENSION_TYPE) == ASKS:
        metadata = word(extension + METADATA)
        put_half(metadata + MAJOR, VERSION_MAJOR)
        put_half(metadata + MINOR, VERSION_MINOR)
        put_half(metadata + TRAITS, 0)
        return 0
    if half(frame + STAGE) != RUNS:
        return 0
    plan = find(key_of(frame))
    if plan == 0:
        error = ask(word(state() + 8 * MAKE), frame)
        if error:
            return error
        plan = find(key_of(frame))
    return ask(word(state() + 8 * REFUSE), frame) if plan == 0 or run(plan, frame) else 0
