"""Block tridiagonal lines: pack-level calls in a loop over the blocks of a line, one pack of lines at a time.

Slot ``offset[p] + k`` of `diag` is block k of the lines of pack p; `lower` and `upper` have one slot less a pack. With
D, E and F for the blocks of a slot of `diag`, `lower` and `upper`: D x = r - E x_before - F x_after.
"""

from compactla.cpu.ahead import BYTE, BYTES
from compactla.cpu.emit import routine
from compactla.cpu.kernels.gemm import gemm
from compactla.cpu.kernels.getrfnp import getrfnp
from compactla.cpu.kernels.pack import Tile
from compactla.cpu.kernels.pivots import getrf, laswp, start_block, watch
from compactla.cpu.kernels.trsm import trsm
from compactla.cpu.lanes import at, itemsize_of, lanes_of, parts_of
from compactla.cpu.simd import INDEX, index
from compactla.lines.pivots import FACTOR, LARGEST, WATCHED


def factor_batch(block, column, swap, known, policy):
    """Kernel that factors packs lo to hi in place; `block` is the form of a b x b block, whose size may be `known`.

    D <- L\\U with the reciprocals of the pivots, after D <- D - E_before F_before; F <- inv(D) F. E is only read.
    With a `policy` pivots are watched, see `getrf`; `column` is the form of what is kept of them, `swap` that of the
    columns of `swaps`. Where rows of D are swapped E_before has those rows swapped too.
    """
    width = lanes_of(block)
    pivoting = policy.endswith("pivoting")

    def kernel(lo, hi, V, b, size, rs, cs, lower, diag, upper, offset, info, rows, swaps, watched):
        for p in range(lo, hi):
            first, last = offset[p], offset[p + 1] - 1
            for v in range(0, V, width):
                pivots = info[p * V + v :]
                if policy:
                    W = at(watched, p * WATCHED * cs + v, WATCHED, 1, cs, cs, V, column)
                for s in range(first, last + 1):
                    D = at(diag, s * size + v, b, b, rs, cs, V, block)
                    F = at(upper, (s - p) * size + v, b, b, rs, cs, V, block)
                    if policy:
                        used = rows[s * V + v :]
                        S = at(swaps, s * b * cs + v, b, 1, cs, cs, V, swap)
                        start_block(D, W, used)
                        if s < last:
                            watch(F, W, used, LARGEST)
                            watch(at(lower, (s - p) * size + v, b, b, rs, cs, V, block), W, used, LARGEST)
                    if s > first:
                        before = (s - p - 1) * size + v
                        E_before = at(lower, before, b, b, rs, cs, V, block)
                        F_before = at(upper, before, b, b, rs, cs, V, block)
                        E = at(lower, (s - p) * size + v, b, b, rs, cs, V, block)
                        D_after = at(diag, (s + 1) * size + v, b, b, rs, cs, V, block)
                        gemm(E_before, F_before, D, -1, 1, (D_after, E, F) if known else ())
                    if policy:
                        getrf(D, S, W, used, pivots, (s - first) * b, policy)
                        if pivoting:
                            if s < last:
                                laswp(F, S)
                            if s > first:
                                laswp(at(lower, (s - p - 1) * size + v, b, b, rs, cs, V, block), S)
                    else:
                        getrfnp(D, pivots, (s - first) * b, "R")
                    if s < last:
                        trsm(D, F, "L", "L", "N", "U")
                        if policy:
                            watch(F, W, used, FACTOR)
                        trsm(D, F, "L", "U", "N", "R")

    return kernel


def solve_batch(block, column, swap, known):
    """Kernel that solves with the factors of packs lo to hi; `column` is the form of a b x nrhs block of x.

    Forward x <- inv(D) (r - E x_before), backward x <- x - F x_after: every block is read once. `rows` says which
    block row of `rhs` and `x` a slot's lane is, -1 for an unused lane. `work` begins with zeros, then there is room
    for the numbers of unused lanes, then for the x of one pack. `swap` is the form of the columns of `swaps`, if rows
    of the blocks of D were swapped, else "".
    """
    width, parts, item = lanes_of(block), parts_of(block), itemsize_of(block)

    def kernel(lo, hi, V, b, size, rs, cs, nrhs, lower, diag, upper, offset, rows, rhs, x, swaps, work):
        row, element = nrhs * parts * width, parts * width
        unused = b * nrhs * parts * item
        columns = work + (2 * unused + 63) // 64 * 64
        for p in range(lo, hi):
            first, last = offset[p], offset[p + 1] - 1
            for v in range(0, V, width):
                for s in range(first, last + 1):
                    X = at(columns, (s - first) * b * row, b, nrhs, row, element, width, column)
                    D = at(diag, s * size + v, b, b, rs, cs, V, block)
                    load_rows(X, rows[s * V + v :], rhs, work)
                    if swap:
                        laswp(X, at(swaps, s * b * cs + v, b, 1, cs, cs, V, swap))
                    if s > first:
                        E_before = at(lower, (s - p - 1) * size + v, b, b, rs, cs, V, block)
                        X_before = at(columns, (s - first - 1) * b * row, b, nrhs, row, element, width, column)
                        E = at(lower, (s - p) * size + v, b, b, rs, cs, V, block)
                        D_after = at(diag, (s + 1) * size + v, b, b, rs, cs, V, block)
                        gemm(E_before, X_before, X, -1, 1, (D_after, E) if known else ())
                    trsm(D, X, "L", "L", "N", "U")
                    trsm(D, X, "L", "U", "N", "R")
                for s in range(last, first - 1, -1):
                    X = at(columns, (s - first) * b * row, b, nrhs, row, element, width, column)
                    if s < last:
                        F = at(upper, (s - p) * size + v, b, b, rs, cs, V, block)
                        X_after = at(columns, (s - first + 1) * b * row, b, nrhs, row, element, width, column)
                        F_before = at(upper, (s - p - 1) * size + v, b, b, rs, cs, V, block)
                        gemm(F, X_after, X, -1, 1, (F_before,) if known else ())
                    store_rows(X, rows[s * V + v :], x, work + unused)

    return kernel


