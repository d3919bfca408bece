"""How the CPU runs a routine: one compiled kernel for each specialisation, its packs shared out over threads.

There is one batch kernel for all routines: it calls the routine on the packs one after the other.
"""

import functools
import importlib
import math

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from compactla.calls.plans import Plans
from compactla.cpu.compile import INT, INTS, compiled
from compactla.cpu.cost import STATIC, known_form, operations, pack_bytes, width
from compactla.cpu.emit.code import Code, Number
from compactla.cpu.emit.matrices import INDEX, STORED, Elements, shifted
from compactla.cpu.emit.numba_matrices import fence, parse_form
from compactla.cpu.emit.prefetch import PAGE, nbytes
from compactla.cpu.threads.sharing import divided, share
from compactla.dtypes import REAL
from compactla.view import View

# Bytes of operands from which on they are fetched ahead, and results are written past the caches.
FAR = 8_000_000
# Sizes up to which kernels know how many lanes a pack has; larger ones may become slower by that.
SMALL, SMALL_COMPLEX = 8, 5
SCALAR = {"f": types.float64, "c": types.complex128}
LITERALS = {"True": True, "False": False}
shared = functools.cache(compiled)  # by all sizes that are not compiled in
chosen = Plans()  # what `choice` says


def start(row, views, scalars, conj, option, nm, info, launch):
    """Run a routine on packs, as `compactla.routine.Routine.run` checked them; the arguments are its."""
    kernel, cost, args = told(row, views, scalars, conj, option)
    output = None
    if launch.recorded:
        launch.keep(views)
        for A in views:
            if A.source is not None:
                launch.run(np.copyto, A.buffer, A.source)
        if row.outputs:
            output = np.zeros(args[1] * args[2], np.int64)
            launch.run(output.fill, 0)
    if row.outputs:
        return started(kernel, cost, args, output, nm, info, launch)
    share(kernel, cost, args, launch)
    return None


def again(row, views, scalars, conj, option, nm, launch):
    """A function that does the same whenever it is called, as long as the operands are there."""
    kernel, cost, args = told(row, views, scalars, conj, option)
    if row.outputs:
        return functools.partial(started, kernel, cost, args, None, nm, None, launch)
    function, *rest = divided(kernel, cost, args, launch.threads)
    return functools.partial(function, *rest)


def started(kernel, cost, args, output, nm, info, launch):
    """Run a kernel with an output behind what it is told, a new one by default; what of this is returned."""
    _, npack, V, rest = args
    if output is None:
        output = np.zeros(npack * V, np.int64)
    share(kernel, cost, (0, npack, V, (*rest, output)), launch)
    if info is None:
        return output if len(output) == nm else output[:nm]
    launch.run(np.copyto, info, output[:nm])
    return info


def told(row, views, scalars, conj, option):
    """The kernel for these operands, what a call of it costs, and its arguments, but for outputs."""
    main = views[row.main]
    npack = main.npack
    if len(views) == 1:
        layout, place = (main.layout,), main.place
    elif len(views) == 2:
        a, b = views
        layout, place = (a.layout, b.layout), (*a.place, *b.place)
    elif len(views) == 3:
        a, b, c = views
        layout, place = (a.layout, b.layout, c.layout), (*a.place, *b.place, *c.place)
    else:
        layout, place = tuple(A.layout for A in views), tuple(x for A in views for x in A.place)
    fixed = scalars if row.fixed and scalars in row.fixed else None
    key = row, layout, fixed, conj, option
    try:
        head, kernel, cost, size = chosen.known[key]
    except KeyError:
        head, kernel, cost, size = chosen.add(key, choice(*key))
    if npack * size > FAR:
        far = "stream" if streamed(row, views, scalars) else "far"
        _, kernel, *_ = chosen.known.get((*key, far)) or chosen.add((*key, far), choice(*key, far))
    V, *sizes = head
    return kernel, npack * cost, (0, npack, V, (*sizes, *scalars, *place))


def streamed(row, views, scalars) -> bool:
    """Whether what is written is not read, and aligned."""
    written = [view for A, view in zip(row.operands, views, strict=True) if is_unread(A, row, scalars)]
    return bool(written) and all(map(is_aligned, written))


