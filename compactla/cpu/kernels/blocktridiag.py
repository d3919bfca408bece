"""Block tridiagonal lines: pack-level calls in a loop over the blocks of a line, one pack of lines at a time.

Slot ``offset[p] + k`` of `diag` is block k of the lines of pack p; `lower` and `upper` have one slot less a pack. With
D, E and F for the blocks of a slot of `diag`, `lower` and `upper`: D x = r - E x_before - F x_after.
"""

from collections.abc import Callable

from compactla.cpu.emit.code import routine
from compactla.cpu.emit.index import value_of
from compactla.cpu.emit.numba_matrices import at, itemsize_of, lanes_of, parts_of, slot_at
from compactla.cpu.emit.prefetch import BYTE, BYTES, prefetch
from compactla.cpu.kernels.gemm import gemm
from compactla.cpu.kernels.getrfnp import getrfnp
from compactla.cpu.kernels.laswp import laswp
from compactla.cpu.kernels.pivots import lu_watched, start_block, watch
from compactla.cpu.kernels.trsm import trsm
from compactla.cpu.memory.packing import Tile
from compactla.pivots import FACTOR, LARGEST, WATCHED


def factor_batch(block: str, fetched: bool, large: bool) -> Callable:
    """Kernel that factors packs lo to hi in place; `block` is the form of a b x b block.

    D <- L\\U with the reciprocals of the pivots, after D <- D - E_before F_before; F <- inv(D) F. E is only read.
    What comes next may be `fetched` ahead, if sizes are known: side by side, or, where blocks are `large`, each as late
    as can be, as the nearest cache would lose it again.
    """
    width = lanes_of(block)
    at_once, late = fetched and not large, fetched and large

    def kernel(lo, hi, V, b, size, rs, cs, lower, diag, upper, offset, info):
        lie = V, size, b, b, rs, cs

        for p in range(lo, hi):
            first, last = offset[p], offset[p + 1] - 1
            for v in range(0, V, width):
                for s in range(first, last + 1):
                    D, F = slot_at(diag, s, v, lie, block), slot_at(upper, s - p, v, lie, block)
                    E, D_after = slot_at(lower, s - p, v, lie, block), slot_at(diag, s + 1, v, lie, block)
                    if s > first:
                        E_before = slot_at(lower, s - p - 1, v, lie, block)
                        F_before = slot_at(upper, s - p - 1, v, lie, block)
                        gemm(E_before, F_before, D, -1, 1, (D_after, E, F) if at_once else (F,) if late else ())
                    getrfnp(D, info[p * V + v :], (s - first) * b, "R")
                    if s < last:
                        trsm(D, F, "L", "L", "N", "U", 1, (E,) if late else ())
                        trsm(D, F, "L", "U", "N", "R", 1, (D_after,) if late else ())

    return kernel


def factor_watched_batch(block: str, column: str, swap: str, fetched: bool, policy: str) -> Callable:
    """Kernel that factors as `factor_batch` does, and watches pivots as `policy` says: see `lu_watched`.

    `column` is the form of what is kept of pivots, `swap` that of the columns of `swaps`. Where rows of D are swapped
    E_before has those rows swapped too.
    """
    width = lanes_of(block)
    pivoting = policy.endswith("pivoting")

    def kernel(lo, hi, V, b, size, rs, cs, lower, diag, upper, offset, info, rows, swaps, watched, tiny):
        lie = V, size, b, b, rs, cs

        for p in range(lo, hi):
            first, last = offset[p], offset[p + 1] - 1
            for v in range(0, V, width):
                W = at(watched, p * WATCHED * cs + v, WATCHED, 1, cs, cs, V, column)
                for s in range(first, last + 1):
                    used = rows[s * V + v :]
                    D = slot_at(diag, s, v, lie, block)
                    E = slot_at(lower, s - p, v, lie, block)
                    F = slot_at(upper, s - p, v, lie, block)
                    E_before = slot_at(lower, s - p - 1, v, lie, block)
                    F_before = slot_at(upper, s - p - 1, v, lie, block)
                    S = at(swaps, s * b * cs + v, b, 1, cs, cs, V, swap)
                    # Note sizes before the block is touched.
                    start_block(D, W, used)
                    if s < last:
                        watch(F, W, used, LARGEST)
                        watch(E, W, used, LARGEST)
                    if s > first:
                        # D <- D - E_before F_before
                        D_after = slot_at(diag, s + 1, v, lie, block)
                        gemm(E_before, F_before, D, -1, 1, (D_after, E, F) if fetched else ())
                    # Factor it, and swap the rows of what stands beside it.
                    lu_watched(D, S, W, used, info[p * V + v :], (s - first) * b, policy, tiny)
                    if pivoting:
                        if s < last:
                            laswp(F, S)
                        if s > first:
                            laswp(E_before, S)
                    if s < last:
                        # F <- inv(D) F, watched half way
                        trsm(D, F, "L", "L", "N", "U")
                        watch(F, W, used, FACTOR)
                        trsm(D, F, "L", "U", "N", "R")

    return kernel


