"""How the CPU runs a routine: one compiled kernel for each specialisation, its packs shared out over threads.

There is one batch kernel for all routines: it calls the routine on the packs one after the other.
"""

import functools
import importlib
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import types

from compactla.calls.launch import Launch
from compactla.calls.plans import Plans
from compactla.cpu.compile import INT, INTS, compiled
from compactla.cpu.cost import STATIC, known_form, operations, pack_bytes, width
from compactla.cpu.emit.call import Arguments, emitted, text_of
from compactla.cpu.emit.choices import choices
from compactla.cpu.emit.matrices import STORED, Elements, shifted
from compactla.cpu.emit.numba_matrices import fence, parse_form
from compactla.cpu.emit.prefetch import LEAST, nbytes, successive
from compactla.cpu.threads.sharing import divided, is_small, share
from compactla.dtypes import REAL
from compactla.view import View

INT64 = np.dtype(np.int64)
FAR = choices().far  # bytes of operands
# Sizes up to which kernels know how many lanes a pack has; larger ones may become slower by that.
SMALL, SMALL_COMPLEX = 8, 5
SCALAR = {"f": types.float64, "c": types.complex128}
chosen = Plans()  # what `choice` says


class RoutineCall(NamedTuple):
    """What a kernel of a routine is compiled for; `compactla.cpu.emit.call` has an example.

    Attributes
    ----------
    routine : str
        Its name, which is that of its file in `compactla.cpu.kernels`.
    sizes : str
        Letters of the sizes that are arguments.
    options : tuple of (str, str or bool)
        Names and values of options.
    scalars : tuple of (str, int or None)
        Names of scalars, and the values of those that are compiled in.
    outputs : tuple of str
        Names of arrays that have an element for each matrix.
    operands : tuple of (str, str, str)
        For each matrix, first the letters of its rows and columns. Second "common" if one stands for all lanes, "ahead"
        if it is fetched ahead, "half" if its triangle is, "stream" if it is written past the caches, or "near". Third
        its form, as `compactla.cpu.emit.numba_matrices.form` makes it.
    """

    routine: str
    sizes: str
    options: tuple
    scalars: tuple
    outputs: tuple
    operands: tuple


def start(
    row: Any, views: Sequence[View], scalars: Any, conj: Any, option: Any, nm: int, info: Any, launch: Launch
) -> Any:
    """Run a routine on packs, as `compactla.routine.Routine.run` checked them; the arguments are its."""
    kernel, cost, args = kernel_and_arguments(row, views, scalars, conj, option)
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


def again(row: Any, views: Sequence[View], scalars: Any, conj: Any, option: Any, nm: int, launch: Launch) -> Any:
    """A function that does the same whenever it is called, as long as the operands are there.

    It takes the addresses of the operands that are made in each call, which are the last ones.
    """
    kernel, cost, args = kernel_and_arguments(row, views, scalars, conj, option)
    made = len(views) - row.given
    if not row.outputs and not made:
        function, *rest = divided(kernel, cost, args, launch.threads)
        return functools.partial(function, *rest)
    _, npack, V, rest = args
    lanes, small, entry = npack * V if row.outputs else None, is_small(cost), kernel.entry
    given = rest[: len(rest) - 4 * made]
    strides = [A.place[1:] for A in views[len(views) - made :]]
    single = strides[0] if made == 1 else None

    def call(*made):
        words, output = given, None
        if single is not None:
            words = *words, made[0], *single
        elif made:
            for start, its in zip(made, strides):  # noqa: B905 # which takes longer where it is strict
                words = *words, start, *its
        if lanes is not None:
            output = np.zeros(lanes, INT64)
            words = *words, output
        if small:  # as most calls
            entry(0, npack, V, words)
        else:
            share(kernel, cost, (0, npack, V, words), launch)
        return output if lanes is None or lanes == nm else output[:nm]

    return call


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


