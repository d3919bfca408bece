"""How a device runs products of ordinary matrices: in one launch.

Small matrices of GPUs have a kernel in `gemm_stacks.cl`, for their sizes, and those of CPUs that of packs, whose vector
length is 1. All others have one in `gemm_blocks.cl`: larger ones, those on NVIDIA's GPUs that suit it better, those
whose alpha is zero, and sequences on CPUs.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from compactla import routine
from compactla.calls.launch import NOW, Launch
from compactla.dtypes import REAL
from compactla.gpu import run
from compactla.gpu.arrays import empty, upload
from compactla.gpu.launch import enqueue
from compactla.gpu.linalg.blocks import GROUP, LARGEST, VECTOR, WARP, Operands, blocks, common_bytes, has_size, width
from compactla.gpu.program import kernel
from compactla.gpu.tuning import choices
from compactla.search import LOCAL_BYTES
from compactla.strides import Place, in_stack
from compactla.types import Array, Queue
from compactla.view import View

SMALL = 32  # extent of matrices of which a work-group has several, in `gemm_stacks.cl`
SMALLER = 8  # and of such of doubles on NVIDIA's GPUs, which have matrix units for larger ones


@dataclass(frozen=True)
class Multiply:
    """A launch for matrices of some sizes and strides.

    Attributes
    ----------
    nm : int
        Number of matrices.
    places : list of Place
        Where those that the kernel takes first, second and third are, seen from their starts.
    turns : list of int
        Which of op(A), op(B) and C these are.
    conj : (bool, bool)
        Whether the first, and the second, are conjugated.
    kernel : kernel or None
        None where C has no elements, or if that of packs has to do it. Others are compiled for conjugates.
    sizes : list of int
        What the kernel is told first.
    groups, group : int
        Work-groups, and work-items of each.
    """

    nm: int
    places: list[Place]
    turns: list[int]
    conj: tuple[bool, bool]
    kernel: Any = None
    sizes: list[int] = field(default_factory=list)
    groups: int = 0
    group: int = 0

    def start(self, arrays, starts, alpha, beta, launch=NOW, room=()):
        """C <- alpha op(A) op(B) + beta C, of arrays with the bytes to the first matrices."""
        if self.kernel is None:
            return self._start_as_packs(arrays, starts, alpha, beta, launch)
        real = REAL[arrays[0].dtype.char].itemsize
        values = [self.nm, *self.sizes, alpha.real, alpha.imag, beta.real, beta.imag]
        for turn, place in zip(self.turns, self.places, strict=True):
            values += arrays[turn].base_data, starts[turn] // real, *(stride // real for stride in place.strides)
        values += [x.data for x in room]
        work_items, group = (self.groups * self.group, 1), (self.group, 1)
        return enqueue(arrays[0].queue, launch, self.kernel, work_items, group, [*arrays, *room], values)

    def _start_as_packs(self, arrays, starts, alpha, beta, launch):
        """Start the kernel for packs, of which these are ones of one lane."""
        if self.nm * self.places[2].m * self.places[2].n:
            found = zip(self.turns, self.places, strict=True)
            views = tuple(view(arrays[turn], starts[turn], place, self.nm) for turn, place in found)
            run.start(routine.named("gemm"), views, (alpha, beta), (*self.conj, False), (), 0, None, launch)


def multiply(
    nm: int, arrays: Sequence[Array], starts: Sequence[int], places: Sequence[Place], conj: tuple[bool, bool],
    alpha: Any, beta: Any, launch: Launch = NOW, every: Any = None,
) -> None:  # fmt: skip
    """C <- alpha op(A) op(B) + beta C in one launch.

    Parameters
    ----------
    nm : int
        Number of matrices.
    arrays : sequence of array
        What has the memory of op(A), op(B) and C.
    starts : sequence of int
        Bytes in it to the first matrices.
    places : sequence of Place
        Where they are then.
    conj : (bool, bool)
        Whether matrices of A, and of B, are conjugated.
    alpha, beta : number
        Scalars, of Python.
    launch : Launch
        What the device waits for.
    every : (3, nm) ndarray of int64, optional
        Bytes to all matrices, where these are not evenly far apart.
    """
    units = tuple(map(common_bytes, every if every is not None else [[start] for start in starts]))
    queue, dtype = arrays[2].queue, arrays[2].dtype
    found = planned(nm, queue, dtype, places, units, conj, bool(alpha), bool(beta), every is not None)
    real = REAL[dtype.char].itemsize
    room = [] if every is None else [upload(every[found.turns] // real, queue)]
    found.start(arrays, starts, alpha, beta, launch, room)


def planned(
    nm: int, queue: Queue, dtype: np.dtype, places: Sequence[Place], units: Sequence[int], conj: tuple[bool, bool],
    multiplies: bool, adds: bool, scattered: bool = False,
) -> Multiply:  # fmt: skip
    """The launch for matrices in some places; alpha, and beta, is zero or not."""
    A, B, C = places
    turns = [0, 1, 2]
    if C.T.rank(dtype.itemsize) > C.rank(dtype.itemsize):
        A, B, C, conj, turns = B.T, A.T, C.T, conj[::-1], [1, 0, 2]
    units = tuple(units[turn] for turn in turns)
    common = nm, [A, B, C], turns, conj
    m, n, k = C.m, C.n, A.n if multiplies else 0
    device = queue.device
    on_cpu = choices.is_cpu(device)
    if not nm * m * n or (0 < k and max(m, n, k) <= SMALL and on_cpu and not scattered):
        return Multiply(*common)
    nvidia, local = "NVIDIA" in device.platform.name, min(LOCAL_BYTES, device.local_mem_size)
    operands = Operands(dtype, (replace(A, n=k), replace(B, m=k), C), units, conj, adds, scattered)
    if 0 < k and not on_cpu and suits_stacks(m, n, k, dtype, nvidia) and (found := chosen(operands, local)):
        code = compiled(queue, "gemm_stacks", dtype, nm, [], found.macros)
        return Multiply(*common, code, [], -(-nm // found.lanes), found.group)
    sized = 0 < k and has_size(m, n, k, dtype, nvidia) and not on_cpu
    room = getattr(device, "room", 0)
    tile = blocks(operands, local, nvidia, sized, room=room)
    less: dict[str, int] = {}
    while True:
        try:
            code = compiled(queue, "gemm_blocks", dtype, nm, [m, n, k], tile.macros | less)
            break
        except RuntimeError:  # of NVIDIA's GPUs those before compute capability 9.0 have less of it, before 8.0 nothing
            if not nvidia or "CLA_ASYNC" in less:
                raise
            if tile.macros.get("TALL") and not less:
                less = {"TALL": 0}
            else:
                tile, less = blocks(operands, local, nvidia, sized, matrix_units=False, room=room), {"CLA_ASYNC": 0}
    return Multiply(*common, code, [m, n, k], tile.groups(nm, m, n, device.max_compute_units), tile.group)


def compiled(queue, name, dtype, nm, sizes, macros):
    """The kernel of that name, with these macros."""
    room = [None] if macros["PLACES"] else []
    types = [nm, *sizes, *[0.0] * 4, *[None, 0, 0, 0, 0] * 3, *room]
    return kernel(queue, f"{name}.cl", name, dtype, 1, types, **macros)


def suits_stacks(m, n, k, dtype, nvidia):
    """Whether matrices are so small that a work-group has several of them in `gemm_stacks.cl`."""
    largest, item = max(m, n, k), dtype.itemsize
    if not nvidia:
        return largest <= SMALL
    if REAL[dtype.char].itemsize == 8:
        return largest <= SMALLER
    return largest <= 2 * SMALLER or (largest <= SMALL and (n * item % VECTOR or k * item % VECTOR))


def view(array, start, place, nm):
    """Ordinary matrices as packs of one lane."""
    dtype = array.dtype
    real = REAL[dtype.char].itemsize
    step, rs, cs = (stride // real for stride in place.strides)
    return View(array, start // real, nm, place.m, place.n, step, rs, cs, 1, dtype, array.queue)


class StackTile(NamedTuple):
    """How `gemm_stacks` is compiled: its macros, matrices of a work-group, and its work-items."""

    macros: dict[str, int]
    lanes: int
    group: int


@functools.lru_cache(4096)
def chosen(operands: Operands, local: int) -> StackTile | None:
    """A choice that suits GPUs with so many bytes of local memory; None if that is too small."""
    A, B, C = operands.places
    dtype, units, scattered = operands.dtype, operands.units, operands.scattered
    places, conj, add = operands.places, operands.conj, operands.adds
    m, n, k = C.m, C.n, A.n
    item, real = dtype.itemsize, operands.real
    own = [*operands.own, True]
    columns = [abs(X.rs) < abs(X.cs) for X in (A, B)]
    wide_a = wide = 1
    if dtype.kind == "f":
        begins = operands.begins
        wide_a = width(A.T if columns[0] else A, item, real, begins[0])
        wide = width(C, item, real, begins[2])
        if not columns[1]:
            wide = min(wide, width(B, item, real, begins[1]))
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
    return StackTile({name: int(value) for name, value in macros.items()}, lanes, lanes * team)


def is_whole(X, item):
    """Whether matrices follow one after the other without gaps, or are one."""
    return (X.rs, X.cs) in ((X.n * item, item), (item, X.m * item)) and X.step in (X.m * X.n * item, 0)


def side(n):
    """Rows of a tile of n rows."""
    sides = [some for some in ((2, 3) if n <= 16 else (3, 4)) if some <= n]
    return min(sides or [n], key=lambda some: (-(-n // some) * some, -some))


@dataclass(frozen=True)
class DeviceProducts:
    """Products of stacks of matrices, as what `compactla.gpu.linalg.stacks.kernel` finds for other functions.

    Attributes
    ----------
    fit : compactla.linalg.stacks.Fit
        Sizes and types.
    places : list of Place
        Where the factors are.
    plans : dict
        Launches, by the bytes of which factors and products begin at multiples.
    """

    fit: Any
    places: list[Place]
    plans: dict = field(default_factory=dict)

    def run(self, arrays, wait):
        """The products, and None."""
        ((shape, dtype),) = self.fit.made
        C = empty(shape, dtype, arrays[0].queue, arrays[0].allocator)
        *_, m, n = shape
        item = dtype.itemsize
        arrays = [*arrays, C]
        starts = [X.offset for X in arrays]
        units = tuple(math.gcd(start, VECTOR) for start in starts)
        plan = self.plans.get(units)
        if plan is None:
            places = [*self.places, Place(m, n, m * n * item, n * item, item)]
            plan = planned(self.fit.nm, C.queue, dtype, places, units, (False, False), True, False)
            self.plans[units] = plan
        one, zero = (complex(1), complex(0)) if dtype.kind == "c" else (1.0, 0.0)
        plan.start(arrays, starts, one, zero)
        return [C], None


def products(function, arrays, fit):
    """Products of stacks of one type that are evenly far apart; None for others, and for functions but matmul.

    None as well for larger ones that the library of arrays in CUDA memory multiplies faster.
    """
    if function.name != "matmul":
        return None
    if min(fit.number[letter] for letter in "mkn") > LARGEST and getattr(arrays[0].queue, "multiplies", False):
        return None
    ((_, dtype),) = fit.made
    places = []
    for X in arrays:
        (*_, rs, cs), step = in_stack(X, fit.lead)
        if step is None or X.dtype != dtype or X.offset % dtype.itemsize:
            return None
        places.append(Place(*X.shape[-2:], step, rs, cs))
    return DeviceProducts(fit, places)
