"""What the benchmarks share: devices, the sizes of the SC17 slides, and the classes that a routine's own derive from.

What is timed, and on what, is in `compactla.bench.cases`; on CUDA GPUs cuBLAS and PyTorch are devices too, see `cuda`.
"""

import importlib.util
import subprocess
import sys

import numpy as np

from compactla.bench import cases
from compactla.bench.ceilings import best_of_rounds, peak
from compactla.bench.measure import TIMINGS, ceiling, repeated, seconds_of

BATCH, GPU_BYTES = 16384, 2**29  # matrices; of all operands, on a GPU
SIZES = [3, 5, 10, 15]
CACHE_SIZES = [3, 5, 8, 10, 15, 16, 24, 32]
DTYPES = ["float64", "float32"]


def device_names():
    """The CPU and the OpenCL devices, listed by another process: asv forks this one, drivers die of it."""
    program = """
import pyopencl
for platform in pyopencl.get_platforms():
    for device in platform.get_devices():
        kind = "gpu" if device.type & pyopencl.device_type.GPU else "cpu"
        print(f"{kind} opencl:{device.name.strip()}")
"""
    listing = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    found = [line.split(maxsplit=1) for line in sorted(set(listing.stdout.splitlines()))]
    return ["cpu", *(name for _, name in found)], [name for kind, name in found if kind == "gpu"]


DEVICES, GPUS = device_names()
CUDA = any("NVIDIA" in name for name in GPUS) and all(map(importlib.util.find_spec, ("cupy", "torch")))
PEERS = ["cublas", "torch"] if CUDA else []


def open_queue(device):
    """A queue on the OpenCL device of that name, or None for "cpu"."""
    if device == "cpu":
        return None
    import pyopencl as cl

    name = device.removeprefix("opencl:")
    found = (d for p in cl.get_platforms() for d in p.get_devices() if d.name.strip() == name)
    return cl.CommandQueue(cl.Context([next(found)]))


def batch(device, dtype, n):
    """So many matrices that a GPU is busy, or as the SC17 slides have."""
    return GPU_BYTES // (3 * n * n * np.dtype(dtype).itemsize) if device in [*GPUS, *PEERS] else BATCH


class Benchmark:
    """One call of a case on a device."""

    version = "3"
    timeout = 300
    params = (DEVICES, DTYPES, SIZES)
    param_names = ("device", "dtype", "n")
    make: type[cases.Case]

    def setup(self, device, dtype, n):
        nm = batch(device, dtype, n)
        if device not in PEERS:
            self.open(device, dtype, n, nm)
            self.run = self.case.run
        else:
            from . import cuda

            self.run = cuda.call(device, self.make.routine, n, nm, dtype)

    def open(self, device, dtype, n, nm, **options):
        """Make the case, as `self.case`, and see that it is right."""
        queue = open_queue(device)
        self.context = queue and queue.context  # some drivers let go of one that only its queue knows
        self.case = self.make(n, nm, dtype, queue, **options)
        residual = self.case.residual()
        assert residual < cases.PASS, residual

    def fraction_of_bound(self):
        """Part of the speed that memory and arithmetic allow, both measured now, in this process."""
        case = self.case
        least = ceiling(case.footprint, case.dtype, case.queue).least_time(case.flops, case.nbytes, case.loop)
        return least / seconds_of(case)


class InCache:
    """A kernel on 64 matrices, in a loop of compiled code and in one thread, against the peak of multiply-adds."""

    version = "2"
    timeout = 300
    params = (DTYPES, CACHE_SIZES)
    param_names = ("dtype", "n")
    make: type[cases.Batch]

    def setup(self, dtype, n):
        self.case = self.make(n, cases.IN_CACHE, dtype)
        residual = self.case.residual()
        assert residual < cases.PASS, residual

    def fraction_of_peak(self):
        return self.case.flops / best_of_rounds(self.case.in_cache, TIMINGS) / peak(self.case.dtype, threads=1)


class Overhead:
    """What a call from Python costs on top of its kernel, for one pack of 3 x 3 matrices: in microseconds."""

    version = "1"
    timeout = 300
    unit = "us"
    make: type[cases.Batch]

    def setup(self):
        self.case = self.make(3, 1)

    def overhead(self):
        calls = 200

        def call():
            for _ in range(calls):
                self.case.call()

        return 1e6 * (repeated(call) / calls - best_of_rounds(self.case.in_cache, TIMINGS))
