"""Eigenvalues and eigenvectors of Hermitian matrices by way of a real tridiagonal one, and the QR algorithm on that.

Lanes iterate side by side: each has its own shift and its own blocks, of which the last one gets a step of its shift.
Where a lane has nothing to do its rotations are the identity, by the bit but for the signs of zeros, which `arrange`
makes positive. So no lane depends on another.
"""

from typing import NamedTuple

from compactla.cpu.emit.code import Code
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.emit.vectors import Flags, Lanes
from compactla.cpu.kernels.householder import reflect, reflector
from compactla.cpu.kernels.jacobi import rounding, sweep
from compactla.cpu.kernels.norms import larger, scaling

UNROLLED = 4  # Steps for larger matrices are loops.
FEW = 6  # reflections that are emitted one by one
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
        identity(code, V)
        for t in steps(code, n - 1):
            k = n - 2 - t
            top, rest = k + 1, k + 2
            m, left = n - top, n - rest
            reflect(code, A.block(rest, k, left, 1), tau[k, 0], V.block(top, top, 1, m), V.block(rest, top, left, m))
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


def steps(code, count):
    """0 to count - 1: as Python integers if they are few, for code is long that is emitted for each."""
    if isinstance(count, int) and count <= FEW:
        yield from range(count)
    else:
        with code.loop(count) as k:
            yield k


def beside(code, vector, n):
    """Room for the numbers beside a diagonal of n, and for something in front of them."""
    return code.room(vector, n + 1, 1).block(1, 0, n, 1)


def identity(code, V):
    zero = code.zero(V.vector)
    for i in code.each(V.m):
        for j in code.each(V.n):
            V[i, j] = zero
    for i in code.each(V.n):
        V[i, i] = zero.constant(1)


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

    Implicit steps with Wilkinson's shift, as in LAPACK's steqr.
    """
    n, reals = d.m, d.vector
    rotations = code.room(reals, n, 2)
    window = Window(code, n - 1)
    eps = rounding(reals)
    floor = 2.0 ** -(EXPONENT[reals.real.bitwidth] + 16)

    def once(turned):
        ends = code.registers(reals, 3)
        for k in range(3):
            ends[k, 0] = code.zero(reals)
        for i, following in window.search(turned):
            x, y, between = d[i, 0], d[following, 0], e[i, 0]
            matters = (abs(between) > (abs(x) + abs(y)) * x.constant(eps)) & (abs(between) > floor)
            e[i, 0] = matters.select(between, between.constant(0))
            for k, z in enumerate((x, between, y)):
                ends[k, 0] = matters.select(z, ends[k, 0])
            window.note(i, matters)
        with code.when(turned.flags.any()):
            step(code, d, e, rotations, shift(*(ends[k, 0] for k in range(3))), window)
            if V:
                turn(code, V, rotations, window)

    return sweep(code, reals, once, n * TRIES)


class Window:
    """The places from the first to the last at which a lane is at work; few places are all in it, and known."""

    def __init__(self, code: Code, count):
        self.code, self.count = code, count
        self.known = isinstance(count, int) and count < UNROLLED
        self.begin, self.end, self.seen, self.last = (code.variable(start) for start in (0, count, None, None))

    @property
    def bounds(self):
        """The first place, and the one behind the last."""
        if self.known:
            return 0, self.count
        return self.begin.get(), self.end.get()

    def each(self):
        """Yield each place, and the next."""
        begin, end = self.bounds
        if self.known:
            yield from zip(range(end), range(1, end + 1), strict=True)
            return
        with self.code.loop(end - begin) as k:
            i = begin + k
            yield i, i + 1

    def search(self, turned):
        """Yield each place and the next, for the caller to `note` some, which calls `turned`; then shrink to these."""
        self.turned = turned
        begin, _ = self.bounds
        self.seen.set(-1)
        self.last.set(0)
        yield from self.each()
        if self.known:
            return
        seen = self.seen.get()
        self.begin.set((seen < 0).select(begin, seen))
        self.end.set(self.last.get())

    def note(self, i, matters):
        """A place where the lanes of `matters` are at work."""
        self.turned(matters)
        if self.known:
            return
        some, seen, last = matters.any(), self.seen.get(), self.last.get()
        self.seen.set((some & (seen < 0)).select(i, seen))
        self.last.set(some.select(i + 1, last))


def shift(x: Lanes, between: Lanes, y: Lanes) -> Lanes:
    """The eigenvalue of [x, between; between, y] that is closer to y."""
    half = (x - y) * x.constant(0.5)
    square = half.fma(half, between * between)
    root = (square * square.rsqrt()).copysign(half)
    return (between != 0).select(y - between * between / (half + root), y)


class Plane(NamedTuple):
    """A rotation of [x; z] to [r; 0], lane by lane, or the identity where z is zero."""

    cosine: Lanes
    sine: Lanes
    length: Lanes

    @classmethod
    def of(cls, x: Lanes, z: Lanes) -> "Plane":
        square = x.fma(x, z * z)
        inverse = square.rsqrt(regular=True)
        # Less would have lost its digits; it counts as nothing.
        acts = (z != 0) & (square > 2.0 ** (-1000 if x.vector.real.bitwidth == 64 else -120))
        zero, one = x.constant(0), x.constant(1)
        return cls(acts.select(x * inverse, one), acts.select(z * inverse, zero), acts.select(square * inverse, x))


def step(code: Code, d, e, rotations, mu, window):
    """A step of the QR algorithm on each block of a lane: diagonals d and e, and the `rotations`."""
    zero = code.zero(d.vector)
    one = zero.constant(1)
    state = code.registers(d.vector, 5)  # g, p, c, s, and the former e of the place before
    for k, x in enumerate((zero, zero, one, one, zero)):
        state[k, 0] = x
    for i, following in window.each():
        g, p, c, s, before = (state[k, 0] for k in range(5))
        goes_on, off, x = before != 0, e[i, 0], d[i, 0]
        g = goes_on.select(g, x - mu)
        plane = Plane.of(g, goes_on.select(s * off, off))
        e[i - 1, 0] = goes_on.select(plane.length, zero)
        small = goes_on.select(c * off, off)
        x = x - p
        c, s, _ = plane
        r = (d[following, 0] - x).fma(s, (c + c) * small)
        p = s * r
        d[i, 0] = x + p
        rotations[i, 0], rotations[i, 1] = c, s
        for k, x in enumerate((c.fma(r, -small), p, c, s, off)):
            state[k, 0] = x
    _, last = window.bounds
    d[last, 0] = d[last, 0] - state[1, 0]
    e[last - 1, 0] = state[0, 0]


def turn(code: Code, V: Elements, rotations: Elements, window):
    """Turn the columns of V, each and the next, by the rotations of a step: those of a few rows at a time."""
    begin, last = window.bounds
    for row, height in code.tiles(V.m, 8 if isinstance(V.m, int) and not V.vector.is_complex else 4):
        rows, current = [row + r for r in range(height)], code.registers(V.vector, height)
        for r, i in enumerate(rows):
            current[r, 0] = V[i, begin]
        for j, following in window.each():
            c, s = rotations[j, 0], rotations[j, 1]
            for r, i in enumerate(rows):
                x, y = current[r, 0], V[i, following]
                V[i, j] = s.fma(y, c * x)
                current[r, 0] = (-s).fma(x, c * y)
        for r, i in enumerate(rows):
            V[i, last] = current[r, 0]
