"""The QR algorithm on Hessenberg matrices: LAPACK's lahqr, two shifts at a time for real matrices, one for complex.

Lanes iterate side by side. Each has its own block to work on, of rows `top` to `bottom`, its own shifts, and its own
deflations. All sweep through the rows from the first top to the last bottom; where a lane has nothing to do its
reflections are none, which changes no number but for the signs of zeros. So no sign may depend on that of a zero, and
whoever takes the results makes zeros positive.
"""

from llvmlite import ir
from numba.core import cgutils

from compactla.cpu.emit.code import Code
from compactla.cpu.emit.index import INDEX, Index
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.emit.vectors import Lanes
from compactla.cpu.kernels.householder import reflector
from compactla.cpu.kernels.jacobi import rounding, sweep
from compactla.cpu.kernels.norms import power_below

TRIES = 30  # sweeps for each eigenvalue, as LAPACK has; 2 or 3 are usual
EXCEPTIONAL = 10  # sweeps without a deflation after which other shifts are tried
LEAST = {64: 2.0**-960, 32: 2.0**-98}  # what counts as nothing, also beside one: reflectors have no digits below it
# Where LAPACK takes exceptional shifts from: the eigenvalues of [d + a s, b s; s, d + a s].
A, B = 0.75, -0.4375


