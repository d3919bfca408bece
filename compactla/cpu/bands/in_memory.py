"""Systems with bands that are too wide for registers, V at a time: as `compactla.cpu.bands.in_registers`, in memory.

The rows of L and U are as far as they reach: the factors are a square matrix of which the rows overlap in memory.
"""

from dataclasses import replace

from compactla.cpu.bands.chunks import move
from compactla.cpu.emit.failures import report
from compactla.cpu.kernels.getrfnp import reciprocal
from compactla.cpu.kernels.laswp import integers


def factor(code, room, form, matrix, factors, info):
    """Keep the factors of a matrix."""
    M = square(code, form, factors.U)
    n, width = factors.U.n, form.kl + form.reach
    with code.loop(n) as i, code.loop(width + 1) as t:
        factors.U[t, i] = code.zero(M.vector)
    read(code, form, matrix[0], M, n)
    with code.loop(n) as k:
        below, right = left(code, n, k, form.kl), left(code, n, k, form.reach)
        if form.pivoting:
            swap(code, M, k, below, right, factors.swaps)
        pivot = M[k, k]
        zero, inverse = reciprocal(pivot)
        M[k, k] = inverse
        report(code, [~(pivot.real > 0) if form.name == "spd" else zero], info, k + 1)
        with code.loop(below) as t:
            i = k + t + 1
            multiple = M[i, k] * inverse
            M[i, k] = multiple
            with code.loop(right) as s:
                j = k + s + 1
                M[i, j] = (-multiple).fma(M[k, j], M[i, j])


def solve(code, room, form, factors, B, X):
    """X <- inv(A) B, by the factors of A."""
    n, W = factors.U.n, room.take(B.m, B.n)
    M = square(code, form, factors.U)
    move("read", B, W)
    with code.loop(n) as k:
        below = left(code, n, k, form.kl)
        if form.pivoting:
            with code.loop(below) as t:
                flag = factors.swaps.load_one(k, t)
                with code.when(flag.any()):
                    exchange_rows(code, W, k, k + t + 1, 0, W.n, flag)
        with code.loop(below) as t:
            subtract(code, M, W, k, k + t + 1)
    with code.loop(n) as step:
        k = n - 1 - step
        with code.loop(left(code, n, k, form.reach)) as t:
            subtract(code, M, W, k + t + 1, k)
        inverse = M[k, k]
        with code.loop(W.n) as c:
            W[k, c] = W[k, c] * inverse
    move("write", X, W)


def square(code, form, U):
    """The factors as an n x n matrix of which only the band is there: kl elements of a row are before the diagonal."""
    return U.T._replace(base=U.block(form.kl, 0, 1, 1).base, m=U.n, rs=U.cs - U.rs, cs=U.rs)


def left(code, n, k, reach):
    """How many rows or columns there are behind k, of so many."""
    return code.min(reach, n - 1 - k)


def read(code, form, ab, M, n):
    """M <- the matrix, diagonal by diagonal; both triangles of Hermitian ones."""
    with code.loop(form.stored) as t:
        below = t if form.lower else t - form.ku
        above = 0 - below
        first = (above < 0).select(0, above)
        count = code.min(n, n + above) - first
        offset = t * ab.rs + first * ab.cs
        starts = [start + offset for start in ab.starts]
        start = M.block(first + below, first, 1, 1)
        place = start._replace(m=count, rs=M.rs + M.cs)
        move("read", replace(ab, m=count, n=1, rs=ab.cs, starts=starts), place)
        if form.name == "spd":
            mirror = M.block(first, first + below, 1, 1)._replace(m=count, rs=place.rs)
            with code.loop(count) as j:
                mirror[j, 0] = place[j, 0].conjugate()
    if form.name == "spd":
        with code.loop(n) as j:
            x = M[j, j]
            M[j, j] = x._new(*x.real.parts, *x.constant(0).parts[1:])


def swap(code, M, k, below, right, swaps):
    """Swap row k with that of the largest element of column k behind it, in each lane."""
    kind = integers(M.vector)
    largest, place = code.registers(M.vector.reals, 1), code.registers(kind, 1)
    largest[0, 0], place[0, 0] = M[k, k].abs1(), code.zero(kind).constant(-1)
    with code.loop(below) as t:
        size = M[k + t + 1, k].abs1()
        more = size > largest[0, 0]
        largest[0, 0] = more.select(size, largest[0, 0])
        place[0, 0] = more.select(code.broadcast(t, kind), place[0, 0])
    with code.loop(below) as t:
        flag = place[0, 0] == code.broadcast(t, kind)
        swaps.store_one(k, t, flag)
        with code.when(flag.any()):
            exchange_rows(code, M, k, k + t + 1, k, right + 1, flag)


def exchange_rows(code, A, first, second, column, count, flag):
    """Exchange two rows from a column on in the lanes of a flag."""
    with code.loop(count) as t:
        j = column + t
        x, y = A[first, j], A[second, j]
        A[first, j], A[second, j] = flag.select(y, x), flag.select(x, y)


def subtract(code, M, W, first, second):
    """Subtract row `first` of W from row `second`, times the element of M."""
    multiple = -M[second, first]
    with code.loop(W.n) as c:
        W[second, c] = multiple.fma(W[first, c], W[second, c])