def is_unread(operand, row, scalars) -> bool:
    """Whether the scalar that an operand is multiplied by is zero."""
    return any(name == operand.scaled_by and value == 0 for name, value in zip(row.scalars, scalars, strict=True))


def is_aligned(A: View):
    """Whether all vectors of a batch of contiguous matrices are aligned."""
    item = REAL[A.dtype.char].itemsize
    register = width(A.dtype, A.vlen) * item
    return register & (register - 1) == 0 and A.address % register == 0 and A.ps * item % register == 0


def choice(row, layouts, fixed, conj, option, far=""):
    """Vector length and sizes, the kernel, what a pack costs, and its bytes if fetching them ahead is a choice."""
    main, sizes = layouts[row.main], row.sizes(layouts)
    lanes = width(main.dtype, main.vlen)
    known = not left_open(row, sizes, fixed) and all(A.strides for A in layouts)
    fixed = None if row.free and not known else fixed
    scalars = [f"{name}={x.real:g}" for name, x in zip(row.scalars, fixed, strict=True)] if fixed else row.scalars
    options = " ".join(f"{name}={value}" for name, value in zip(row.compiled, option, strict=True))
    numbers = row.numbers(sizes)
    letters = [letter for letter in numbers if letter != "1"]
    text = [row.name, "".join(letters), options, " ".join(scalars), " ".join(row.outputs)]
    for operand, A, flag in zip(row.operands, layouts, conj or [False] * len(layouts), strict=True):
        if far == "stream" and is_unread(operand, row, fixed):
            role = "stream"
        elif A.common:
            role = "common"
        else:
            role = "ahead" if far and not row.together and worth_fetching(operand, A) else "near"
        text.append(f"{operand.sizes} {role} {known_form(A, known, flag, sizes=operand.sizes, lanes=lanes)}")
    number = SCALAR[main.dtype.kind]
    values = [INT] * len(letters) + [number] * len(row.scalars) + [INT] * (4 * len(layouts))
    arguments = INT, types.Tuple((*values, *[INTS] * len(row.outputs)))
    source = f"compactla.cpu.kernels.{row.name}"
    largest = max(sizes) if known and lanes == main.vlen else math.inf
    pairs, few = largest <= row.paired, largest <= (SMALL_COMPLEX if main.dtype.kind == "c" else SMALL)
    loop = together if row.together else paired if pairs else packs if few else batch
    kernel = shared(loop, arguments, "|".join(text), lanes, far == "stream", source=source)
    head = main.vlen, *(numbers[letter] for letter in letters)
    nbytes = known * sum(pack_bytes(A) for A in layouts if not A.common)
    return head, kernel, pack_cost(row, sizes, main), nbytes


def left_open(row, sizes, fixed) -> str:
    """The reason why sizes are not compiled in; "" if they are, in matrices without gaps."""
    most = STATIC if row.static is None else row.static
    if len({*sizes} - {1}) > 1:  # neither square, nor with one right-hand side
        return "sizes are not equal, or 1"
    if max(sizes) > most:
        return f"sizes are above {most}"
    if fixed is None and row.fixed and not row.free:
        return f"{', '.join(row.scalars)} are none of {', '.join(map(str, sorted(row.fixed)))}"
    return ""


def pack_cost(row, sizes, main):
    """The cost of a pack, in vector operations."""
    moved = row.elements(sizes, main.dtype) * main.vlen * main.dtype.itemsize
    return operations(main, row.work(sizes), moved)


def worth_fetching(operand, A) -> bool:
    """Whether enough is used of what would be fetched: not where half of a small matrix is not read."""
    return operand.written or not operand.half or pack_bytes(A) * width(A.dtype, A.vlen) >= 2 * PAGE * A.vlen


def batch(text, width, streams):
    """Kernel for packs lo to hi of any routine: sizes, scalars, places of operands, and outputs."""

    def kernel(lo, hi, V, args):
        for p in range(lo, hi):
            for v in range(0, V, width):
                call(text, 1, p, v, V, args)
        if streams:
            fence()

    return kernel


