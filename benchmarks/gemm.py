"""gemm: batches of the SC17 slides on every device, its kernel in cache, and what a call costs."""

from compactla.bench import cases

from . import common


class Gemm(common.Benchmark):
    """C <- A B + C"""

    make = cases.Gemm

    def time_gemm(self, *parameters):
        self.case.run()

    def track_fraction_of_bound(self, *parameters):
        return self.fraction_of_bound()


class GemmInCache(common.InCache):
    make = cases.Gemm

    def track_fraction_of_peak(self, *parameters):
        return self.fraction_of_peak()


class GemmOverhead(common.Overhead):
    make = cases.Gemm

    def track_overhead(self):
        return self.overhead()
