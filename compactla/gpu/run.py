"""How a device runs a routine: one launch of one kernel.

The names and arguments are those of `compactla.cpu.run`, but `threads` means nothing here; every array is a pyopencl
Array, index arrays and `info` of lines too. Launches wait for the events of their arrays and leave their own there, so
queues may run out of order. Nothing waits for a launch but `getrfnp` and `download`, which return NumPy arrays.

Sizes up to `choice.LARGEST`, in packs without gaps, have kernels that are compiled for them, in the shape that
`choice` knows to be good; all others run one work-item for each lane.
"""

import threading
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl
import pyopencl.array as cla

from compactla.gpu import choice
from compactla.gpu.program import kernel
from compactla.view import REAL, View, packed_dtype

GROUP = 32  # work-items of a work-group: few lines still reach every compute unit
RUN = 16  # elements of a matrix that a work-item moves, more where the device has no place for so many
PLACES = 32768  # work-items along the elements of a matrix; some devices take no more than 65535
TILE_ROWS, TILE_BYTES = 8, 512  # the largest block that is a register tile
TILES = {"f": (4, 5), "c": (2, 3)}  # rows of the tiles of larger blocks; the one that makes fewer is taken
COUPLED = 4  # block rows of a line that a work-item takes couplings from
HELD = 32  # numbers of a block row of x, for all right-hand sides, that couplings keep in registers
COLUMNS = 4  # right-hand sides that a solve of several carries through a line together
MOVE_ELEMENTS, MOVE_BYTES = 64, 45 * 1024  # elements of each matrix, and local memory, of a group that packs
FILL = 16  # work-groups of a compute unit that keep it busy
SECTOR = 32  # bytes that memory moves at once
FEW = 8  # lines for each compute unit, and less, are few
UNIT, NONUNIT = 1, 0  # what trsm.cl calls diagonals

_thread = threading.local()


class Plan(NamedTuple):
    """A kernel that was compiled for a size, and how it is launched."""

    kernel: Any
    group: int  # work-items of a work-group
    lanes: int  # matrices or lines of a work-group
    choice: dict


def default_vlen(dtype, queue) -> int:
    """Vector length that suits the device: a warp of a GPU, two 64-byte registers of a CPU."""
    if queue.device.type & cl.device_type.CPU:
        return 128 // REAL[dtype.char].itemsize
    return 32


def empty(shape, dtype, queue):
    try:
        return cla.empty(queue, shape, dtype)
    except (cl.MemoryError, cl.LogicError) as error:
        size = f"an array of shape {shape} and {np.dtype(dtype)}"
        raise MemoryError(f"{size} does not fit in the memory of {queue.device.name.strip()}: {error}") from None


def upload(a, queue):
    """A C-contiguous copy of a NumPy array on the device."""
    return cla.to_device(queue, np.ascontiguousarray(a))


def download(a) -> np.ndarray:
    """A NumPy copy of a device array, which may have any strides but negative ones; waits for it."""
    if a.size == 0:
        return np.empty(a.shape, a.dtype)
    extent = a.dtype.itemsize + sum((n - 1) * stride for n, stride in zip(a.shape, a.strides, strict=True))
    memory = np.empty(extent, np.uint8)
    cl.enqueue_copy(a.queue, memory, a.base_data, src_offset=a.offset, wait_for=a.events)
    return np.ndarray(a.shape, a.dtype, memory, strides=a.strides)


def broadcast(matrix, nm, queue):
    """`nm` times the same matrix, as a device array with stride 0."""
    a = upload(matrix, queue)
    return cla.Array(
        queue, (nm, *a.shape), a.dtype, strides=(0, *a.strides), data=a.base_data, events=a.events
    )


