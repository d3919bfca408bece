"""nnls: Lawson's and Hanson's active sets, one for each lane.

[A, b] becomes triangular first, by the Q of A = Q R, so that m is of no account. Least squares for the columns of a set
take the modified Gram-Schmidt process on R, with b as one more column: one after the other of the columns in the set is
subtracted from those behind it, in the lanes that have it, and what is left of b is the residual.
"""

import math

from compactla.cpu.emit.code import Code
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.emit.vectors import Flags, Lanes
from compactla.cpu.fused.lstsq import times
from compactla.cpu.kernels.geqrf import factor
from compactla.cpu.kernels.gesvd import LARGEST, copy, largest_part
from compactla.cpu.kernels.jacobi import sweep
from compactla.cpu.kernels.norms import add_squares, quotient, scaling
from compactla.cpu.linalg.stacks import FAILED, SHORT

FOREVER = 2**62  # rounds: lanes count theirs
COLUMNS = 4  # that reflectors are applied to at a time
DEPENDENT = 50  # roundings of a column that may be left of it where it depends on others of its set


def nnls(code, vector, A, b, maxiter, x, rnorm, status):
    """x <- what makes b - A x smallest of all x without negative numbers, and rnorm <- its norm"""
    m, n = code.unknown(A.m), A.n if isinstance(A.n, int) and A.n <= SHORT else code.unknown(A.n)
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
    for i in code.each(x.m):
        total[0, 0] = add_squares(x[i, 0], total[0, 0])
    return total[0, 0]