def solve_batch(block: str, column: str, swap: str, fetched: bool) -> Callable:
    """Kernel that solves with the factors of packs lo to hi; `column` is the form of a b x nrhs block of x.

    Forward x <- inv(D) (r - E x_before), backward x <- x - F x_after: every block is read once. `rows` says which
    block row of `rhs` and `x` a slot's lane is, -1 for an unused lane, and `several` how many slots are moved at once
    from there on, see `load_rows`; 0 where an earlier slot's include it. `work` begins with zeros, then there is room
    for the numbers of unused lanes, then for the x of one pack. `swap` is the form of the columns of `swaps`, if rows
    of the blocks of D were swapped, else "". Blocks may be `fetched` ahead, if sizes are known.
    """
    width, reals, item, swapped = lanes_of(block), parts_of(block), itemsize_of(block), bool(swap)

    def kernel(lo, hi, V, b, size, rs, cs, nrhs, lower, diag, upper, offset, rows, several, rhs, x, swaps, work):
        row, element = nrhs * reals * width, reals * width
        unused = b * nrhs * reals * item
        columns = work + (2 * unused + 63) // 64 * 64

        lie = V, size, b, b, rs, cs

        def x_of(k):
            return at(columns, k * b * row, b, nrhs, row, element, width, column)

        for p in range(lo, hi):
            first, last = offset[p], offset[p + 1] - 1
            for v in range(0, V, width):
                # Forward: x <- inv(D) (r - E x_before)
                for s in range(first, last + 1):
                    X, D = x_of(s - first), slot_at(diag, s, v, lie, block)
                    if several[s]:
                        load_rows(X, rows[s * V + v :], rhs, work, several[s])
                    if swapped:
                        laswp(X, at(swaps, s * b * cs + v, b, 1, cs, cs, V, swap))
                    if s > first:
                        E_before, X_before = slot_at(lower, s - p - 1, v, lie, block), x_of(s - first - 1)
                        E, D_after = slot_at(lower, s - p, v, lie, block), slot_at(diag, s + 1, v, lie, block)
                        gemm(E_before, X_before, X, -1, 1, (D_after, E) if fetched else ())
                    trsm(D, X, "L", "L", "N", "U")
                    trsm(D, X, "L", "U", "N", "R")
                # Backward: x <- x - F x_after
                for s in range(last, first - 1, -1):
                    X = x_of(s - first)
                    if s < last:
                        F, X_after = slot_at(upper, s - p, v, lie, block), x_of(s - first + 1)
                        F_before = slot_at(upper, s - p - 1, v, lie, block)
                        gemm(F, X_after, X, -1, 1, (F_before,) if fetched else ())
                    if several[s]:
                        store_rows(X, rows[s * V + v :], x, work + unused, several[s])

    return kernel