def kernel_and_arguments(row: Any, views: Sequence[View], scalars: Any, conj: Any, option: Any) -> tuple:
    """Return the kernel for these operands, what a call of it costs, and its arguments, but for outputs."""
    main = views[row.main]
    npack = main.npack
    layouts: tuple
    addresses: tuple
    if len(views) == 1:
        layouts, addresses = (main.layout,), main.place
    elif len(views) == 2:
        a, b = views
        layouts, addresses = (a.layout, b.layout), (*a.place, *b.place)
    elif len(views) == 3:
        a, b, c = views
        layouts, addresses = (a.layout, b.layout, c.layout), (*a.place, *b.place, *c.place)
    else:
        layouts, addresses = tuple(A.layout for A in views), tuple(x for A in views for x in A.place)
    fixed = scalars if row.fixed and scalars in row.fixed else None
    key = row, layouts, fixed, conj, option
    try:
        extents, kernel, cost, size = chosen.known[key]
    except KeyError:
        extents, kernel, cost, size = chosen.add(key, choice(*key))
    if npack * size > FAR:
        far = "stream" if streamed(row, views, scalars) else "far"
        _, kernel, *_ = chosen.known.get((*key, far)) or chosen.add((*key, far), choice(*key, far))
    V, *sizes = extents
    return kernel, npack * cost, (0, npack, V, (*sizes, *scalars, *addresses))


def streamed(row, views, scalars) -> bool:
    """Tell whether what is written is not read, and aligned."""
    written = [view for A, view in zip(row.operands, views, strict=True) if is_unread(A, row, scalars)]
    return bool(written) and all(map(is_aligned, written))


def is_unread(operand, row, scalars) -> bool:
    """Tell whether the scalar that an operand is multiplied by is zero."""
    return any(name == operand.scaled_by and value == 0 for name, value in zip(row.scalars, scalars, strict=True))


def is_aligned(A: View):
    """Tell whether all vectors of a batch of contiguous matrices are aligned."""
    item = REAL[A.dtype.char].itemsize
    register = width(A.dtype, A.vlen) * item
    return register & (register - 1) == 0 and A.address % register == 0 and A.ps * item % register == 0


def choice(row, layouts, fixed, conj, option, far=""):
    """Choose V and sizes, the kernel, what a pack costs, and its bytes if fetching them ahead is a choice."""
    main, sizes = layouts[row.main], row.sizes(layouts)
    lanes = width(main.dtype, main.vlen)
    known = not left_open(row, sizes, fixed) and all(A.strides for A in layouts)

    # What the kernel is compiled for
    fixed = None if row.free and not known else fixed
    values = [int(x.real) for x in fixed] if fixed else [None] * len(row.scalars)
    numbers = row.numbers(sizes)
    letters = "".join(letter for letter in numbers if letter != "1")
    operands = []
    for operand, A, flag in zip(row.operands, layouts, conj or [False] * len(layouts), strict=True):
        if far == "stream" and is_unread(operand, row, fixed):
            role = "stream"
        elif A.common:
            role = "common"
        else:
            role = "near" if not far or row.together else "half" if operand.half else "ahead"
        operands.append((operand.sizes, role, known_form(A, known, flag, sizes=operand.sizes, lanes=lanes)))
    options = tuple(zip(row.compiled, option, strict=True))
    scalars = tuple(zip(row.scalars, values, strict=True))
    text = text_of(RoutineCall(row.name, letters, options, scalars, tuple(row.outputs), tuple(operands)))

    # Types of its arguments, and how it goes through the packs
    number = SCALAR[main.dtype.kind]
    kinds = [INT] * len(letters) + [number] * len(row.scalars) + [INT] * (4 * len(layouts))
    arguments = INT, types.Tuple((*kinds, *[INTS] * len(row.outputs)))
    largest = max(sizes) if known and lanes == main.vlen else math.inf
    pairs, few = largest in row.paired, largest <= (SMALL_COMPLEX if main.dtype.kind == "c" else SMALL)
    loop = together if row.together else paired if pairs else packs if few else batch
    kernel = compiled(loop, arguments, text, lanes, far == "stream", source=f"compactla.cpu.kernels.{row.name}")

    nbytes = known * sum(pack_bytes(A) for A in layouts if not A.common)
    extents = main.vlen, *(numbers[letter] for letter in letters)
    return extents, kernel, pack_cost(row, sizes, main), nbytes


def left_open(row: Any, sizes: Sequence[int], fixed: Any) -> str:
    """The reason why sizes are not compiled in; "" if they are, in matrices without gaps."""
    most = STATIC if row.static is None else row.static
    if len({*sizes} - {1}) > 1:  # neither square, nor with one right-hand side
        return "sizes are not equal, or 1"
    if max(sizes) > most:
        return f"sizes are above {most}"
    if fixed is None and row.fixed and not row.free:
        return f"{', '.join(row.scalars)} are none of {', '.join(map(str, sorted(row.fixed)))}"
    return ""