def residual_batch(block, column):
    """Kernel for r <- rhs - A x with the blocks of packs lo to hi as they are in the matrix; see `solve_batch`."""
    width, parts, item = lanes_of(block), parts_of(block), itemsize_of(block)

    def kernel(lo, hi, V, b, size, rs, cs, nrhs, lower, diag, upper, offset, rows, rhs, x, r, work):
        row, element = nrhs * parts * width, parts * width
        unused = b * nrhs * parts * item
        columns = work + (2 * unused + 63) // 64 * 64
        for p in range(lo, hi):
            first, last = offset[p], offset[p + 1] - 1
            R = at(columns, (last + 1 - first) * b * row, b, nrhs, row, element, width, column)
            for v in range(0, V, width):
                for s in range(first, last + 1):
                    X = at(columns, (s - first) * b * row, b, nrhs, row, element, width, column)
                    load_rows(X, rows[s * V + v :], x, work)
                for s in range(first, last + 1):
                    load_rows(R, rows[s * V + v :], rhs, work)
                    D = at(diag, s * size + v, b, b, rs, cs, V, block)
                    gemm(D, at(columns, (s - first) * b * row, b, nrhs, row, element, width, column), R, -1, 1)
                    if s > first:
                        E_before = at(lower, (s - p - 1) * size + v, b, b, rs, cs, V, block)
                        X_before = at(columns, (s - first - 1) * b * row, b, nrhs, row, element, width, column)
                        gemm(E_before, X_before, R, -1, 1)
                    if s < last:
                        F = at(upper, (s - p) * size + v, b, b, rs, cs, V, block)
                        X_after = at(columns, (s - first + 1) * b * row, b, nrhs, row, element, width, column)
                        gemm(F, X_after, R, -1, 1)
                    store_rows(R, rows[s * V + v :], r, work + unused)

    return kernel


def spread_batch(block, known):
    """Kernel that multiplies couplings at the ends of lines by the inverses of the factored packs lo to hi, in place.

    The first slot of a pack in `before`, and in `after` those from ``shortest[p]`` on, where its lines end, hold what
    couples the lines to others; the other slots, counted as those of `diag`, are written.
    """
    width = lanes_of(block)

    def kernel(lo, hi, V, b, size, rs, cs, lower, diag, upper, offset, shortest, before, after):
        for p in range(lo, hi):
            first, last, ends = offset[p], offset[p + 1] - 1, shortest[p]
            for v in range(0, V, width):
                for s in range(first, last + 1):
                    D = at(diag, s * size + v, b, b, rs, cs, V, block)
                    X = at(before, s * size + v, b, b, rs, cs, V, block)
                    Y = at(after, s * size + v, b, b, rs, cs, V, block)
                    if s > first:
                        E_before = at(lower, (s - p - 1) * size + v, b, b, rs, cs, V, block)
                        X_before = at(before, (s - 1) * size + v, b, b, rs, cs, V, block)
                        E = at(lower, (s - p) * size + v, b, b, rs, cs, V, block)
                        D_after = at(diag, (s + 1) * size + v, b, b, rs, cs, V, block)
                        gemm(E_before, X_before, X, -1, 0, (D_after, E) if known else ())
                        if s > ends:
                            Y_before = at(after, (s - 1) * size + v, b, b, rs, cs, V, block)
                            gemm(E_before, Y_before, Y, -1, 1)
                    trsm(D, X, "L", "L", "N", "U")
                    trsm(D, X, "L", "U", "N", "R")
                    if s >= ends:
                        trsm(D, Y, "L", "L", "N", "U")
                        trsm(D, Y, "L", "U", "N", "R")
                for s in range(last - 1, first - 1, -1):
                    F = at(upper, (s - p) * size + v, b, b, rs, cs, V, block)
                    X = at(before, s * size + v, b, b, rs, cs, V, block)
                    X_after = at(before, (s + 1) * size + v, b, b, rs, cs, V, block)
                    Y = at(after, s * size + v, b, b, rs, cs, V, block)
                    Y_after = at(after, (s + 1) * size + v, b, b, rs, cs, V, block)
                    F_before = at(upper, (s - p - 1) * size + v, b, b, rs, cs, V, block)
                    X_before = at(before, (s - 1) * size + v, b, b, rs, cs, V, block)
                    gemm(F, X_after, X, -1, 1, (F_before, X_before) if known else ())
                    if s < ends:
                        gemm(F, Y_after, Y, -1, 0)
                    else:
                        gemm(F, Y_after, Y, -1, 1)

    return kernel


