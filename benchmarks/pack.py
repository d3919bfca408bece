"""pack and unpack: ordinary batches of the SC17 slides into the layout and back, on every device."""

import numpy as np

import compactla as cla

from . import common


def on_device(queue, a):
    if queue is None:
        return a
    import pyopencl.array

    return pyopencl.array.to_device(queue, a)


class Pack(common.Benchmark):
    """From an array on the device to a new pack"""

    def setup(self, device, n):
        self.open(device)
        a = common.random(common.BATCH, n, n)
        np.testing.assert_array_equal(self.pack(a).unpack(), a)
        source = on_device(self.queue, a)
        self.run = lambda: cla.pack(source)

    def time_pack(self, device, n):
        self.timed()

    def track_fraction_of_bound(self, device, n):
        return self.fraction_of_bound(0, 2 * n**2 * 8 * common.BATCH)


class Unpack(common.Benchmark):
    """From a pack to an array on the device that is there already"""

    def setup(self, device, n):
        self.open(device)
        a = common.random(common.BATCH, n, n)
        A, target = self.pack(a), on_device(self.queue, np.zeros_like(a))
        result = A.unpack(out=target)
        np.testing.assert_array_equal(result if self.queue is None else result.get(), a)
        self.run = lambda: A.unpack(out=target)

    def time_unpack(self, device, n):
        self.timed()

    def track_fraction_of_bound(self, device, n):
        return self.fraction_of_bound(0, 2 * n**2 * 8 * common.BATCH)
