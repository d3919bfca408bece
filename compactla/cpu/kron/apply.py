"""How the CPU applies Kronecker products: in one pass over items, by their rows, or V side by side in registers."""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from compactla.buffers import scratch
from compactla.calls.launch import NOW, Launch, limited
from compactla.cpu.compile import INT, compiled
from compactla.cpu.cost import MOVED, parts, width
from compactla.cpu.emit.call import text_of
from compactla.cpu.emit.choices import is_halved
from compactla.cpu.emit.matrices import native_width
from compactla.cpu.emit.prefetch import LINE
from compactla.cpu.kron import by_rows
from compactla.cpu.kron.side_by_side import KronCall, batch, operands, rooms
from compactla.cpu.memory.matrices import lie
from compactla.cpu.run import SCALAR
from compactla.cpu.threads import sharing
from compactla.cpu.threads.sharing import is_small, share
from compactla.dtypes import REAL
from compactla.layout import Pack
from compactla.overlap import address
from compactla.types import Array, Queue

FEW = 200_000  # multiply-adds up to which no code is compiled for a size
SHORTEST, TRANSPOSED = 3 / 8, 1 / 2  # parts of a register: see `row_by_row`
KNOWN = 16  # Sizes for which code is compiled that knows the size; larger ones share code.


@dataclass(frozen=True)
class KronKernel:
    """A kernel and its arguments.

    Attributes
    ----------
    code : function
        Compiled kernel.
    V : int
        Items that are computed side by side.
    cost : float
        Cost of V items, for `share`.
    room : int
        Real numbers that a thread needs to work in.
    arguments : ndarray of int64
        Those of the kernel, but for the number of items, which comes first, and addresses.
    slots : list of (int, int)
        Where addresses are to be entered, and of which operands; X and Y are the last ones.
    """

    code: Any
    V: int
    cost: float
    room: int
    arguments: np.ndarray
    slots: list

    def arguments_at(self, nm, starts):
        """Fill in arguments of the kernel for `nm` items, where operands, X and Y begin at these addresses."""
        arguments = self.arguments.copy()
        arguments[0] = nm
        for slot, k in self.slots:
            arguments[slot] = starts[k]
        return arguments


def run(
    name: str, factors: Any, signs: Any, X: Any, Y: Any, d: Any, e: Any, scalars: Any, work: Any = None,
    launch: Launch = NOW,
) -> None:  # fmt: skip
    """Compute Y from X, both arrays (nm, ...) or packs, as `compactla.kron` checked them.

    Parameters
    ----------
    name : {"kron", "sum", "solve"}
        What is computed.
    factors : sequence of ndarray or Pack
        Operands, transposed if they have to be.
    signs : sequence of int
        -1 for operands that are to be conjugated, else 1.
    d, e : tuple of int
        Axes of X and Y.
    scalars : (number, number)
        alpha and beta.
    """
    given = (*factors, X, Y)
    nm = len(X) if isinstance(X, np.ndarray) else X.nm
    found = chosen(name, X.dtype, d, e, tuple(map(placed, given)), tuple(signs), scalars[1] != 0, nm)
    start(found, found.arguments_at(nm, [*map(begin, given)]), nm, X.dtype, scalars, work, launch)


