"""How the CPU runs a routine on ordinary matrices: V of them at a time.

They are read, transposed in registers, worked on in the cache next to the core by the routine at the pack level, and
what it writes is written back. There is one kernel for all routines.
"""

import importlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.np.numpy_support import from_dtype

from compactla.calls.launch import Launch
from compactla.calls.plans import Plans
from compactla.cpu.compile import INT, compiled
from compactla.cpu.cost import MOVED, STATIC, parts
from compactla.cpu.emit.call import Arguments, emitted, text_of
from compactla.cpu.emit.matrices import native_width
from compactla.cpu.emit.numba_matrices import KINDS
from compactla.cpu.emit.prefetch import nbytes
from compactla.cpu.emit.vectors import FLOATS, Vector
from compactla.cpu.linalg.workspace import Workspace
from compactla.cpu.memory.matrices import Ordinary, lie
from compactla.cpu.run import SCALAR, left_open
from compactla.cpu.threads.sharing import share
from compactla.overlap import address
from compactla.view import View

plans = Plans()


class OrdinaryCall(NamedTuple):
    """What a kernel of a routine for ordinary matrices is compiled for; see `compactla.cpu.emit.call`.

    Attributes
    ----------
    routine : str
        Its name, which is that of its file in `compactla.cpu.kernels`.
    dtype : str
        Letter of the type.
    lanes : int
        Matrices that are worked on side by side.
    sizes : tuple of (str, int or None)
        Letters of sizes, and those that are compiled in.
    options : tuple of (str, str or bool)
        Names and values of options.
    scalars : tuple of (str, int or None)
        Names of scalars, and the values of those that are compiled in.
    operands : tuple of OrdinaryOperand
        The matrices.
    large : bool
        Whether matrices may be too large for the stack.
    """

    routine: str
    dtype: str
    lanes: int
    sizes: tuple
    options: tuple
    scalars: tuple
    operands: tuple
    large: bool


class OrdinaryOperand(NamedTuple):
    """A matrix of an `OrdinaryCall`.

    Attributes
    ----------
    sizes : str
        Letters of its rows and columns.
    kind : str
        How it lies in memory, as `compactla.cpu.memory.matrices.Ordinary` has it.
    rows_reversed, columns_reversed : bool
        Whether the routine sees its rows, or columns, from the last to the first.
    conj : bool
        Whether it is conjugated.
    read, written : bool
        Whether it is.
    """

    sizes: str
    kind: str
    rows_reversed: bool
    columns_reversed: bool
    conj: bool
    read: bool
    written: bool


class OrdinaryPlan(NamedTuple):
    """A kernel for matrices of some sizes and strides.

    Attributes
    ----------
    kernel : function
        The compiled kernel.
    lanes : int
        Matrices that are worked on side by side.
    cost : float
        What so many cost, for `share`.
    words : ndarray of int64
        Number of matrices, sizes, and strides, for the kernel.
    place : int
        Address of the words.
    shifts : list of int
        Bytes from the first element of each operand to where its memory is read from.
    """

    kernel: Any
    lanes: int
    cost: float
    words: np.ndarray
    place: int
    shifts: list