class Iteration:
    """The iteration on H while code is emitted, which makes it upper triangular but for blocks of two, if it is real.

    Attributes
    ----------
    H, Z : Elements
        A Hessenberg matrix, and what its transformations are multiplied to from the right, or None.
    whole : bool
        Whether all of H is transformed, or only what its eigenvalues depend on.
    failed : Flags
        Lanes that did not converge.
    """

    def __init__(self, code: Code, H: Elements, Z: Elements | None, whole: bool):
        self.code, self.H, self.Z, self.whole = code, H, Z, whole
        self.n, self.reals, self.eps = code.unknown(H.n), H.vector.reals, 2 * rounding(H.vector.reals)
        self.zero, self.least = code.zero(self.reals), LEAST[self.reals.real.bitwidth]
        self.pair = not H.vector.is_complex  # how many rows behind the first a block has that is done
        self.lanes = {
            name: code.registers(self.reals, 1)
            for name in ("top", "bottom", "tries", "before", "lower", "first", "second")
        }
        corner = "x", "above", "below", "y", "start"
        self.lanes |= {name: code.registers(H.vector, 1) for name in corner}
        for name in self.lanes:
            self[name] = code.zero(self[name].vector)
        self["bottom"] = code.broadcast(self.n - 1, self.reals)
        self.failed = sweep(code, self.reals, self._once, code.max(self.n, 10) * TRIES)

    def __getitem__(self, name) -> Lanes:
        return self.lanes[name][0, 0]

    def __setitem__(self, name, lanes):
        self.lanes[name][0, 0] = lanes

    def _once(self, turned):
        self._deflate()
        active = self["bottom"] >= 0
        turned(active)
        with self.code.when(active.any()):
            self["tries"] = self["tries"] + self.zero.constant(1)
            shifts = self._shifts()
            self["tries"] = (self["tries"] == 2 * EXCEPTIONAL).select(self.zero, self["tries"])
            begin = extreme(self.code, "fmin", active.select(self["top"], self.zero.constant(2.0**20)))
            self._sweep(begin, self._last(), shifts)

    def _last(self):
        """The last bottom, of all lanes."""
        return extreme(self.code, "fmax", self["bottom"])

    def _deflate(self):
        """Find the block of each lane, past those that are done, and the numbers that shifts are made of."""
        code = self.code
        self["top"], self["before"] = self.zero.constant(-1), self.zero
        last = code.max(self._last(), 0)
        with code.loop(last) as t:
            self._look_at(last - t)
        open_, top, bottom = self["top"] < 0, self["top"], self["bottom"]
        self["bottom"] = (open_ & (bottom <= int(self.pair))).select(self.zero.constant(-1), bottom)
        self["top"] = open_.select(self.zero, top)

    def _look_at(self, k):
        """Row k, from the last bottom upwards: is the number before the diagonal negligible?"""
        H, zero, one, bottom = self.H, self.zero, self.zero.constant(1), self["bottom"]
        i = k - 1
        x, above, below, y = H[i, i], H[i, k], H[k, i], H[k, k]
        place = self.code.broadcast(k, self.reals)
        inside = (self["top"] < 0) & (place <= bottom)
        last = inside & (place == bottom)
        for name, number in ("x", x), ("above", above), ("below", below), ("y", y):
            self[name] = last.select(number, self[name])
        size = below.abs1()
        self["before"] = last.select(zero, self["before"])
        self["lower"] = (inside & (place == bottom - one)).select(size, self["lower"])
        small = inside & self._is_small(x, above, below, y, H[i, self.code.max(i - 1, 0)])
        H[k, i] = small.select(below.constant(0), below)
        done = small & (place >= bottom - one.constant(self.pair))
        self["bottom"] = done.select(place - one, bottom)
        self["tries"] = done.select(zero, self["tries"])
        self["top"] = (small & ~done).select(place, self["top"])
        goes_on = inside & ~small
        for name, number in ("second", self["first"]), ("first", size), ("start", x), ("before", size):
            self[name] = goes_on.select(number, self[name])

    def _is_small(self, x, above, below, y, former):
        """Whether `below` counts as nothing beside x and y (Ahues and Tisseur, 1997)."""
        eps, least, size = self.zero.constant(self.eps), self.zero.constant(self.least), below.abs1()
        near = x.abs1() + y.abs1()
        near = (near == 0).select(former.abs1() + self["before"], near)
        other, difference, own = above.abs1(), (x - y).abs1(), y.abs1()
        larger, smaller = size.maximum(other), size.minimum(other)
        far, close = own.maximum(difference), own.minimum(difference)
        around = far + larger
        bound = (eps * far * close).maximum(around * (eps * least))
        return (size <= least.maximum(around * least)) | ((size <= eps * near) & (smaller * larger <= bound))

    def _shifts(self):
        """What the first reflection of a sweep is made of: of two shifts the real part and the modulus of the imaginary
        part, if the matrix is real, else of one the shift itself.
        """
        x, above, below, y, tries = (self[name] for name in ("x", "above", "below", "y", "tries"))
        late = tries == 2 * EXCEPTIONAL
        odd = late | (tries == EXCEPTIONAL)
        if not self.pair:
            size = late.select(below.abs1(), self["first"]) * self.zero.constant(A)
            return (odd.select(late.select(y, self["start"]) + size, wilkinson(x, above, below, y)),)
        size = late.select(below.abs1() + self["lower"], self["first"] + self["second"])
        diagonal = size.fma(size.constant(A), late.select(y, self["start"]))
        exceptional = diagonal, size * size.constant(B), size, diagonal
        x, above, below, y = (odd.select(a, b) for a, b in zip(exceptional, (x, above, below, y), strict=True))
        half = x.constant(0.5)
        middle, difference = (x + y) * half, (x - y) * half
        square = difference.fma(difference, above * below)  # of the distance from the middle
        root, real = abs(square).sqrt(), square > 0
        nearer = (abs(middle + root - y) <= abs(middle - root - y)).select(middle + root, middle - root)
        return real.select(nearer, middle), real.select(self.zero, root)

    def _first_column(self, k, last, longer, shifts):
        """A multiple of the first column of the product of H less the shifts, from row k on."""
        H, following = self.H, k + 1
        if not self.pair:
            return H[k, k] - shifts[0], H[following, k]
        x, y, below = H[k, k], H[following, following], H[following, k]
        re, im = shifts
        difference = x - re
        scale = (abs(difference) + abs(im) + abs(below)).reciprocal(many=True)
        below, size = below * scale, (difference * scale).fma(difference, (im * scale) * im)
        lower = longer.select(H[last, following], self.zero)
        return below.fma(H[k, following], size), below * (difference + (y - re)), below * lower

    def _sweep(self, begin, end, shifts):
        """A step of the QR algorithm on the block of each lane, all of which are in rows `begin` to `end`."""
        code, H, zero, none = self.code, self.H, self.zero, self.code.zero(self.H.vector)
        size = 2 + self.pair
        found, column = code.registers(H.vector, size), code.room(H.vector, size - 1, 1)
        with code.loop(end - begin) as t:
            k = begin + t
            place, before = code.broadcast(k, self.reals), code.max(k - 1, 0)
            # Rows of the reflection. Where there is no third one it is the second, and what is written there first.
            rows = [k, k + 1, code.min(k + 2, self.n - 1)][:size]
            active, longer = (
                (place >= self["top"]) & (place < self["bottom"]),
                place < self["bottom"] - zero.constant(1),
            )
            begins = place == self["top"]
            goes_on = active & ~begins
            former = [H[i, before] for i in rows]
            for r, x in enumerate(former):
                found[r, 0] = x
            with code.when((active & begins).any()):
                for r, x in enumerate(self._first_column(k, rows[-1], longer, shifts)):
                    found[r, 0] = begins.select(x, found[r, 0])
            regular = none.constant(1)
            alpha = active.select(found[0, 0], regular) + none
            column[0, 0] = active.select(found[1, 0], regular)
            if self.pair:
                column[1, 0] = (active & longer).select(found[2, 0], none)
            beta, tau = reflector(code, alpha, column)
            tau = active.select(tau, none)
            others = [column[r, 0] for r in range(size - 1)]
            for r in reversed(range(size)):
                flags = goes_on & longer if r == 2 else goes_on
                H[rows[r], before] = flags.select(none if r else none + beta, former[r])
            first, last = (0, self.n) if self.whole else (begin, end + 1)
            reflect_columns(code, H.H, k, last, rows, others, tau)
            reflect_columns(code, H, first, code.min(k + 4, last), rows, others, tau)
            if self.Z:
                reflect_columns(code, self.Z, 0, self.Z.m, rows, others, tau)


