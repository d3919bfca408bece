"""Products with sparse batches on devices, their factors, and solutions: one launch for each.

Names and arguments are those of `compactla.cpu.sparse`. Packs may have any strides where they are read.
"""

import functools
import math
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyopencl as cl

from compactla.calls.launch import NOW, Launch
from compactla.dtypes import REAL
from compactla.gpu import sparse_rounds
from compactla.gpu.arrays import empty, reused
from compactla.gpu.launch import FILL, GROUP, MOST, enqueue, flatten, launch_lanes
from compactla.gpu.pattern_lists import on_device, small
from compactla.gpu.program import built, kernel
from compactla.krylov_methods import VECTORS
from compactla.layout import Pack
from compactla.routine import named
from compactla.sparse.rounds import levels as levels_of
from compactla.types import Array, Queue

KINDS = {"none": 0, "ilu": 1, "lu": 1, "block": 2, "csr": 3}
MEMBERS = 32  # work-items that share a system, at most
BESIDE = 8  # and at most where they wait for each other often and there are
MANY = 128  # systems for each compute unit, which keep it busy
_levels: weakref.WeakKeyDictionary[Any, dict] = weakref.WeakKeyDictionary()
SECTOR = 32  # bytes that memory moves at once
LEAST = 64  # work-items of a work-group of teams
NONE = np.iinfo(np.int32).max  # where no row is singular
SHARE = 8  # part of a device's memory that the work space of solvers may take


class SolverScratch:
    """Work space of the calling thread; who uses it next waits for `events`."""

    def __init__(self, queue, size):
        self.size, self.events = size, []
        self.buffer = empty((size,), np.uint8, queue).data


def work(queue, size):
    """So many bytes, which are kept."""
    kept = built(queue).of_thread.__dict__
    if "krylov" not in kept or kept["krylov"].size < size:
        kept["krylov"] = SolverScratch(queue, size)
    return kept["krylov"]


def rows_of(pattern, queue):
    """indptr and indices."""
    return on_device(pattern, queue, "rows", lambda: (pattern.indptr, *small(pattern.indices)))


def lists_of(kind, pattern, order, queue, trans="N"):
    """Arguments of kernels for a preconditioner, beside its values: of factors, all that csrsv.cl knows."""
    if KINDS[kind] != KINDS["lu"]:
        return [*rows_of(pattern, queue), *[None] * 4]
    order, transposed = order if kind == "lu" else None, trans != "N"
    lists = on_device(pattern, queue, ("factors", transposed), lambda: of_factors(pattern, order, transposed))
    pivots = [None] if order is None else on_device(pattern, queue, "pivots", lambda: small(order))
    places = on_device(pattern, queue, "places", lambda: small(pattern.transposed[2])) if transposed else [None]
    return [*lists, *pivots, *places]


def of_factors(pattern, order, transposed):
    """indptr, indices, diagonal and levels of factors, or of their transposes."""
    indptr, indices, diagonal, found = in_levels(pattern, transposed)
    rows = indices if order is None else order[indices]
    return indptr, *small(rows, diagonal, found)


def in_levels(pattern, transposed):
    """indptr, indices, diagonal and `levels` of a pattern or of its transpose, which are kept."""
    kept = _levels.setdefault(pattern, {})
    if transposed not in kept:
        indptr, indices, diagonal = pattern.indptr, pattern.indices, pattern.diagonal
        if transposed:
            indptr, indices, places = pattern.transposed
            diagonal = np.flatnonzero(pattern.indices[places] == indices)
        kept[transposed] = indptr, indices, diagonal, levels(indptr, indices, diagonal)
    return kept[transposed]


