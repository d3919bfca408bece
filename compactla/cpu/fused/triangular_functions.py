"""Functions of upper triangular complex matrices, in lanes: square roots, logarithms and powers.

Logarithms and powers are those of Al-Mohy and Higham: roots are taken until a matrix is close to the identity, in each
lane as many as it needs, then Pade's approximant of degree 7 is accurate. Diagonals, and what is next to them, are
computed on their own ways, without loss of digits.
"""

import math
from collections.abc import Callable, Iterable

from numpy.polynomial.legendre import leggauss

from compactla.cpu.emit.code import Code
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.emit.vectors import Flags, Lanes, Vector
from compactla.cpu.fused.expm import exponential, most, norm, power
from compactla.cpu.kernels.francis import square_root as root
from compactla.cpu.kernels.jacobi import sweep

DEGREE = 7
CLOSE = 0.264  # to the identity, in the norms of powers: for degree 7
ROOTS = 100  # at most
NODES, WEIGHTS = leggauss(DEGREE)  # of Gauss' quadrature, from -1 to 1
EQUAL, FAR = 2, 1
TERMS_OF_LOG, TERMS_OF_ATANH, TERMS_OF_SINH = 12, 28, 15


def triangular_root(code: Code, T: Elements, U: Elements) -> None:
    """U <- the square root of T: not finite where there is none."""
    zero, total = code.zero(T.vector), code.registers(T.vector, 1)
    with code.loop(T.n) as j:
        U[j, j] = root(T[j, j])
        with code.loop(j) as k:
            i = j - 1 - k
            total[0, 0] = T[i, j]
            with code.loop(k) as p:
                total[0, 0] = (-U[i, i + 1 + p]).fma(U[i + 1 + p, j], total[0, 0])
            found = total[0, 0]
            U[i, j] = (found == 0).select(zero, found * (U[i, i] + U[j, j]).reciprocal())


def product(code: Code, A: Elements, B: Elements, C: Elements) -> None:
    """C <- A B, all triangular."""
    total = code.registers(A.vector, 1)
    with code.loop(A.n) as i, code.loop(A.n - i) as k:
        total[0, 0] = code.zero(A.vector)
        with code.loop(k + 1) as p:
            total[0, 0] = A[i, i + p].fma(B[i + p, i + k], total[0, 0])
        C[i, i + k] = total[0, 0]


def fill(code: Code, A: Elements, element: Callable) -> None:
    """A[i, j] <- element(i, j), in the upper triangle."""
    with code.loop(A.n) as i, code.loop(A.n - i) as k:
        A[i, i + k] = element(i, i + k)


def clear(code: Code, A: Elements) -> None:
    with code.loop(A.n) as i, code.loop(A.n) as j:
        A[i, j] = code.zero(A.vector)


def solve(code: Code, scale: Lanes, A: Elements, B: Elements, put: Callable) -> None:
    """``put(i, j, x)`` gets the elements of inv(I + scale A) B."""
    n, one = A.n, scale.constant(1)
    inverses, column, total = code.room(A.vector, n), code.room(A.vector, n), code.registers(A.vector, 1)
    with code.loop(n) as i:
        inverses[i, 0] = (A[i, i] * scale + one).reciprocal()
    with code.loop(n) as j, code.loop(j + 1) as k:
        i = j - k
        total[0, 0] = code.zero(A.vector)
        with code.loop(k) as p:
            total[0, 0] = A[i, i + 1 + p].fma(column[i + 1 + p, 0], total[0, 0])
        column[i, 0] = (B[i, j] - total[0, 0] * scale) * inverses[i, 0]
        put(i, j, column[i, 0])


