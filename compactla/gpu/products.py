"""How a device runs products of ordinary matrices: in one launch, of a kernel in `gemm_stacks.cl`.

Small matrices of GPUs have a kernel for their sizes, and those of CPUs that of packs, whose vector length is 1. All
others share a kernel: larger ones, those whose alpha is zero, and sequences on CPUs.
"""

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from compactla import routine
from compactla.gpu import run, shapes
from compactla.gpu.arrays import PLACES, empty, upload
from compactla.gpu.launch import launch
from compactla.gpu.program import kernel
from compactla.gpu.search import LOCAL_BYTES
from compactla.strides import Place, in_stack
from compactla.view import REAL, View

FILE = "gemm_stacks.cl"
LARGEST = 32  # extent of matrices that have a kernel for their sizes
VECTOR = 16  # bytes that are moved at a time
WARP = 32  # work-items that go together
GROUP = 64  # work-items of a work-group, at least, where there is local memory for so many
BLOCK, TEAM = 32, 64  # rows and columns of a block, and work-items for it


class Operand(NamedTuple):
    """Matrices of one size in the memory of an array.

    Attributes
    ----------
    array : pyopencl.array.Array
        What has the memory, its events and its queue.
    start : int
        Bytes in it to the first matrix.
    place : Place
        Where they are then.
    """

    array: Any
    start: int
    place: Place

    @property
    def T(self):
        return self._replace(place=self.place.T)


