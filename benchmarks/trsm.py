"""trsm: batches of the SC17 slides on every device, its kernel in cache, and what a call costs."""

from compactla.bench import cases

from . import common


class Trsm(common.Benchmark):
    """B <- A^-1 B, A lower triangular, n right-hand sides"""

    params = ([*common.DEVICES, *common.PEERS], common.DTYPES, common.SIZES)
    make = cases.Trsm

    def time_trsm(self, *parameters):
        self.run()

    def track_fraction_of_bound(self, *parameters):
        return self.fraction_of_bound()

    track_fraction_of_bound.params = common.Benchmark.params  # peers have no bound of ours


class TrsmInCache(common.InCache):
    make = cases.Trsm

    def track_fraction_of_peak(self, *parameters):
        return self.fraction_of_peak()


class TrsmOverhead(common.Overhead):
    make = cases.Trsm

    def track_overhead(self):
        return self.overhead()
