"""Rotations of the QR algorithm on tridiagonal and bidiagonal matrices: where they are, and columns turned by them."""

from typing import NamedTuple

from compactla.cpu.emit.code import Code
from compactla.cpu.emit.matrices import Elements, held
from compactla.cpu.emit.vectors import Lanes

UNROLLED = 4  # Steps for larger matrices are loops.
ALONG = 3  # eighths of the registers for rows that are turned while rotations are made
SHEARED = 20  # rows from which on three multiply-adds for each make up for what a shear takes
ROWS = 4  # that are turned at a time


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
