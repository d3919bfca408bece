"""solve_mixed: factors in single precision, and solutions refined in double, as LAPACK's dsgesv and zcgesv."""

from numba import types

from compactla.cpu.emit.code import Code
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.emit.vectors import Flags, Vector
from compactla.cpu.kernels.gemm import gemm
from compactla.cpu.kernels.gesvd import copy
from compactla.cpu.kernels.getrf import getrf
from compactla.cpu.kernels.getrs import getrs
from compactla.cpu.kernels.jacobi import sweep
from compactla.cpu.kernels.laswp import integers
from compactla.cpu.kernels.norms import squared
from compactla.cpu.kernels.schur import unknown
from compactla.cpu.linalg.stacks import UNSURE

STEPS = 30  # of refinement
EPS = 2.0**-53
WRITTEN_OUT = 8  # rows up to which code is for that size alone
SLOW = 0.5  # what a step has to leave of a residual at most: else it has stalled


def solve_mixed(code, vector, A, B, X, status):
    """X <- inv(A) B; NumPy computes matrices of which a residual is not as small as after a solve in double"""
    n, r = A.m, B.n
    single = Vector(types.complex64 if vector.is_complex else types.float32, vector.lanes)
    W, F, pivots = code.room(vector, n, n), code.room(single, n, n), code.room(integers(single), n, 1)
    b, x, rest, c = (code.room(kind, n, r) for kind in (vector, vector, vector, single))
    A.read(W)
    B.read(b)
    result = x
    if not isinstance(n, int) or n > WRITTEN_OUT:
        W, F, pivots, b, x, rest, c = map(unknown, (W, F, pivots, b, x, rest, c))
    copy(code, W, F, lambda x: x.astype(single.dtype))
    getrf.emit(code, F, pivots, status.info)
    unsure = Refinement(code, W, b, x, rest).run(lambda: correct(code, F, pivots, rest, c))
    X.write(result)
    status.enter(UNSURE, unsure | status.flags)


def correct(code: Code, F: Elements, pivots: Elements, rest: Elements, c: Elements):
    """rest <- what is to be added to x"""
    copy(code, rest, c, lambda x: x.astype(c.vector.dtype))
    getrs.emit(code, F, pivots, c)
    copy(code, c, rest, lambda x: x.astype(rest.vector.dtype))


class Refinement:
    """Steps of x until ||b - A x|| <= ||x|| ||A|| eps sqrt(n) for each column, in the largest norm."""

    def __init__(self, code: Code, A: Elements, b: Elements, x: Elements, rest: Elements):
        self.code, self.A, self.b, self.x, self.rest, reals = code, A, b, x, rest, A.vector.reals
        self.former, self.worst, self.working = (code.registers(reals, 1) for _ in range(3))
        self.norms = code.registers(reals, 2)
        self.former[0, 0] = code.zero(reals).constant(float("inf"))
        self.working[0, 0] = code.zero(reals).constant(1)
        self.norms[0, 0] = self.norms[1, 0] = code.zero(reals)
        for i in code.each(A.m):
            self.norms[1, 0] = code.zero(reals)
            for j in code.each(A.n):
                self.norms[1, 0] = self.norms[1, 0] + squared(A[i, j]).sqrt()
            self.norms[0, 0] = self.norms[0, 0].maximum(self.norms[1, 0])
        root = code.broadcast(A.m, reals).sqrt()
        self.limit = self.norms[0, 0] * root * root.constant(EPS)

    def run(self, correct) -> Flags:
        """Refine x; returns flags of the lanes that do not get there. ``correct()`` emits what solves for the rest."""
        code, unsure = self.code, self.code.registers(self.former.vector, 1)
        one, zero = self.limit.constant(1), self.limit.constant(0)
        unsure[0, 0] = zero

        zeros = code.zero(self.x.vector)
        copy(code, self.b, self.x, lambda x: zeros)
        copy(code, self.b, self.rest)

        def once(turned):
            working = self.working[0, 0] > 0
            correct()
            for i in code.each(self.x.m):
                for j in code.each(self.x.n):
                    self.x[i, j] = working.select(self.x[i, j] + self.rest[i, j], self.x[i, j])
            self._residual()
            worst = self.worst[0, 0]
            far = working & ~(worst <= 1)
            stalled = far & ~(worst < self.former[0, 0] * one.constant(SLOW))
            unsure[0, 0] = stalled.select(one, unsure[0, 0])
            goes = far & ~stalled
            self.former[0, 0], self.working[0, 0] = worst, goes.select(one, zero)
            turned(goes)

        more = sweep(code, self.former.vector, once, STEPS + 1)
        return more | (unsure[0, 0] > 0)

    def _residual(self):
        """rest <- b - A x, and how much larger than it may be the worst of its columns is."""
        code, x, rest = self.code, self.x, self.rest
        copy(code, self.b, rest)
        gemm.emit(code, self.A, x, rest, -1, 1)
        self.worst[0, 0] = code.zero(self.limit.vector)
        for j in code.each(x.n):
            for k in range(2):
                self.norms[k, 0] = code.zero(self.limit.vector)
            for i in code.each(x.m):
                for k, X in enumerate((x, rest)):
                    self.norms[k, 0] = self.norms[k, 0].maximum(X[i, j].abs1())
            bound = self.norms[0, 0] * self.limit
            excess = (self.norms[1, 0] <= bound).select(bound.constant(0), self.norms[1, 0] / bound)
            self.worst[0, 0] = self.worst[0, 0].maximum(excess)
