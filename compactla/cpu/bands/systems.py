"""Factors and solutions of systems with band matrices on the CPU, V systems at a time."""

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba.np.numpy_support import from_dtype

from compactla.band_form import Form
from compactla.calls.launch import NOW, Launch
from compactla.cpu.arrays import empty
from compactla.cpu.bands.panels import PACKS, Panel, fetched_together
from compactla.cpu.bands.scratch import BandScratch
from compactla.cpu.compile import INT, compiled
from compactla.cpu.emit.call import WORD, Arguments, emitted, text_of
from compactla.cpu.emit.choices import past_caches
from compactla.cpu.emit.index import INDEX, value_of
from compactla.cpu.emit.machine import last_cache, second_cache
from compactla.cpu.emit.matrices import Elements, itemsize, native_width
from compactla.cpu.emit.numba_matrices import KINDS, fence
from compactla.cpu.emit.vectors import FLOATS, Flags, Vector
from compactla.cpu.memory.matrices import Ordinary, lie
from compactla.cpu.threads.sharing import THREADS, share
from compactla.dtypes import REAL
from compactla.overlap import address

SMALL = ir.IntType(32)
LINE = 64  # bytes
FEW = 4  # right-hand sides that are compiled in
LEAST = 4  # panels from which on systems are worked on in such


class BandCall(NamedTuple):
    """What a kernel for systems with band matrices is compiled for; see `compactla.cpu.emit.call`.

    Attributes
    ----------
    form : tuple
        The fields of a `Form`.
    action : str
        A function of `compactla.cpu.bands.in_registers`.
    dtype : str
        Letter of the type.
    lanes : int
        Systems that are worked on side by side.
    columns : int or None
        Right-hand sides, if they are compiled in.
    deep : bool
        Whether systems are along two axes.
    stream : bool
        Whether factors are written past the caches.
    panels : int
        How many panels are fetched together where `compactla.cpu.bands.panels` are read and written; else 0.
    kinds : tuple of str
        How operands lie in memory, as `compactla.cpu.memory.matrices.Ordinary` has it.
    """

    form: tuple
    action: str
    dtype: str
    lanes: int
    columns: int | None
    deep: bool
    stream: bool
    panels: int
    kinds: tuple


class Factors(NamedTuple):
    """Factors of the matrices of packs, which `compactla.cpu.bands.in_registers` keeps.

    Attributes
    ----------
    U : (npack, n, reach + 1, V) ndarray
        Rows of U, of which the first element is the reciprocal of the pivot; or columns of L of L D L^H. Of complex
        numbers with an axis more, as in a `compactla.Pack`.
    L : (npack, n, multiples, V) ndarray
        Columns of L.
    swaps : (npack, n, kl) ndarray of int32
        For each step and each row below the pivot's, bits of the lanes that swapped them.
    """

    U: np.ndarray
    L: np.ndarray
    swaps: np.ndarray

    @property
    def lanes(self):
        """V, which is another where factors come from a machine with other registers."""
        return self.U.shape[-1]

    @property
    def nbytes(self):
        """Bytes of the factors U and L."""
        return self.U.nbytes + self.L.nbytes

    @property
    def is_aligned(self):
        """Whether all vectors of the factors U and L are."""
        size = self.lanes * self.U.itemsize
        return size & (size - 1) == 0 and not any(address(a) % size for a in (self.U, self.L))


class HostSystems(NamedTuple):
    """The matrices of some systems: an array (outer, inner, m, n) of any strides, maybe taken row by row."""

    a: np.ndarray
    by_rows: bool = False

    @property
    def kind(self):
        """The way in which elements lie in memory, as `Ordinary` has it."""
        m, n = self.a.shape[2:]
        *_, step, rs, cs = self.a.strides
        item = self.a.itemsize
        if self.by_rows:
            m, n, rs = n, 1, cs
        if n == 1:
            return "whole" if rs == item or m == 1 else "lanes" if step == item else "apart"
        return lie(m, n, step, rs, cs, item)

    @property
    def place(self):
        """Address and strides, as kernels get them."""
        return address(self.a), *self.a.strides