def again(found: KronKernel, arguments: Any, nm: int, dtype: np.dtype) -> Callable:
    """A function of scalars and a launch that does the same in each call, as long as the arguments are there."""
    count, room = -(-nm // found.V), found.room
    if not is_small(count * found.cost):
        return lambda scalars, launch: start(found, arguments, nm, dtype, scalars, None, launch)
    entry, place = found.code.entry, address(arguments)

    def call(scalars, launch):
        alpha, beta = scalars
        entry(0, count, place, alpha, beta, address(scratch(dtype, 1, room)))

    return call


def chosen(
    name: str, dtype: np.dtype, d: tuple[int, ...], e: tuple[int, ...], layouts: tuple, signs: tuple, adds: bool,
    nm: int,
) -> KronKernel:  # fmt: skip
    """The `choice` for so many items."""
    return choice(name, dtype, d, e, layouts, signs, adds, nm * multiply_adds(d, e) < FEW)


def start(
    found: KronKernel, arguments: Any, nm: int, dtype: np.dtype, scalars: Sequence, work: Any = None,
    launch: Launch = NOW,
) -> None:  # fmt: skip
    """Compute `nm` items with a `KronKernel`, and these arguments of it."""
    count = -(-nm // found.V)
    cost = count * found.cost
    if is_small(cost) and work is None and not launch.recorded:  # most calls
        again(found, arguments, nm, dtype)(scalars, launch)
        return
    most = sharing.THREADS if launch.threads is None else min(launch.threads, sharing.THREADS)
    rows = workspace(work, dtype, found.room, min(most, count))
    launch = launch if work is None else limited(len(rows))
    share(found.code, cost, (0, count, address(arguments), *scalars), launch, None, rows)


def scale(Y: Any, e: Any, beta: Any, launch: Launch = NOW) -> None:
    """Y <- beta Y, without a look at Y if beta is zero."""
    a = Y.data if isinstance(Y, Pack) else Y
    if beta == 0:
        a[...] = 0
    elif isinstance(Y, Pack) and Y.is_complex:
        re, im = a[..., 0, :].copy(), a[..., 1, :]
        a[..., 0, :] = beta.real * re - beta.imag * im
        a[..., 1, :] = beta.real * im + beta.imag * re
    else:
        a *= beta


def values(x: Array, dtype: np.dtype, shift: Any, queue: Queue) -> Array:
    """View eigenvalues, an array (m,) or (nm, m), plus a shift, as matrices of one column."""
    return (x.astype(dtype) + dtype.type(shift))[..., None]


@functools.lru_cache(1024)
def multiply_adds(d, e):
    """Count multiply-adds of an item, if the first axis is contracted first."""
    return sum(math.prod(e[: k + 1]) * math.prod(d[k:]) for k in range(len(d)))


def begin(A):
    """Address of the first element."""
    return address(A) if isinstance(A, np.ndarray) else A.view.address


def placed(A: Any) -> tuple:
    """Return shape and strides, of an array in bytes, of a pack in real numbers, and its vector length."""
    if isinstance(A, np.ndarray):
        return A.shape, A.strides, 0
    view = A.view
    return (A.m, A.n), (view.ps, view.rs, view.cs), A.vlen


def workspace(work, dtype, size, threads):
    """Find addresses where threads work, of so many real numbers each: in the array `work`, or in our own memory."""
    nbytes = size * REAL[dtype.char].itemsize
    if work is None:
        begin, count = address(scratch(dtype, threads, size)), threads
    else:
        begin = -(-address(work) // LINE) * LINE
        count = (address(work) + work.nbytes - begin) // nbytes
    return range(begin, begin + min(count, threads) * nbytes, nbytes)


def needed(name: str, factors: Any, X: Any, Y: Any, d: Any, e: Any, launch: Launch = NOW) -> Any:
    """Elements of a work array for so many threads, and for one; they are enough for fewer items too."""
    layouts = tuple(map(placed, (*factors, X, Y)))
    signs = (1,) * len(factors)
    most = max(choice(name, X.dtype, d, e, layouts, signs, False, few).room for few in (False, True))
    size = most * REAL[X.dtype.char].itemsize
    threads = sharing.THREADS if launch.threads is None else launch.threads
    return [-(-(count * size + LINE) // X.dtype.itemsize) for count in (threads, 1)]


@functools.lru_cache(1024)
def choice(name, dtype, d, e, layouts, signs, adds, few):
    """Choose how items are computed that lie in memory like that; `few` by code that is compiled for all sizes."""
    if name == "kron" and not few and (found := row_by_row(dtype, d, e, layouts, signs, adds)):
        return found
    *factors, x, y = layouts
    vlens = {vlen for *_, vlen in layouts if vlen}
    vlen = vlens.pop() if vlens else native_width(dtype)
    n, V = len(d), width(dtype, vlen)
    orders = [tuple(range(n))] if x[2] else orders_of(n)
    order = min(orders, key=lambda order: estimate(dtype, d, e, x, y, V, order))
    (kind_x, X), (kind_y, Y) = located(dtype, d, x, V, order, True), located(dtype, e, y, V, order, False)
    numbers = [g + k for g in range(0, len(factors), n) for k in order]
    kinds, strides = zip(*(operand(dtype, factors[k], V) for k in numbers), strict=True)
    d, e = ordered(d, order), ordered(e, order)
    square = len({*d[-n:], *e[-n:]}) == 1 and d[-1] <= KNOWN
    simple = {kind_x, kind_y, *kinds} <= {"whole", "pack whole", "shared"}
    known = square and simple and not few
    size = d[-1] if known else None
    text = text_of(KronCall(name, dtype.char, V, n, size, kinds, kind_x, kind_y, adds))
    number = SCALAR[dtype.kind]
    code = compiled(batch, (INT, number, number, INT), text, V, source="compactla.cpu.kernels.kron_apply")
    steps = [(k, *strides_of_k, signs[k]) for k, strides_of_k in zip(numbers, strides, strict=True)]
    arguments, slots = words(vlen, d, e, steps, X, Y)
    column = V * parts(dtype)
    moved = (math.prod(d) + math.prod(e)) * V * dtype.itemsize
    cost = max(parts(dtype) ** 2 * multiply_adds(d, e) * (2 if name == "solve" else 1), moved / MOVED)
    sizes = rooms(name, d, e, operands(name, d[-n:], e[-n:]), kind_x, known)
    room = sum(m * apart for m, _, apart in sizes) * column
    return KronKernel(code, V, cost, room, arguments, slots)


def row_by_row(dtype, d, e, layouts, signs, adds):
    """Choose how to compute items one by one, by their rows; None if rows of Y are not contiguous, or are too short.

    They are if they fill less of a register than `SHORTEST`, or just `TRANSPOSED`: V items of such are transposed fast.
    """
    *factors, x, y = layouts
    n, m, count, native = len(d), d[-1], parts(dtype), native_width(dtype)
    strides, real = tuple(dtype.itemsize * m**k for k in reversed(range(n))), REAL[dtype.char].itemsize
    if n == 1 or {*d, *e} != {m} or m > KNOWN or m * count < SHORTEST * native or m * count == TRANSPOSED * native:
        return None
    if any(vlen or len(shape) != 2 for shape, _, vlen in factors):
        return None
    if x[2] or y[2] or y[1][2:] != strides[1:] or any(stride % real for stride in (*x[1], *y[1])):
        return None
    widths = (native, native // 2) if is_halved() else (native,)
    lanes = min(widths, key=lambda lanes: by_rows.padded(m * count, lanes))
    lanes = min(lanes, 1 << (m * count - 1).bit_length())
    number = SCALAR[dtype.kind]
    whole = tuple(at[1][1:] == strides for at in (x, y))
    text = text_of(by_rows.RowsCall(dtype.char, lanes, n, m, adds, whole))
    code = compiled(by_rows.batch, (INT, number, number, INT), text)
    steps = [(k, *operand(dtype, factor, 1)[1], signs[k]) for k, factor in enumerate(factors)]
    arguments, slots = words(0, d, e, steps, x[1], y[1])
    cost = max(count * multiply_adds(d, e) / m * -(-m * count // lanes), 2 * dtype.itemsize * m**n / MOVED)
    room = sum(by_rows.padded(rows * apart, LINE // 4) for rows, apart in by_rows.rooms(n, m, count, lanes))
    return KronKernel(code, 1, cost, room, arguments, slots)


def words(vlen, d, e, factors, X, Y):
    """Make arguments and slots of a `KronKernel`: `KronArguments` reads them.

    Factors are numbers of operands, their strides and signs; X and Y are strides.
    """
    arguments, slots = [0, vlen, *d, *e], []
    for k, *steps in (*factors, (len(factors), *X), (len(factors) + 1, *Y)):
        slots.append((len(arguments), k))
        arguments += [0, *steps]
    return np.array(arguments, np.int64), slots


def orders_of(n):
    """List orders of the axes that are tried."""
    axes = tuple(range(n))
    return [*itertools.permutations(axes)] if n <= 4 else [axes, axes[::-1]]


def ordered(sizes, order):
    """Put axes in an order, behind one of a single element if there are fewer than two."""
    return (1,) * (len(order) == 1) + tuple(sizes[k] for k in order)


# Operations on vectors for a number that is copied, by how it lies.
COPY = {"whole": 5, "wholeT": 5, "rows": 7, "rowsT": 7, "lanes": 2, "apart": 25, "pack": 1, "pack whole": 1}


def estimate(dtype, d, e, x, y, V, order):
    """Estimate vector operations for V items, if the axes are taken in an order."""
    (kind_x, _), (kind_y, _) = located(dtype, d, x, V, order, True), located(dtype, e, y, V, order, False)
    copies = math.prod(d) * COPY[kind_x.removeprefix("split ")] + math.prod(e) * COPY[kind_y]
    return copies + multiply_adds(ordered(d, order), ordered(e, order))


def located(dtype, sizes, layout, V, order, is_read):
    """Tell how X or Y lies, and its strides, from item to item first, with the axes in an order."""
    _, (step, *strides), vlen = layout
    column = V * parts(dtype)
    n = len(order)
    if vlen:
        rs, cs = strides
        if n == 1:
            rs, cs = cs, rs
        whole = vlen == V and cs == column and (n == 1 or rs == math.prod(sizes[1:]) * column)
        return "pack whole" if whole else "pack", (step, rs, *[0] * (n - 2), cs)
    item = dtype.itemsize
    strides = [0] * (n == 1) + [strides[k] for k in order]
    sizes = ordered(sizes, order)
    strides = regular(sizes, strides, item)
    merged = all(strides[k] == sizes[k + 1] * strides[k + 1] for k in range(1, len(sizes) - 1))
    if not is_read:
        kind = lie(*sizes[-2:], step, *strides[-2:], item)
    else:
        kind = lie(sizes[0], math.prod(sizes[1:]) if merged else sizes[-1], step, strides[0], strides[-1], item)
    kind = transposable(kind, V)
    return kind if merged or not is_read else f"split {kind}", (step, *strides)


def regular(sizes, strides, item):
    """Set strides of axes of one element to what they are in contiguous arrays."""
    strides = list(strides)
    for k in reversed(range(len(sizes))):
        if sizes[k] == 1:
            inner = strides[k + 1] * sizes[k + 1] if k + 1 < len(sizes) else None
            outer = next((strides[j] for j in reversed(range(k)) if sizes[j] > 1), item)
            strides[k] = outer if inner is None else inner
    return strides


def transposable(kind, V):
    """Tell how matrices lie, if V numbers of each can be transposed in registers: V has to be a power of two."""
    return kind if (V > 1 and V & (V - 1) == 0) or kind == "lanes" else "apart"


def operand(dtype, layout, V):
    """Tell how an operand lies, and its strides, from matrix to matrix first."""
    shape, strides, vlen = layout
    if vlen:
        return "pack", strides
    if len(shape) == 2:
        real = REAL[dtype.char].itemsize
        return "shared", (0, *(stride // real for stride in strides))
    (_, m, n), (step, rs, cs) = shape, strides
    return transposable(lie(m, n, step, rs, cs, dtype.itemsize), V), strides
