"""Singular values and vectors by way of a real bidiagonal matrix, and the QR algorithm on that.

Lanes iterate side by side, as in `compactla.cpu.kernels.tridiagonal`: no sign may depend on that of a zero.
"""

from compactla.cpu.emit.code import Code
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.emit.vectors import Flags, Lanes
from compactla.cpu.kernels.householder import reflect, reflector
from compactla.cpu.kernels.jacobi import rounding, sweep
from compactla.cpu.kernels.norms import larger, scaling
from compactla.cpu.kernels.tridiagonal import TRIES, Plane, Window, beside, identity, steps, turn

EXPONENT = {64: 200, 32: 24}  # of scaled matrices: products of four neither overflow nor underflow


def singular(code: Code, A: Elements, s: Elements, U: Elements | None, V: Elements | None) -> Flags:
    """s <- singular values of an m x n matrix A with m >= n, U and V <- singular vectors, if they are given.

    They are in no order. U has n columns, or more, which are orthogonal to the others. A is overwritten. Returns flags
    of lanes that hold NaN or infinities, or have not converged: these have no result.
    """
    m, n, reals = A.m, A.n, A.vector.reals
    largest = code.registers(reals, 1)
    largest[0, 0] = code.zero(reals)
    for i in code.each(m):
        for j in code.each(n):
            largest[0, 0] = larger(largest[0, 0], A[i, j])
    scale = scaling(largest[0, 0], EXPONENT[reals.real.bitwidth])
    for i in code.each(m):
        for j in code.each(n):
            A[i, j] = scale.scaled(A[i, j])
    e, left, right = beside(code, reals, n), code.room(A.vector, n, 1), code.room(A.vector, n, 1)
    reduce(code, A, s, e, left, right)
    if U and V:
        expand(code, A, left, U, 0)
        expand(code, A.H, right, V, 1)
    failed = iterate(code, s, e, U, V)
    for i in code.each(n):
        x = s[i, 0]
        if U and V:
            sign = (x < 0).select(x.constant(-1), x.constant(1))
            for k in code.each(n):
                V[k, i] = sign * V[k, i]
        s[i, 0] = scale.restored(abs(x))
    return failed | scale.unknown


def reduce(code: Code, A: Elements, d: Elements, e: Elements, left: Elements, right: Elements):
    """Q^H A P, a bidiagonal matrix of diagonals d and e; LAPACK's gebd2, with reflectors below and right of them."""
    m, n = A.m, A.n

    def eliminate(A, i, j, below, after):
        """Reflect element (i, j) and the `below` elements under it, and the `after` columns behind."""
        x = A.block(i + 1, j, below, 1)
        beta, tau = reflector(code, A[i, j], x)
        parts = A.block(i, j + 1, 1, after), A.block(i + 1, j + 1, below, after)
        reflect(code, x, tau.conjugate(), *parts)
        return beta, tau

    last = n - 1
    for k in steps(code, last):
        after, below = last - k, m - k - 1
        d[k, 0], left[k, 0] = eliminate(A, k, k, below, after)
        e[k, 0], right[k, 0] = eliminate(A.H, k + 1, k, after - 1, below)
    d[last, 0], left[last, 0] = reflector(code, A[last, last], A.block(n, last, m - n, 1))


def expand(code: Code, A: Elements, tau: Elements, Q: Elements, offset):
    """Q <- the product of reflectors, which are below the diagonal of A that is `offset` below the main one."""
    identity(code, Q)
    count = (A.n if offset == 0 else A.m) - offset
    for t in steps(code, count):
        k = count - 1 - t
        top = k + offset
        rest = top + 1
        below, after = Q.m - rest, Q.n - top
        v = A.block(rest, k, below, 1)
        reflect(code, v, tau[k, 0], Q.block(top, top, 1, after), Q.block(rest, top, below, after))


