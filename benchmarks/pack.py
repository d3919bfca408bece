"""pack and unpack: ordinary batches of the SC17 slides into the layout and back, on every device."""

from compactla.bench import cases

from . import common


class Pack(common.Benchmark):
    """From an array on the device to a pack that is there already"""

    make = cases.Pack

    def time_pack(self, *parameters):
        self.case.run()

    def track_fraction_of_bound(self, *parameters):
        return self.fraction_of_bound()


class Unpack(common.Benchmark):
    """From a pack to an array on the device that is there already"""

    make = cases.Unpack

    def time_unpack(self, *parameters):
        self.case.run()

    def track_fraction_of_bound(self, *parameters):
        return self.fraction_of_bound()