class Roots:
    """T^(1 / 2^s) - I of a T with each lane's s, while code is emitted; its diagonal has no zero.

    `R` is that matrix, `s` are real numbers, and `small` is the diagonal of R. `principal` are flags of the lanes that
    have no negative real number on the diagonal. Of elements x and y of the diagonal that follow each other, `inverses`
    are 1 / (y - x), `angles` half of log y - log x, and `kinds` one where they are far from each other, two where they
    are equal, else zero.
    """

    def __init__(self, code: Code, T: Elements):
        self.code, self.T, vector = code, T, T.vector
        n = self.n = T.n
        self.reals, self.zero = vector.reals, code.zero(vector)
        self.one = self.zero.constant(1)
        self.R, self.small, self.logs = code.room(vector, n, n), code.room(vector, n), code.room(vector, n)
        registers = code.registers(self.reals, 2)
        registers[0, 0] = code.zero(self.reals)
        self.failed = self._take(registers)
        self.s = registers[0, 0]
        registers[1, 0] = self.s.constant(1)
        with code.loop(n) as i:
            z = T[i, i]
            registers[1, 0] = ((z.real <= 0) & (z.imag == 0)).select(self.s.constant(0), registers[1, 0])
            self.small[i, 0] = self._less_one(z)
        self.principal = registers[1, 0] > 0
        self.p = power(self.s)  # 1 / 2^s
        up = power(-self.s)
        with code.loop(n) as i:
            self.logs[i, 0] = logarithm(self.small[i, 0]) * up
        self.inverses, self.angles, self.kinds = code.room(vector, n), code.room(vector, n), code.room(self.reals, n)
        with code.loop(n - 1) as i:
            self._compare(i)
        wholes, halves = code.room(vector, n), code.room(vector, n)
        with code.loop(n) as i:
            wholes[i, 0] = self.small[i, 0] + self.one
            halves[i, 0] = root(wholes[i, 0])
        self.refine(self.R, self.p, self.small, wholes, halves)

    def _take(self, registers) -> Flags:
        """R <- the root less I; counts roots in `registers`, and returns flags of the lanes that do not get there."""
        code, n = self.code, self.n
        X, P, Q = (code.room(self.T.vector, n, n) for _ in range(3))
        for A in (X, P, Q, self.R):
            clear(code, A)
        fill(code, X, lambda i, j: self.T[i, j])

        def once(turned):
            fill(code, self.R, lambda i, j: X[i, j])
            with code.loop(n) as i:
                self.R[i, i] = self.R[i, i] - self.one
            code.shared(product, self.R, self.R, P)
            code.shared(product, P, self.R, Q)
            far = ~((norm(code, P) <= CLOSE**2) & (norm(code, Q) <= CLOSE**3))
            registers[0, 0] = far.select(registers[0, 0] + registers[0, 0].constant(1), registers[0, 0])
            triangular_root(code, X, P)
            fill(code, X, lambda i, j: far.select(P[i, j], X[i, j]))
            turned(far)

        return sweep(code, self.reals, once, ROOTS)

    def _less_one(self, z: Lanes) -> Lanes:
        """z^(1 / 2^s) - 1, by Al-Mohy, "A more accurate Briggs method for the logarithm", Numer. Algorithms 59."""
        code, s, one = self.code, self.s, self.one
        state = code.registers(z.vector, 2)
        turned = (z.real < 0) & (s > 0)
        state[0, 0], state[1, 0] = turned.select(root(z), z), one
        first, count = state[0, 0] - one, turned.select(s - s.constant(1), s)
        with code.loop(most(code, s)) as t:
            goes = count > code.broadcast(t, s.vector)
            x = root(state[0, 0])
            state[0, 0] = goes.select(x, state[0, 0])
            state[1, 0] = goes.select(state[1, 0] * (x + one), state[1, 0])
        return first * state[1, 0].reciprocal()

    def refine(self, U: Elements, p: Lanes, values: Elements, wholes: Elements, halves: Elements) -> None:
        """On the diagonal of U, and next to it, what T^p has there, in `principal` lanes.

        `values` are the diagonal of U, `wholes` that of T^p, which is the same or 1 more, and `halves` its roots.
        """
        given = self.code.room(self.reals, 2)
        given[0, 0], given[1, 0] = p, self.principal.select(self.p.constant(1), self.p.constant(0))
        others = values, wholes, halves, self.T, self.inverses, self.angles, self.kinds, given
        self.code.shared(refine, U, *others)

    def _compare(self, i):
        """Element i of the diagonal and the next one."""
        x, y = self.T[i, i], self.T[i + 1, i + 1]
        apart, both = y - x, y + x
        equal, far = apart == 0, ~(abs(apart) <= abs(both) * both.real.constant(0.5))
        self.inverses[i, 0] = equal.select(self.one, apart).reciprocal()
        z = (far | equal).select(self.zero, apart * (both == 0).select(self.one, both).reciprocal())
        turn = (self.logs[i + 1, 0] - self.logs[i, 0]).imag
        pi = turn.constant(math.pi)
        turns = (turn > pi).select(pi, (turn <= -pi).select(-pi, turn.constant(0)))
        angle = atanh(z)
        self.angles[i, 0] = angle._new(angle.parts[0], (angle.imag + turns).parts[0])
        self.kinds[i, 0] = equal.select(turn.constant(EQUAL), far.select(turn.constant(FAR), turn.constant(0)))


def refine(
    code: Code, U: Elements, values: Elements, wholes: Elements, halves: Elements, T: Elements, inverses: Elements,
    angles: Elements, kinds: Elements, given: Elements,
) -> None:  # fmt: skip
    """`Roots.refine`: equations 5.5 and 5.6 of Higham and Lin, "A Schur-Pade Algorithm for Fractional Powers".

    `given` are the power, and numbers that are positive in lanes that are changed.
    """
    p, principal = given[0, 0], given[1, 0] > 0
    with code.loop(T.n) as i:
        U[i, i] = principal.select(values[i, 0], U[i, i])
    with code.loop(T.n - 1) as i:
        inverse, kind = inverses[i, 0], kinds[i, 0]
        between = sinh(angles[i, 0] * p) * halves[i, 0] * halves[i + 1, 0]
        between = (between + between) * inverse
        between = (kind == FAR).select((values[i + 1, 0] - values[i, 0]) * inverse, between)
        alike = wholes[i, 0] * p * T[i, i].reciprocal()
        U[i, i + 1] = principal.select(T[i, i + 1] * (kind == EQUAL).select(alike, between), U[i, i + 1])


