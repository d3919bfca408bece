"""What the benchmarks share: devices, batches, the clock, and the bound that a time is held against."""

import subprocess
import sys
import time

import numpy as np

import compactla as cla

from . import ceilings

BATCH = 16384
SIZES = [3, 5, 10, 15]
RNG_SEED = 2017


def device_names():
    """The CPU and the OpenCL devices, listed by another process: asv forks this one, drivers die of it."""
    program = """
import pyopencl
for platform in pyopencl.get_platforms():
    for device in platform.get_devices():
        print(device.name.strip())
"""
    listing = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    return ["cpu", *(f"opencl:{name}" for name in sorted(set(listing.stdout.splitlines())))]


DEVICES = device_names()


def random(*shape):
    return np.random.default_rng(RNG_SEED).uniform(-1, 1, shape)


class Benchmark:
    """One call on a device: `setup` makes it, as `self.run`, to do the same work however often it runs."""

    version = "1"
    timeout = 300
    params = (DEVICES, SIZES)
    param_names = ("device", "n")

    def open(self, device):
        """Set `queue` to a queue on the OpenCL device of that name, or None for "cpu"."""
        self.queue = None
        if device != "cpu":
            import pyopencl as cl

            name = device.removeprefix("opencl:")
            found = (d for p in cl.get_platforms() for d in p.get_devices() if d.name.strip() == name)
            # some drivers let go of a context that only its queue knows
            self.context = cl.Context([next(found)])
            self.queue = cl.CommandQueue(self.context)

    def pack(self, a):
        return cla.pack(a, queue=self.queue)

    def timed(self):
        """One call, to its end on the device."""
        self.run()
        if self.queue is not None:
            self.queue.finish()

    def seconds(self):
        """Least time of a call, of at least 5 and as many as fit in 0.3 s."""
        self.timed()
        times, end = [], time.perf_counter() + 0.3
        while len(times) < 5 or time.perf_counter() < end:
            start = time.perf_counter()
            self.timed()
            times.append(time.perf_counter() - start)
        return min(times)

    def gflops(self, flops):
        return flops / self.seconds() / 1e9

    def fraction_of_bound(self, flops, nbytes):
        """Part of the speed that memory and arithmetic allow, both measured now, in this process.

        `nbytes` counts every operand's bytes once for each time that it is read or written.
        """
        bound = max(flops / ceilings.peak(self.queue), nbytes / ceilings.bandwidth(nbytes // 2, self.queue))
        return bound / self.seconds()
