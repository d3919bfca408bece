"""How a device factors systems with band matrices and solves with them.

A team of work-items shares each of those of `parted_bands.cl` and `pivoted_bands.cl`: tridiagonal ones that fit into
the registers of a team, or with row interchanges of several. All others have one work-item for each system: of
`minors_bands.cl` where they are neighbours in memory, real and short, else of `bands.cl`, which is faster for long ones
and several right-hand sides, too, where there are enough systems to keep a device busy.
"""

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from compactla.band_form import Form
from compactla.calls.launch import NOW, Launch
from compactla.checks import stays
from compactla.dtypes import REAL
from compactla.gpu.arrays import default_vlen, download, empty, ordinary, reused, seen_as
from compactla.gpu.arrays import unpack as move
from compactla.gpu.launch import enqueue, flatten
from compactla.gpu.linalg.arrays import spread
from compactla.gpu.program import kernel
from compactla.gpu.tuning.choices import is_cpu, local_room
from compactla.search import LOCAL_BYTES, WARP
from compactla.strides import in_two_axes
from compactla.types import Array, Queue

ALIKE = 1024  # layouts of arrays that are kept
FEW = 4  # right-hand sides at a time
AHEAD = 512  # bytes of a system that are on their way at a time, at most
TURNS = 1  # rows of a tile on a CPU, where nothing is gained by more, which take long to compile
RESIDENT = 16  # packs that a compute unit works on at a time
SIDE_BY_SIDE = {4: 8, 8: 6}  # packs of minors_bands.cl of a compute unit at a time, by bytes of a number
CACHED = 32 << 20  # bytes of their work space that stay in a cache
BESIDE = 8  # rows of minors_bands.cl that are on their way, and worked on, at a time
LOCAL_OF_ALL, LOCAL_OF_NONE = 228 * 1024, 1024  # bytes of local memory of a compute unit; what a group has besides
DEEP = 64  # bytes of a vector that a member of a team has
NEIGHBOURS = 64  # bytes that are read of neighbouring systems at least
GROUP, SYSTEMS = 128, 8  # work-items of a work-group with teams, about, and systems if these are not neighbours
LONG = 512  # bytes of a vector with which teams factor and solve at once, too: with shorter ones that is slower
FEW_PACKS = 3  # for each compute unit, up to which teams are faster
SHORT = 128  # work-items of a team up to which it is faster for more systems, too, with one real right-hand side each
MOST = 512  # work-items of a team: they share registers
SWAPPING = 4096  # bytes of one number of each work-item of a group that swaps rows, which has local memory for eleven
TOGETHER = 32  # work-items of a team that has a part
REGISTERS, EACH = 65536, 128  # of an NVIDIA GPU's compute unit, and what a work-item may have of them
LEFT = 11  # numbers for each part, of pivoted_bands.cl


class Factors(NamedTuple):
    """Factors of matrices in packs, as bands.cl makes them, and how rows were swapped."""

    F: Any
    swaps: Any


class DeviceSystems(NamedTuple):
    """Where an array (..., m, n) of systems is: seen as (outer, inner, m, n), with strides in real numbers."""

    array: Any
    far: int
    step: int
    rs: int
    cs: int

    @property
    def along(self) -> int:
        """1 if neighbours in memory are systems, 0 if they are unknowns."""
        return int(abs(self.step) < abs(self.rs))

    @property
    def arguments(self):
        item = REAL[self.array.dtype.char].itemsize
        return self.array.base_data, self.array.offset // item, *self[1:]


def moved(a: Array, axis: int) -> Array:
    """A view of an array with this axis as the last one."""
    order = [k for k in range(a.ndim) if k != axis] + [axis]
    return seen_as(a, [a.shape[k] for k in order], [a.strides[k] for k in order])


def rows(a: Array) -> Array:
    """A view of vectors (..., n) as matrices (..., 1, n)."""
    return seen_as(a, (*a.shape[:-1], 1, a.shape[-1]), (*a.strides[:-1], 0, a.strides[-1]))


def columns(a: Array) -> Array:
    """A view of vectors (..., n) as matrices (..., n, 1)."""
    return seen_as(a, (*a.shape, 1), (*a.strides, a.dtype.itemsize))


def source(form: Form):
    """The name of the form of the matrices in bands.cl."""
    return {"banded": 0, "tridiag": 1, "ring": 2, "spd": 3 if form.lower else 4}[form.name]


