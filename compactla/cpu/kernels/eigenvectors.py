"""Eigenvalues and eigenvectors of triangular matrices, or of real ones with blocks of two; LAPACK's trevc.

The eigenvector of place j is found by substitution, from its last number upwards, in complex numbers. All lanes go up
side by side; where two rows are a block of a lane their two numbers are found at the lower one. Numbers that would
become too large are not: the vector is made smaller.
"""

from compactla.cpu.emit.code import Code
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.emit.vectors import Lanes
from compactla.cpu.kernels.jacobi import rounding
from compactla.cpu.kernels.norms import larger, scaling, squared

LARGE = {64: 2.0**200, 32: 2.0**40}  # as large as numbers of a vector become
ROWS = 4  # of a product that are computed at a time


def eigenvalues(code: Code, T: Elements, w: Elements) -> None:
    """w <- eigenvalues of T in standard form, complex; of a pair that with the positive imaginary part comes first."""
    n = code.unknown(T.n)
    with code.loop(n) as i:
        w[i, 0] = T[i, i]
    if not T.vector.is_complex:
        with code.loop(n - 1) as i:
            following = i + 1
            below = T[following, i]
            size = abs(T[i, following]).sqrt() * abs(below).sqrt()
            for place, imag in (i, size), (following, -size):
                x = w[place, 0]
                w[place, 0] = (below != 0).select(x.real.with_imag(imag), x)


def eigenvectors(code: Code, T: Elements, w: Elements, Z: Elements, V: Elements) -> None:
    """V <- Z X, of length 1, for the eigenvectors X of T: complex; the largest number of one for a complex eigenvalue
    is real.
    """
    substitution = Substitution(code, T, w)
    with code.loop(substitution.n) as j:
        substitution.solve(j)
        last = code.min(j + 2, substitution.n)
        multiply(code, Z, substitution.x, last, V.block(0, j, V.m, 1))
        normalise(code, V.block(0, j, V.m, 1), w[j, 0], T.vector.is_complex)