def pack_cost(row: Any, sizes: Sequence[int], main: Any) -> float:
    """The cost of a pack, in vector operations."""
    moved = row.elements(sizes, main.dtype) * main.vlen * main.dtype.itemsize
    return operations(main, row.work(sizes), moved)


def batch(text, width, streams):
    """Make the kernel of any routine for packs lo to hi: V lanes each, in vectors of a `width`.

    Its arguments are sizes, scalars, address and strides of each operand, and outputs.
    """

    def kernel(lo, hi, V, args):
        for p in range(lo, hi):
            for v in range(0, V, width):
                call(text, 1, p, v, V, args)
        if streams:
            fence()

    return kernel


def packs(text, width, streams):
    """Make the kernel as `batch` does, for packs of as many lanes as are computed with."""

    def kernel(lo, hi, V, args):
        for p in range(lo, hi):
            call(text, 1, p, 0, width, args)
        if streams:
            fence()

    return kernel


def together(text, width, streams):
    """Make the kernel as `batch` does, with all packs in one call of the routine."""

    def kernel(lo, hi, V, args):
        if lo < hi:
            for v in range(0, V, width):
                call(text, hi - lo, lo, v, V, args)

    return kernel


def paired(text, width, streams):
    """Make the kernel as `batch` does, with two packs at a time."""

    def kernel(lo, hi, V, args):
        last = hi - (hi - lo) % 2
        for p in range(lo, last, 2):
            call(text, 2, p, 0, width, args)
        if last < hi:
            call(text, 1, last, 0, width, args)
        if streams:
            fence()

    return kernel


@emitted(RoutineCall)
def call(code, description, count, p, v, V, args):
    """Call a routine at the pack level on lanes v and up of so many packs from p on.

    If the count is known, and more than one, each operand is as many matrices; else `Elements.packs` has it.
    """
    routine, letters, options, scalars, outputs, operands = description
    emit = getattr(importlib.import_module(f"compactla.cpu.kernels.{routine}"), routine).emit
    side = count if isinstance(count, int) else 1
    count, v, V = map(code.unknown, (count, v, V))

    # Sizes, options and scalars; what is compiled in is an argument too
    arguments, keywords = Arguments(args), dict(options)
    sizes = {letter: arguments.one() for letter in letters} | {"1": 1}
    for name, value in scalars:
        number = arguments.one()
        keywords[name] = number if value is None else value

    # Operands, and those that follow them and are fetched
    matrices, following, uplo = [], [], keywords.get("uplo", "L")
    for (rows, columns), role, form in operands:
        where = _, step, *_ = arguments.some(4)  # from pack to pack
        form, lanes = parse_form(form), (0, 1) if role == "common" else (v, V)
        packs = [p + k for k in range(side)]
        alike = [matrix_of(code, form, where, sizes[rows], sizes[columns], pack, *lanes) for pack in packs]
        for A in alike:
            A.stream, A.common, A.packs = role == "stream", role == "common", (count, step)
            if role == "ahead":
                following.append(successive(A.following(step * side, v, V), side))
            elif role == "half":
                following.append(successive(A._replace(base=A.pack(side).base, half=uplo), side))
        matrices.append(alike if side > 1 else alike[0])
    most = max(map(nbytes, following), default=0)
    following = tuple(A for A in following if nbytes(A) == most >= LEAST)  # vectors beside matrices come soon enough

    # Outputs, from the element of the first lane on
    first = p * V + v
    for name in outputs:
        keywords[name] = code.address(arguments.one(), first)
    emit(code, *matrices, **keywords, ahead=following)


def matrix_of(code, form, where, m, n, p, v, V):
    """View lanes v and up of pack p, which has V, as an m x n matrix; `where` is the address, ps, rs and cs."""
    b, (address, ps, rs, cs) = code.builder, where
    element = STORED.get(form.stored, form.vector.part.element)
    base = shifted(b, b.inttoptr(address.value, element.as_pointer()), p * ps + v, element)
    known, passed = (form.m, form.n, form.rs, form.cs), (m, n, rs, cs)
    shape = (x if number is None else number for number, x in zip(known, passed, strict=True))
    return Elements(code, form.vector, base, *shape, V, form.conj, form.stored)
