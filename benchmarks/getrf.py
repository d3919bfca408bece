"""getrfnp: batches of the SC17 slides on every device, its kernel in cache, and what a call costs."""

from compactla.bench import cases

from . import common


class Getrfnp(common.Benchmark):
    """A <- L\\U without pivoting"""

    params = ([*common.DEVICES, *common.PEERS], common.DTYPES, common.SIZES)
    make = cases.Getrfnp

    def time_getrfnp(self, *parameters):
        self.run()

    def track_fraction_of_bound(self, *parameters):
        return self.fraction_of_bound()

    track_fraction_of_bound.params = common.Benchmark.params  # peers have no bound of ours


class GetrfnpInCache(common.InCache):
    make = cases.Getrfnp

    def track_fraction_of_peak(self, *parameters):
        return self.fraction_of_peak()


class GetrfnpOverhead(common.Overhead):
    make = cases.Getrfnp

    def track_overhead(self):
        return self.overhead()