def couple_batch(block, column, known):
    """Kernel that takes couplings from the block rows of packs lo to hi: x <- source - E x_before - F x_after.

    `before` and `after` say for each lane of a pack which block rows of x these are; the row -1 counts as zero. `work`
    begins as for `solve_batch`, then there is room for three block rows.
    """
    width, parts, item = lanes_of(block), parts_of(block), itemsize_of(block)

    def kernel(lo, hi, V, b, size, rs, cs, nrhs, lower, upper, offset, rows, before, after, source, x, work):
        row, element = nrhs * parts * width, parts * width
        unused = b * nrhs * parts * item
        columns = work + (2 * unused + 63) // 64 * 64
        for p in range(lo, hi):
            for v in range(0, V, width):
                X_before = at(columns, 0, b, nrhs, row, element, width, column)
                X_after = at(columns, b * row, b, nrhs, row, element, width, column)
                X = at(columns, 2 * b * row, b, nrhs, row, element, width, column)
                load_rows(X_before, before[p * V + v :], x, work)
                load_rows(X_after, after[p * V + v :], x, work)
                for s in range(offset[p], offset[p + 1]):
                    E = at(lower, s * size + v, b, b, rs, cs, V, block)
                    F = at(upper, s * size + v, b, b, rs, cs, V, block)
                    E_next = at(lower, (s + 1) * size + v, b, b, rs, cs, V, block)
                    F_next = at(upper, (s + 1) * size + v, b, b, rs, cs, V, block)
                    load_rows(X, rows[s * V + v :], source, work)
                    gemm(E, X_before, X, -1, 1, (E_next,) if known else ())
                    gemm(F, X_after, X, -1, 1, (F_next,) if known else ())
                    store_rows(X, rows[s * V + v :], x, work + unused)

    return kernel


@routine
def load_rows(code, X, rows, source, zeros):
    """X <- the block rows `rows`, one a lane, of an array; what is at the address `zeros` for the row -1."""
    copy_rows(code, X, rows, source, zeros, Tile.pack)


@routine
def store_rows(code, X, rows, target, unused):
    """Block rows `rows`, one a lane, of an array <- X; lanes of row -1 go to the address `unused`."""
    copy_rows(code, X, rows, target, unused, Tile.unpack)


def copy_rows(code, X, rows, array, spare, move):
    b, vector = code.builder, X.vector
    lanes, real, item = vector.lanes, "fd"[vector.real.bitwidth == 64], vector.real.bitwidth // 8
    array, spare = array.index(code), spare.index(code)
    count = code.mul(code.mul(X.m, X.n), len(vector.parts))
    size = index(code.mul(count, item))
    places = []
    for lane in range(lanes):
        row = b.load(b.gep(rows, [INDEX(lane)], source_etype=INDEX), typ=INDEX)
        used = b.icmp_signed(">=", row, INDEX(0))
        places.append(b.inttoptr(b.select(used, b.add(array, b.mul(row, size)), spare), BYTES))
    vectors = b.bitcast(X.base, BYTES)

    def copy(start, run):
        ends = [b.gep(place, [index(code.mul(start, item))], source_etype=BYTE) for place in places]
        steps = (index(code.mul(code.add(start, k), lanes * item)) for k in range(run))
        move(Tile(code, real, lanes, run), ends, [b.gep(vectors, [step], source_etype=BYTE) for step in steps])

    run = 16 // item
    if isinstance(count, int):
        run = next(r for r in (4, 2, 1) if r <= min(run, max(count, 1)))
        whole, rest = divmod(count, run)
    else:
        whole, rest = b.udiv(count, INDEX(run)), b.urem(count, INDEX(run))
    for t in code.each(whole):
        copy(code.mul(t, run), run)
    if isinstance(count, int) and rest:
        copy(count - run, run)  # some once more
    elif not isinstance(count, int):
        with code.loop(rest) as t:
            copy(code.add(code.mul(whole, run), t), 1)
