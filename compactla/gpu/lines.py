"""How a device factors lines of blocks and solves with them; arguments as for `compactla.cpu.lines`."""

from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl

from compactla.buffers import Buffer
from compactla.calls.launch import NOW, Launch
from compactla.calls.notes import refuse
from compactla.calls.plans import UNKNOWN
from compactla.dtypes import REAL, packed_dtype
from compactla.gpu.arrays import default_vlen, download, empty, ordinary, upload
from compactla.gpu.launch import RUN, compiled, flatten, launch_lanes, launch_plan, plan, plans
from compactla.gpu.tuning import choices
from compactla.gpu.tuning.lines import LARGEST, SEARCHES
from compactla.pivots import WATCHED
from compactla.search import LOCAL_BYTES
from compactla.types import Array, Queue

TILE_ROWS, TILE_BYTES = 8, 512  # the largest block that is a register tile
TILES = {"f": (4, 5), "c": (2, 3)}  # rows of the tiles of larger blocks; the one that makes fewer is taken
COUPLED = 4  # block rows of a line that a work-item takes couplings from
HELD = 32  # numbers of a block row of x, for all right-hand sides, that couplings keep in registers
COLUMNS = 4  # right-hand sides that a solve of several carries through a line together
CHUNKS = 64  # work-items that compute the residual of a line
MIDDLE, WIDE = 6, 12  # larger blocks are in shorter packs where teams copy whole packs to local memory
SHORT, SHORT_REAL = 16, 64  # such packs have so many lines, those of middle blocks of real numbers so many bytes
FEW = 8  # lines for each compute unit, and less, are few


