"""nnls: Lawson's and Hanson's active sets, one for each lane.

[A, b] becomes triangular first, by the Q of A = Q R, so that m is of no account. Least squares for the columns of a set
take reflections of R that differ from lane to lane in the rows that take part, not in where they put the results: row j
has the diagonal of column j, and rows whose columns are in no set have what is left of the right-hand side.
"""

from compactla.cpu.emit.code import Code
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.emit.vectors import Flags, Lanes
from compactla.cpu.fused.lstsq import times
from compactla.cpu.kernels.geqrf import factor
from compactla.cpu.kernels.gesvd import LARGEST, copy, largest_part
from compactla.cpu.kernels.householder import reflect
from compactla.cpu.kernels.jacobi import sweep
from compactla.cpu.kernels.norms import add_squares, quotient, scaling
from compactla.cpu.linalg.stacks import FAILED

FOREVER = 2**62  # rounds: lanes count theirs
DEPENDENT = 50  # roundings of a column that may be left of it where it depends on others of its set


def nnls(code, vector, A, b, maxiter, x, rnorm, status):
    """x <- what makes b - A x smallest of all x without negative numbers, and rnorm <- its norm"""
    m, n = (code.unknown(size) for size in (A.m, A.n))
    W, limit = code.room(vector, m, n + 1), code.room(vector, 1)
    matrix, column = W.block(0, 0, m, n), W.block(0, n, m, 1)
    A.read(matrix)
    b.read(column)
    maxiter.read(limit)
    scales = [scaling(largest_part(code, X), LARGEST[vector.real.bitwidth]) for X in (matrix, column)]
    for X, scale in zip((matrix, column), scales, strict=True):
        copy(code, X, X, scale.scaled)
    factor(code, [(W, code.room(vector, code.min(m, n + 1)))])
    rest = sum_of_squares(code, W.block(n, n, code.min(code.max(m - n, 0), 1), 1))
    found = ActiveSets(code, triangle(code, W))
    failed = found.search(limit[0, 0])
    total = found.residual()
    zero, factors = code.zero(vector), quotient(*scales)
    copy(code, found.x, found.x, lambda x: times(x, factors) + zero)
    limit[0, 0] = scales[1].restored((rest + total).sqrt())
    x.write(found.x)
    rnorm.write(limit)
    status.enter(FAILED, failed | scales[0].unknown | scales[1].unknown)


def sum_of_squares(code: Code, x: Elements) -> Lanes:
    total = code.registers(x.vector, 1)
    total[0, 0] = code.zero(x.vector)
    with code.loop(x.m) as i:
        total[0, 0] = add_squares(x[i, 0], total[0, 0])
    return total[0, 0]


def triangle(code: Code, W: Elements) -> Elements:
    """[R, Q^T b] of n rows, which are zero where W has none; no zero is negative: other lanes would tell."""
    n = W.n - 1
    R = code.room(W.vector, n, W.n)
    zero = code.zero(W.vector)
    with code.loop(n) as i, code.loop(W.n) as j:
        R[i, j] = zero
    with code.loop(code.min(W.m, n)) as i, code.loop(W.n - i) as k:
        R[i, i + k] = W[i, i + k] + zero
    return R


