"""Singular values and vectors by way of a real bidiagonal matrix, and the QR algorithm on that.

Lanes iterate side by side, as in `compactla.cpu.kernels.tridiagonal`: no sign may depend on that of a zero.
"""

from compactla.cpu.emit.code import Code
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.emit.vectors import Flags, Lanes
from compactla.cpu.kernels.householder import expand, reflect, reflector, steps
from compactla.cpu.kernels.jacobi import rounding, sweep
from compactla.cpu.kernels.norms import larger, scaling
from compactla.cpu.kernels.rotations import LastPivot, Plane, Side, Window, divided_rows, turn
from compactla.cpu.kernels.tridiagonal import TRIES, beside

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


def iterate(code: Code, d: Elements, e: Elements, U: Elements | None, V: Elements | None) -> Flags:
    """Make e zero and d singular values up to their signs, with U and V turned; returns lanes that do not converge.

    Implicit steps as in LAPACK's bdsqr, without a shift where a diagonal element counts as zero.
    """
    n, reals = d.m, d.vector
    along, others = zip(*(divided_rows(X, 2) for X in (U, V)), strict=True)
    window = Window(code, n - 1, 2 if any(others) else 1, V)
    sides = window.rotations(reals), window.rotations(reals)
    eps, floor = rounding(reals), 2.0 ** (-(EXPONENT[reals.real.bitwidth] * 5) // 4)

    def once(turned):
        for k in window.steps():
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
                for name, z in zip(names, (*sizes[:2], off, least, most), strict=False):
                    kept[name][0, 0] = matters.select(z, kept[name][0, 0])
                kept["before"][0, 0] = off
                window.note(i, matters)
            # A step with that shift.
            window.clear(k, *sides)
            with code.when(window.is_open):
                x, y, between, least, most = (kept[name][0, 0] for name in names[:5])
                regular = (least > most * most.constant(eps)) & (least > floor)
                mu = shift(x, between, y)
                mu = nearer(code, d, e, mu, between, window) if U else mu
                mu = regular.select(mu, most.constant(0))
                later = [window.part(side, k) if X else None for side, X in zip(sides, others, strict=True)]
                step(code, d, e, mu, window, later, along)
        if any(others):
            with code.when(turned.flags.any()):
                for X, rotations in zip(others, sides, strict=True):
                    if X:
                        turn(code, X, rotations, window)

    return sweep(code, reals, once, n * TRIES)


def shift(x: Lanes, between: Lanes, y: Lanes) -> Lanes:
    """The smaller singular value of [x, between; 0, y], where x and y are positive."""
    square = between * between
    roots = ((x + y).fma(x + y, square)).sqrt() + ((x - y).fma(x - y, square)).sqrt()
    return (x * y) * x.constant(2) / roots


def nearer(code: Code, d, e, mu: Lanes, between: Lanes, window) -> Lanes:
    """A shift that is nearer to a singular value of the last block of each lane than the shift `mu` of two places.

    Their squares are eigenvalues of B^T B, which is tridiagonal.
    """
    if window.known:
        return mu
    begin, _ = window.bounds
    square, x = mu * mu, d[begin, 0]
    pivots = LastPivot(code, x.fma(x, -square))
    before = code.registers(mu.vector, 1)
    before[0, 0] = x * x
    for i, following in window.each():
        off, y = e[i, 0], d[following, 0]
        beside = off * off
        pivots.follow(y.fma(y, beside - square), before[0, 0] * beside)
        before[0, 0] = y * y
    found = pivots.corrected(square, between * between)
    return (found > 0).select(found.sqrt(), mu)


def step(code: Code, d, e, mu, window, rotations, along):
    """A step of the QR algorithm on each block of a lane: diagonals d and e.

    Where they are given, `rotations` of the left and right side <- those of the step, and rows of U and V `along` are
    turned by them.
    """
    _, last = window.bounds
    on_left, on_right = (Side(code, rotations[k], along[k], window) for k in range(2))
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
        c, s, length = plane = Plane.of(f, bulge, window.acute)
        e[i - 1, 0] = goes_on.select(length, zero)
        on_right.turn(i, plane)
        f, bulge = s.fma(between, c * x), s * y
        between, y = (-s).fma(x, c * between), c * y
        c, s, length = plane = Plane.of(f, bulge, window.acute)
        on_left.turn(i, plane)
        d[i, 0], d[following, 0] = length, (-s).fma(between, c * y)
        for t, x in enumerate((s.fma(y, c * between), c, s, off)):
            state[t, 0] = x
    for side in (on_left, on_right):
        side.finish(last)
    e[last - 1, 0] = state[0, 0]
