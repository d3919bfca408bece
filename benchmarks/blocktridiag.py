"""Block tridiagonal systems: lines of 128 blocks, factored and solved on every device."""

from compactla.bench import cases

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
