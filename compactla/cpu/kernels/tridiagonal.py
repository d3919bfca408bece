"""Eigenvalues and eigenvectors of Hermitian matrices by way of a real tridiagonal one, and the QR algorithm on that.

Lanes iterate side by side: each has its own shift and its own blocks, of which the last one gets a step of its shift.
Where a lane has nothing to do its rotations are the identity, by the bit but for the signs of zeros, which `arrange`
makes positive. So no lane depends on another.
"""

from compactla.cpu.emit.code import Code
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.emit.vectors import Flags, Lanes
from compactla.cpu.kernels.householder import expand, reflector, steps
from compactla.cpu.kernels.jacobi import rounding, sweep
from compactla.cpu.kernels.norms import larger, scaling
from compactla.cpu.kernels.rotations import LastPivot, Plane, Side, Window, divided_rows, turn

TRIES = 30  # steps for each eigenvalue, as LAPACK has; 1 or 2 are usual
EXPONENT = {64: 480, 32: 48}  # of scaled matrices: squares neither overflow nor underflow
ROWS = 4  # of a triangle that are worked on at a time


def eigen(code: Code, A: Elements, w: Elements, V: Elements | None) -> Flags:
    """w <- eigenvalues of A, of which the lower triangle is read and written; V <- eigenvectors, if it is given.

    They are in no order. Returns flags of lanes that hold NaN or infinities, or have not converged: these have no
    result.
    """
    n, reals = A.n, A.vector.reals
    scale = scaling(largest_below(code, A), EXPONENT[reals.real.bitwidth])
    for i in code.each(n):
        for j in code.each(i + 1):
            A[i, j] = scale.scaled(A[i, j])
    e, tau = beside(code, reals, n), code.room(A.vector, n, 1)
    reduce(code, A, w, e, tau)
    if V:
        expand(code, A, tau, V, 1)
    failed = iterate(code, w, e, V)
    for i in code.each(n):
        w[i, 0] = scale.restored(w[i, 0])
    return failed | scale.unknown


def largest_below(code, A):
    """The largest |re| or |im| of the lower triangle; NaN where one is."""
    largest = code.registers(A.vector.reals, 1)
    largest[0, 0] = code.zero(A.vector.reals)
    for i in code.each(A.n):
        A[i, i] = A[i, i].real
        for j in code.each(i + 1):
            largest[0, 0] = larger(largest[0, 0], A[i, j])
    return largest[0, 0]


def beside(code, vector, n):
    """Room for the numbers beside a diagonal of n, and for something in front of them."""
    return code.room(vector, n + 1, 1).block(1, 0, n, 1)


def reduce(code: Code, A: Elements, d: Elements, e: Elements, tau: Elements):
    """Q^H A Q, a tridiagonal matrix of diagonals d and e; LAPACK's sytd2, with reflectors below the diagonal of A."""
    n, w = A.n, code.room(A.vector, A.n, 1)
    for k in steps(code, n - 1):
        d[k, 0] = A[k, k].real
        top, m = k + 1, n - k - 1
        rest = A.block(k + 2, k, m - 1, 1)
        e[k, 0], scale = reflector(code, A[top, k], rest)
        tau[k, 0] = scale
        A[top, k] = A[top, k].constant(1)
        v, C, y = A.block(top, k, m, 1), A.block(top, top, m, m), w.block(0, 0, m, 1)
        multiply(code, C, v, y)
        product = code.registers(A.vector, 1)
        product[0, 0] = code.zero(A.vector)
        for i in code.each(m):
            y[i, 0] = scale * y[i, 0]
            product[0, 0] = y[i, 0].conjugate().fma(v[i, 0], product[0, 0])
        half = scale * product[0, 0] * product[0, 0].constant(-0.5)
        for i in code.each(m):
            y[i, 0] = half.fma(v[i, 0], y[i, 0])
        update(code, C, v, y)
    last = n - 1
    d[last, 0] = A[last, last].real


def multiply(code, C, v, y):
    """y <- C v, for Hermitian C, whose lower triangle is read."""
    for i, count in code.tiles(C.n, ROWS):
        rows = range(count)
        sums = code.registers(C.vector, count)
        own = [v[i + r, 0] for r in rows]
        for r in rows:
            sums[r, 0] = C[i + r, i + r].real * own[r]
            for s in range(r):
                c = C[i + r, i + s]
                sums[r, 0] = c.fma(own[s], sums[r, 0])
                sums[s, 0] = c.conjugate().fma(own[r], sums[s, 0])
        for j in code.each(i):
            x, total = v[j, 0], y[j, 0]
            for r in rows:
                c = C[i + r, j]
                sums[r, 0] = c.fma(x, sums[r, 0])
                total = c.conjugate().fma(own[r], total)
            y[j, 0] = total
        for r in rows:
            y[i + r, 0] = sums[r, 0]