def beside(kind, pattern):
    """How many of many work-items for a system find rows of a preconditioner that do not need each other."""
    if KINDS[kind] != KINDS["lu"] or not pattern.n:
        return MEMBERS
    return min(max(pattern.n // int(in_levels(pattern, False)[3][0]), 1), BESIDE)


def levels(indptr, indices, diagonal):
    """Rows that do not need each other, for the lower and for the upper triangle, as csrsv.cl has them."""
    lists, n = [], len(diagonal)
    for rows, starts, ends in ((range(n), indptr[:-1], diagonal), (range(n)[::-1], diagonal + 1, indptr[1:])):
        level = levels_of(indices, starts, ends, rows)
        begins = np.append(0, np.bincount(level).cumsum())
        longest = np.zeros(len(begins) - 1, np.int64)
        np.maximum.at(longest, level, ends - starts)
        lists += [[len(longest)], begins, longest, np.argsort(level, kind="stable")]
    return np.concatenate(lists)


def places_of(pattern, trans, queue):
    """indptr, indices and `order` of csrmm.cl, of the pattern or the one of the transposes."""
    if trans == "N":
        return [*rows_of(pattern, queue), None]
    return on_device(pattern, queue, "transposed", lambda: (pattern.transposed[0], *small(*pattern.transposed[1:])))


def product(values: Pack, pattern: Any, x: Array, trans: str = "N", launch: Launch = NOW) -> Array | None:
    """op(A) x of vectors (nm, n) or (nm, n, nrhs) in an ordinary array, new, or None if there are no rounds."""
    y = empty((len(x), pattern.n if trans != "N" else pattern.m, *x.shape[2:]), values.dtype, values.queue, x.allocator)
    vectors = sparse_rounds.Vectors.of_arrays(x, y)
    is_done = x.size and y.size and sparse_rounds.product(values, pattern, vectors, trans, launch)
    return y if is_done else None


def multiply(
    values: Pack, pattern: Any, X: Pack, Y: Pack, trans: str = "N", scalars: Any = None, launch: Launch = NOW
) -> None:
    """Y <- op(A) X, or alpha op(A) X + beta Y with packs of both in `scalars`."""
    places = places_of(pattern, trans, X.queue)
    packs = (P.view for P in (values if scalars is None else scalars, values, X, Y))
    macros = {"CSRMM_BATCH": 1, "TRANS": "NTC".index(trans), "SCALED": int(scalars is not None)}
    each_row("csrmm_batch", Y, (X.n, *places), packs, launch, **macros)


def take(values, places, Y, launch=NOW):
    """Rows of Y, of one column, <- rows of `values` in places on the device: -1 stands for 0, -2 for 1."""
    each_row("take_rows", Y, (places,), (values.view, Y.view), launch, TAKE_ROWS=1)


def reorder(values: Pack, pattern: Any, Y: Pack) -> None:
    """Y <- values in the order of the pattern, of such as they were given."""
    (places,) = on_device(pattern, Y.queue, "order", lambda: small(pattern.order))
    take(values, places, Y)


def barrier(queue: Queue, events: Sequence) -> None:
    """Have all that comes into a queue from now on wait for these events."""
    if events:
        cl.enqueue_barrier(queue, wait_for=list(events))


def each_row(name, Y, values, packs, launch, **macros):
    """Launch a kernel with a work-item for each row of each lane of Y, as far as there may be so many."""
    lanes = Y.view.npack * Y.vlen
    if not lanes * Y.m * Y.n:
        return
    arrays, args = flatten((lanes, Y.m, *values, *packs))
    run = kernel(Y.queue, "csrmm.cl", name, Y.dtype, Y.vlen, args, **macros)
    enqueue(Y.queue, launch, run, (-(-lanes // GROUP) * GROUP, min(Y.m, MOST)), (GROUP, 1), arrays, args)


def inverses(values: Pack, pattern: Any, b: int, launch: Launch = NOW) -> Pack:
    """The inverses of the b x b blocks on the diagonal; 1 for what is singular."""
    each = -(-pattern.n // b)
    blocks = values.beside(each * b * b, 1)
    (places,) = on_device(pattern, values.queue, ("blocks", b), lambda: small(pattern.blocks(b).reshape(-1)))
    take(values, places, blocks, launch)
    count = blocks.view.npack * each
    if count:
        P = Pack(blocks.data.reshape(count, b, b, *blocks.data.shape[3:]))
        infos = [empty((P.nm,), np.int32, P.queue, reused(P.data)) for _ in range(2)]
        ipiv, _ = named("getrf").function(P, info=infos[0])
        named("getri").function(P, ipiv, info=infos[1])
        args = P.nm, b, infos[0], P.view
        launch_lanes(P.queue, NOW, "blockmv.cl", "unit_blocks", P.dtype, P.vlen, (P.nm, 1), *args, UNIT_BLOCKS=1)
    return blocks


def team_of(n, queue):
    """How many work-items share a system of n equations: on a GPU one has two rows or more. Bits depend on it."""
    if queue.device.type & cl.device_type.CPU:
        return 1
    return min(1 << max(n - 1, 1).bit_length() - 1, MEMBERS)


def teams(file, name, P, n, values, packs, numbers, launch, most, **macros):
    """Launch a kernel with a team for each lane of packs like P: of `most` where there are many."""
    queue, lanes, real = P.queue, P.view.npack * P.vlen, REAL[P.dtype.char].itemsize
    team = team_of(n, queue)
    if lanes >= MANY * queue.device.max_compute_units:
        team = min(team, 1 << most.bit_length() - 1)
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
    enqueue(queue, launch, run, (groups * together, team), (together, team), arrays, args)


def approximate(values: Pack, pattern: Any, groups: Any, inverses: Pack, launch: Launch = NOW) -> Array:
    """Incomplete sparse approximate inverses, and of each lane the first singular row, counted from one, or `NONE`.

    Groups of rows are given with the places of the values of their small systems, as `take` has them.
    """
    queue, (npack, V) = values.queue, (values.view.npack, values.vlen)
    first = empty((npack * V,), np.int32, queue)
    if not npack:
        return first
    first.fill(NONE)
    for rows, places in groups:
        k = places.shape[1]
        room = npack * V * k * (k + 2) * values.dtype.itemsize
        some = max(queue.device.global_mem_size // SHARE // room, 1)
        for r in range(0, len(rows), some):
            part, name = slice(r, r + some), ("systems", k, r, some)
            lists = on_device(pattern, queue, name, functools.partial(systems, rows[part], places[part], pattern))
            count = len(rows[part])
            matrices, sides = values.beside(count * k * k, 1), values.beside(count * k, 1)
            take(values, lists[1], matrices, launch)
            take(values, lists[2], sides, launch)
            matrices, columns = (
                Pack(P.data.reshape(npack * count, k, n, *P.data.shape[3:])) for P, n in ((matrices, k), (sides, 1))
            )
            info = empty((npack * count * V,), np.int32, queue, reused(values.data))
            ipiv, _ = named("getrf").function(matrices, info=info)
            named("getrs").function(matrices, ipiv, columns)
            args = npack * V, count, k, lists[0], *rows_of(pattern, queue), lists[3], info, first
            packs = sides.view, values.view, inverses.view
            launch_lanes(queue, NOW, "isai.cl", "enter_rows", values.dtype, V, (npack * V, count), *args, *packs)
    return first


def systems(rows, places, pattern):
    """Rows, where the values of their small systems are, and right-hand sides; and the diagonal."""
    sides = np.full(places.shape[:2], -1)
    sides[np.arange(len(rows)), pattern.diagonal[rows] - pattern.indptr[rows]] = -2
    return small(rows, places.reshape(-1), sides.reshape(-1), pattern.diagonal)


def precondition(M: Any, X: Pack, Y: Pack, launch: Launch = NOW) -> None:
    """Y <- M X"""
    apply(M.kind, M.values, M.pattern, M.order, M.size, X, Y, launch, "N")


def apply(kind, values, pattern, order, size, X, Y, launch, trans):
    """Y <- M X for a preconditioner of some kind, its values and its pattern, and the size of its blocks."""
    if not Y.view.npack * Y.m * Y.n:
        return
    if KINDS[kind] == KINDS["lu"]:
        vectors = sparse_rounds.Vectors(X.view, Y.view, X.nm, False)
        if sparse_rounds.solve(values, pattern, order if kind == "lu" else None, vectors, trans, launch):
            return
    macros = {"PRECONDITION_BATCH": 1, "PRECONDITIONER": KINDS[kind], "TRANS": "NTC".index(trans)}
    most = 1 if KINDS[kind] == KINDS["lu"] else MEMBERS
    values, packs = (X.n, size, *lists_of(kind, pattern, order, X.queue, trans)), (values.view, X.view, Y.view)
    teams("batch_krylov.cl", "precondition_batch", Y, X.m, values, packs, 0, launch, most, **macros)


def tile_of(dtype: np.dtype) -> int:
    """Rows and columns of the largest tile: devices have no tiles but numbers."""
    return 1


def lu_factor(values: Pack, tiles: Any, factors: Pack, launch: Launch = NOW) -> Array:
    """The factors of packs of values, and info of each lane."""
    return eliminate(values, tiles, factors, launch, tiles.sources)


def lu_solve(factors: Pack, tiles: Any, X: Pack, Y: Pack, trans: str = "N", launch: Launch = NOW) -> None:
    """Y <- op(A)^-1 X with the factors of `lu_factor`."""
    apply("lu", factors, tiles, tiles.order, 1, X, Y, launch, trans)


def lu_solve_array(factors: Pack, tiles: Any, b: Array, trans: str, launch: Launch) -> Array | None:
    """op(A)^-1 b of vectors (nm, n) or (nm, n, nrhs) in an ordinary array, new, or None if there are no rounds."""
    x = empty(b.shape, b.dtype, factors.queue, b.allocator)
    vectors = sparse_rounds.Vectors.of_arrays(b, x)
    return x if b.size and sparse_rounds.solve(factors, tiles, tiles.order, vectors, trans, launch) else None


def factor(values: Pack, pattern: Any, factors: Pack, launch: Launch = NOW) -> Array:
    """The incomplete factors of packs of values, and info of each lane."""
    return eliminate(values, pattern, factors, launch, None)


def eliminate(values, pattern, factors, launch, sources):
    """Factors with the entries of the pattern; `sources` says which of the values these are, by -1 for none."""
    queue, lanes = values.queue, values.view.npack * values.vlen
    info = empty((lanes,), np.int32, queue)
    if lanes and pattern.n:
        lists = pattern.indices, pattern.diagonal, *(() if sources is None else (sources,))
        given = pattern.pattern if sources is not None else pattern
        if sparse_rounds.factor(values, given, sources, factors, info, launch):
            return info
        rows = on_device(pattern, queue, "diagonal", lambda: (pattern.indptr, *small(*lists)))
        rows = [*rows, None][:4]
        packs = values.view, factors.view, info
        teams("csrilu.cl", "csrilu_batch", values, pattern.n, rows, packs, pattern.n, launch, BESIDE, CSRILU_BATCH=1)
    elif lanes:
        info.fill(0)
    return info


def solve(
    method: str, options: Any, A: Any, M: Any, B: Pack, X: Pack, out: Array, history: Array, start: int, maxiter: int,
    rtol: float, atol: float, restart: int, ortho: int, launch: Launch = NOW,
) -> None:  # fmt: skip
    """Solve the systems of a batch; see `compactla.krylov_methods`. `out` and `history` are contiguous arrays."""
    if not B.view.npack:
        return
    vectors = VECTORS.get(method, restart + 2)
    table = (restart + 5) * (restart + 1) if method == "gmres" else 0
    numbers, steps = (vectors + 1) * max(B.m, 1) + table, history.shape[1]
    sizes = M.size, start, maxiter, restart, ortho, vectors, steps, numbers
    eps, _, *left = options
    macros = {f"{method}_batch".upper(): 1, "PRECONDITIONER": KINDS[M.kind], "LEFT": int(bool(left))}
    values = (
        *map(int, sizes),
        rtol,
        atol,
        eps,
        *rows_of(A.pattern, B.queue),
        *lists_of(M.kind, M.pattern, M.order, B.queue),
    )
    packs = A.values.view, M.values.view, B.view, X.data, out, history
    most = beside(M.kind, M.pattern)
    teams("batch_krylov.cl", "solve_batch", B, B.m, values, packs, numbers, launch, most, **macros)
