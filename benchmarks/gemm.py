"""gemm: batches of the SC17 slides on every device, its kernel in cache, and what a call costs."""

from compactla.bench import cases

from . import common


class Gemm(common.Benchmark):
    """C <- A B + C"""

    params = ([*common.DEVICES, *common.PEERS], common.DTYPES, common.SIZES)
    make = cases.Gemm

    def time_gemm(self, *parameters):
        self.run()

    def track_fraction_of_bound(self, *parameters):
        return self.fraction_of_bound()

    track_fraction_of_bound.params = common.Benchmark.params  # peers have no bound of ours


class GemmInCache(common.InCache):
    make = cases.Gemm

    def track_fraction_of_peak(self, *parameters):
        return self.fraction_of_peak()


class GemmOverhead(common.Overhead):
    make = cases.Gemm

    def track_overhead(self):
        return self.overhead()