def multiply(nm, operands, conj, alpha, beta, wait_for=(), starts=None):
    """C <- alpha op(A) op(B) + beta C in one launch.

    Parameters
    ----------
    nm : int
        Number of matrices.
    operands : sequence of Operand
        op(A), op(B) and C.
    conj : (bool, bool)
        Whether matrices of A, and of B, are conjugated.
    alpha, beta : number
        Scalars, of Python.
    wait_for : sequence of pyopencl.Event
        What the device waits for.
    starts : (3, nm) ndarray of int64, optional
        Bytes to all matrices, where these are not evenly far apart.
    """
    A, B, C = operands
    queue, dtype = C.array.queue, C.array.dtype
    if not nm * C.place.m * C.place.n:
        return
    turns = [0, 1, 2]
    if C.place.T.rank(dtype.itemsize) > C.place.rank(dtype.itemsize):
        A, B, C, conj, turns = B.T, A.T, C.T, conj[::-1], [1, 0, 2]
    operands, scattered, on_cpu = (A, B, C), starts is not None, shapes.is_cpu(queue.device)
    m, n, k = C.place.m, C.place.n, A.place.n if alpha else 0
    small = 0 < k and max(m, n, k) <= LARGEST
    if small and on_cpu and not scattered:
        views = tuple(view(X, nm) for X in operands)
        run.launch(routine.named("gemm"), views, (alpha, beta), (*conj, False), (), 0, None, wait_for)
        return
    real = REAL[dtype.char].itemsize
    room = [upload(starts[turns] // real, queue)] if scattered else []
    scalars = [part for x in (alpha, beta) for part in (float(x.real), float(x.imag))]
    numbers = [(X.array.base_data, *(x // real for x in (X.start, *X.place.strides))) for X in operands]
    choice = None
    if small and not on_cpu:
        units = tuple(map(common_bytes, starts[turns] if scattered else [[X.start] for X in operands]))
        local = min(LOCAL_BYTES, queue.device.local_mem_size)
        choice = chosen(local, dtype, tuple(X.place for X in operands), units, conj, beta != 0, scattered)
    if choice:
        name, (macros, lanes, group) = "gemm_stacks", choice
        work_items = -(-nm // lanes) * group, 1
        values = [nm, *scalars, *numbers[0], *numbers[1], *numbers[2]]
    else:
        name, macros, group = "gemm_blocks", (("PLACES", int(scattered)),), TEAM
        work_items = -(-m // BLOCK) * -(-n // BLOCK) * TEAM, min(nm, PLACES)
        values = [nm, m, n, k, *scalars, *numbers[0], int(conj[0]), *numbers[1], int(conj[1]), *numbers[2]]
    values += [x.data for x in room]
    code = kernel(queue, FILE, name, dtype, 1, values, **{name.upper(): 1}, **dict(macros))
    launch(queue, wait_for, code, work_items, (group, 1), [*(X.array for X in operands), *room], values)


def view(X, nm):
    """Ordinary matrices as packs of one lane."""
    dtype, place = X.array.dtype, X.place
    real = REAL[dtype.char].itemsize
    step, rs, cs = (stride // real for stride in place.strides)
    return View(X.array, X.start // real, nm, place.m, place.n, step, rs, cs, 1, dtype, X.array.queue)


def common_bytes(numbers):
    """The largest number of bytes, at most VECTOR, of which all numbers are multiples."""
    return int(np.gcd.reduce([*numbers, VECTOR]))


class Choice(NamedTuple):
    """How `gemm_stacks` is compiled: its macros, matrices of a work-group, and its work-items."""

    macros: tuple[tuple[str, int], ...]
    lanes: int
    group: int


@functools.lru_cache(4096)
def chosen(local, dtype, places, units, conj, add, scattered) -> Choice | None:
    """What suits GPUs; None if local memory is too small.

    Parameters
    ----------
    local : int
        Bytes of local memory of a work-group.
    dtype : numpy.dtype
        Type of the matrices.
    places : (Place, Place, Place)
        Where op(A), op(B) and C are, such that rows of C serve better than columns.
    units : (int, int, int)
        Bytes of which the first of them begin at multiples, or all of them if they are scattered.
    conj : (bool, bool)
        Whether A, and B, is conjugated.
    add : bool
        Whether beta is not zero.
    scattered : bool
        Whether matrices are not evenly far apart.
    """
    A, B, C = places
    m, n, k = C.m, C.n, A.n
    item, real = dtype.itemsize, REAL[dtype.char].itemsize
    own = [scattered or A.step != 0, scattered or B.step != 0, True]
    columns = [abs(X.rs) < abs(X.cs) for X in (A, B)]
    wide_a = wide = 1
    if dtype.kind == "f":
        begins = [unit if scattered else common_bytes([unit, X.step]) for X, unit in zip(places, units, strict=True)]
        wide_a = width(A.T if columns[0] else A, real, begins[0])
        wide = width(C, real, begins[2])
        if not columns[1]:
            wide = min(wide, width(B, real, begins[1]))
    regular = wide * real == VECTOR and (n % 8 == 0 or n * real <= 32)
    sizes = [X.m * X.n * item for X in places]
    every = max(VECTOR // common_bytes([size]) for size, mine in zip(sizes, own, strict=True) if mine)
    flat = 0
    if not regular and not scattered and set(units) == {VECTOR} and all(is_whole(X, item) for X in places):
        if every * sum(sizes) <= local:
            flat, wide_a, wide = VECTOR // real, 1, 1
    if wide > 1:
        tile, usual = (min(4 if m >= 4 * real else 2, m), 2 if wide == 2 and n > 4 else 1), GROUP
    else:
        tile, usual = (side(m), side(n)), 2 * GROUP
    team = -(-m // tile[0]) * -(-(n // wide) // tile[1])
    held = sizes if flat else [m * (k | 1) * item, k * (n + wide) * item, 1]
    each = sum(size for size, mine in zip(held, own, strict=True) if mine)
    most = (local - sum(held) + each) // each
    unit = every if flat else 1
    lanes = max(min(round(usual / team / unit), most // unit), 1) * unit
    while wide == 2 and lanes * team % WARP and 2 * lanes <= most and 2 * lanes * team <= 8 * GROUP:
        lanes *= 2
    if lanes > most:
        return None
    macros = {"M": m, "N": n, "K": k, "AOWN": own[0], "BOWN": own[1], "ACONJ": conj[0], "BCONJ": conj[1], "BETA": add}
    macros |= {"ACOLUMNS": columns[0], "BCOLUMNS": columns[1], "PLACES": scattered, "LANES": lanes, "TI": tile[0]}
    macros |= {"TJ": tile[1], "WIDE": wide, "WIDEA": wide_a, "FLAT": flat}
    return Choice(tuple((name, int(value)) for name, value in macros.items()), lanes, lanes * team)


def width(X, real, unit):
    """Numbers of a row that can be moved at a time, where matrices begin at multiples of `unit` bytes."""
    if X.cs != real or X.n == 1:
        return 1
    strides = [X.n * real, unit] + [X.rs] * (X.m > 1)
    return max(common_bytes(strides) // real, 1)


def is_whole(X, item):
    """Whether matrices follow one after the other without gaps, or are one."""
    return (X.rs, X.cs) in ((X.n * item, item), (item, X.m * item)) and X.step in (X.m * X.n * item, 0)


def side(n):
    """Rows of a tile of n rows."""
    sides = [some for some in ((2, 3) if n <= 16 else (3, 4)) if some <= n]
    return min(sides or [n], key=lambda some: (-(-n // some) * some, -some))


@dataclass(frozen=True)
class Products:
    """Products of stacks of matrices, as what `compactla.gpu.stacks.kernel` finds for other functions.

    Attributes
    ----------
    fit : compactla.linalg.stacks.Fit
        Sizes and types.
    places : list of Place
        Where the factors are.
    """

    fit: Any
    places: list[Place]

    def run(self, arrays, wait):
        """The products, and None."""
        ((shape, dtype),) = self.fit.made
        C = empty(shape, dtype, arrays[0].queue, arrays[0].allocator)
        *_, m, n = shape
        item = dtype.itemsize
        operands = [Operand(X, X.offset, place) for X, place in zip(arrays, self.places, strict=True)]
        operands.append(Operand(C, C.offset, Place(m, n, m * n * item, n * item, item)))
        one, zero = (complex(1), complex(0)) if dtype.kind == "c" else (1.0, 0.0)
        multiply(self.fit.nm, operands, (False, False), one, zero)
        return [C], None


def products(function, arrays, fit):
    """Products of stacks of one type that are evenly far apart; None for others, and for functions but matmul."""
    if function.name != "matmul":
        return None
    ((_, dtype),) = fit.made
    places = []
    for X in arrays:
        (*_, rs, cs), step = in_stack(X, fit.lead)
        if step is None or X.dtype != dtype or X.offset % dtype.itemsize:
            return None
        places.append(Place(*X.shape[-2:], step, rs, cs))
    return Products(fit, places)