def residual_batch(block: str, column: str) -> Callable:
    """Kernel for r <- rhs - A x with the blocks of packs lo to hi as they are in the matrix; see `solve_batch`."""
    width, reals, item = lanes_of(block), parts_of(block), itemsize_of(block)

    def kernel(lo, hi, V, b, size, rs, cs, nrhs, lower, diag, upper, offset, rows, several, rhs, x, r, work):
        row, element = nrhs * reals * width, reals * width
        unused = b * nrhs * reals * item
        columns = work + (2 * unused + 63) // 64 * 64

        lie = V, size, b, b, rs, cs

        def x_of(k):
            return at(columns, k * b * row, b, nrhs, row, element, width, column)

        for p in range(lo, hi):
            first, last = offset[p], offset[p + 1] - 1
            R = x_of(last + 1 - first)
            for v in range(0, V, width):
                for s in range(first, last + 1):
                    if several[s]:
                        load_rows(x_of(s - first), rows[s * V + v :], x, work, several[s])
                for s in range(first, last + 1):
                    load_rows(R, rows[s * V + v :], rhs, work)
                    gemm(slot_at(diag, s, v, lie, block), x_of(s - first), R, -1, 1)
                    if s > first:
                        gemm(slot_at(lower, s - p - 1, v, lie, block), x_of(s - first - 1), R, -1, 1)
                    if s < last:
                        gemm(slot_at(upper, s - p, v, lie, block), x_of(s - first + 1), R, -1, 1)
                    store_rows(R, rows[s * V + v :], r, work + unused)

    return kernel


def spread_batch(block: str, known: bool) -> Callable:
    """Kernel that multiplies couplings at the ends of lines by the inverses of the factored packs lo to hi, in place.

    The first slot of a pack in `before`, and in `after` those from ``shortest[p]`` on, where its lines end, hold what
    couples the lines to others; the other slots, counted as those of `diag`, are written.
    """
    width = lanes_of(block)

    def kernel(lo, hi, V, b, size, rs, cs, lower, diag, upper, offset, shortest, before, after):
        lie = V, size, b, b, rs, cs

        for p in range(lo, hi):
            first, last, ends = offset[p], offset[p + 1] - 1, shortest[p]
            for v in range(0, V, width):
                # Forward, with couplings of the first row, and of the last ones from where lines end.
                for s in range(first, last + 1):
                    D = slot_at(diag, s, v, lie, block)
                    X = slot_at(before, s, v, lie, block)
                    Y = slot_at(after, s, v, lie, block)
                    if s > first:
                        E_before = slot_at(lower, s - p - 1, v, lie, block)
                        X_before = slot_at(before, s - 1, v, lie, block)
                        E, D_after = slot_at(lower, s - p, v, lie, block), slot_at(diag, s + 1, v, lie, block)
                        gemm(E_before, X_before, X, -1, 0, (D_after, E) if known else ())
                        if s > ends:
                            gemm(E_before, slot_at(after, s - 1, v, lie, block), Y, -1, 1)
                    trsm(D, X, "L", "L", "N", "U")
                    trsm(D, X, "L", "U", "N", "R")
                    if s >= ends:
                        trsm(D, Y, "L", "L", "N", "U")
                        trsm(D, Y, "L", "U", "N", "R")
                # Backward: both go up.
                for s in range(last - 1, first - 1, -1):
                    F, F_before = slot_at(upper, s - p, v, lie, block), slot_at(upper, s - p - 1, v, lie, block)
                    X = slot_at(before, s, v, lie, block)
                    X_before = slot_at(before, s - 1, v, lie, block)
                    X_after = slot_at(before, s + 1, v, lie, block)
                    Y, Y_after = slot_at(after, s, v, lie, block), slot_at(after, s + 1, v, lie, block)
                    gemm(F, X_after, X, -1, 1, (F_before, X_before) if known else ())
                    if s < ends:
                        gemm(F, Y_after, Y, -1, 0)
                    else:
                        gemm(F, Y_after, Y, -1, 1)

    return kernel