def reflect_columns(code, M, first, last, columns, v, tau):
    """M <- M (I - tau [1; v] [1; v]^H) in rows `first` to `last`, for few columns."""
    with code.loop(last - first) as t:
        i = first + t
        x = [M[i, j] for j in columns]
        w = x[0]
        for y, factor in zip(x[1:], v, strict=True):
            w = y.fma(factor, w)
        w = -(w * tau)
        for j, y, factor in reversed(list(zip(columns[1:], x[1:], v, strict=True))):
            M[i, j] = w.fma(factor.conjugate(), y)
        M[i, columns[0]] = x[0] + w


def extreme(code: Code, name: str, x: Lanes) -> Index:
    """The smallest, "fmin", or largest, "fmax", of small integers as real numbers in all lanes, none of them NaN."""
    b, part = code.builder, x.vector.part
    suffix = f"v{part.count}f{x.vector.real.bitwidth}"
    function = cgutils.get_or_insert_function(
        b.module, ir.FunctionType(part.element, [part]), f"llvm.vector.reduce.{name}.{suffix}"
    )
    return Index(b, b.fptosi(b.call(function, x.parts, fastmath=("nnan",)), INDEX))


def wilkinson(x, above, below, y):
    """The eigenvalue of [x, above; below, y] that is nearer to y."""
    product, half = above * below, (x - y) * x.constant(0.5).real
    root = square_root(half.fma(half, product))
    root = (half.real * root.real + half.imag * root.imag < 0).select(-root, root)
    total = half + root
    return (total == 0).select(y, y - product * total.reciprocal())


def square_root(z: Lanes) -> Lanes:
    """The square root of complex numbers that is right of the imaginary axis."""
    re, im = z.real, z.imag
    larger = ((abs(z) + abs(re)) * re.constant(0.5)).sqrt()
    smaller = (larger == 0).select(re.constant(0), abs(im) * re.constant(0.5) / larger)
    right = re >= 0
    first, second = right.select(larger, smaller), right.select(smaller, larger)
    return z._new(first.parts[0], (im < 0).select(-second, second).parts[0])