def lanes_of(dtype: np.dtype) -> int:
    """Count the lanes of the packs of new factors."""
    return native_width(dtype)


def new_factors(form: Form, nsys: int, n: int, dtype: np.dtype) -> Factors:
    """Allocate factors of so many systems of n unknowns."""
    V, real = lanes_of(dtype), REAL[dtype.char]
    npack, tail = -(-nsys // V), (2, V) if dtype.kind == "c" else (V,)
    U, L = (empty((npack, n, width, *tail), real, None) for width in form.widths)
    return Factors(U, L, np.empty((npack, n, form.kl * form.pivoting), np.int32))


class BandPlan(NamedTuple):
    """Work on arrays of some shapes and strides; `plan` makes it.

    Attributes
    ----------
    code : function
        The compiled kernel.
    arguments : ndarray of int64
        Its arguments.
    slots : list of int
        Where addresses are in them: those of the operands, then that of info.
    offset : ndarray of int64
        For each item of work the first of its packs, and how many packs there are.
    cost : float
        What all of it costs, as `share` takes it.
    words : int
        Work space of a thread.
    kept : tuple
        Arrays that have to live as long.
    """

    code: Callable
    arguments: np.ndarray
    slots: list
    offset: np.ndarray
    cost: float
    words: int
    kept: tuple

    def run(self, addresses: Sequence[int], launch: Launch = NOW) -> None:
        """Work on operands at these addresses; behind them that of info, if there is one."""
        arguments, threads, count = self.arguments.copy(), launch.threads, len(self.offset) - 1
        arguments[self.slots[-len(addresses) :]] = addresses
        parts = max(1, min(THREADS, count, THREADS if threads is None else threads))
        work = np.empty((parts, self.words), np.int64)
        start, step = -(-address(work) // LINE) * LINE, work.strides[0]
        places = [start + t * step for t in range(parts)]
        share(self.code, self.cost, (0, count, address(arguments)), launch, self.offset, places)
        if launch.recorded:
            launch.keep(self, arguments, work)
            launch.alone()


def plan(
    form: Form, action: str, dtype: np.dtype, n: int, operands: list[np.ndarray], *, factors: Factors | None = None,
    common: bool = False,
) -> BandPlan:  # fmt: skip
    """Plan how to factor or solve systems.

    Parameters
    ----------
    form : Form
        What their matrices are.
    action : str
        A function of `compactla.cpu.bands.in_registers`.
    dtype : numpy.dtype
        That of everything.
    n : int
        Number of unknowns.
    operands : list of (outer, inner, m, n) ndarray
        Diagonals, as columns, if matrices are read, and right-hand sides and solutions, if there are some.
    factors : Factors, optional
        Written by "factor", and read by "solve".
    common : bool
        Whether all systems have the matrix of the first.
    """
    V, parts = factors.lanes if factors else lanes_of(dtype), 2 if dtype.kind == "c" else 1
    outer, inner = operands[0].shape[:2]
    nsys, columns, deep = outer * inner, 0 if action == "factor" else operands[-1].shape[3], min(outer, inner) > 1
    if inner == 1:  # one of the axes is all there is
        operands, inner = [a.swapaxes(0, 1) for a in operands], outer
    systems = [HostSystems(a, form.wide and action == "factor") for a in operands]

    # The kernel
    kinds, known = tuple(x.kind for x in systems), columns if columns <= FEW else None
    writes = factors if action == "factor" and not form.wide else None
    stream = writes is not None and writes.is_aligned and writes.nbytes > 3 * past_caches() // 4  # what is read beside
    stored = form.stored * (action != "solve") + form.reach + 1 + columns
    words = stored * n * V * dtype.itemsize // WORD + 2 * LINE
    npanel, room = nsys // V // PACKS, 2 * PACKS * words
    fit = not deep and form.name != "ring" and not form.wide and known is not None and set(kinds) == {"lanes"}
    panels = 0
    if fit and npanel >= LEAST and room * WORD < last_cache() // 4:
        row = PACKS * V * dtype.itemsize
        panels = fetched_together(row * n * sum(a.shape[3] for a in operands), row)
    text = text_of(BandCall(form, action, dtype.char, V, known, deep, stream, panels, kinds))
    code = compiled(batch, (INT, INT), text, stream, source=f"compactla.cpu.bands.{form.module}")

    # Its arguments: sizes, info, bytes of the work space of a pack, factors, then operands
    arguments = [nsys, inner, n, columns, 0, words * WORD]
    for a in factors or ():
        arguments += address(a), 0 if common else a.strides[0]
    slots = [*range(len(arguments), len(arguments) + 5 * len(systems), 5), 4]
    for x in systems:
        arguments += x.place

    # Items of work, and cost
    npack, operations = -(-nsys // V), parts**2 * (form.kl + 1) * (form.reach + 1 + columns)
    cost, whole = npack * n * max(operations, 2 * form.stored), npanel * PACKS if panels else 0
    offset = np.concatenate([np.arange(0, whole, PACKS), np.arange(whole, npack + 1)], dtype=np.int64)
    words = room if panels else words
    return BandPlan(code, np.array(arguments, np.int64), slots, offset, cost, words, (factors, operands))


def chunk_of(form: Form, V: int) -> int:
    """Count the rows of a chunk that is read: as many as a step looks ahead, or more."""
    return -(-(form.kl + form.ku + 1) // V) * V


def batch(text, streams):
    """Make the kernel for items lo to hi: address of `BandPlan.arguments`, and that of work space."""

    def kernel(lo, hi, arguments, work):
        call(text, lo, hi, arguments, work)
        if streams:
            fence()

    return kernel


class Bits:
    """Flags of lanes in memory: some for each step."""

    def __init__(self, code, vector, base, count):
        self.code, self.lanes, self.base, self.count = code, vector.lanes, base, count

    def _pointer(self, k, i):
        """Find flag i of step k."""
        code = self.code
        return code.address(self.base, k * self.count + i, SMALL)

    def store(self, k, flags):
        """Store the flags of step k."""
        for i, flag in enumerate(flags):
            self.store_one(k, i, flag)

    def store_one(self, k, i, flag):
        """Store flag i of step k."""
        b, bits = self.code.builder, flag.bits
        b.store(b.zext(bits, SMALL) if self.lanes < SMALL.width else bits, self._pointer(k, i))

    def load(self, k):
        """Load the flags of step k."""
        return [self.load_one(k, i) for i in range(self.count)]

    def load_one(self, k, i):
        """Load flag i of step k."""
        b = self.code.builder
        bits = b.load(self._pointer(k, i), typ=SMALL)
        bits = b.trunc(bits, ir.IntType(self.lanes)) if self.lanes < SMALL.width else bits
        return Flags(b, b.bitcast(bits, ir.VectorType(ir.IntType(1), self.lanes)))


class PackFactors(NamedTuple):
    """`Factors` of one pack while code is emitted.

    The lines of the next pack that are to be fetched are `following`: pairs of U or L and how many bytes they are
    behind a column of it.
    """

    U: Elements
    L: Elements
    swaps: Bits
    following: list


@emitted(BandCall)
def call(code, description, lo, hi, words, work):
    """Call a function of `compactla.cpu.bands.in_registers`, or of `in_memory`, for the packs of some items.

    The first items are whole panels, if there are any, and the others packs.
    """
    form, V = Form(*description.form), description.lanes
    vector, arrays, count = Vector(KINDS[description.dtype], V), len(description.kinds), chunk_of(form, V)
    npanel = 0
    if description.panels:
        nsys, *_, slab = Arguments.at(code, words).some(6)
        npanel = nsys // (V * PACKS)
        last = code.min(hi, npanel)
        with code.loop(last - lo) as t, code.loop(PACKS) as turn:
            panel = Panel(code, description.panels, lo + t, turn, slab, t > 0, lo + t + 1 < last)
            mine = t % 2 * PACKS
            panel.away = (PACKS - mine - mine - turn) * slab
            room = BandScratch(code, vector, work + (mine + turn) * slab, count, arrays, panel)
            work_on(code, description, (lo + t) * PACKS + turn, words, room)
    first = code.max(lo, npanel)
    with code.loop(hi - first) as t:
        p = first + t + npanel * (PACKS - 1)
        work_on(code, description, p, words, BandScratch(code, vector, work, count, arrays))


def work_on(code, description, p, words, room):
    """Call the function for the systems of pack p."""
    form, action, dtype, V, columns, deep, stream, _, kinds = description
    form, b = Form(*form), code.builder
    emit = getattr(importlib.import_module(f"compactla.cpu.bands.{form.module}"), action)
    vector, real = Vector(KINDS[dtype], V), FLOATS[from_dtype(REAL[dtype])]
    item = np.dtype(dtype).itemsize
    arguments, keywords = Arguments.at(code, words), {}
    nsys, inner, n, r, info, _ = arguments.some(6)
    r = r if columns is None else columns

    # The system of each lane: the last one in those behind it
    first, last = p * V, nsys - 1
    inside = [code.min(first + lane, last) for lane in range(V)]
    full = first + (V - 1) < nsys
    if deep:
        outside = [q // inner for q in inside]
        inside = [q - o * inner for q, o in zip(inside, outside, strict=True)]
        full = full & (outside[0] == outside[-1])

    # Factors and info
    if action != "once":
        keywords["factors"] = pack_factors(code, form, vector, n, p, stream, arguments)
    if action != "solve":
        keywords["info"] = code.address(b.inttoptr(info.value, INDEX.as_pointer()), first)

    # Operands: diagonals of the matrix, right-hand sides and solutions
    operands = []
    for kind in kinds:
        start, far, step, rs, cs = arguments.some(5)
        starts = [start + q * step for q in inside]
        if deep:
            starts = [x + q * far for x, q in zip(starts, outside, strict=True)]
        adjacent = full & (step == item)
        lie = {"starts": starts, "rs": rs, "cs": cs, "adjacent": adjacent}
        operands.append(functools.partial(Ordinary, code, vector, real, kind, **lie))
    if action != "factor":
        *operands, B, X = operands
        keywords |= {"B": B(m=n, n=r), "X": X(m=n, n=r)}
    if action != "solve":
        outer = n - 1 if form.name == "tridiag" else n
        sizes = [outer, n, outer] if len(operands) == 3 else [n] * len(operands)
        keywords["matrix"] = [make(m=size, n=1) for make, size in zip(operands, sizes, strict=True)]
    emit(code, room, form, **keywords)


def pack_factors(code, form, vector, n, p, stream, arguments):
    """View the factors of pack p: for each array an address and the bytes from pack to pack are arguments."""
    b, step = code.builder, vector.lanes * len(vector.parts)
    element, following = vector.part.element, []

    def start(kind):
        """Find where the next array begins, which has numbers of an LLVM type, and the bytes from pack to pack."""
        address, bytes_of_pack = arguments.some(2)
        return b.inttoptr(value_of(address + p * bytes_of_pack), kind.as_pointer()), bytes_of_pack

    def matrix(width):
        """View the next array, which has rows of some width, as a transposed matrix."""
        base, distance = start(element)
        A = Elements(code, vector, base, n, width, width * step, step, vector.lanes, stream=stream).T
        distance = (distance < second_cache() // 2).select(distance, 0)
        following.extend((A, distance + line) for line in range(0, width * step * itemsize(element), LINE))
        return A

    U, L = map(matrix, form.widths)
    swaps, _ = start(SMALL)
    return PackFactors(U, L, Bits(code, vector, swaps, form.kl), following)