def couple_batch(block: str, column: str, known: bool) -> Callable:
    """Kernel that takes couplings from the block rows of packs lo to hi: x <- source - E x_before - F x_after.

    `before` and `after` say for each lane of a pack which block rows of x these are; the row -1 counts as zero. `work`
    begins as for `solve_batch`, then there is room for three block rows.
    """
    width, reals, item = lanes_of(block), parts_of(block), itemsize_of(block)

    def kernel(lo, hi, V, b, size, rs, cs, nrhs, lower, upper, offset, rows, before, after, source, x, work):
        row, element = nrhs * reals * width, reals * width
        unused = b * nrhs * reals * item
        columns = work + (2 * unused + 63) // 64 * 64

        lie = V, size, b, b, rs, cs

        def x_of(k):
            return at(columns, k * b * row, b, nrhs, row, element, width, column)

        X_before, X_after, X = x_of(0), x_of(1), x_of(2)
        for p in range(lo, hi):
            for v in range(0, V, width):
                load_rows(X_before, before[p * V + v :], x, work)
                load_rows(X_after, after[p * V + v :], x, work)
                for s in range(offset[p], offset[p + 1]):
                    E, E_next = slot_at(lower, s, v, lie, block), slot_at(lower, s + 1, v, lie, block)
                    F, F_next = slot_at(upper, s, v, lie, block), slot_at(upper, s + 1, v, lie, block)
                    load_rows(X, rows[s * V + v :], source, work)
                    gemm(E, X_before, X, -1, 1, (E_next,) if known else ())
                    gemm(F, X_after, X, -1, 1, (F_next,) if known else ())
                    store_rows(X, rows[s * V + v :], x, work + unused)

    return kernel


@routine
def load_rows(code, X, rows, source, zeros, several=1):
    """X <- the block rows `rows`, one a lane, of an array; what is at the address `zeros` for the row -1.

    If `several` is more than 1 there is no such row, and as many matrices, which follow X in memory, are loaded from
    the block rows that follow these. Their numbers in a lane are as many as there are lanes, or more.
    """
    copy_rows(code, X, rows, source, zeros, several, Tile.pack)


@routine
def store_rows(code, X, rows, target, unused, several=1):
    """Block rows `rows`, one a lane, of an array <- X; lanes of row -1 go to the address `unused`."""
    copy_rows(code, X, rows, target, unused, several, Tile.unpack)


def copy_rows(code, X, rows, array, spare, several, move):
    """Move the numbers of a matrix X between its lanes and their block rows, a contiguous run of numbers each."""
    b, vector = code.builder, X.vector
    lanes, real, item = vector.lanes, "fd"[vector.real.bitwidth == 64], vector.real.bitwidth // 8
    count = X.m * X.n * len(vector.parts)  # numbers of a block row
    starts = block_rows(code, rows, lanes, array.index(code), spare.index(code), count * item)
    vectors = b.bitcast(X.base, BYTES)

    def copy(first, run):
        """The numbers from `first` on, `run` of each lane."""
        ends = [b.gep(start, [value_of(first * item)], source_etype=BYTE) for start in starts]
        steps = (value_of((first + k) * (lanes * item)) for k in range(run))
        move(Tile(code, real, lanes, run), ends, [b.gep(vectors, [step], source_etype=BYTE) for step in steps])

    if isinstance(several, int):
        copy_one(code, count, copy, 16 // item)
        return
    several = several.index(code)
    with code.either(several == 1) as (one, more):
        with one:
            copy_one(code, count, copy, 16 // item)
        with more:
            total = several * count
            further = total * (-item if move is Tile.unpack else item)  # bytes
            with code.loop((total + (lanes - 1)) // lanes) as t:
                first = code.min(t * lanes, total - lanes)  # at the end some once more
                for start in starts:  # what is moved next
                    place = further + first * item
                    prefetch(b, b.gep(start, [value_of(place)], source_etype=BYTE), write=move is Tile.unpack)
                copy(first, lanes)


def copy_one(code, count, copy, run):
    """The `count` numbers of a block row, `run` at a time."""
    if isinstance(count, int):
        run = next(r for r in (4, 2, 1) if r <= min(run, max(count, 1)))
        whole, rest = divmod(count, run)
    else:
        whole, rest = count // run, count % run
    for t in code.each(whole):
        copy(t * run, run)
    if isinstance(count, int) and rest:
        copy(count - run, run)  # some once more
    elif not isinstance(count, int):
        with code.loop(rest) as t:
            copy(whole * run + t, 1)


def block_rows(code, rows, lanes, array, spare, size):
    """The address of the block row of each lane, of `size` bytes in an array; `spare` for the row -1."""
    b, starts = code.builder, []
    for lane in range(lanes):
        row = code.entry(rows, lane)
        start = (row >= 0).select(array + row * size, spare)
        starts.append(b.inttoptr(start.value, BYTES))
    return starts