class ActiveSets:
    """The sets of the columns of R that lanes have, and solutions, while code is emitted.

    `inside` has 1 where column j is in the set of a lane, else 0. `gradient` is what x[j] would gain by, or 0 for
    columns that were tried in vain.
    """

    def __init__(self, code: Code, R: Elements):
        self.code, self.n, vector = code, R.m, R.vector
        self.R, self.b = R.block(0, 0, R.m, R.m), R.block(0, R.m, R.m, 1)
        self.T, self.room = code.room(vector, R.m, R.n), code.room(vector, R.m, 1)
        self.x, self.trial, self.inside, self.gradient, self.norms, self.remains, self.inverses = (
            code.room(vector, R.m) for _ in range(7)
        )
        self.zero, self.eps = code.zero(vector), 2.0 ** (-52 if vector.real.bitwidth == 64 else -23)
        self.one = self.zero.constant(1)
        # 1 or 0: whether a lane is at work, whether its set shrinks, and whether it failed; how often it was solved
        # for; the column that is new; and two numbers for loops.
        self.active, self.shrinks, self.failed, self.count, self.new, self.most, self.other = (
            Variable(code, vector) for _ in range(7)
        )
        for variable in self.shrinks, self.failed, self.count:
            variable.set(self.zero)
        self.active.set(self.one)
        with code.loop(self.n) as j:
            self.x[j, 0] = self.inside[j, 0] = self.zero
            self.norms[j, 0] = sum_of_squares(code, R.block(0, j, j + 1, 1)).sqrt()
        self.threshold = (
            sum_of_squares(code, self.b).sqrt() * code.broadcast(self.n, vector) * self.zero.constant(self.eps)
        )
        self._differentiate(self.active.get() > 0)

    def search(self, limit: Lanes) -> Flags:
        """Find x; returns flags of the lanes that would have to solve `limit` times or more, as in SciPy."""

        def once(turned):
            self._grow()
            active = self.active.get() > 0
            self.count.set(self.count.get() + self.one, active)
            stuck = active & ~(self.count.get() < limit)
            self.failed.set(self.one, stuck)
            self.active.set(self.zero, stuck)
            active = active & ~stuck
            with self.code.when(active.any()):
                self._step(active, self._solve())
            turned(self.active.get() > 0)

        sweep(self.code, self.R.vector, once, FOREVER)
        return self.failed.get() > 0

    def _grow(self):
        """Put the column of the largest gradient into the sets that do not shrink; lanes without one are done."""
        code = self.code
        self.most.set(self.zero)
        self.new.set(-self.one)
        with code.loop(self.n) as j:
            gain = self.gradient[j, 0]
            wanted = (self.inside[j, 0] == 0) & (gain > self.most.get()) & (gain > self.norms[j, 0] * self.threshold)
            self.most.set(gain, wanted)
            self.new.set(code.broadcast(j, gain.vector), wanted)
        ready = (self.active.get() > 0) & (self.shrinks.get() == 0)
        self.active.set(self.zero, ready & (self.new.get() < 0))
        self.new.set(-self.one, ~ready)
        with code.loop(self.n) as j:
            self.inside[j, 0] = self._is_new(j).select(self.one, self.inside[j, 0])

    def _is_new(self, j):
        return self.new.get() == self.code.broadcast(j, self.R.vector)

    def _solve(self) -> Flags:
        """trial <- least squares for the columns of the sets; returns flags of lanes where they are dependent."""
        code, T, n = self.code, self.T, self.n
        with code.loop(n) as i:
            with code.loop(n - i) as k:
                T[i, i + k] = self.R[i, i + k]
            T[i, n] = self.b[i, 0]
        dependent = self.other
        dependent.set(self.zero)
        with code.loop(n) as j:
            inside = self.inside[j, 0] > 0
            with code.when(inside.any()):
                # The reflector that makes zeros of what is left in the rows above; v is zero where rows are taken.
                v, top, total = self.room, T[j, j], self.most
                total.set(add_squares(top, self.zero))
                with code.loop(j) as i:
                    x = v[i, 0] = ((self.inside[i, 0] == 0) & inside).select(T[i, j], self.zero)
                    total.set(add_squares(x, total.get()))
                squares = total.get()
                inverse, positive = squares.rsqrt(), top >= 0
                norm, size = squares * inverse, abs(top)
                good = inside & (norm > self.norms[j, 0] * self.zero.constant(DEPENDENT * self.eps))
                dependent.set(self.one, inside & ~good)
                over = good.select((norm + size).reciprocal(many=True), self.zero)
                tau = good.select(size.fma(inverse, self.one), self.zero)
                self.inverses[j, 0] = positive.select(-inverse, inverse)
                with code.loop(j) as i:
                    v[i, 0] = v[i, 0] * positive.select(over, -over)
                right = n - j
                reflect(code, v.block(0, 0, j, 1), tau, T.block(j, j + 1, 1, right), T.block(0, j + 1, j, right))
        with code.loop(n) as k:
            j = n - 1 - k
            rest = code.registers(T.vector, 1)
            rest[0, 0] = T[j, n]
            with code.loop(k) as p:
                rest[0, 0] = (-T[j, j + 1 + p]).fma(self.trial[j + 1 + p, 0], rest[0, 0])
            self.trial[j, 0] = (self.inside[j, 0] > 0).select(rest[0, 0] * self.inverses[j, 0], self.zero)
        return dependent.get() > 0

    def _step(self, active: Flags, dependent: Flags):
        """Go to the trial, or as far as no number is negative; a new column that is of no use leaves its set."""
        code = self.code
        # A new column has to depend on no others, and a number above zero.
        useless = self.other
        useless.set(dependent.select(self.one, self.zero))
        with code.loop(self.n) as j:
            useless.set(self.one, self._is_new(j) & ~(self.trial[j, 0] > 0))
        vain = active & (self.new.get() >= 0) & (useless.get() > 0)
        self.count.set(self.count.get() - self.one, vain)
        with code.loop(self.n) as j:
            out = vain & self._is_new(j)
            for X in self.inside, self.gradient:
                X[j, 0] = out.select(self.zero, X[j, 0])
        goes = active & ~vain
        # How far lanes may go: 1, or to where the first number becomes zero, which leaves.
        step, ratios = self.most, self.room
        step.set(self.one)
        with code.loop(self.n) as j:
            x, trial = self.x[j, 0], self.trial[j, 0]
            blocks = (self.inside[j, 0] > 0) & ~(trial > 0)
            ratio = ratios[j, 0] = blocks.select((x > 0).select(x / (x - trial), self.zero), self.zero.constant(2))
            step.set(ratio, ratio < step.get())
        whole, shrinks = step.get() == 1, self.other
        shrinks.set(self.zero)
        with code.loop(self.n) as j:
            x, trial = self.x[j, 0], self.trial[j, 0]
            there = whole.select(trial, step.get().fma(trial - x, x))
            taken = goes & (self.inside[j, 0] > 0)
            leaves = taken & ((ratios[j, 0] <= step.get()) | ~(there > 0))
            self.x[j, 0] = leaves.select(self.zero, taken.select(there, x))
            self.inside[j, 0] = leaves.select(self.zero, self.inside[j, 0])
            shrinks.set(self.one, leaves)
        self.shrinks.set(shrinks.get(), goes)
        self._differentiate(goes & (shrinks.get() == 0))

    def _differentiate(self, flags: Flags):
        """gradient <- R^T (b - R x)"""
        code = self.code
        with code.when(flags.any()):
            with code.loop(self.n) as i:
                rest = self.most
                rest.set(self.b[i, 0])
                with code.loop(self.n - i) as k:
                    rest.set((-self.R[i, i + k]).fma(self.x[i + k, 0], rest.get()))
                self.remains[i, 0] = flags.select(rest.get(), self.remains[i, 0])
            with code.loop(self.n) as j:
                total = self.most
                total.set(self.zero)
                with code.loop(j + 1) as i:
                    total.set(self.R[i, j].fma(self.remains[i, 0], total.get()))
                self.gradient[j, 0] = flags.select(total.get(), self.gradient[j, 0])

    def residual(self) -> Lanes:
        """|| b - R x ||^2"""
        return sum_of_squares(self.code, self.remains)


class Variable:
    """V numbers, of which some may be set."""

    def __init__(self, code: Code, vector):
        self.register = code.registers(vector, 1)

    def get(self) -> Lanes:
        return self.register[0, 0]

    def set(self, x: Lanes, flags: Flags | None = None):
        self.register[0, 0] = x if flags is None else flags.select(x, self.get())
