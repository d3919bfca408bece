"""Block tridiagonal systems: lines of 128 blocks, factored and solved on every device and in every library."""

from compactla.bench import cases
from compactla.bench.timing import repeated
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
        lines = (16384 if b <= 5 else 4096) if device in common.GPUS else LINES
        return self.make(b, lines, dtype, queue, common.threads_of(device), K=128)


class Factor(Lines, common.Latency):
    """LU of the lines, in place"""

    make = cases.Factor


class FactorSpeed(Lines, common.Speed):
    """LU of the lines, in place"""

    make = cases.Factor


class Solve(Lines, common.Latency):
    """A solve with one right-hand side, on the device"""

    make = cases.Solve


class SolveSpeed(Lines, common.Speed):
    """A solve with one right-hand side, on the device"""

    make = cases.Solve


class OwnFactor(common.Benchmark):
    """A user's loop over the pack-level routines, against BlockTridiag.factor, both in one thread"""

    params = BLOCKS
    param_names = ("b",)

    def setup(self, b):
        from compactla.bench import kernels

        self.own, self.ours = (make(b, LINES, threads=1) for make in (kernels.OwnFactor, cases.Factor))
        assert self.own.residual() < THRESHOLD

    def track_time_over_factor(self, b):
        return common.rounded(repeated(self.own.run) / repeated(self.ours.run))
