"""How the CPU runs a function on stacks of ordinary matrices: in one pass, V matrices at a time.

They are read, transposed in registers, worked on where they are, in registers or the cache next to the core, and
results are written back. `compactla.cpu.fused` has the code for V matrices.
"""

import functools
import importlib
import itertools
import operator
from collections.abc import Callable
from dataclasses import dataclass
from itertools import starmap
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.np.numpy_support import from_dtype
from numpy import empty, zeros

from compactla.calls.launch import NOW
from compactla.cpu.compile import INT, compiled
from compactla.cpu.cost import MOVED, STATIC, parts
from compactla.cpu.emit.call import DATA, Arguments, emitted, text_of
from compactla.cpu.emit.index import INDEX, value_of
from compactla.cpu.emit.loops import UNROLLED
from compactla.cpu.emit.matrices import native_width
from compactla.cpu.emit.numba_matrices import KINDS
from compactla.cpu.emit.vectors import FLOATS, Vector
from compactla.cpu.kernels.laswp import integers, tree
from compactla.cpu.linalg.workspace import Workspace
from compactla.cpu.memory.matrices import Ordinary, lie
from compactla.cpu.threads.sharing import share
from compactla.overlap import address

BYTE = ir.IntType(8)
UINT8 = np.dtype(np.uint8)
# Entries of a kernel for a matrix: that there is no result, or that NumPy shall compute it.
FAILED, UNSURE = 1, 2
DOUBTED = 16  # roundings of a pivot in each step
SMALL = 16  # the largest size beside which any other is compiled in
SHORT = 8  # the largest size of a letter that a function wants compiled in where others are not
CHAINS = 4  # sums side by side: an addition takes as many cycles


class StackCall(NamedTuple):
    """What a kernel for stacks is compiled for; see `compactla.cpu.emit.call`.

    Attributes
    ----------
    function : str
        Name of a function in the file of `compactla.cpu.fused` with that name.
    dtype : str
        Letter of the computation type.
    lanes : int
        Matrices that are worked on side by side.
    sizes : tuple of (str, int or None)
        Letters of sizes, and those that are compiled in.
    options : tuple of (str, str, bool or int)
        Names and values of options.
    operands : tuple of (str, str, str)
        For each input and output the letters of its rows and columns, that of its type, and how it lies in memory, as
        `compactla.cpu.memory.matrices.Ordinary` has it.
    large : bool
        Whether matrices may be too large for the stack.
    """

    function: str
    dtype: str
    lanes: int
    sizes: tuple
    options: tuple
    operands: tuple
    large: bool


@dataclass(frozen=True)
class StackKernel:
    """A function for arrays of some types, shapes and strides.

    Attributes
    ----------
    code : function
        The compiled kernel.
    entries : int
        Length of the status: one for each matrix, and another one.
    made : list of (shape, numpy.dtype)
        Shapes and types of results.
    lanes : int
        V.
    npack : int
        Number of packs of V matrices.
    cost : float
        Cost of them all, for `share`.
    words : ndarray of int64
        Number of matrices, then sizes that are not compiled in, and strides of each operand, for the kernel.
    place : int
        Address of the words.
    """

    code: Callable
    entries: int
    made: list
    lanes: int
    npack: int
    cost: float
    words: np.ndarray
    place: int

    def run(self, arrays, launch=NOW):
        """Compute results from arrays.

        Returns
        -------
        results : list of ndarray
            Results of the function.
        status : (nm + 1,) ndarray of uint8
            `FAILED` or `UNSURE` for some matrices, else 0; the last one tells whether there are any.
        """
        results, status = [*starmap(empty, self.made)], zeros(self.entries, UINT8)
        share(self.code, self.cost, (0, self.npack, self.place, (status, *arrays, *results)), launch)
        return results, status


