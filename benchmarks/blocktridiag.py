"""Block tridiagonal systems: lines of 128 blocks, factored and solved on every device and in every library."""

import functools

import numba
import numpy as np

import compactla as cla
from compactla.bench import lines
from compactla.cpu import gemm, getrfnp, matrix, trsm
from compactla.oracle import THRESHOLD

from . import common

DEVICES = common.OURS + common.NUMPY + common.MKL + ["cupy"]
BLOCKS = [3, 5, 9, 10, 15]
LINES = 1024  # on a CPU: 4096 of large blocks would take too long


class Lines:
    """Enough lines for a device, in double precision; the sizes are those of blocks."""

    params = (DEVICES, ["float64"], BLOCKS)
    param_names = ("device", "dtype", "b")

    def open(self, device, dtype, b):
        queue = common.open_queue(device, dtype)
        self.context = queue and queue.context
        nm = (16384 if b <= 5 else 4096) if device in common.GPUS else LINES
        return self.make(b, nm, dtype, queue, common.threads_of(device), K=128)


class Factor(Lines, common.Latency):
    """LU of the lines, in place"""

    make = lines.Factor


class FactorSpeed(Lines, common.Speed):
    """LU of the lines, in place"""

    make = lines.Factor


class Solve(Lines, common.Latency):
    """A solve with one right-hand side, on the device"""

    make = lines.Solve


class SolveSpeed(Lines, common.Speed):
    """A solve with one right-hand side, on the device"""

    make = lines.Solve


class WrittenOut(lines.Factor):
    """LU of the lines in one thread, as users write it in a loop of their own: `written_out`"""

    def call(self):
        return self.factor_with(self.T)

    def factor_with(self, T):
        factor, npack, V = written_out(T.vlen, self.n), -(-self.nm // T.vlen), T.vlen
        info = np.zeros((npack, V), np.int64)
        factor(*(a.reshape(npack, -1, *a.shape[1:]) for a in (T.lower, T.diag, T.upper)), info)
        return info.reshape(-1)[: self.nm]

    def factored(self):
        T = cla.BlockTridiag(self.lower, self.diag, self.upper)
        T.info = self.factor_with(T)
        return T


@functools.cache
def written_out(V, b):
    """A user's block tridiagonal LU, for arrays (npack, K, b, b, V), or (npack, K, b, b, 2, V) of complex numbers."""

    @numba.njit(nogil=True)
    def factor(lower, diag, upper, info):
        last = diag.shape[1] - 1
        for p in range(diag.shape[0]):
            for k in range(last + 1):
                D, j = matrix(diag[p, k], V, b, b), min(k, last - 1)
                if k > 0:
                    E, F = matrix(lower[p, k - 1], V, b, b), matrix(upper[p, k - 1], V, b, b)
                    after = matrix(diag[p, min(k + 1, last)], V, b, b), matrix(lower[p, j], V, b, b)
                    gemm(E, F, D, -1, 1, (*after, matrix(upper[p, j], V, b, b)))
                getrfnp(D, info[p], k * b, "R")
                if k < last:
                    F = matrix(upper[p, k], V, b, b)
                    trsm(D, F, "L", "L", "N", "U")
                    trsm(D, F, "L", "U", "N", "R")

    return factor


class OwnFactor(common.Benchmark):
    """A user's loop over the pack-level routines, against BlockTridiag.factor, both in one thread"""

    params = BLOCKS
    param_names = ("b",)

    def setup(self, b):
        self.own, self.ours = (make(b, LINES, threads=1) for make in (WrittenOut, lines.Factor))
        assert self.own.residual() < THRESHOLD

    def track_time_over_factor(self, b):
        return common.rounded(common.repeated(self.own.run) / common.repeated(self.ours.run))