def start(
    row: Any, views: Sequence[View], scalars: Any, conj: Any, option: Any, nm: int, info: Any, launch: Launch
) -> None:
    """Run a routine on arrays, as `compactla.routine.Routine.run` checked them; the arguments are its."""
    places = tuple([(A.npack, A.m, A.n, A.ps, A.rs, A.cs) for A in views])
    dtype, fixed = views[row.main].dtype, scalars if scalars in row.fixed else None
    key = row, dtype, places, fixed, conj, option
    plan = plans.known.get(key, plans)
    if plan is plans:
        plan = plans.add(key, planned(*key))
    if plan is None:
        return
    starts = [A.address + shift for A, shift in zip(views, plan.shifts, strict=True)]
    npack = -(-places[row.main][0] // plan.lanes)
    args = 0, npack, plan.place, (*scalars, *starts)
    if launch.recorded:
        launch.keep(views, plan)
    share(plan.kernel, npack * plan.cost, args, launch)


def planned(row, dtype, places, fixed, conj, option) -> OrdinaryPlan | None:
    """The plan for matrices of these numbers, sizes and strides; None if there is nothing to do."""
    written = [place for A, place in zip(row.operands, places, strict=True) if A.written]
    if not all(nm * m * n for nm, m, n, *_ in written):
        return None
    sizes = row.sizes([Size(m, n) for _, m, n, *_ in places])
    known, lanes = not left_open(row, sizes, fixed), native_width(dtype)
    fixed = None if row.free and not known else fixed
    values = [int(x.real) for x in fixed] if fixed else [None] * len(row.scalars)
    scalars = dict(zip(row.scalars, values, strict=True))
    numbers = {letter: size for letter, size in row.numbers(sizes).items() if letter != "1"}

    # Matrices that are read from their last row, or column, on have negative strides, which would be read one by one.
    operands, shifts, words = [], [], [places[row.main][0], *([] if known else numbers.values())]
    for A, (_, m, n, step, rs, cs), flag in zip(row.operands, places, conj or [False] * len(places), strict=True):
        kind = lie(m, n, step, abs(rs), abs(cs), dtype.itemsize)
        read = A.half or not (A.scaled_by and scalars[A.scaled_by] == 0)
        operands.append(OrdinaryOperand(A.sizes, kind, rs < 0, cs < 0, bool(flag), read, A.written))
        shifts.append(min(rs, 0) * (m - 1) + min(cs, 0) * (n - 1))
        words += step, abs(rs), abs(cs)

    letters = tuple((letter, size if known else None) for letter, size in numbers.items())
    options = tuple(zip(row.compiled, option, strict=True))
    large = max(sizes) > STATIC
    description = OrdinaryCall(
        row.name, dtype.char, lanes, letters, options, tuple(scalars.items()), tuple(operands), large
    )
    arguments = INT, types.Tuple((*[SCALAR[dtype.kind]] * len(scalars), *[INT] * len(places)))
    source = f"compactla.cpu.kernels.{row.name}"
    kernel = compiled(batch, arguments, text_of(description), lanes, source=source)
    moved = row.elements(sizes, dtype) * lanes * dtype.itemsize
    cost = max(parts(dtype) ** 2 * row.work(sizes), moved / MOVED)
    memory = np.array(words, np.int64)
    return OrdinaryPlan(kernel, lanes, cost, memory, address(memory), shifts)


class Size(NamedTuple):
    """Rows and columns."""

    m: int
    n: int


def batch(text, V):
    """Make the kernel for V matrices at a time, from lo to hi: address of the words, scalars, and addresses."""

    def kernel(lo, hi, words, args):
        for p in range(lo, hi):
            call(text, p * V, words, args)

    return kernel


@emitted(OrdinaryCall)
def call(code, description, first, words, args):
    """Call a routine at the pack level on matrices `first` and up."""
    routine, char, V, letters, options, scalars, operands, large = description
    code = Workspace(code.builder, large)
    emit = getattr(importlib.import_module(f"compactla.cpu.kernels.{routine}"), routine).emit
    vector, given = Vector(KINDS[char], V), Arguments(args)
    real = FLOATS[from_dtype(np.dtype(char.lower()))]
    numbers = Arguments.at(code, words)
    nm = numbers.one()
    sizes = {letter: numbers.unless_known(size) for letter, size in letters} | {"1": 1}
    keywords = dict(options)
    for name, value in scalars:
        number = given.one()
        keywords[name] = number if value is None else value

    # The matrix of each lane: the last one in those behind it
    places = [code.min(first + lane, nm - 1) for lane in range(V)]
    full = first + V <= nm
    rooms, views, following = [], [], []
    for X in map(OrdinaryOperand._make, operands):
        m, n = (sizes[letter] for letter in X.sizes)
        step, rs, cs = numbers.some(3)
        start = given.one()
        lanes, adjacent = [start + place * step for place in places], full & (step == np.dtype(char).itemsize)
        memory, W = Ordinary(code, vector, real, X.kind, m, n, lanes, rs, cs, adjacent), code.room(vector, m, n)
        if X.read:
            memory.read(W)
            following += memory.following
        rooms.append((memory, W, X.written))
        view = W._replace(conj=X.conj)
        view = view.rows_reversed if X.rows_reversed else view
        views.append(view.T.rows_reversed.T if X.columns_reversed else view)

    most = max(map(nbytes, following), default=0)
    emit(code, *views, **keywords, ahead=tuple(A for A in following if nbytes(A) == most))
    for memory, W, written in rooms:
        if written:
            memory.write(W)
    code.free()
