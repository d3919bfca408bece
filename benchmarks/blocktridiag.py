"""Block tridiagonal systems: lines of 128 blocks, factored and solved on every device."""

from compactla.bench import cases
from compactla.bench.measure import repeated

from . import common

# Lines and block sizes: a large cache holds 1024 lines of small blocks; 4096 of all sizes would take too long.
SIZES = [*((1024, b) for b in common.SIZES), (4096, 5)]


class Lines(common.Benchmark):
    params = (common.DEVICES, SIZES)
    param_names = ("device", "lines, b")

    def setup(self, device, size):
        lines, b = size
        self.open(device, "float64", b, lines, K=128)


class Factor(Lines):
    """LU of the lines, in place"""

    make = cases.Factor

    def time_factor(self, *parameters):
        self.case.run()

    def track_fraction_of_bound(self, *parameters):
        return self.fraction_of_bound()


class Solve(Lines):
    """One right-hand side, on the device"""

    make = cases.Solve

    def time_solve(self, *parameters):
        self.case.run()

    def track_fraction_of_bound(self, *parameters):
        return self.fraction_of_bound()


class OwnFactor:
    """A user's loop over the pack-level routines, against BlockTridiag.factor, both in one thread"""

    version = "1"
    timeout = 300
    params = common.SIZES
    param_names = ("b",)

    def setup(self, b):
        self.own, self.ours = (make(b, 1024, threads=1) for make in (cases.OwnFactor, cases.Factor))
        assert self.own.residual() < cases.PASS

    def track_time_over_factor(self, b):
        return repeated(self.own.run) / repeated(self.ours.run)