def standardise(code: Code, T: Elements, Z: Elements | None, whole: bool) -> None:
    """Make the diagonal elements of all blocks of two alike, or make them triangular where eigenvalues are real."""
    n = code.unknown(T.n)
    with code.loop(n - 1) as k:
        following = k + 1
        is_block = T[following, k] != 0
        with code.when(is_block.any()):
            numbers = [T[i, j] for i in (k, following) for j in (k, following)]
            *standard, cosine, sine = standard_form(*numbers)
            one, zero = cosine.constant(1), cosine.constant(0)
            cosine, sine = is_block.select(cosine, one), is_block.select(sine, zero)
            if whole:
                rotate_columns(code, T.T, k + 2, n, k, cosine, sine)
                rotate_columns(code, T, 0, k, k, cosine, sine)
            if Z:
                rotate_columns(code, Z, 0, Z.m, k, cosine, sine)
            places = [(i, j) for i in (k, following) for j in (k, following)]
            for place, x, former in zip(places, standard, numbers, strict=True):
                T[place] = is_block.select(x, former)


def rotate_columns(code, M, first, last, k, cosine, sine):
    """Turn columns k and k + 1 of M, in rows `first` to `last`."""
    following = k + 1
    with code.loop(last - first) as t:
        i = first + t
        x, y = M[i, k], M[i, following]
        M[i, k], M[i, following] = sine.fma(y, cosine * x), (-sine).fma(x, cosine * y)


def standard_form(a, b, c, d):
    """LAPACK's lanv2: a, b, c, d of the standard form of [a, b; c, d], and cosine and sine of the rotation.

    If b c < 0 the diagonal elements are equal then, else c is zero. Where c is zero before, results mean nothing.
    """
    zero, one, half = (a.constant(x) for x in (0, 1, 0.5))
    p = (a - d) * half
    scale = power_below(abs(p).maximum(abs(b)).maximum(abs(c)))
    p, b, c = (x / scale for x in (p, b, c))
    # Real eigenvalues, unless they are almost equal.
    square = p.fma(p, b * c)
    apart = square >= 8 * rounding(a.vector)
    root = p + signed(square.sqrt(), p)
    inverse = root.fma(root, c * c).rsqrt()
    real = d + root * scale, (b - c) * scale, zero, d - b * c / root * scale, root * inverse, c * inverse
    # All others: make diagonal elements equal.
    total, difference = b + c, p + p
    length = total.fma(total, difference * difference).sqrt()
    equal = (length == 0) | (difference == 0)
    cosine = ((one + abs(total) / length) * half).sqrt()
    sine = -signed(p / (length * cosine), total)
    cosine, sine = equal.select(one, cosine), equal.select(zero, sine)
    first, second = b.fma(sine, p * cosine), b.fma(cosine, -(p * sine))
    third, fourth = c.fma(cosine, -(p * sine)), -c.fma(sine, p * cosine)
    b, c = fourth.fma(sine, second * cosine), third.fma(cosine, -(first * sine))
    middle = (a + d) * half
    # Of these, real ones, and a matrix that is lower triangular.
    same = ((b < 0) & (c < 0)) | ((b > 0) & (c > 0))
    roots = abs(b).sqrt(), abs(c).sqrt()
    size, inverse = signed(roots[0] * roots[1], c) * scale, abs(b + c).rsqrt()
    inner = roots[0] * inverse, roots[1] * inverse
    turned = (-sine).fma(inner[1], cosine * inner[0]), sine.fma(inner[0], cosine * inner[1])
    near = middle + size, (b - c) * scale, zero, middle - size, *turned
    lower = middle, -c * scale, zero, middle, -sine, cosine
    found = middle, b * scale, c * scale, middle, cosine, sine
    for flags, case in (same, near), ((b == 0) & (c != 0), lower), (apart, real):
        found = [flags.select(x, y) for x, y in zip(case, found, strict=True)]
    return found


def signed(size, like):
    """Numbers that are not negative with the signs of others, of which all zeros are positive."""
    return (like < 0).select(-size, size)