def update(code, C, v, y):
    """C <- C - v y^H - y v^H, in its lower triangle."""
    for i, count in code.tiles(C.n, ROWS):
        places = [i + r for r in range(count)]
        own = [(-v[r, 0], -y[r, 0]) for r in places]

        def subtract(j, rows, places=places, own=own):
            a, b = v[j, 0].conjugate(), y[j, 0].conjugate()
            for r in rows:
                C[places[r], j] = own[r][0].fma(b, own[r][1].fma(a, C[places[r], j]))

        for j in code.each(i):
            subtract(j, range(count))
        for s in range(count):
            subtract(places[s], range(s, count))


def iterate(code: Code, d: Elements, e: Elements, V: Elements | None) -> Flags:
    """Make e zero and d the eigenvalues, with V the product of V and eigenvectors; returns lanes that do not converge.

    Implicit steps with Wilkinson's shift, as in LAPACK's steqr, or, where eigenvectors make steps long, a nearer one.
    """
    n, reals = d.m, d.vector
    along, others = divided_rows(V)
    window = Window(code, n - 1, 2 if others else 1, V)
    rotations = window.rotations(reals)
    eps = rounding(reals)
    floor = 2.0 ** -(EXPONENT[reals.real.bitwidth] + 16)

    def once(turned):
        for k in window.steps():
            ends = code.registers(reals, 3)
            for t in range(3):
                ends[t, 0] = code.zero(reals)
            for i, following in window.search(turned):
                x, y, between = d[i, 0], d[following, 0], e[i, 0]
                matters = (abs(between) > (abs(x) + abs(y)) * x.constant(eps)) & (abs(between) > floor)
                e[i, 0] = matters.select(between, between.constant(0))
                for t, z in enumerate((x, between, y)):
                    ends[t, 0] = matters.select(z, ends[t, 0])
                window.note(i, matters)
            window.clear(k, rotations)
            with code.when(window.is_open):
                x, between, y = (ends[t, 0] for t in range(3))
                mu = shift(x, between, y)
                mu = nearer(code, d, e, mu, between, window) if V else mu
                step(code, d, e, mu, window, window.part(rotations, k) if others else None, along)
        if others:
            with code.when(turned.flags.any()):
                turn(code, others, rotations, window)

    return sweep(code, reals, once, n * TRIES)


def shift(x: Lanes, between: Lanes, y: Lanes) -> Lanes:
    """The eigenvalue of [x, between; between, y] that is closer to y."""
    half = (x - y) * x.constant(0.5)
    square = half.fma(half, between * between)
    root = (square * square.rsqrt()).copysign(half)
    return (between != 0).select(y - between * between / (half + root), y)


def nearer(code: Code, d, e, mu: Lanes, between: Lanes, window) -> Lanes:
    """A shift that is nearer to an eigenvalue of the last block of each lane than the shift `mu` of two places."""
    if window.known:
        return mu
    begin, _ = window.bounds
    pivot = LastPivot(code, d[begin, 0] - mu)
    for i, following in window.each():
        off = e[i, 0]
        pivot.follow(d[following, 0] - mu, off * off)
    return pivot.corrected(mu, between)


def step(code: Code, d, e, mu, window, rotations, along):
    """A step of the QR algorithm on each block of a lane: diagonals d and e.

    If they are given, `rotations` <- those of the step, and rows of V `along` are turned by them.
    """
    _, last = window.bounds
    side = Side(code, rotations, along, window)
    zero = code.zero(d.vector)
    one = zero.constant(1)
    state = code.registers(d.vector, 5)  # g, p, c, s, and the former e of the place before
    for k, x in enumerate((zero, zero, one, one, zero)):
        state[k, 0] = x
    for i, following in window.each():
        g, p, c, s, before = (state[k, 0] for k in range(5))
        goes_on, off, x = before != 0, e[i, 0], d[i, 0]
        g = goes_on.select(g, x - mu)
        plane = Plane.of(g, goes_on.select(s * off, off), window.acute)
        e[i - 1, 0] = goes_on.select(plane.length, zero)
        small = goes_on.select(c * off, off)
        x = x - p
        c, s, _ = plane
        r = (d[following, 0] - x).fma(s, (c + c) * small)
        p = s * r
        d[i, 0] = x + p
        for k, x in enumerate((c.fma(r, -small), p, c, s, off)):
            state[k, 0] = x
        side.turn(i, plane)
    side.finish(last)
    d[last, 0] = d[last, 0] - state[1, 0]
    e[last - 1, 0] = state[0, 0]