def iterate(code: Code, d: Elements, e: Elements, U: Elements | None, V: Elements | None) -> Flags:
    """Make e zero and d singular values up to their signs, with U and V turned; returns lanes that do not converge.

    Implicit steps as in LAPACK's bdsqr, without a shift where a diagonal element counts as zero.
    """
    n, reals = d.m, d.vector
    on_left, on_right = code.room(reals, n, 2), code.room(reals, n, 2)
    window = Window(code, n - 1)
    eps, floor = rounding(reals), 2.0 ** (-(EXPONENT[reals.real.bitwidth] * 5) // 4)

    def once(turned):
        names = "x", "y", "between", "least", "largest", "before"
        kept = dict(zip(names, (code.registers(reals, 1) for _ in names), strict=True))
        for register in kept.values():
            register[0, 0] = code.zero(reals)
        # Drop elements of e that do not matter, and keep what the last block of each lane needs for its shift.
        for i, following in window.search(turned):
            x, y, between = d[i, 0], d[following, 0], e[i, 0]
            sizes = abs(x), abs(y), abs(between)
            matters = (sizes[2] > (sizes[0] + sizes[1]) * x.constant(eps)) & (sizes[2] > floor)
            e[i, 0] = off = matters.select(between, between.constant(0))
            goes_on = kept["before"][0, 0] != 0
            least, most = sizes[0].minimum(sizes[1]), sizes[0].maximum(sizes[1]).maximum(sizes[2])
            least = goes_on.select(kept["least"][0, 0].minimum(least), least)
            most = goes_on.select(kept["largest"][0, 0].maximum(most), most)
            for name, z in (("x", sizes[0]), ("y", sizes[1]), ("between", off), ("least", least), ("largest", most)):
                kept[name][0, 0] = matters.select(z, kept[name][0, 0])
            kept["before"][0, 0] = off
            window.note(i, matters)
        # A step with that shift, and its rotations of U and V.
        with code.when(turned.flags.any()):
            x, y, between, least, most = (kept[name][0, 0] for name in names[:5])
            regular = (least > most * most.constant(eps)) & (least > floor)
            mu = regular.select(shift(x, between, y), most.constant(0))
            step(code, d, e, on_left, on_right, mu, window)
            if U:
                turn(code, U, on_left, window)
                turn(code, V, on_right, window)

    return sweep(code, reals, once, n * TRIES)


def shift(x: Lanes, between: Lanes, y: Lanes) -> Lanes:
    """The smaller singular value of [x, between; 0, y], where x and y are positive."""
    square = between * between
    roots = ((x + y).fma(x + y, square)).sqrt() + ((x - y).fma(x - y, square)).sqrt()
    return (x * y) * x.constant(2) / roots


def step(code: Code, d, e, on_left, on_right, mu, window):
    """A step of the QR algorithm on each block of a lane: diagonals d and e, and the rotations of both sides."""
    zero = code.zero(d.vector)
    one = zero.constant(1)
    state = code.registers(d.vector, 4)  # the next e of the place before, cosine and sine, and its former e
    for k, x in enumerate((zero, one, zero, zero)):
        state[k, 0] = x
    for i, following in window.each():
        f, c, s, before = (state[t, 0] for t in range(4))
        goes_on = before != 0
        x, y, off = d[i, 0], d[following, 0], e[i, 0]
        shifted = (mu == 0).select(x, (abs(x) - mu) * (abs(x) + mu))
        f = goes_on.select(f, shifted)
        bulge = goes_on.select(s, (mu == 0).select(one, x)) * off
        between = goes_on.select(c, one) * off
        c, s, length = Plane.of(f, bulge)
        e[i - 1, 0] = goes_on.select(length, zero)
        on_right[i, 0], on_right[i, 1] = c, s
        f, bulge = s.fma(between, c * x), s * y
        between, y = (-s).fma(x, c * between), c * y
        c, s, length = Plane.of(f, bulge)
        on_left[i, 0], on_left[i, 1] = c, s
        d[i, 0], d[following, 0] = length, (-s).fma(between, c * y)
        for t, x in enumerate((s.fma(y, c * between), c, s, off)):
            state[t, 0] = x
    _, last = window.bounds
    e[last - 1, 0] = state[0, 0]
