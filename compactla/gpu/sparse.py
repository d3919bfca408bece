"""How devices multiply with sparse batches, factor them, and solve systems with them: one launch for each.

The names are those of `compactla.cpu.sparse`, and so are arguments, but for `wait_for`, events, in place of `threads`;
packs may have any strides where they are read.
"""

import math
import weakref

import numpy as np
import pyopencl as cl

from compactla.dense.getrf import getrf
from compactla.dense.getri import getri
from compactla.gpu.arrays import empty, reused, upload
from compactla.gpu.launch import FILL, GROUP, MOST, flatten, launch, launch_lanes
from compactla.gpu.program import built, kernel
from compactla.krylov.methods import VECTORS
from compactla.layout import Pack
from compactla.view import REAL

KINDS = {"none": 0, "ilu": 1, "block": 2}
MEMBERS = 32  # work-items that share a system, at most
SECTOR = 32  # bytes that memory moves at once
LEAST = 64  # work-items of a work-group of teams
SHARE = 8  # part of a device's memory that the work space of solvers may take


class Work:
    """Work space of the calling thread; who uses it next waits for `events`."""

    def __init__(self, queue, size):
        self.size, self.events = size, []
        self.buffer = empty((size,), np.uint8, queue).data


def work(queue, size):
    """So many bytes, which are kept."""
    kept = built(queue).of_thread.__dict__
    if "krylov" not in kept or kept["krylov"].size < size:
        kept["krylov"] = Work(queue, size)
    return kept["krylov"]


def on_device(pattern, queue, name, make):
    """What `make` returns, places where rows begin and arrays of small integers, as buffers of a device."""
    patterns = built(queue).__dict__.setdefault("patterns", weakref.WeakKeyDictionary())
    kept = patterns.setdefault(pattern, {})
    if name not in kept:
        arrays = (np.asarray(a, np.int64 if k == 0 else np.int32) for k, a in enumerate(make()))
        kept[name] = [upload(a, queue).data for a in arrays]  # which has been done when it returns
    return kept[name]


def rows_of(pattern, queue):
    """indptr and indices."""
    return on_device(pattern, queue, "rows", lambda: (pattern.indptr, pattern.indices))


def told(M, queue):
    """What kernels are told of a preconditioner beside its values: its pattern, diagonal and levels."""
    if M.kind != "ilu":
        return [*rows_of(M.pattern, queue), None, None]
    pattern = M.pattern
    return on_device(
        pattern, queue, "factors", lambda: (pattern.indptr, pattern.indices, pattern.diagonal, levels(pattern))
    )


def levels(pattern):
    """Rows that do not need each other, for L and for U, as csrsv.cl has them."""
    lists, n = [], pattern.n
    for rows, upper in ((range(n), False), (range(n)[::-1], True)):
        level = np.full(n, -1)
        for i in rows:
            first, middle, last = pattern.indptr[i], pattern.diagonal[i], pattern.indptr[i + 1]
            needed = pattern.indices[middle + 1 : last] if upper else pattern.indices[first:middle]
            level[i] = level[needed].max(initial=-1) + 1
        starts = np.append(0, np.bincount(level).cumsum())
        lists += [[len(starts) - 1], starts, np.argsort(level, kind="stable")]
    return np.concatenate(lists)


def multiply(values, pattern, X, Y, trans="N", scalars=None, wait_for=()):
    """Y <- op(A) X, or alpha op(A) X + beta Y with packs of both in `scalars`."""
    if trans == "N":
        places = [*rows_of(pattern, X.queue), None]
    else:
        places = on_device(pattern, X.queue, "transposed", lambda: pattern.transposed)
    packs = (P.view for P in (values if scalars is None else scalars, values, X, Y))
    macros = {"CSRMM_BATCH": 1, "TRANS": "NTC".index(trans), "SCALED": int(scalars is not None)}
    each_row("csrmm_batch", Y, (X.n, *places), packs, wait_for, **macros)


def take(values, places, Y, wait_for=()):
    """Rows of Y, of one column, <- rows of `values` in these places: -1 stands for 0, -2 for 1."""
    places = upload(places.astype(np.int32), Y.queue)
    each_row("take_rows", Y, (places,), (values.view, Y.view), wait_for, TAKE_ROWS=1)