class Substitution:
    """Eigenvectors `x` of T, one after the other."""

    def __init__(self, code: Code, T: Elements, w: Elements):
        self.code, self.T, self.w, self.n = code, T, w, code.unknown(T.n)
        self.vector, self.reals = w.vector, w.vector.reals
        self.x = code.room(self.vector, T.n)
        self.kept = code.registers(self.vector, 1)  # what was found for the row above, of a block
        self.kept[0, 0] = code.zero(self.vector)
        self.blocks = not T.vector.is_complex
        self.large = LARGE[self.reals.real.bitwidth]
        self.least = 2.0 ** (-960 if self.reals.real.bitwidth == 64 else -98)

    def solve(self, j):
        """x <- the eigenvector of place j, with zeros behind it."""
        code, T, x, w = self.code, self.T, self.x, self.w[j, 0]
        zero, one = code.zero(self.vector), code.zero(self.vector).constant(1)
        end = code.min(j + 2, self.n)
        with code.loop(end) as i:
            x[i, 0] = zero
        tiny = (w.abs1() * w.real.constant(2 * rounding(self.reals))).maximum(w.real.constant(self.least))
        upper = lower = one
        starts = code.registers(self.vector, 2)  # numbers at j, and behind it or before it
        starts[0, 0], starts[1, 0] = one, zero
        first, second = w.imag > 0, w.imag < 0
        if self.blocks:
            for flags, p in (first, j), (second, code.max(j - 1, 0)):
                with code.when(flags.any()):
                    q = code.min(p + 1, self.n - 1)
                    above, below = T[p, q], T[q, p]
                    wide = abs(above) >= abs(below)
                    ratio = w.imag / wide.select(above, below)
                    turned = ratio.constant(0).with_imag(ratio)  # i times the ratio
                    upper, lower = wide.select(one, turned), wide.select(turned, one)
                    own, other = (upper, lower) if p is j else (lower, upper)
                    starts[0, 0] = flags.select(own, starts[0, 0])
                    starts[1, 0] = flags.select(other, starts[1, 0])
        with code.loop(end) as t:
            i = end - 1 - t
            before = code.max(i - 1, 0)
            place, own = code.broadcast(i, self.reals), code.broadcast(j, self.reals)
            own_row, behind = place == own, place > own
            given = own_row | behind
            number = own_row.select(starts[0, 0], zero)
            if self.blocks:
                beside = (behind & first) | ((place == own - own.constant(1)) & second)
                given, number = given | beside, beside.select(starts[1, 0], number)
                imag = self.w[i, 0].imag
                top, bottom = (imag > 0) & ~given, (imag < 0) & ~given
            x[i, 0] = given.select(number, x[i, 0])
            with code.when((~given).any()):
                divides = ~(given | top | bottom) if self.blocks else ~given
                found, _ = self._divided(x[i, 0], T[i, i] - w, divides, tiny)
                x[i, 0] = divides.select(found, top.select(self.kept[0, 0], x[i, 0]) if self.blocks else x[i, 0])
                if self.blocks:
                    with code.when(bottom.any()):
                        self._solve_block(i, before, w, bottom, tiny)
            value = -x[i, 0]
            with code.loop(i) as r:
                x[r, 0] = value.fma(T[r, i], x[r, 0])

    def _divided(self, number, divisor, flags, tiny):
        """number / divisor, and what the vector was multiplied with lest that is too large, in lanes of `flags`."""
        code, x, one = self.code, self.x, tiny.constant(1)
        divisor = (divisor.abs1() < tiny).select(divisor.constant(0) + tiny, divisor)
        found, factor = code.registers(self.vector, 1), code.registers(self.reals, 1)
        found[0, 0], factor[0, 0] = number, one
        limit = divisor.abs1() * one.constant(self.large)
        over = flags & (number.abs1() > limit)
        with code.when(over.any(), likely=False):
            inverse = over.select(number.abs1(), one).reciprocal()
            factor[0, 0] = over.select(limit * inverse, one)
            found[0, 0] = over.select(number * inverse * limit, number)
            with code.loop(self.n) as r:
                x[r, 0] = x[r, 0] * factor[0, 0]
        return found[0, 0] * divisor.reciprocal(many=True), factor[0, 0]

    def _solve_block(self, i, before, w, flags, tiny):
        """Rows `before` and i, which are a block [d, b; c, d] less w, with interchanges."""
        T, x, zero = self.T, self.x, self.code.zero(self.vector)
        d, b, c = T[i, i] - w, zero + T[before, i], zero + T[i, before]
        keeps = d.abs1() >= c.abs1()
        pivot, right, below, corner = (keeps.select(y, z) for y, z in ((d, c), (b, d), (c, d), (d, b)))
        first, second = x[before, 0], x[i, 0]
        first, second = keeps.select(first, second), keeps.select(second, first)
        multiple = -(below * pivot.reciprocal())
        lower, factor = self._divided(multiple.fma(first, second), multiple.fma(right, corner), flags, tiny)
        upper, again = self._divided((-right).fma(lower, first * factor), pivot, flags, tiny)
        x[i, 0] = flags.select(lower * again, x[i, 0])
        self.kept[0, 0] = flags.select(upper, self.kept[0, 0])


def multiply(code: Code, Z: Elements, x: Elements, count, v: Elements) -> None:
    """v <- Z x, of the first `count` columns and numbers."""
    for row, height in code.tiles(code.unknown(Z.m), ROWS):
        sums = code.registers(x.vector, height)
        for r in range(height):
            sums[r, 0] = code.zero(x.vector)
        with code.loop(count) as k:
            number = x[k, 0]
            for r in range(height):
                sums[r, 0] = number.fma(Z[row + r, k], sums[r, 0])
        for r in range(height):
            v[row + r, 0] = sums[r, 0]


def normalise(code: Code, v: Elements, w: Lanes, turns) -> None:
    """Make v of length 1, and its largest number real, if it `turns` or w is complex."""
    m, reals = code.unknown(v.m), v.vector.reals
    size, total, place = (code.registers(reals, 1) for _ in range(3))
    number, zero = code.registers(v.vector, 1), code.zero(v.vector)
    for register in size, total, place:
        register[0, 0] = zero.real
    with code.loop(m) as i:
        size[0, 0] = larger(size[0, 0], v[i, 0])
    scale = scaling(size[0, 0], 0)
    size[0, 0], number[0, 0] = zero.real, zero
    with code.loop(m) as i:
        x = v[i, 0] = scale.scaled(v[i, 0])
        square = squared(x)
        largest = square > size[0, 0]
        for register, value in (size, square), (number, x), (place, code.broadcast(i, reals)):
            register[0, 0] = largest.select(value, register[0, 0])
        total[0, 0] = total[0, 0] + square
    inverse = total[0, 0].rsqrt()
    factor = number[0, 0].conjugate() * (size[0, 0].rsqrt() * inverse)
    if not turns:
        factor = (w.imag != 0).select(factor, zero + inverse)
    with code.loop(m) as i:
        x = v[i, 0] * factor
        largest = place[0, 0] == code.broadcast(i, reals)
        v[i, 0] = largest.select(zero + x.real, x) + zero
