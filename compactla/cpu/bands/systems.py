"""Factors and solutions of systems with band matrices on the CPU, V systems at a time."""

import functools
import importlib
import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numba.np.numpy_support import from_dtype

from compactla.band_form import Form
from compactla.calls.launch import NOW
from compactla.cpu.compile import INT, compiled
from compactla.cpu.emit.code import Code
from compactla.cpu.emit.matrices import INDEX, Elements, index, native_width
from compactla.cpu.emit.vectors import FLOATS, Flags, Vector
from compactla.cpu.memory.matrices import Ordinary, lie
from compactla.cpu.threads.sharing import THREADS, share
from compactla.dtypes import REAL
from compactla.overlap import address

SMALL = ir.IntType(32)
WORD, LINE = 8, 64  # bytes
FEW = 4  # right-hand sides that are compiled in
shared = functools.cache(compiled)


class Factors(NamedTuple):
    """Factors of the matrices of packs: what `compactla.cpu.bands.in_registers` keeps.

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


class HostSystems(NamedTuple):
    """Where matrices of some systems are: an array (outer, inner, m, n) of any strides; maybe taken row by row."""

    a: np.ndarray
    by_rows: bool = False

    @property
    def kind(self):
        """How elements lie in memory, as `Ordinary` has it."""
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
        """Address and strides, as kernels are told."""
        return address(self.a), *self.a.strides


def lanes_of(dtype):
    """Lanes of the packs of new factors."""
    return native_width(dtype)


def new_factors(form: Form, nsys, n, dtype) -> Factors:
    V, real = lanes_of(dtype), REAL[dtype.char]
    npack, tail = -(-nsys // V), (2, V) if dtype.kind == "c" else (V,)
    U, L = (np.empty((npack, n, width, *tail), real) for width in form.widths)
    return Factors(U, L, np.empty((npack, n, form.kl * form.pivoting), np.int32))


class BandPlan(NamedTuple):
    """How arrays of some shapes and strides are worked on; see `plan`.

    Attributes
    ----------
    code : function
        The compiled kernel.
    told : ndarray of int64
        What it is told.
    slots : list of int
        Where in that addresses are: of the operands, and of what is entered pivots in.
    npack : int
        How often V systems are worked on.
    cost : float
        What all of it costs, as `share` takes it.
    words : int
        Work space of a thread.
    kept : tuple
        Arrays that have to live as long.
    """

    code: Callable
    told: np.ndarray
    slots: list
    npack: int
    cost: float
    words: int
    kept: tuple

    def run(self, addresses, launch=NOW):
        """Work on operands at these addresses; behind them that of info, if there is one."""
        told, threads = self.told.copy(), launch.threads
        told[self.slots[-len(addresses) :]] = addresses
        parts = max(1, min(THREADS, self.npack, THREADS if threads is None else threads))
        work = np.empty((parts, self.words), np.int64)
        start, step = -(-address(work) // LINE) * LINE, work.strides[0]
        places = [start + t * step for t in range(parts)]
        share(self.code, self.cost, (0, self.npack, address(told)), launch, work=places)
        if launch.recorded:
            launch.keep(self, told, work)
            launch.alone()


def plan(form: Form, action, dtype, n, operands, *, factors=None, common=False) -> BandPlan:
    """How to factor or solve systems.

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
    places = [HostSystems(a, form.wide and action == "factor") for a in operands]
    options = " ".join(f"{value:d}" for value in form[1:])
    kinds = " ".join(place.kind for place in places)
    known = columns if columns <= FEW else "?"
    text = f"{form.name}|{options}|{action}|{dtype.char}{V}|{known}|{'deep' if deep else 'flat'}|{kinds}"
    code = shared(batch, (INT, INT), text, source=f"compactla.cpu.bands.{form.module}")
    told = [nsys, inner, n, columns, 0]
    for a in factors or ():
        told += address(a), 0 if common else a.strides[0]
    slots = [*range(len(told), len(told) + 5 * len(places), 5), 4]
    for place in places:
        told += place.place
    words = (form.stored + form.reach + 1 + columns) * n * V * dtype.itemsize // WORD + 2 * LINE
    npack, operations = -(-nsys // V), parts**2 * (form.kl + 1) * (form.reach + 1 + columns)
    cost = npack * n * max(operations, 2 * form.stored)
    return BandPlan(code, np.array(told, np.int64), slots, npack, cost, words, (factors, operands))


def batch(text):
    """Kernel for packs lo to hi: where the numbers are that it has to know, and where there is work space."""

    def kernel(lo, hi, told, work):
        for p in range(lo, hi):
            call(text, p, told, work)

    return kernel


class BandScratch:
    """Work space, of which parts are taken.

    Attributes
    ----------
    count : int
        Rows of a chunk that is read: as many as a step looks ahead, or more.
    band : Elements or None
        Where a matrix was read to.
    """

    def __init__(self, code, vector, start, least):
        self.code, self.vector, self.start, self.band = code, vector, start, None
        self.count = -(-least // vector.lanes) * vector.lanes

    def take(self, m, n):
        """A new m x n matrix, contiguous."""
        code, vector = self.code, self.vector
        step = vector.lanes * len(vector.parts)
        base = code.builder.inttoptr(self.start, vector.part.element.as_pointer())
        size = code.mul(code.mul(m, n), step * vector.real.bitwidth // 8)
        self.start = code.add(self.start, size)
        return Elements(code, vector, base, m, n, code.mul(n, step), step, vector.lanes)


class Bits:
    """Flags of lanes in memory: some for each step."""

    def __init__(self, code, vector, base, count):
        self.code, self.lanes, self.base, self.count = code, vector.lanes, base, count

    def _place(self, k, i):
        code = self.code
        return code.builder.gep(self.base, [index(code.add(code.mul(k, self.count), i))], source_etype=SMALL)

    def store(self, k, flags):
        """Store the flags of step k."""
        for i, flag in enumerate(flags):
            self.store_one(k, i, flag)

    def store_one(self, k, i, flag):
        """Store flag i of step k."""
        b, bits = self.code.builder, flag.bits
        b.store(b.zext(bits, SMALL) if self.lanes < SMALL.width else bits, self._place(k, i))

    def load(self, k):
        """The flags of step k."""
        return [self.load_one(k, i) for i in range(self.count)]

    def load_one(self, k, i):
        """Flag i of step k."""
        b = self.code.builder
        bits = b.load(self._place(k, i), typ=SMALL)
        bits = b.trunc(bits, ir.IntType(self.lanes)) if self.lanes < SMALL.width else bits
        return Flags(b, b.bitcast(bits, ir.VectorType(ir.IntType(1), self.lanes)))


class PackFactors(NamedTuple):
    """`Factors` of one pack while code is emitted."""

    U: Elements
    L: Elements
    swaps: Bits


@intrinsic(prefer_literal=True)
def call(typing_context, text, p, told, work):
    """Call a function of `compactla.cpu.bands.in_registers` for the systems of pack p; `run` makes the text."""
    name, options, action, char, columns, depth, kinds = text.literal_value.split("|")
    numbers = [int(word) for word in options.split()]
    form = Form(name, *numbers[:2], *map(bool, numbers[2:]))
    emit = getattr(importlib.import_module(f"compactla.cpu.bands.{form.module}"), action)
    dtype = np.dtype(char[0])
    vector = Vector(from_dtype(dtype), int(char[1:]))
    real = FLOATS[from_dtype(REAL[dtype.char])]

    def lower(context, builder, signature, values):
        def body(code, p, told, work):
            b = code.builder

            def load(i):
                return b.load(b.inttoptr(b.add(told, INDEX(WORD * i)), INDEX.as_pointer()), typ=INDEX)

            given = map(load, itertools.count())
            nsys, inner, n, r, info = (next(given) for _ in range(5))
            r = r if columns == "?" else int(columns)
            first, last = b.mul(p, INDEX(vector.lanes)), b.sub(nsys, INDEX(1))
            systems = [code.min(b.add(first, INDEX(lane)), last) for lane in range(vector.lanes)]
            full = b.icmp_signed("<", b.add(first, INDEX(vector.lanes - 1)), nsys)
            if depth == "deep":
                outside = [b.udiv(q, inner) for q in systems]
                inside = [b.sub(q, b.mul(o, inner)) for q, o in zip(systems, outside, strict=True)]
                full = b.and_(full, b.icmp_signed("==", outside[0], outside[-1]))
            else:
                outside, inside = None, systems

            keywords = {}
            if action != "once":
                keywords["factors"] = kept(code, form, vector, n, p, given)
            if action != "solve":
                start = b.inttoptr(info, INDEX.as_pointer())
                keywords["info"] = b.gep(start, [first], source_etype=INDEX)

            found = []
            for kind in kinds.split():
                start, far, step, rs, cs = (next(given) for _ in range(5))
                starts = [b.add(start, b.mul(q, step)) for q in inside]
                if depth == "deep":
                    starts = [b.add(x, b.mul(q, far)) for x, q in zip(starts, outside, strict=True)]
                adjacent = b.and_(full, b.icmp_signed("==", step, INDEX(dtype.itemsize)))
                where = {"starts": starts, "rs": rs, "cs": cs, "adjacent": adjacent}
                found.append(functools.partial(Ordinary, code, vector, real, kind, **where))
            if action != "factor":
                *found, B, X = found
                keywords |= {"B": B(m=n, n=r), "X": X(m=n, n=r)}
            if action != "solve":
                outer = b.sub(n, INDEX(1)) if name == "tridiag" else n
                sizes = [outer, n, outer] if len(found) == 3 else [n] * len(found)
                keywords["matrix"] = [make(m=size, n=1) for make, size in zip(found, sizes, strict=True)]
            emit(code, BandScratch(code, vector, work, form.kl + form.ku + 1), form, **keywords)

        Code(builder).call(f"compactla.{text.literal_value}", [INDEX] * 3, body, *values[1:])
        return context.get_dummy_value()

    return types.void(text, p, told, work), lower


def kept(code, form, vector, n, p, given):
    """The factors of pack p."""
    b, step = code.builder, vector.lanes * len(vector.parts)
    element = vector.part.element

    def start(kind):
        return b.inttoptr(b.add(next(given), b.mul(p, next(given))), kind.as_pointer())

    def matrix(width):
        return Elements(code, vector, start(element), n, width, width * step, step, vector.lanes).T

    U, L = map(matrix, form.widths)
    return PackFactors(U, L, Bits(code, vector, start(SMALL), form.kl))