def specialisation(b, dtype):
    """Macros of the kernels for lines of b x b blocks: a block that fits is one tile of constant size."""
    if 0 < b <= TILE_ROWS and b * b * dtype.itemsize <= TILE_BYTES:
        return {"BLOCK": b, "CLA_TILE": b}
    return {"CLA_TILE": min(TILES[dtype.kind], key=lambda tile: -(-b // tile))}


def plan_factor(queue, b, dtype, vlen, lanes=None):
    """The kernel that stores inverses in lines; None for LU factors."""
    few = is_few(queue, lanes)
    key = "factor", dtype.char, vlen, b, few
    kept = plans(queue)
    found = kept.known.get(key, UNKNOWN)
    if found is UNKNOWN:
        types = 0, None, None, None, None, None
        found = plan(queue, SEARCHES["factor"], (b,), dtype, vlen, types, BLOCK=b)
        if found and few:
            found = plan(queue, SEARCHES["factor_few"], (b,), dtype, vlen, types, BLOCK=b) or found
        kept.add(key, found)
    return found


def plan_watched(queue, b, dtype, vlen, macros):
    """The kernel that watches pivots in teams and stores inverses; None if one work-item does a line."""
    key = "factor_watched", dtype.char, vlen, b, tuple(macros.items())
    kept = plans(queue)
    found = kept.known.get(key, UNKNOWN)
    if found is UNKNOWN:
        types = 0, None, None, None, None, None, None, None
        found = plan(queue, SEARCHES["factor_watched"], (b,), dtype, vlen, types, WATCH=1, BLOCK=b, **macros)
        kept.add(key, found)
    return found


def plan_solve(queue, b, nrhs, dtype, vlen, regular, lanes=None, storage=""):
    """The kernel that solves lines with inverses in them, stored in any way; None for lines with LU factors."""
    if nrhs == 0 or (not storage and plan_factor(queue, b, dtype, vlen) is None):
        return None
    routine = "solve_few" if is_few(queue, lanes) else "solve"
    nrhs = min(nrhs, 9)  # more are solved for in several rounds
    key = routine, dtype.char, vlen, b, nrhs, regular, storage
    kept = plans(queue)
    found = kept.known.get(key)
    if found is None:
        search, size, types = SEARCHES[routine], (b, nrhs), (0, 0, None, None, None, None, None, None, 0, None, 0, None)
        candidates = choices.candidates(queue.device, search, size, dtype, vlen)
        if choices.is_cpu(queue.device):  # nothing is gained by loads in advance, which take long to compile
            candidates = list(candidates)[::-1]
        candidates = choices.choose(queue.device, search, size, dtype, vlen, storage), *candidates
        macros = {"BLOCK": b, "REGULAR": regular, "CLA_STORED": f"CLA_STORED_{(storage or 'REAL').upper()}"}
        every = (compiled(queue, c, search, size, dtype, vlen, types, **macros) for c in candidates)
        found = next(filter(None, every), None)
        if found is None:
            raise RuntimeError(f"no kernel that solves lines of {b} x {b} blocks of {dtype} builds for {queue.device}")
        kept.add(key, found)
    return found


def is_few(queue, lanes) -> bool:
    """Whether so many lines, each a chain, leave much of a device idle."""
    return lanes is not None and lanes <= FEW * queue.device.max_compute_units


def vector_length(b: int, dtype: np.dtype, queue: Queue) -> int:
    """The vector length that suits packs of b x b blocks: that of all packs, but for large blocks in CUDA memory."""
    roomy = b <= LARGEST and choices.local_room(queue.device, True) > LOCAL_BYTES
    if roomy and b > WIDE:
        return SHORT
    if roomy and b > MIDDLE and dtype.kind != "c":
        return SHORT_REAL // dtype.itemsize
    return default_vlen(dtype, queue)


def concurrency(b: int, dtype: np.dtype, vlen: int, queue: Queue) -> tuple[float, float]:
    """How many lines keep a device busy; the steps of a line that launches for separators cost."""
    return 100 * queue.device.max_compute_units / b, 36 / (0.2 + 0.07 * b)  # microseconds


def relative_step(b: int, dtype: np.dtype, lanes: int, vlen: int, nbytes: int) -> float:
    """Time of a step of packs with so many lanes, over that of packs with `vlen`: work-items wait alike."""
    return 1.0


class LinesView(NamedTuple):
    """Arguments of kernels for lines of blocks; the arrays are those of `compactla.lines.packed`."""

    lower: Any
    diag: Any
    upper: Any
    offset: Any
    rows: Any
    policy: str = ""
    swaps: Any = None
    stored: Any = None
    tiny: float = 0.0

    @property
    def storage(self) -> str:
        """The type that the inverses are stored in; "" if it is that in which they are computed."""
        return self.stored.storage if self.stored else ""


class LineScratch:
    """Work space of a solve between the ways down and up the lines, and facts about the lines.

    `memory` is None where a solve needs nothing, as `couple_rows`. `factors` are what kernels are told of the lines.
    """

    def __init__(self, lines: Any) -> None:
        self.lines = None if isinstance(lines, CouplingsView) else lines
        self.room = Buffer(packed_dtype(lines.lower), lines.lower.queue)
        self.nrhs: int | None = None
        self.memory = self.described = self.factors = None

    def fit(self, nrhs: int) -> None:
        """Make room for so many right-hand sides."""
        if nrhs == self.nrhs or self.lines is None:
            return
        diag, offset, storage = self.lines.diag, self.lines.offset, self.lines.storage
        b, vlen = diag.shape[1], diag.shape[-1]
        special = plan_solve(diag.queue, b, nrhs, packed_dtype(diag), vlen, 1, (offset.size - 1) * vlen, storage)
        self.memory = self.factors = None
        if special is not None:
            columns = -(-nrhs // special.choice["RHS"]) * special.choice["RHS"]
            self.memory = self.room.array((max(diag.shape[0], 1) * b * columns * vlen,))
        self.nrhs = nrhs

    def describe(self, offset, rows, vlen):
        """Start, distance and length of regular lines, else their rows; the first time, the device is waited for."""
        if self.described is None:
            queue, lanes = rows.queue, (offset.size - 1) * vlen
            lines, irregular = empty((3 * lanes,), np.int64, queue), upload(np.zeros(1, np.int32), queue)
            args = lanes, offset, rows, lines, irregular
            launch_lanes(queue, NOW, "thomas_solve.cl", "describe_lines", np.dtype(np.float32), vlen, (lanes, 1), *args,
                         DESCRIBE_LINES=1, BLOCK=1)  # fmt: skip
            self.described = rows if download(irregular)[0] else lines
        return self.described


def new_info(lanes: int, queue: Queue, allocator: Any = None) -> Array:
    """Numbers that `factor_lines` writes for each line."""
    return empty((lanes,), np.int32, queue, allocator)


def swaps_like(diag: Array, queue: Queue) -> Array:
    """Room for the rows that are swapped."""
    return empty((max(diag.shape[0], 1), diag.shape[1], diag.shape[-1]), np.int32, queue)


def factor_lines(lines: Any, info: Array, launch: Launch = NOW, watched: Array = None) -> None:
    lower, diag, upper, offset, *_ = lines
    queue, b, lanes = diag.queue, diag.shape[1], info.size
    dtype, vlen = packed_dtype(diag), diag.shape[-1]
    special = plan_factor(queue, b, dtype, vlen, lanes)
    if lines.policy or (lines.storage and special is None):
        factor_watched(lines, info, watched, launch)
    elif special is None:
        macros = {"FACTOR_LINES": 1, **specialisation(b, dtype)}
        args = lanes, b, lower, diag, upper, offset, info
        launch_lanes(queue, launch, "blocktridiag.cl", "factor_lines", dtype, vlen, (lanes, 1), *args, **macros)
    elif lanes:
        arrays, values = flatten((lanes, lower, diag, upper, offset, info))
        launch_plan(queue, launch, special, lanes, arrays, values)


def factor_watched(lines, info, watched, launch):
    """Factor as the policy says; there are inverses then if what solves takes them."""
    lower, diag, upper, offset, rows, policy, swaps, _, tiny = lines
    queue, b, lanes = diag.queue, diag.shape[1], info.size
    dtype, vlen = packed_dtype(diag), diag.shape[-1]
    treatment, *pivoting = policy.split() or [""]
    inverses = bool(lines.storage) or plan_factor(queue, b, dtype, vlen) is not None
    limits = np.finfo(dtype)
    epsilon, least = (0, limits.dtype.type(tiny)) if tiny else (limits.eps, limits.tiny)
    macros = {
        "PERTURB": int(treatment == "perturb"), "SHIFT": int(treatment == "shift"), "PIVOTING": len(pivoting),
        "EPSILON": epsilon, "LEAST": least,
    }  # fmt: skip
    if watched is None:
        watched = empty((lanes * WATCHED * 2,), diag.dtype, queue)
    special = plan_watched(queue, b, dtype, vlen, macros) if inverses else None
    if special is not None and lanes:
        arrays, values = flatten((lanes, lower, diag, upper, offset, info, rows, watched))
        launch_plan(queue, launch, special, lanes, arrays, values)
        return
    macros |= {"INVERSES": int(inverses), **specialisation(b, dtype)}
    scratch = empty((max(lanes, 1) if inverses else 1, b, b), dtype, queue)
    swaps = empty((1,), np.int32, queue) if swaps is None else swaps
    args = lanes, b, lower, diag, upper, offset, info, rows, swaps, watched, scratch
    launch_lanes(queue, launch, "watched_lu.cl", "factor_watched", dtype, vlen, (lanes, 1), *args, **macros)


def solve_lines(lines: Any, rhs: Array, x: Array, work: Any, launch: Launch = NOW) -> None:
    lower, diag, upper, offset, rows, _, swaps, *_ = lines
    queue = x.queue
    _, b, nrhs = x.shape
    dtype, vlen = packed_dtype(diag), diag.shape[-1]
    lanes = (offset.size - 1) * vlen
    if x.size == 0:
        return
    if work.memory is None:
        macros = {"SOLVE_LINES": 1, "CLA_COLS": 1 if nrhs == 1 else COLUMNS, **specialisation(b, dtype)}
        args: tuple = lanes, b, nrhs, lower, diag, upper, offset, rows, ordinary(rhs), ordinary(x)
        if swaps is not None:
            macros, args = {**macros, "SWAPPED": 1}, (*args, swaps)
        launch_lanes(queue, launch, "blocktridiag.cl", "solve_lines", dtype, vlen, (lanes, 1), *args, **macros)
    elif lanes:
        item = REAL[dtype.char].itemsize
        described = work.describe(offset, rows, vlen)
        special = plan_solve(queue, b, nrhs, dtype, vlen, int(described is not rows), lanes, lines.storage)
        if work.factors is None:
            factors = lines.stored.blocks if lines.stored else (lower, diag, upper)
            work.factors = flatten((lanes, nrhs, *factors, offset, described, work.memory))
        arrays, (*values, memory) = work.factors
        values += rhs.base_data, rhs.offset // item, x.base_data, x.offset // item, memory
        rounds = -(-nrhs // special.choice["RHS"])
        launch_plan(queue, launch, special, lanes, (*arrays, rhs, x), values, rounds)


def residual_lines(lines: Any, blocks: Any, rhs: Array, x: Array, r: Array, work: Any, launch: Launch = NOW) -> None:
    """r <- rhs - A x for the blocks of the lines before they were factored."""
    queue, b, nrhs = x.queue, x.shape[1], x.shape[2]
    dtype, vlen = packed_dtype(lines.diag), lines.diag.shape[-1]
    lanes = (lines.offset.size - 1) * vlen
    if x.size:
        args = lanes, b, nrhs, *blocks, lines.offset, lines.rows, ordinary(rhs), ordinary(x), ordinary(r)
        launch_lanes(queue, launch, "blocktridiag.cl", "residual_lines", dtype, vlen, (lanes, RUN * CHUNKS), *args,
                     RESIDUAL_LINES=1)  # fmt: skip


def pad_diagonals(blocks: Array, size: Array, launch: Launch = NOW) -> None:
    (slots, b), vlen = blocks.shape[:2], blocks.shape[-1]
    args = slots * vlen, b, size, blocks
    launch_lanes(blocks.queue, launch, "pack.cl", "pad_diagonals", packed_dtype(blocks), vlen, (slots * vlen, 1), *args)


def copy(source: Array, target: Array, launch: Launch = NOW) -> None:
    """target <- source, C-contiguous arrays of one size."""
    refuse()
    if source.nbytes and not isinstance(source.queue, cl.CommandQueue):
        source.write_to(target)
    elif source.nbytes:
        event = cl.enqueue_copy(
            source.queue, target.base_data, source.base_data, byte_count=source.nbytes, src_offset=source.offset,
            dst_offset=target.offset, wait_for=[*launch.events, *source.events, *target.events],
        )  # fmt: skip
        source.events[:], target.events[:] = (event,), (event,)


def spread_lines(lines: Any, ends: Array, edges: Any, spikes: Any, launch: Launch = NOW) -> None:
    """Multiply what couples factored lines to others by their inverses; see ``spread_lines`` in blocktridiag.cl."""
    lower, diag, upper, offset, *_ = lines
    b, dtype, vlen = diag.shape[1], packed_dtype(diag), diag.shape[-1]
    lanes = (offset.size - 1) * vlen
    special = plan_factor(diag.queue, b, dtype, vlen, lanes)
    inverses = special is not None or lines.storage  # as `factor_watched` leaves them
    macros = {"BLOCK": b, "INVERSES": 1} if inverses else {"CLA_COLS": 1, **specialisation(b, dtype)}
    args = lanes, b, lower, diag, upper, offset, ends, *edges, *spikes
    launch_lanes(diag.queue, launch, "blocktridiag.cl", "spread_lines", dtype, vlen, (lanes, 2 * b * RUN), *args,
                 SPREAD_LINES=1, **macros)  # fmt: skip


class CouplingsView(NamedTuple):
    """Arguments of kernels for block rows and their couplings to two others; see ``couple_rows`` in blocktridiag.cl."""

    lower: Any
    upper: Any
    offset: Any
    rows: Any
    before: Any
    after: Any
    longest: int


def couple_rows(couplings: Any, source: Array, x: Array, work: Any, launch: Launch = NOW) -> None:
    *arrays, longest = couplings
    _, b, nrhs = x.shape
    dtype, vlen = x.dtype, arrays[0].shape[-1]
    lanes = couplings.before.size
    held = b <= LARGEST
    columns = 1 if nrhs == 1 or b == 0 else max(1, min(COLUMNS, HELD // b))
    macros = {"BLOCK": b, "HELD": columns} if held else specialisation(b, dtype)
    args = lanes, b, nrhs, longest, *arrays, ordinary(source), ordinary(x)
    size = lanes, -(-longest // COUPLED) * RUN
    launch_lanes(x.queue, launch, "blocktridiag.cl", "couple_rows", dtype, vlen, size, *args, COUPLE_ROWS=1, **macros)