def found(arrays, lead):
    """The inner one of two axes, as which those of systems are seen, and where the `DeviceSystems` of arrays are."""
    (_, inner), steps = two_axes(lead, arrays)
    places = []
    for a, two in zip(arrays, steps, strict=True):
        item = REAL[a.dtype.char].itemsize
        places.append(DeviceSystems(a, *(stride // item for stride in (*two, *a.strides[-2:]))))
    return inner, places


def fit(arrays: Sequence[Array], lead: Sequence[int]) -> bool:
    """Whether kernels take the strides of arrays (..., m, n) of systems."""
    return two_axes(lead, arrays) is not None


def two_axes(lead, arrays):
    """What `in_two_axes` says of arrays (..., m, n), which is kept: calls are alike."""
    return _two_axes(tuple(lead), tuple(lead_strides(a, lead) for a in arrays))


_two_axes = functools.lru_cache(ALIKE)(in_two_axes)


def lead_strides(a, lead):
    """Strides of the axes of systems of an array (..., m, n), which are `lead` or a single one."""
    if a.ndim - 2 == len(lead):
        return tuple(a.strides[:-2])
    counts = list(itertools.accumulate(reversed(lead[1:]), int.__mul__, initial=1))[::-1]
    return tuple(a.strides[0] * count for count in counts)


def contiguous(a: Array, dtype: np.dtype) -> Array:
    """A copy of an array as one of a type in the order of C."""
    return spread(a, a.shape, a.strides, dtype)


def copy(a: Array, target: Array) -> None:
    """Copy a contiguous array to one of any strides."""
    if a.ndim > 3:
        for k in range(a.shape[0]):
            copy(a[k], target[k])
        return
    lead = (1,) * (3 - a.ndim)
    a, target = (seen_as(x, lead + x.shape, (0,) * len(lead) + x.strides) for x in (a, target))
    move(ordinary(a), a.shape[0], target)


class BandLaunch:
    """A launch of a kernel of `bands.cl`: how many packs there are, and room for some at a time."""

    def __init__(self, form: Form, n, nsys, dtype, queue, columns=0):
        self.form, self.n, self.nsys, self.dtype, self.queue, self.columns = form, n, nsys, dtype, queue, columns
        self.V = default_vlen(dtype, queue)
        self.npack = -(-nsys // self.V)

    @property
    def tail(self):
        """The last axes of packs."""
        return (2, self.V) if self.dtype.kind == "c" else (self.V,)

    def packs_at_a_time(self):
        """For how many packs there is work space."""
        units = self.queue.device.max_compute_units
        return min(self.npack, (2 if is_cpu(self.queue.device) else RESIDENT) * units)

    def run(self, name, places, groups, values, launch, **macros):
        """Launch it for the arrays in these places."""
        form, item = self.form, self.dtype.itemsize
        numbers = 0 if name == "solve_bands" else 3 if form.name in ("tridiag", "ring") else form.kl + form.ku + 1
        few = TURNS if is_cpu(self.queue.device) else AHEAD // (max(numbers + self.columns, 1) * item)
        turns = min(16, 1 << max(few, 1).bit_length() - 1)
        macros |= {"KL": form.kl, "KU": form.ku, "REACH": form.reach, "PIVOTING": int(form.pivoting)}
        macros |= {"SOURCE": source(form), "WIDE": int(form.wide), "COLUMNS": self.columns, "TURNS": turns}
        arrays, values = flatten(values)
        arrays = [*(place.array for place in places), *arrays]
        args = [self.nsys, self.n, *values]
        code = kernel(self.queue, "bands.cl", name, self.dtype, self.V, args, **{name.upper(): 1}, **macros)
        enqueue(self.queue, launch, code, (groups[0] * self.V, groups[1]), (self.V, 1), arrays, args)

    def minors(self, places):
        """Groups of `minors_bands.cl`, and rows that local memory has of each system, and that it has not.

        None where it is not for these arrays, or a cache has no room for those rows.
        """
        form, device, item = self.form, self.queue.device, self.dtype.itemsize
        fits = form.kl == form.ku == 1 and not form.pivoting and self.dtype.kind == "f" and not is_cpu(device)
        if not fits or self.n * item < LONG or not all(place.along for place in places):
            return None
        packs = SIDE_BY_SIDE[item]
        local = min(local_room(device, True), LOCAL_OF_ALL // packs - LOCAL_OF_NONE)
        row = (1 + self.columns) * self.V * item
        here, groups = local // (row * BESIDE) * BESIDE, min(self.npack, packs * device.max_compute_units)
        rest = max(-(-self.n // BESIDE) * BESIDE - here, 0)
        return (groups, here, rest) if groups * rest * row <= CACHED else None

    def run_minors(self, places, values, shape, room, launch):
        """Launch the kernel of `minors_bands.cl`."""
        groups, here, rest = shape
        macros = {"BOTH_MINORS": 1, "KL": 1, "KU": 1, "SOURCE": source(self.form), "COLUMNS": self.columns}
        macros |= {"TURNS": BESIDE, "HERE": here}
        local = here * (1 + self.columns) * self.V * self.dtype.itemsize
        if local > LOCAL_BYTES:
            macros["CLA_ROOM"] = local
        work = room.array((max(groups * self.V * rest * (1 + self.columns), 1),))
        arrays, values = flatten((*values, work))
        args = [self.nsys, self.n, *values]
        code = kernel(self.queue, "minors_bands.cl", "both_minors", self.dtype, self.V, args, **macros)
        arrays = [*(place.array for place in places), *arrays]
        enqueue(self.queue, launch, code, (groups * self.V, 1), (self.V, 1), arrays, args)

    @property
    def most(self):
        """Work-items that may share a system, 0 where one has it alone."""
        device = self.queue.device
        return min(MOST, device.max_work_group_size) if self.form.kl == self.form.ku == 1 and not is_cpu(device) else 0

    @property
    def members(self):
        """Work-items that share a system, 0 if one has it alone: so many that they hold it, which n decides."""
        members = team(-(-self.n * self.dtype.itemsize // DEEP))
        return members if members <= min(self.most, self.swapping) else 0

    @property
    def swapping(self):
        """Work-items of a group at most."""
        return SWAPPING // self.dtype.itemsize if self.form.pivoting else MOST

    @property
    def parts(self):
        """Teams that share a system that is too long for one, 0 if there are too many of them, or none at all."""
        parts = -(-self.n * self.dtype.itemsize // (DEEP * TOGETHER))
        return parts if self.form.pivoting and team(parts) <= self.most else 0

    def run_parted(self, name, places, values, launch, near, members=0, parts=1, **macros):
        """Launch a kernel with teams likewise; `near` says whether neighbouring systems are read."""
        members, item = members or self.members, REAL[self.dtype.char].itemsize
        wanted = max(min(GROUP // members, SYSTEMS), NEIGHBOURS // item if near else 1)
        lanes = 1 << min(wanted, max(min(MOST, self.swapping) // members, 1), self.V).bit_length() - 1
        macros |= {"KL": 1, "KU": 1, "SOURCE": source(self.form), "LANES": lanes, "MEMBERS": members}
        macros |= {"DEEP": DEEP // self.dtype.itemsize, name.upper(): 1, "DENSE": int(self.is_dense(places))}
        file = "pivoted_bands.cl" if self.form.pivoting else "parted_bands.cl"
        if self.form.pivoting and not members % max(WARP // lanes, 1):
            macros["SPREAD"] = max(WARP // lanes, 1)
        macros["CLA_GROUPS"] = max(REGISTERS // (EACH * lanes * members), 1)
        arrays, values = flatten(values)
        args = [self.nsys, self.n, *values]
        code = kernel(self.queue, file, name, self.dtype, self.V, args, **macros)
        group, arrays = lanes * members, [*(place.array for place in places), *arrays]
        enqueue(self.queue, launch, code, (-(-self.nsys // lanes) * group, parts), (group, 1), arrays, args)

    def is_dense(self, places):
        """Whether unknowns that are neighbours in memory have nothing between them."""
        return all(place.along or place.rs == (2 if self.dtype.kind == "c" else 1) for place in places)

    def run_in_parts(self, places, inner, told, info, room, launch, near, **along):
        """Solve with several teams for each system: what is left of their rows, where these begin, then all."""
        parts, lanes = self.parts, self.npack * self.V
        ends = room.array((LEFT * (parts + 1) * lanes,))
        for column in range(self.columns):
            of_teams = inner, column, lanes, *told, ends
            shape = {"near": near, "members": TOGETHER, "parts": parts} | along
            self.run_parted("reduce_pivoted", places, of_teams, launch, **shape)
            values = inner, parts, lanes, *told[: 3 * len(places[0].arguments)], ends, info
            self.run_parted("join_pivoted", places[:3], values, NOW, False, team(parts))
            self.run_parted("expand_pivoted", places, of_teams, NOW, **shape)


def team(least: int) -> int:
    """At least so many work-items: a power of 2, or three quarters of one."""
    members = 1 << (least - 1).bit_length()
    return members * 3 // 4 if members > 2 and members * 3 // 4 >= least else members


def matrix_places(matrix, lead, others=()):
    """The inner axis and the places of the diagonals, three times the same if they are together, and of others."""
    main = matrix[len(matrix) // 2]
    diagonals = [a if a.size else main for a in (matrix * 3)[:3]]  # what is empty is not read
    inner, places = found([*diagonals, *others], lead)
    if len(matrix) == 1:  # diagonals are rows
        places[:3] = [place._replace(rs=place.cs, cs=place.rs) for place in places[:3]]
    else:
        places[:3] = [place._replace(rs=place.cs) for place in places[:3]]
    return inner, places


def factor(
    form: Form, n: int, matrix: Sequence[Array], lead: Sequence[int], queue: Queue, launch: Launch = NOW
) -> tuple[Factors | None, Array]:
    """`Factors` and info of matrices (..., m, n) on the device; info is of every lane, and lives there."""
    dtype = matrix[0].dtype
    run = BandLaunch(form, n, math.prod(lead), dtype, queue)
    if not run.nsys:
        return None, None
    inner, places = matrix_places(matrix, lead)
    F = empty((run.npack, n, form.kl + form.reach + 1, *run.tail), REAL[dtype.char], queue)
    swaps = empty((run.npack, n if form.pivoting else 1, run.V), np.int32, queue)
    info = empty((run.npack * run.V,), np.int32, queue)
    told, along = [*itertools.chain(*(place.arguments for place in places))], places[1].along
    if run.members and not form.pivoting:
        run.run_parted("factor_parted", places, (inner, *told, F, info), launch, True, ALONG_A=along)
    else:
        values = inner, *told, F, swaps, info
        run.run("factor_bands", places, (run.npack, 1), values, launch, ALONG_A=along, ALONG_B=0)
    return Factors(F, swaps), info


def solve(
    form: Form, n: int, factors: Factors, B: Array, X: Array, lead: Sequence[int], common: bool, room: Any,
    launch: Launch = NOW,
) -> Any:  # fmt: skip
    """X <- inv(A) B, arrays (..., n, nrhs) of any strides."""
    r, queue = B.shape[-1], B.queue
    run = BandLaunch(form, n, math.prod(lead), X.dtype, queue, -(-r // -(-r // FEW)))
    inner, places = found([B, X], lead)
    told = inner, r, *itertools.chain(*(place.arguments for place in places))
    along = {"ALONG_B": places[0].along, "ALONG_X": places[1].along, "COMMON": int(common)}
    if run.members and not form.pivoting:
        return run.run_parted("solve_parted", places, (*told, factors.F), launch, True, **along)
    chunks = 1 if form.wide else -(-r // run.columns)
    groups = run.npack if form.wide else run.packs_at_a_time()
    work = factors.F if form.wide else room.array((chunks * groups * run.V * n * run.columns,))
    return run.run("solve_bands", places, (groups, chunks), (*told, *factors, work), launch, **along)


def both(
    form: Form, n: int, matrix: Sequence[Array], B: Array, X: Array, lead: Sequence[int], room: Any,
    launch: Launch = NOW,
) -> Array:  # fmt: skip
    """Solve with matrices that are factored on the way; returns info."""
    run = BandLaunch(form, n, math.prod(lead), X.dtype, B.queue, B.shape[-1])
    inner, places = matrix_places(matrix, lead, [B, X])
    info = empty((run.npack * run.V,), np.int32, B.queue, reused(B))
    told = [*itertools.chain(*(place.arguments for place in places))]
    along = dict(zip(("ALONG_A", "ALONG_B", "ALONG_X"), (places[k].along for k in (1, 3, 4)), strict=True))
    few = run.npack < FEW_PACKS * B.queue.device.max_compute_units
    minors = run.minors(places)
    short = run.columns == 1 and X.dtype.kind == "f" and run.members <= SHORT and minors is None
    teams = few or (short and (form.pivoting or not along["ALONG_A"]))
    if run.members and teams and n * X.dtype.itemsize >= LONG:
        near, values = any(along.values()), (inner, run.columns, *told, info)
        name = "both_pivoted" if form.pivoting else "both_parted"
        run.run_parted(name, places, values, launch, near, **along)
        return info
    if run.parts and few and not run.members:
        run.run_in_parts(places, inner, told, info, room, launch, any(along.values()), **along)
        return info
    if minors is not None:
        run.run_minors(places, (inner, *told, info), minors, room, launch)
        return info
    groups = run.packs_at_a_time()
    work = room.array((groups * run.V * n * (form.reach + run.columns),))
    run.run("both_bands", places, (groups, 1), (inner, *told, info, work), launch, **along)
    return info


def info_of(info: Array, nsys: int) -> Array:
    """Reports of lanes, of the first systems, as NumPy's integers; in CUDA memory as they are."""
    return info[:nsys] if stays(info) else download(info)[:nsys].astype(np.int64)