def logarithm(r: Lanes) -> Lanes:
    """log(1 + r) of small numbers"""
    z = r * (r + r.constant(2)).reciprocal()
    x = atanh(z, TERMS_OF_LOG)
    return x + x


def atanh(z: Lanes, terms: int = TERMS_OF_ATANH) -> Lanes:
    """atanh(z) of |z| <= 1/2, or less for fewer terms"""
    return series(z, [1 / (2 * k + 1) for k in range(terms)])


def sinh(z: Lanes) -> Lanes:
    """sinh(z) of |z| <= 4"""
    return series(z, [1 / math.factorial(2 * k + 1) for k in range(TERMS_OF_SINH)])


def series(z: Lanes, factors: list[float]) -> Lanes:
    """The sum of factors[k] z^(2 k + 1)"""
    square = z * z
    *others, total = (z.constant(x) for x in factors)
    for factor in reversed(others):
        total = total.fma(square, factor)
    return total * z


def log(code: Code, T: Elements, U: Elements) -> Flags:
    """U <- the logarithm of T, whose diagonal has no zero; returns flags of lanes where it is not found."""
    roots = Roots(code, T)
    clear(code, U)
    numbers = table(code, T.vector.reals, zip((1 + NODES) / 2, WEIGHTS / 2, strict=True))
    with code.loop(DEGREE) as k:
        scale, weight = numbers[k, 0], numbers[k, 1]

        def add(i, j, x):
            U[i, j] = x.fma(weight, U[i, j])

        solve(code, scale, roots.R, roots.R, add)
    up = power(-roots.s)
    fill(code, U, lambda i, j: U[i, j] * up)
    with code.loop(T.n) as i:
        U[i, i] = roots.principal.select(roots.logs[i, 0], U[i, i])
    with code.loop(T.n - 1) as i:
        angle, kind = roots.angles[i, 0], roots.kinds[i, 0]
        between = (kind == FAR).select(roots.logs[i + 1, 0] - roots.logs[i, 0], angle + angle) * roots.inverses[i, 0]
        between = (kind == EQUAL).select(T[i, i].reciprocal(), between) * T[i, i + 1]
        U[i, i + 1] = roots.principal.select(between, U[i, i + 1])
    return roots.failed


def fraction(code: Code, T: Elements, t: Lanes, U: Elements) -> Flags:
    """U <- T^t for -1 < t < 1, where the diagonal of T has no zero; returns flags of lanes where it is not found."""
    roots = Roots(code, T)
    n, one = T.n, roots.one
    Y = code.room(T.vector, n, n)
    for A in (U, Y):
        clear(code, A)
    negative = code.room(T.vector, n, n)
    fill(code, negative, lambda i, j: -roots.R[i, j])
    last, *others = (factor(k, t) for k in range(2 * DEGREE, 0, -1))
    factors = table(code, t.vector, ([x] for x in others))
    fill(code, U, lambda i, j: negative[i, j] * last)
    with code.loop(factors.m) as k:
        scale = factors[k, 0]

        def put(i, j, x):
            Y[i, j] = x

        solve(code, t.constant(1), U, negative, put)
        fill(code, U, lambda i, j: Y[i, j] * scale)
    with code.loop(n) as i:
        U[i, i] = U[i, i] + one
    both, s = code.room(T.vector, 2 * n), roots.s  # the diagonal, and its roots
    powers, halves = (both.block(k * n, 0, n, 1) for k in range(2))
    count = most(code, s)
    with code.loop(count + 1) as k:
        left = code.broadcast(count - k, s.vector)  # how often this is squared
        goes = left < s
        code.shared(product, U, U, Y)
        fill(code, U, lambda i, j: goes.select(Y[i, j], U[i, j]))
        p = t * power(left)
        with code.loop(n) as i:
            powers[i, 0] = roots.logs[i, 0] * p
            halves[i, 0] = powers[i, 0] * p.constant(0.5)
        with code.loop(2 * n) as i:
            both[i, 0] = exponential(both[i, 0])
        fill(code, Y, lambda i, j: U[i, j])
        roots.refine(Y, p, powers, powers, halves)
        fill(code, U, lambda i, j: (left <= s).select(Y[i, j], U[i, j]))
    return roots.failed


def table(code: Code, vector: Vector, rows: Iterable) -> Elements:
    """A matrix of these numbers, or lanes, for loops of machine code, whose indices are not known."""
    entries = [[x if isinstance(x, Lanes) else code.zero(vector).constant(x) for x in row] for row in rows]
    result = code.room(vector, len(entries), len(entries[0]))
    for i, row in enumerate(entries):
        for j, x in enumerate(row):
            result[i, j] = x
    return result


def factor(k: int, t: Lanes) -> Lanes:
    """The numbers of the continued fraction of (1 - x)^t."""
    if k == 1:
        return -t
    j = k // 2
    return (t.constant(-j) + t if k % 2 == 0 else t.constant(-j) - t) * t.constant(1 / (2 * (2 * j - 1 + 2 * (k % 2))))