def ordinary(a) -> View:
    """An ordinary array of three axes as packs of one lane."""
    item = REAL[a.dtype.char].itemsize
    nm, m, n = a.shape
    ps, rs, cs = (stride // item for stride in a.strides)
    return View(a, a.offset // item, nm, m, n, ps, rs, cs, 1, a.dtype, a.queue)


def launch(queue, run, work_items, group, arrays, values):
    """Enqueue a kernel; it waits for the events of the arrays, and its own takes their place."""
    before = []
    for array in arrays:
        before += array.events
    event = run(queue, work_items, group, *values, wait_for=before)
    for array in arrays:
        array.events[:] = (event,)


def launch_lanes(queue, file, name, dtype, vlen, size, *args, **defines):
    """Run a kernel on `size` = (lanes, elements of each) work-items; a View is a buffer and four numbers."""
    lanes, elements = size
    if lanes * elements == 0:
        return
    arrays, values = flatten(args)
    run = kernel(queue.context, file, name, dtype, vlen, values, **defines)
    work_items = -(-lanes // GROUP) * GROUP, min(-(-elements // RUN), PLACES)
    launch(queue, run, work_items, (GROUP, 1), arrays, values)


def flatten(args):
    """The arrays among the arguments of a kernel, and what the kernel is given for all of them."""
    arrays, values = [], []
    for arg in args:
        if isinstance(arg, View):
            arrays.append(arg.buffer)
            values += arg.buffer.base_data, arg.address, arg.ps, arg.rs, arg.cs
        elif isinstance(arg, cla.Array):
            arrays.append(arg)
            values.append(arg.data)
        else:
            values.append(arg)
    return arrays, values


def plan(queue, routine, size, dtype, vlen, types, **macros):
    """The kernel for a size, compiled with these macros and the tunables of its choice; None if there is none."""
    return compiled(queue, choice.choose(queue.device, routine, size, dtype, vlen), routine, size, dtype, vlen,
                    types, **macros)  # fmt: skip


def compiled(queue, chosen, routine, size, dtype, vlen, types, **macros):
    """The plan of a choice; None if the device cannot run it after all."""
    if not chosen:
        return None
    name = str(chosen["kernel"])
    tunables = {tunable: value for tunable, value in chosen.items() if tunable != "kernel"}
    defines = {name.upper().replace("NP", ""): 1, **macros, **tunables}
    group = choice.group_size(routine, chosen, size)
    try:
        run = kernel(queue.context, FILES[routine], name, dtype, vlen, types, **defines)
    except RuntimeError:  # does not build here
        return None
    most = run.get_work_group_info(cl.kernel_work_group_info.WORK_GROUP_SIZE, queue.device)
    if most < group and "NVIDIA" not in queue.device.platform.name:  # it says 256 where more do run
        return None
    return Plan(run, group, chosen.get("LANES", group), chosen)


FILES = {"gemm": "gemm.cl", "trsm": "trsm.cl", "getrfnp": "getrf.cl"}
FILES |= dict.fromkeys(("factor", "factor_few", "solve", "solve_few"), "thomas.cl")


def plans() -> dict:
    """Plans of the calling thread: kernels are not thread-safe."""
    return _thread.__dict__.setdefault("plans", {})


def launch_plan(queue, plan, lanes, arrays, values, columns=1):
    groups = -(-lanes // plan.lanes)
    if "ROUNDS" in plan.choice:
        groups = min(groups, max(-(-groups // plan.choice["ROUNDS"]), FILL * queue.device.max_compute_units))
    launch(queue, plan.kernel, (groups * plan.group, columns), (plan.group, 1), arrays, values)


def parts(scalar):
    return float(scalar.real), float(scalar.imag)


def pack(source, A: View, nm, period, unit, threads=None):
    lanes, size = A.npack * A.vlen, A.m * A.n
    if not move("pack_tiled", A, ordinary(source), nm, period, float(unit)):
        args = lanes, nm, A.m, A.n, period, float(unit), ordinary(source), A
        launch_lanes(A.queue, "pack.cl", "pack", A.dtype, A.vlen, (lanes, size), *args)


def unpack(A: View, nm, target, threads=None):
    if not move("unpack_tiled", A, ordinary(target), nm):
        args = nm, A.m, A.n, A, ordinary(target)
        launch_lanes(A.queue, "pack.cl", "unpack", A.dtype, A.vlen, (nm, A.m * A.n), *args)


def move(name, A: View, other: View, nm, *padding) -> bool:
    """Run a kernel that moves through local memory, unless the device has no use for it."""
    size, item = A.m * A.n, A.dtype.itemsize
    if A.queue.device.type & cl.device_type.CPU or size * A.npack == 0:
        return False
    # Whole matrices, which are neighbours in an ordinary array, else runs of elements; where those would begin in the
    # middle of what memory moves at once, whole matrices of fewer lanes.
    counts = choice.lane_counts(A.vlen) if size * item % SECTOR else [A.vlen]
    whole = (lanes for lanes in counts if size * (lanes + 1) * item <= MOVE_BYTES)
    lanes = next(whole, A.vlen)
    elements = min(size, MOVE_ELEMENTS) if size * (lanes + 1) * item > MOVE_BYTES else size
    if elements * (lanes + 1) * item > MOVE_BYTES or size > elements * 65535:
        return False
    flat = A.n == 1 or A.m == 1 or (A.rs == A.n * A.cs and other.rs == A.n * other.cs)
    if A.n == 1 and A.m > 1:  # elements are rows
        A, other = replace(A, cs=A.rs), replace(other, cs=other.rs)
    defines = {
        "TILED": 1,
        "LANES": lanes,
        "ELEMENTS": elements,
        "GROUP": min(max(elements * lanes // 4 // 32 * 32, 32), 256),
        "ALONG": int(abs(other.ps) < min(abs(other.rs), abs(other.cs))),
        "FLAT": int(flat),
    }
    arrays, values = flatten((nm, A.m, A.n, *padding, *((other, A) if padding else (A, other))))
    run = kernel(A.queue.context, "pack.cl", name, A.dtype, A.vlen, values, **defines)
    group = defines["GROUP"]
    launch(A.queue, run, (A.npack * A.vlen // lanes * group, -(-size // elements)), (group, 1), arrays, values)
    return True


def gemm(A: View, B: View, C: View, alpha, beta, conja, conjb, threads=None):
    queue, lanes = C.queue, C.npack * C.vlen
    if lanes * C.m * C.n == 0:
        return
    key = (queue.context, "gemm", C.dtype.char, C.vlen, C.m, C.n, A.n, A.rs, A.cs, B.rs, B.cs, C.rs, C.cs,
           conja, conjb, alpha == 1, beta == 0)  # fmt: skip
    known = plans()
    if key not in known:
        known[key] = plan_gemm(queue, A, B, C, conja, conjb, alpha, beta)
    if known[key] is None or alpha == 0:
        args = lanes, C.m, C.n, A.n, *parts(alpha), A, int(conja), B, int(conjb), *parts(beta), C
        launch_lanes(queue, "gemm.cl", "gemm_batch", C.dtype, C.vlen, (lanes, 1), *args, GEMM_BATCH=1)
    else:
        values = (lanes, *parts(alpha), A.buffer.base_data, A.address, A.ps, B.buffer.base_data, B.address, B.ps,
                  *parts(beta), C.buffer.base_data, C.address, C.ps)  # fmt: skip
        launch_plan(queue, known[key], lanes, (A.buffer, B.buffer, C.buffer), values)


def plan_gemm(queue, A, B, C, conja, conjb, alpha, beta):
    if not (A.layout.strides and B.layout.strides and C.layout.strides):
        return None
    types = 0, 0.0, 0.0, None, 0, 0, None, 0, 0, 0.0, 0.0, None, 0, 0
    return plan(queue, "gemm", (C.m, C.n, A.n), C.dtype, C.vlen, types, M=C.m, N=C.n, K=A.n,
                ARS=A.rs, ACS=A.cs, BRS=B.rs, BCS=B.cs, CRS=C.rs, CCS=C.cs,
                CONJA=int(conja), CONJB=int(conjb), SCALED=int(alpha != 1), BETA=int(beta != 0))  # fmt: skip


def trsm(A: View, B: View, alpha, conj, unit, threads=None):
    queue, lanes = B.queue, B.npack * B.vlen
    if lanes * B.m * B.n == 0:
        return
    key = queue.context, "trsm", B.dtype.char, B.vlen, B.m, B.n, A.rs, A.cs, B.rs, B.cs, conj, unit, alpha == 1
    known = plans()
    if key not in known:
        known[key] = plan_trsm(queue, A, B, alpha, conj, unit)
    if known[key] is None or alpha == 0:
        args = lanes, B.m, B.n, int(unit), *parts(alpha), A, int(conj), B
        launch_lanes(queue, "trsm.cl", "trsm_batch", B.dtype, B.vlen, (lanes, 1), *args, TRSM_BATCH=1)
    else:
        values = (lanes, *parts(alpha), A.buffer.base_data, A.address, A.ps, B.buffer.base_data, B.address, B.ps)
        launch_plan(queue, known[key], lanes, (A.buffer, B.buffer), values)


def plan_trsm(queue, A, B, alpha, conj, unit):
    if not (A.layout.strides and B.layout.strides):
        return None
    types = 0, 0.0, 0.0, None, 0, 0, None, 0, 0
    return plan(queue, "trsm", (B.m, B.n), B.dtype, B.vlen, types, N=B.m, R=B.n,
                ARS=f"({A.rs})", ACS=f"({A.cs})", BRS=f"({B.rs})", BCS=f"({B.cs})",
                CONJA=int(conj), DIAG=UNIT if unit else NONUNIT, SCALED=int(alpha != 1))  # fmt: skip


def getrfnp(A: View, nm, threads=None) -> np.ndarray:
    """Factor in place; waits for the result, to return `info`."""
    if A.npack * A.m * A.n == 0:
        return np.zeros(nm, np.int64)
    info = empty((nm,), np.int32, A.queue)
    factor_packs(A, nm, info)
    return download(info).astype(np.int64)


def factor_packs(A: View, nm, info) -> None:
    """Factor in place, and write `info`, a device array of int32."""
    queue, lanes = A.queue, A.npack * A.vlen
    key = queue.context, "getrfnp", A.dtype.char, A.vlen, A.m, A.n, A.rs, A.cs
    known = plans()
    if key not in known:
        known[key] = plan_getrfnp(queue, A)
    if known[key] is None:
        args = lanes, nm, A.m, A.n, A, info
        launch_lanes(queue, "getrf.cl", "getrfnp_batch", A.dtype, A.vlen, (lanes, 1), *args, GETRF_BATCH=1)
    else:
        values = lanes, nm, A.buffer.base_data, A.address, A.ps, info.data
        launch_plan(queue, known[key], lanes, (A.buffer, info), values)


def plan_getrfnp(queue, A):
    if not A.layout.strides:
        return None
    types = 0, 0, None, 0, 0, None
    return plan(queue, "getrfnp", (A.m, A.n), A.dtype, A.vlen, types, M=A.m, N=A.n, ARS=A.rs, ACS=A.cs)


def specialisation(b, dtype):
    """Macros of the kernels for lines of b x b blocks: a block that fits is one tile of constant size."""
    if 0 < b <= TILE_ROWS and b * b * dtype.itemsize <= TILE_BYTES:
        return {"BLOCK": b, "TILE": b}
    return {"TILE": min(TILES[dtype.kind], key=lambda tile: -(-b // tile))}


def plan_factor(queue, b, dtype, vlen, lanes=None):
    """The kernel that stores inverses in lines; None for LU factors."""
    few = is_few(queue, lanes)
    key = queue.context, "factor", dtype.char, vlen, b, few
    known = plans()
    if key not in known:
        types = 0, None, None, None, None, None
        found = plan(queue, "factor", (b,), dtype, vlen, types, BLOCK=b)
        if found and few:
            found = plan(queue, "factor_few", (b,), dtype, vlen, types, BLOCK=b) or found
        known[key] = found
    return known[key]


def plan_solve(queue, b, nrhs, dtype, vlen, regular, lanes=None):
    """The kernel that solves lines with inverses in them; None for lines with LU factors."""
    if nrhs == 0 or plan_factor(queue, b, dtype, vlen) is None:
        return None
    routine = "solve_few" if is_few(queue, lanes) else "solve"
    nrhs = min(nrhs, 9)  # more are solved for in several rounds
    key = queue.context, routine, dtype.char, vlen, b, nrhs, regular
    known = plans()
    if key not in known:
        size, types = (b, nrhs), (0, 0, None, None, None, None, None, None, 0, None, 0, None)
        choices = choice.candidates(queue.device, routine, size, dtype, vlen)
        choices = choice.choose(queue.device, routine, size, dtype, vlen), *choices
        every = (compiled(queue, c, routine, size, dtype, vlen, types, BLOCK=b, REGULAR=regular) for c in choices)
        known[key] = next(filter(None, every), None)
        if known[key] is None:
            raise RuntimeError(f"no kernel that solves lines of {b} x {b} blocks of {dtype} builds for {queue.device}")
    return known[key]


def is_few(queue, lanes) -> bool:
    """Whether so many lines, each a chain, leave much of a device idle."""
    return lanes is not None and lanes <= FEW * queue.device.max_compute_units


def concurrency(b, dtype, vlen, queue):
    """How many lines keep a device busy; the steps of a line that launches for separators cost."""
    return 100 * queue.device.max_compute_units / b, 36 / (0.2 + 0.07 * b)  # microseconds


class Lines(NamedTuple):
    """Lines of blocks; the arrays are those of `BlockTridiag`."""

    lower: cla.Array
    diag: cla.Array
    upper: cla.Array
    offset: cla.Array
    rows: cla.Array


class SolveWork:
    """What a solve keeps between the way down the lines and the way up, and what it found out about the lines."""

    def __init__(self, memory):
        self.memory, self.lines = memory, None

    def describe(self, offset, rows, vlen):
        """Start, distance and length of regular lines, else their rows; the first time, the device is waited for."""
        if self.lines is None:
            queue, lanes = rows.queue, (offset.size - 1) * vlen
            lines, irregular = empty((3 * lanes,), np.int64, queue), cla.zeros(queue, (1,), np.int32)
            args = lanes, offset, rows, lines, irregular
            launch_lanes(queue, "thomas.cl", "describe_lines", np.dtype(np.float32), vlen, (lanes, 1), *args,
                         DESCRIBE_LINES=1, BLOCK=1)  # fmt: skip
            self.lines = rows if download(irregular)[0] else lines
        return self.lines


def factor_lines(lines, info, threads=None):
    lower, diag, upper, offset, _ = lines
    queue, b, lanes = diag.queue, diag.shape[1], info.size
    dtype, vlen = packed_dtype(diag), diag.shape[-1]
    special = plan_factor(queue, b, dtype, vlen, lanes)
    if special is None:
        macros = {"FACTOR_LINES": 1, **specialisation(b, dtype)}
        args = lanes, b, lower, diag, upper, offset, info
        launch_lanes(queue, "blocktridiag.cl", "factor_lines", dtype, vlen, (lanes, 1), *args, **macros)
    elif lanes:
        arrays, values = flatten((lanes, lower, diag, upper, offset, info))
        launch_plan(queue, special, lanes, arrays, values)


def solve_lines(lines, rhs, x, work, threads=None):
    lower, diag, upper, offset, rows = lines
    queue = x.queue
    _, b, nrhs = x.shape
    dtype, vlen = packed_dtype(diag), diag.shape[-1]
    lanes = (offset.size - 1) * vlen
    if work is None:
        macros = {"SOLVE_LINES": 1, "COLS": 1 if nrhs == 1 else COLUMNS, **specialisation(b, dtype)}
        args = lanes, b, nrhs, lower, diag, upper, offset, rows, ordinary(rhs), ordinary(x)
        launch_lanes(queue, "blocktridiag.cl", "solve_lines", dtype, vlen, (lanes, 1), *args, **macros)
    elif lanes:
        item = REAL[dtype.char].itemsize
        described = work.describe(offset, rows, vlen)
        special = plan_solve(queue, b, nrhs, dtype, vlen, int(described is not rows), lanes)
        arrays, values = flatten((lanes, nrhs, lower, diag, upper, offset, described))
        values += rhs.base_data, rhs.offset // item, x.base_data, x.offset // item, work.memory.data
        launch_plan(queue, special, lanes, (*arrays, rhs, x, work.memory), values, -(-nrhs // special.choice["RHS"]))


def spread_lines(lines, ends, edges, spikes, threads=None):
    """Multiply what couples factored lines to others by their inverses; see ``spread_lines`` in blocktridiag.cl."""
    lower, diag, upper, offset, _ = lines
    b, dtype, vlen = diag.shape[1], packed_dtype(diag), diag.shape[-1]
    lanes = (offset.size - 1) * vlen
    special = plan_factor(diag.queue, b, dtype, vlen, lanes)
    macros = {"COLS": 1, **specialisation(b, dtype)} if special is None else {"BLOCK": b, "INVERSES": 1}
    args = lanes, b, lower, diag, upper, offset, ends, *edges, *spikes
    launch_lanes(diag.queue, "blocktridiag.cl", "spread_lines", dtype, vlen, (lanes, 2 * b * RUN), *args,
                 SPREAD_LINES=1, **macros)  # fmt: skip


class Couplings(NamedTuple):
    """Block rows and what couples them to two others; see ``couple_rows`` in blocktridiag.cl."""

    lower: cla.Array
    upper: cla.Array
    offset: cla.Array
    rows: cla.Array
    before: cla.Array
    after: cla.Array
    longest: int


def couple_rows(couplings, source, x, work, threads=None):
    *arrays, longest = couplings
    _, b, nrhs = x.shape
    dtype, vlen = x.dtype, arrays[0].shape[-1]
    lanes = couplings.before.size
    held = b <= choice.LARGEST["solve"]
    columns = 1 if nrhs == 1 or b == 0 else max(1, min(COLUMNS, HELD // b))
    macros = {"BLOCK": b, "HELD": columns} if held else specialisation(b, dtype)
    args = lanes, b, nrhs, longest, *arrays, ordinary(source), ordinary(x)
    size = lanes, -(-longest // COUPLED) * RUN
    launch_lanes(x.queue, "blocktridiag.cl", "couple_rows", dtype, vlen, size, *args, COUPLE_ROWS=1, **macros)


def Work(lines, nrhs) -> SolveWork | None:
    """What `solve_lines` works with; None if that needs nothing, as `couple_rows`."""
    if isinstance(lines, Couplings):
        return None
    diag, offset = lines.diag, lines.offset
    b, dtype, vlen = diag.shape[1], packed_dtype(diag), diag.shape[-1]
    special = plan_solve(diag.queue, b, nrhs, dtype, vlen, 1, (offset.size - 1) * vlen)
    if special is None:
        return None
    rounded = -(-nrhs // special.choice["RHS"]) * special.choice["RHS"]
    return SolveWork(empty((max(diag.shape[0], 1) * b * rounded * vlen,), dtype, diag.queue))


def gather_blocks(source, index, target, threads=None):
    _gather("gather_blocks", source, index, target)


def gather_values(source, index, target, threads=None):
    _gather("gather_values", source, index, target)


def _gather(name, source, index, target):
    slots, b, vlen = target.shape[0], target.shape[1], target.shape[-1]
    lanes = slots * vlen
    args = lanes, b, source, index, target
    launch_lanes(target.queue, "pack.cl", name, source.dtype, vlen, (lanes, b * b), *args)
