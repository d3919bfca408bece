"""Eigenvalues and eigenvectors of Hermitian matrices by way of a real tridiagonal one, and the QR algorithm on that.

Lanes iterate side by side: each has its own shift and its own blocks, of which the last one gets a step of its shift.
Where a lane has nothing to do its rotations are the identity, by the bit but for the signs of zeros, which `arrange`
makes positive. So no lane depends on another.
"""

from typing import NamedTuple

from compactla.cpu.emit.code import Code
from compactla.cpu.emit.matrices import Elements, held
from compactla.cpu.emit.vectors import Flags, Lanes
from compactla.cpu.kernels.householder import expand, reflector, steps
from compactla.cpu.kernels.jacobi import rounding, sweep
from compactla.cpu.kernels.norms import larger, scaling

UNROLLED = 4  # Steps for larger matrices are loops.
TRIES = 30  # steps for each eigenvalue, as LAPACK has; 1 or 2 are usual
EXPONENT = {64: 480, 32: 48}  # of scaled matrices: squares neither overflow nor underflow
ALONG = 3  # eighths of the registers for rows that are turned while rotations are made
SHEARED = 20  # rows from which on three multiply-adds for each make up for what a shear takes
ROWS = 4  # that are worked on at a time


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


def divided_rows(V: Elements | None, share: int = 1) -> tuple[Elements | None, Elements | None]:
    """The rows of V that are turned while rotations are made, and those that are turned later; None for no rows.

    A rotation waits for the one before it for longer than it takes to turn some rows, as many as registers hold, of
    which V has one in `share`.
    """
    if V is None or not isinstance(V.m, int):
        return None, V
    most = max(held(V.vector) * ALONG // (8 * share), ROWS)
    few = next((few for few in range(min(most, V.m), most // 2, -1) if (V.m - few) % ROWS == 0), min(most, V.m))
    return V.block(0, 0, few, V.n), V.block(few, 0, V.m - few, V.n) if few < V.m else None


class Side:
    """What becomes of the rotations of a step: they are kept for others, and turn a few rows of V, or one of both.

    A rotation turns each column of these rows and the next, a place late, so that the processor has what to turn by
    while it waits for the rotation after it.
    """

    def __init__(self, code: Code, kept: Elements | None, V: Elements | None, window: "Window"):
        self.code, self.kept, self.V, self.acute = code, kept, V, window.acute
        self.begin = begin = window.bounds[0]
        if V:
            self.column, self.rotation = code.registers(V.vector, V.m), code.registers(V.vector.reals, 2)
            for r in range(V.m):
                self.column[r, 0] = V[r, begin]

    def turn(self, j, plane):
        """Take the rotation of column j and the next, and turn column j, which is the next of the one before."""
        if not (self.kept or self.V):
            return
        rotation = plane.numbers(self.acute)
        if self.kept:
            self.kept[j, 0], self.kept[j, 1] = rotation
        if self.V:
            if not isinstance(j, int):
                with self.code.when(j > self.begin):
                    self._turn(j)
            elif j > self.begin:
                self._turn(j)
            self.rotation[0, 0], self.rotation[1, 0] = rotation

    def _turn(self, j):
        numbers = [self.rotation[t, 0] for t in range(2)]
        for r in range(self.V.m):
            self.V[r, j - 1], self.column[r, 0] = turned(self.column[r, 0], self.V[r, j], *numbers, self.acute)

    def finish(self, last):
        """Turn the last two columns."""
        if self.V:
            self._turn(last)
            for r in range(self.V.m):
                self.V[r, last] = self.column[r, 0]


class Window:
    """The places from the first to the last at which a lane is at work; few places are all in it, and known.

    Steps are `together` whose rotations are kept until columns of V are turned by them, unless there are few places.
    Where V has many rows rotations are `acute`.
    """

    def __init__(self, code: Code, count, together, V):
        self.code, self.count = code, count
        self.acute = V is not None and not (isinstance(V.m, int) and V.m < SHEARED)
        self.known = isinstance(count, int) and count < UNROLLED
        self.together = 1 if self.known else together
        self.begin, self.end, self.seen, self.last = (code.variable(start) for start in (0, count, None, None))
        self.first = [code.variable(0) for _ in range(2)]

    def rotations(self, reals):
        """Room for the two `Plane.numbers` of each place, of all steps that are together."""
        return self.code.room(reals, self.count + 1, 2 * self.together)

    @staticmethod
    def part(rotations, k):
        """Those of step k."""
        return rotations.block(0, 2 * k, rotations.m, 2)

    def steps(self):
        """Yield the numbers of the steps that are together."""
        if self.together == 1:
            yield 0
        else:
            with self.code.loop(self.together) as k:
                yield k

    @property
    def bounds(self):
        """The first place, and the one behind the last."""
        if self.known:
            return 0, self.count
        return self.begin.get(), self.end.get()

    @property
    def is_open(self):
        """Whether a lane is at work."""
        if self.known:
            return self.turned.flags.any()
        return self.end.get() > self.begin.get()

    @property
    def widest(self):
        """The bounds in the first of the steps that are together, which has the places of all."""
        if self.together == 1:
            return self.bounds
        begin, end = self.first
        return begin.get(), end.get()

    def clear(self, k, *rotations):
        """Make rotations of step k identities where that is not at work, but the first one is."""
        if self.together == 1:
            return
        code, bounds = self.code, self.bounds
        with code.either(k == 0) as (first, later):
            with first:
                for variable, place in zip(self.first, bounds, strict=True):
                    variable.set(place)
            with later:
                (begin, end), (start, stop) = bounds, self.widest
                for place, count in ((start, begin - start), (end, stop - end)):
                    with code.loop(count) as i:
                        for room in rotations:
                            zero, own = code.zero(room.vector), self.part(room, k)
                            own[place + i, 0], own[place + i, 1] = zero, zero.constant(0 if self.acute else 1)

    def each(self):
        """Yield each place, and the next."""
        begin, end = self.bounds
        if self.known:
            yield from zip(range(end), range(1, end + 1), strict=True)
            return
        with self.code.loop(end - begin) as k:
            i = begin + k
            yield i, i + 1

    def places(self, skipped):
        """Yield each place of the first of the steps that are together, but so many."""
        begin, end = self.widest
        if self.known:
            yield from range(end)
            return
        start = begin + int(skipped)
        with self.code.loop(end - start) as k:
            yield start + k

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


class LastPivot:
    """The last pivot of the last block of each lane, T - mu I = L D L^T for tridiagonal T, and its derivative by mu.

    So a step of Newton's method leads from a shift to one that is nearer to an eigenvalue, which takes fewer steps of
    the QR algorithm then, each of which costs much more.
    """

    def __init__(self, code: Code, first: Lanes):
        self.pivots, self.slopes = (code.registers(first.vector, 2) for _ in range(2))  # the present and the last one
        for k, x in enumerate((first, first.constant(0))):
            self.pivots[k, 0], self.slopes[k, 0] = x, x.constant(-1)

    def follow(self, x, square):
        """Go on with what is on the diagonal, and the square of what is beside it, which is zero between blocks."""
        goes_on = square != 0
        inverse = goes_on.select(self.pivots[0, 0].reciprocal(), x.constant(0))
        part = square * inverse
        present = x - part, (part * inverse).fma(self.slopes[0, 0], x.constant(-1))
        for register, number in zip((self.pivots, self.slopes), present, strict=True):
            register[0, 0] = number
            register[1, 0] = goes_on.select(number, register[1, 0])

    def corrected(self, mu, most):
        """The shift by a step of Newton's method; as it was, where that would be longer than `most`, or NaN."""
        change = self.pivots[1, 0] / self.slopes[1, 0]
        return (abs(change) <= abs(most)).select(mu - change, mu)


class Plane(NamedTuple):
    """A rotation of [x; z] to [r; 0], lane by lane, or the identity where z is zero."""

    cosine: Lanes
    sine: Lanes
    length: Lanes

    @classmethod
    def of(cls, x: Lanes, z: Lanes, acute: bool) -> "Plane":
        """The rotation for lanes of x and z; it is `acute`, or its length is positive."""
        square = x.fma(x, z * z)
        inverse = square.rsqrt(regular=True)
        # Less would have lost its digits; it counts as nothing.
        acts = (z != 0) & (square > 2.0 ** (-1000 if x.vector.real.bitwidth == 64 else -120))
        zero, one, length, cosine, sine = x.constant(0), x.constant(1), square * inverse, x * inverse, z * inverse
        if acute:
            negative = x < 0
            cosine, sine, length = abs(x) * inverse, negative.select(-z, z) * inverse, negative.select(-length, length)
        return cls(acts.select(cosine, one), acts.select(sine, zero), acts.select(length, x))

    def numbers(self, acute: bool) -> tuple[Lanes, Lanes]:
        """What `turned` takes: the sine, and the tangent of half the angle, which is at most 1; or sine and cosine."""
        if not acute:
            return self.sine, self.cosine
        return self.sine, self.sine * (self.cosine + self.cosine.constant(1)).reciprocal(many=True, regular=True)


def turned(x: Lanes, y: Lanes, sine: Lanes, other: Lanes, acute: bool) -> tuple[Lanes, Lanes]:
    """Two numbers, turned; by an acute angle as three shears, which are multiply-adds."""
    if not acute:
        return sine.fma(y, other * x), (-sine).fma(x, other * y)
    x = other.fma(y, x)
    y = (-sine).fma(x, y)
    return other.fma(y, x), y


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


def turn(code: Code, V: Elements, rotations: Elements, window):
    """Turn the columns of V, each and the next, by the rotations of the steps together: a few rows at a time.

    What the first step leaves of a column stays in registers for the second one, which follows a place behind.
    """
    begin, last = window.widest
    several = window.together == 2
    limit = held(V.vector) // 4
    for row, height in code.tiles(V.m, limit if isinstance(V.m, int) else min(limit, 4)):
        rows, current = [row + r for r in range(height)], code.registers(V.vector, height, window.together)

        def left(k, j, r, y, current=current):
            """What column j becomes by step k, when the next one is y."""
            numbers = (rotations[j, 2 * k + t] for t in range(2))
            x, current[r, k] = turned(current[r, k], y, *numbers, window.acute)
            return x

        for r, i in enumerate(rows):
            current[r, 0] = V[i, begin]
            if several:
                current[r, 1] = left(0, begin, r, V[i, begin + 1])
        for j in window.places(several):
            for r, i in enumerate(rows):
                x = left(0, j, r, V[i, j + 1])
                if several:
                    V[i, j - 1] = left(1, j - 1, r, x)
                else:
                    V[i, j] = x
        for r, i in enumerate(rows):
            if several:
                V[i, last - 1] = left(1, last - 1, r, current[r, 0])
            V[i, last] = current[r, several]