def packs(text, width, streams):
    """The same, of packs of as many lanes as are computed with."""

    def kernel(lo, hi, V, args):
        for p in range(lo, hi):
            call(text, 1, p, 0, width, args)
        if streams:
            fence()

    return kernel


def together(text, width, streams):
    """The same, all packs in one call."""

    def kernel(lo, hi, V, args):
        if lo < hi:
            for v in range(0, V, width):
                call(text, hi - lo, lo, v, V, args)

    return kernel


def paired(text, width, streams):
    """The same, two packs at a time."""

    def kernel(lo, hi, V, args):
        last = hi - (hi - lo) % 2
        for p in range(lo, last, 2):
            call(text, 2, p, 0, width, args)
        if last < hi:
            call(text, 1, last, 0, width, args)
        if streams:
            fence()

    return kernel


@intrinsic(prefer_literal=True)
def call(typing_context, text, count, p, v, V, args):
    """Call a routine at the pack level on lanes v and up of so many packs from p on; `choice` makes the text.

    If the count is known, and more than one, each operand is as many matrices; else `Elements.packs` has it.
    """
    name, letters, option, scalars, output, *operands = text.literal_value.split("|")
    emit = getattr(importlib.import_module(f"compactla.cpu.kernels.{name}"), name).emit
    constants = {key: LITERALS.get(value, value) for key, value in (part.split("=") for part in option.split())}

    def lower(context, builder, signature, values):
        side = count.literal_value if isinstance(count, types.IntegerLiteral) else 1
        kinds = [*signature.args[1:5], *signature.args[5]]
        passed = [*values[1:5], *cgutils.unpack_tuple(builder, values[5])]
        for i, kind in enumerate(kinds):
            if isinstance(kind, types.Array):
                passed[i] = context.make_array(kind)(context, builder, passed[i]).data

        def body(code, packed, p, v, V, *rest):
            given = iter(zip(kinds[4:], rest, strict=True))
            sizes = {letter: next(given)[1] for letter in letters} | {"1": 1}
            keywords = dict(constants)
            for scalar in scalars.split():
                known, _, value = scalar.partition("=")
                number = Number(context, *next(given))
                keywords[known] = int(value) if value else number
            matrices, coming = [], []
            for operand in operands:
                (rows, columns), role, form = operand.split(" ", 2)
                place = [next(given)[1] for _ in range(4)]
                form, lanes = parse_form(form), (INDEX(0), 1) if role == "common" else (v, V)
                packs = [code.add(p, k) for k in range(side)]
                found = [located(code, form, place, sizes[rows], sizes[columns], pack, *lanes) for pack in packs]
                for A in found:
                    A.stream, A.common, A.packs = role == "stream", role == "common", (packed, place[1])
                    if role == "ahead":
                        coming.append(A.following(code.mul(place[1], side), v, V))
                matrices.append(found if side > 1 else found[0])
            most = max(map(nbytes, coming), default=0)
            coming = [A for A in coming if nbytes(A) == most]  # vectors beside matrices come soon enough
            first = code.builder.add(code.builder.mul(p, V), v)
            for array in output.split():
                keywords[array] = code.builder.gep(next(given)[1], [first], source_etype=INDEX)
            emit(code, *matrices, **keywords, ahead=tuple(coming))

        name = f"compactla.{side}|{text.literal_value}"
        Code(builder).call(name, [x.type for x in passed], body, *passed)
        return context.get_dummy_value()

    return types.void(text, count, p, v, V, args), lower


def located(code, kind, place, m, n, p, v, V):
    """The m x n matrix of lanes v and up of pack p, which has V."""
    b, (address, ps, rs, cs) = code.builder, place
    element = STORED.get(kind.stored, kind.vector.part.element)
    base = shifted(b, b.inttoptr(address, element.as_pointer()), b.add(b.mul(p, ps), v), element)
    known, given = (kind.m, kind.n, kind.rs, kind.cs), (m, n, rs, cs)
    shape = (x if number is None else number for number, x in zip(known, given, strict=True))
    return Elements(code, kind.vector, base, *shape, V, kind.conj, kind.stored)
