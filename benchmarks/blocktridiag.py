"""Block tridiagonal systems: lines of 128 blocks, factored and solved on every device."""

from compactla.bench import cases
from compactla.bench.measure import repeated

from . import common

MANY = 5  # the block size of which there are 4096 lines too


class Lines(common.Benchmark):
    """1024 lines, which a large cache holds if blocks are small, and 4096"""

    params = (common.DEVICES, [1024, 4096], common.SIZES)
    param_names = ("device", "lines", "b")

    def setup(self, device, lines, b):
        if lines > 1024 and b != MANY:
            raise NotImplementedError("takes too long")
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