def triangle(code: Code, W: Elements) -> Elements:
    """[R, Q^T b] of n rows, which are zero where W has none; no zero is negative: other lanes would tell."""
    n = W.n - 1
    R = code.room(W.vector, n, W.n)
    zero = code.zero(W.vector)
    for i in code.each(n):
        for j in code.each(W.n):
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
        self.T, self.U, self.room = (code.room(vector, R.m, n) for n in (R.n + (COLUMNS - 1), R.n + (COLUMNS - 1), 1))
        self.x, self.trial, self.inside, self.gradient, self.norms, self.remains = (
            code.room(vector, R.m) for _ in range(6)
        )
        self.zero, self.eps = code.zero(vector), 2.0 ** (-52 if vector.real.bitwidth == 64 else -23)
        self.one = self.zero.constant(1)
        # 1 or 0: whether a lane is at work, whether it has no x yet, whether its set shrinks, and whether it failed;
        # how often it was solved for; the column that is new; what gradients have to exceed; two numbers for loops.
        self.active, self.starts, self.shrinks, self.failed, self.count, self.new, self.limit, self.most, self.other = (
            Variable(code, vector) for _ in range(9)
        )
        for variable in self.failed, self.count, self.limit:
            variable.set(self.zero)
        self.active.set(self.one)
        for k in range(COLUMNS - 1):
            for i in code.each(self.n):
                self.T[i, R.n + k] = self.zero
        for j in code.each(self.n):
            self.x[j, 0] = self.gradient[j, 0] = self.zero
            self.T[j, self.n] = self.b[j, 0]
            self.norms[j, 0] = sum_of_squares(code, R.block(0, j, j + 1, 1)).sqrt()
        self.rounding = code.broadcast(self.n, vector) * self.zero.constant(self.eps)
        self.threshold = sum_of_squares(code, self.b).sqrt() * self.rounding

    def search(self, limit: Lanes) -> Flags:
        """Find x; returns flags of the lanes that would have to solve `limit` times or more, as in SciPy.

        All columns are in the sets first, and those leave whose numbers are negative: that takes fewer rounds than from
        empty sets on, where SciPy begins. So it is not done if a smaller limit than SciPy's own is given.
        """
        whole = limit >= self.code.broadcast(3 * self.n, limit.vector)
        for variable in self.starts, self.shrinks:
            variable.set(whole.select(self.one, self.zero))
        for j in self.code.each(self.n):
            self.inside[j, 0] = self.starts.get()
        self._differentiate(~whole)

        def once(turned):
            self._grow()
            active = self.active.get() > 0
            self.count.set(self.count.get() + self.one, active)
            stuck = active & ~(self.count.get() < limit)
            self.failed.set(self.one, stuck)
            self.active.set(self.zero, stuck)
            active = active & ~stuck
            with self.code.when(active.any()):
                with self.code.either(((self.count.get() == self.one) & (self.starts.get() > 0)).all()) as (
                    first,
                    others,
                ):
                    with first:  # when all columns are in all sets
                        self._substitute()
                    with others:
                        self._solve()
                self._step(active, self.other.get() > 0)
            turned(self.active.get() > 0)

        sweep(self.code, self.R.vector, once, FOREVER)
        return self.failed.get() > 0

    def _grow(self):
        """Put the column of the largest gradient into the sets that do not shrink; lanes without one are done."""
        code = self.code
        self.most.set(self.zero)
        self.new.set(-self.one)
        for j in code.each(self.n):
            gain = self.gradient[j, 0]
            wanted = (self.inside[j, 0] == 0) & (gain > self.most.get()) & (gain > self.norms[j, 0] * self.limit.get())
            self.most.set(gain, wanted)
            self.new.set(code.broadcast(j, gain.vector), wanted)
        ready = (self.active.get() > 0) & (self.shrinks.get() == 0)
        self.active.set(self.zero, ready & (self.new.get() < 0))
        self.new.set(-self.one, ~ready)
        for j in code.each(self.n):
            self.inside[j, 0] = self._is_new(j).select(self.one, self.inside[j, 0])

    def _is_new(self, j):
        return self.new.get() == self.code.broadcast(j, self.R.vector)

    def _substitute(self):
        """trial <- inv(R) b, with zeros for columns that depend on others; what is left of b goes to T."""
        code, R, T, n = self.code, self.R, self.T, self.n
        self.other.set(self.zero)
        for i in code.each(n):
            T[i, n] = self.b[i, 0]
        for k in code.each(n):
            j = n - 1 - k
            good = abs(R[j, j]) > self.norms[j, 0] * self.zero.constant(DEPENDENT * self.eps)
            x = self.trial[j, 0] = good.select(T[j, n] * R[j, j].reciprocal(many=True), self.zero)
            for i in code.each(j + 1):
                T[i, n] = (-x).fma(R[i, j], T[i, n])

    def _solve(self):
        """trial <- least squares for the columns of the sets, and `other` <- 1 in lanes where these are dependent.

        By the modified Gram-Schmidt process, which is stable with b as one more column.
        """
        code, T, U, n = self.code, self.T, self.U, self.n
        for i in code.each(n):
            for k in code.each(n - i):
                T[i, i + k] = self.R[i, i + k]
            T[i, n] = self.b[i, 0]
        dependent = self.other
        dependent.set(self.zero)
        for j in code.each(n):
            inside = self.inside[j, 0] > 0
            with code.when(inside.any()):
                self._project(j, inside, dependent)
        for k in code.each(n):
            j = n - 1 - k
            x = self.trial[j, 0] = (self.inside[j, 0] > 0).select(U[j, n], self.zero)
            for i in code.each(j):
                U[i, n] = (-x).fma(U[i, j], U[i, n])

    def _project(self, j, inside: Flags, dependent: "Variable"):
        """Subtract from the columns behind j what they have of it: U has its multiples, 0 where j is in no set."""
        code, T, U, total = self.code, self.T, self.U, self.most
        total.set(self.zero)
        for i in code.each(j + 1):
            total.set(add_squares(T[i, j], total.get()))
        least = self.norms[j, 0] * self.zero.constant(DEPENDENT * self.eps)
        good = inside & (total.get() > least * least)
        dependent.set(self.one, inside & ~good)
        inverse = good.select(total.get().reciprocal(many=True), self.zero)
        for columns in self._behind(j):
            sums = code.registers(T.vector, 1, len(columns))
            for q in range(len(columns)):
                sums[0, q] = self.zero
            for i in code.each(j + 1):
                for q, k in enumerate(columns):
                    sums[0, q] = T[i, j].fma(T[i, k], sums[0, q])
            for q, k in enumerate(columns):
                sums[0, q] = U[j, k] = sums[0, q] * inverse
            for i in code.each(j + 1):
                for q, k in enumerate(columns):
                    T[i, k] = (-sums[0, q]).fma(T[i, j], T[i, k])

    def _behind(self, j):
        """The columns of T behind j, some at a time; of an unknown number there are some of zeros, too."""
        if isinstance(self.n, int):
            yield from (range(k, min(k + COLUMNS, self.n + 1)) for k in range(j + 1, self.n + 1, COLUMNS))
            return
        with self.code.loop((self.n - j + (COLUMNS - 1)) // COLUMNS) as t:
            yield [j + 1 + t * COLUMNS + k for k in range(COLUMNS)]

    def _step(self, active: Flags, dependent: Flags):
        """Go to the trial, or as far as no number is negative; a new column that is of no use leaves its set."""
        code = self.code
        # A new column has to depend on no others, and a number above zero.
        useless = self.other
        useless.set(dependent.select(self.one, self.zero))
        for j in code.each(self.n):
            useless.set(self.one, self._is_new(j) & ~(self.trial[j, 0] > 0))
        vain = active & (self.new.get() >= 0) & (useless.get() > 0)
        self.count.set(self.count.get() - self.one, vain)
        for j in code.each(self.n):
            out = vain & self._is_new(j)
            for X in self.inside, self.gradient:
                X[j, 0] = out.select(self.zero, X[j, 0])
        goes = active & ~vain
        # How far lanes may go: 1, or to where the first number becomes zero, which leaves.
        step, ratios = self.most, self.room
        step.set(self.one)
        starts = self.starts.get() > 0  # goes all the way, but loses what is negative there
        for j in code.each(self.n):
            x, trial = self.x[j, 0], self.trial[j, 0]
            blocks = (self.inside[j, 0] > 0) & ~(trial > 0) & ~starts
            ratio = ratios[j, 0] = blocks.select((x > 0).select(x / (x - trial), self.zero), self.zero.constant(2))
            step.set(ratio, ratio < step.get())
        whole, shrinks = step.get() == 1, self.other
        shrinks.set(self.zero)
        for j in code.each(self.n):
            x, trial = self.x[j, 0], self.trial[j, 0]
            there = whole.select(trial, step.get().fma(trial - x, x))
            taken = goes & (self.inside[j, 0] > 0)
            leaves = taken & ((ratios[j, 0] <= step.get()) | ~(there > 0))
            self.x[j, 0] = leaves.select(self.zero, taken.select(there, x))
            self.inside[j, 0] = leaves.select(self.zero, self.inside[j, 0])
            shrinks.set(self.one, leaves)
        self.shrinks.set(shrinks.get(), goes)
        self.starts.set(self.zero, goes & (shrinks.get() == 0))
        self._differentiate(goes & (shrinks.get() == 0))

    def _differentiate(self, flags: Flags):
        """gradient <- R^T (b - R x), where x is what was solved for"""
        code = self.code
        with code.when(flags.any()):
            for i in code.each(self.n):
                self.remains[i, 0] = flags.select(self.T[i, self.n], self.remains[i, 0])
            size = self.residual().sqrt()
            nothing = size.constant(math.inf)  # is wanted where there are but rounding errors left
            self.limit.set((size > self.threshold).select(size * self.rounding, nothing), flags)
            for j in code.each(self.n):
                total = self.most
                total.set(self.zero)
                for i in code.each(j + 1):
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