def each_row(name, Y, values, packs, wait_for, **macros):
    """Launch a kernel with a work-item for each row of each lane of Y, as far as there may be so many."""
    lanes = Y.view.npack * Y.vlen
    if not lanes * Y.m * Y.n:
        return
    arrays, args = flatten((lanes, Y.m, *values, *packs))
    run = kernel(Y.queue, "csrmm.cl", name, Y.dtype, Y.vlen, args, **macros)
    launch(Y.queue, wait_for, run, (-(-lanes // GROUP) * GROUP, min(Y.m, MOST)), (GROUP, 1), arrays, args)


def inverses(values, places, b, wait_for=()):
    """The inverses of blocks, whose elements are in these places, as `take` has them; 1 for what is singular."""
    blocks = values.beside(places.size, 1)
    take(values, places.reshape(-1), blocks, wait_for)
    count = blocks.view.npack * len(places)
    if count:
        P = Pack(blocks.data.reshape(count, b, b, *blocks.data.shape[3:]))
        infos = [empty((P.nm,), np.int32, P.queue, reused(P.data)) for _ in range(2)]
        ipiv, _ = getrf(P, info=infos[0])
        getri(P, ipiv, info=infos[1])
        args = P.nm, b, infos[0], P.view
        launch_lanes(P.queue, (), "blockmv.cl", "unit_blocks", P.dtype, P.vlen, (P.nm, 1), *args, UNIT_BLOCKS=1)
    return blocks


def team_of(n, queue):
    """How many work-items share a system of n equations: on a GPU one has two rows or more. Bits depend on it."""
    if queue.device.type & cl.device_type.CPU:
        return 1
    return min(1 << max(n - 1, 1).bit_length() - 1, MEMBERS)


def teams(file, name, P, n, values, packs, numbers, wait_for, **macros):
    """Launch a kernel with a team for each lane of packs like P; `numbers` of work space for each."""
    queue, lanes, real = P.queue, P.view.npack * P.vlen, REAL[P.dtype.char].itemsize
    team = team_of(n, queue)
    together = math.gcd(P.vlen, 1 << max(SECTOR // real, LEAST // team).bit_length() - 1)
    each = numbers * together * P.dtype.itemsize
    most = max(queue.device.global_mem_size // SHARE // max(each, 1), 1)
    groups = min(lanes // together, FILL * queue.device.max_compute_units, most)
    arrays, args = flatten((lanes, n, *values, *packs))
    if numbers:
        room = work(queue, groups * each)
        arrays, args = [*arrays, room], [*args, room.buffer]
    macros |= {"CLA_TEAM": team, "CLA_TEAM_LANES": together}
    run = kernel(queue, file, name, P.dtype, P.vlen, args, **macros)
    launch(queue, wait_for, run, (groups * together, team), (together, team), arrays, args)


def precondition(M, X, Y, wait_for=()):
    """Y <- M X"""
    if not Y.view.npack * Y.m * Y.n:
        return
    macros = {"PRECONDITION_BATCH": 1, "PRECONDITIONER": KINDS[M.kind]}
    values, packs = (X.n, M.size, *told(M, X.queue)), (M.values.view, X.view, Y.view)
    teams("batch_krylov.cl", "precondition_batch", Y, X.m, values, packs, 0, wait_for, **macros)


def factor(values, pattern, factors, wait_for=()):
    """The incomplete factors of packs of values, and info of each lane."""
    queue, lanes = values.queue, values.view.npack * values.vlen
    info = empty((lanes,), np.int32, queue)
    if lanes and pattern.n:
        rows = on_device(pattern, queue, "diagonal", lambda: (pattern.indptr, pattern.indices, pattern.diagonal))
        packs = values.view, factors.view, info
        teams("csrilu.cl", "csrilu_batch", values, pattern.n, rows, packs, pattern.n, wait_for, CSRILU_BATCH=1)
    elif lanes:
        info.fill(0)
    return info


def solve(method, options, A, M, B, X, out, history, start, maxiter, rtol, atol, restart, ortho, wait_for=()):
    """Solve the systems of a batch; see `compactla.krylov.methods`. `out` and `history` are contiguous arrays."""
    if not B.view.npack:
        return
    vectors = VECTORS.get(method, restart + 2)
    table = (restart + 5) * (restart + 1) if method == "gmres" else 0
    numbers, steps = (vectors + 1) * max(B.m, 1) + table, history.shape[1]
    sizes = M.size, start, maxiter, restart, ortho, vectors, steps, numbers
    macros = {f"{method}_batch".upper(): 1, "PRECONDITIONER": KINDS[M.kind]}
    values = *map(int, sizes), rtol, atol, *(options or (0.0,)), *told(M, B.queue)
    packs = A.values.view, M.values.view, B.view, X.data, out, history
    teams("batch_krylov.cl", "solve_batch", B, B.m, values, packs, numbers, wait_for, **macros)