def kernel(function: Any, options: tuple, fit: Any, places: tuple) -> StackKernel:
    """Make the `StackKernel` for some arrays.

    Parameters
    ----------
    function : compactla.linalg.stacks.Stacked
        Function to be computed.
    options : tuple
        Values of its options.
    fit : compactla.linalg.stacks.Fit
        Sizes and types.
    places : list of compactla.linalg.arguments.StackPlace
        Places of the inputs in memory.
    """
    nm, number, dtype = fit.nm, fit.number, fit.computed
    known = function.static and is_known(number)
    largest = max(number.values())
    V = native_width(dtype) * (2 if (known or function.paired > STATIC) and largest <= function.paired else 1)
    sizes = {letter: size for letter, size in number.items() if letter != "1"}
    inside = {x: known or (x in function.compiled and size <= SHORT) for x, size in sizes.items()}

    # Operands, and the words of the kernel
    operands, words, moved = [], [nm, *(size for x, size in sizes.items() if not inside[x])], 0.0
    for rows_columns, p in zip(function.inputs.values(), places, strict=True):
        item = np.dtype(p.char).itemsize
        operands.append((rows_columns[:2], p.char, lie(p.m, p.n, p.step, p.rs, p.cs, item)))
        words += p.step, p.rs, p.cs
        moved += p.m * p.n * item
    for output, (_, stored) in zip(function.outputs, fit.made, strict=True):
        m, n = (number[letter] for letter in f"{output.sizes:1<2}")
        size = m * n * stored.itemsize
        operands.append((f"{output.sizes:1<2}", stored.char, "whole"))
        words += size, 0, 0
        moved += size

    # The kernel, and its cost
    letters = tuple((x, size if inside[x] else None) for x, size in sizes.items())
    named = tuple(zip(function.options, options, strict=True))
    text = text_of(StackCall(function.name, dtype.char, V, letters, named, tuple(operands), largest > STATIC))
    arguments = INT, types.UniTuple(DATA, 1 + len(operands))
    code = compiled(batch, arguments, text, V, source=f"compactla.cpu.fused.{function.name}")
    cost = max(parts(dtype) ** 2 * function.work(**number), moved * V / MOVED)
    npack, memory = -(-nm // V), np.array(words, np.int64)
    return StackKernel(code, nm + 1, fit.made, V, npack, npack * cost, memory, address(memory))


def is_known(number):
    """Tell whether sizes are compiled in: they are where no two of them are large."""
    return max(number.values()) <= STATIC and len({size for size in number.values() if size > SMALL}) <= 1


def batch(text, V):
    """Make the kernel for packs lo to hi: address of `StackKernel.words`, and a tuple of the status and operands."""

    def kernel(lo, hi, words, arrays):
        for p in range(lo, hi):
            call(text, p * V, words, arrays)

    return kernel


class Status:
    """Entries of V of `nm` matrices while code is emitted: bytes from an address on, that of lane k at `places[k]`."""

    def __init__(self, code, address, nm, places):
        """Make room for what routines enter."""
        self.code, self.address, self.nm, self.places = code, address, nm, places
        self.counts = code.room(Vector(types.int64, len(places)), 1)
        self.counts[0, 0] = code.zero(self.counts.vector)

    @property
    def info(self):
        """The place where routines enter which pivot failed."""
        return self.code.builder.bitcast(self.counts.base, INDEX.as_pointer())

    @property
    def flags(self):
        """Flags of the lanes for which routines have entered something."""
        return self.counts[0, 0] > 0

    def fail(self):
        """Enter the matrices for which routines have."""
        self.enter(FAILED, self.flags)

    def check(self, *matrices, value=UNSURE):
        """Enter matrices of which a result is not finite: by default NumPy shall compute them."""
        code, vector = self.code, matrices[0].vector.reals
        zero = code.zero(vector)
        totals, turn = code.registers(vector, CHAINS), itertools.cycle(range(CHAINS))
        for chain in range(CHAINS):
            totals[chain, 0] = zero
        for X in matrices:
            for i in code.each(X.m):
                for j in chained(code, X.n):
                    for part in (X[i, j].real, X[i, j].imag)[: len(X.vector.parts)]:
                        chain = next(turn), 0
                        totals[chain] = part.fma(zero, totals[chain])
        total = functools.reduce(operator.add, [totals[chain, 0] for chain in range(CHAINS)])
        self.enter(value, ~(total == 0))

    def doubt(self, U):
        """Enter matrices of which a pivot, on the diagonal of U, may be zero but for rounding: NumPy decides.

        Zeros are not entered.
        """
        code, vector = self.code, U.vector.reals
        least, largest, steps = code.registers(vector, 1), code.registers(vector, CHAINS), code.min(U.m, U.n)
        least[0, 0], turn = U[0, 0].abs1(), itertools.cycle(range(CHAINS))
        for chain in range(CHAINS):
            largest[chain, 0] = least[0, 0]
        for i in code.each(steps):
            size = U[i, i].abs1()
            least[0, 0] = (size < least[0, 0]).select(size, least[0, 0])
            for j in chained(code, U.n - i):
                size, chain = U[i, i + j].abs1(), (next(turn), 0)
                largest[chain] = (size > largest[chain]).select(size, largest[chain])
        most = tree(lambda x, y: (x > y).select(x, y), [largest[chain, 0] for chain in range(CHAINS)])
        limit = self.doubtful(code, steps, vector) * most
        self.enter(UNSURE, (least[0, 0] > 0) & (least[0, 0] < limit))

    @staticmethod
    def doubtful(code, steps, vector):
        """Bound pivots that may be rounding errors of so many steps, relative to the largest pivot."""
        eps = 2.0 ** (-52 if vector.real.bitwidth == 64 else -23)
        return code.broadcast(steps, vector) * code.zero(vector).constant(DOUBTED * eps)

    def enter(self, value, flags):
        """Enter a value for matrices whose flags are set, if nothing was entered."""

        def emit(code, bits, address, nm, *places):
            """Enter the value in the byte of each lane whose bit is set, and that there is one, in the last byte."""
            b = code.builder
            for lane, place in enumerate(places):
                there = b.inttoptr(b.add(address, place), BYTE.as_pointer())
                entered = b.load(there, typ=BYTE)
                bit = b.trunc(b.lshr(bits, bits.type(lane)), ir.IntType(1)) if len(places) > 1 else bits
                enter = b.and_(bit, b.icmp_unsigned("==", entered, BYTE(0)))
                b.store(b.select(enter, BYTE(value), entered), there)
            b.store(BYTE(1), b.inttoptr(b.add(address, nm), BYTE.as_pointer()))

        with self.code.when(flags.any(), likely=False):
            arguments = flags.bits, *map(value_of, (self.address, self.nm, *self.places))
            name = f"compactla.status{value}.{len(self.places)}"
            self.code.call(name, [x.type for x in arguments], emit, *arguments, attributes=("noinline", "cold"))


def chained(code, count):
    """`Code.each`, with as many in a round as there are `CHAINS` where that is a loop of machine code."""
    if isinstance(count, int) and count <= UNROLLED:
        yield from range(count)
        return
    for first, width in code.panels(count, CHAINS):
        yield from (first + k for k in range(width))


@emitted(StackCall)
def call(code, description, first, words, arrays):
    """Call a function on matrices `first` and up."""
    name, char, V, letters, options, operands, large = description
    code = Workspace(code.builder, large)
    emit = getattr(importlib.import_module(f"compactla.cpu.fused.{name}"), name)
    vector = Vector(KINDS[char], V)
    arguments, (status, *starts) = Arguments.at(code, words), arrays
    nm = arguments.one()
    sizes = {letter: arguments.unless_known(size) for letter, size in letters} | {"1": 1}

    # The matrix of each lane: the last one in those behind it
    places = [code.min(first + lane, nm - 1) for lane in range(V)]
    full = first + V <= nm
    matrices = []
    for (rows_columns, stored, kind), start in zip(operands, starts, strict=True):
        m, n = (sizes[letter] for letter in rows_columns)
        step, rs, cs = arguments.some(3)
        lanes = [start + place * step for place in places]
        adjacent = full & (step == np.dtype(stored).itemsize)
        element = from_dtype(np.dtype(stored.lower()))
        real = FLOATS.get(element) or ir.IntType(element.bitwidth)
        held = {"c": vector.twin, "f": vector.reals, "i": integers(vector)}[np.dtype(stored).kind]
        matrices.append(Ordinary(code, held, real, kind, m, n, lanes, rs, cs, adjacent))
    emit(code, vector, *matrices, Status(code, status, nm, places), **dict(options))
    code.free()
