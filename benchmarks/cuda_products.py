"""gemm on ordinary arrays on an NVIDIA GPU, against the device's copy, torch.bmm and cupy.matmul.

``python -m benchmarks.cuda_products [seconds] [sizes]`` prints, for stacks of square matrices in rows, which part of
the speed of a copy of what has to be read and written once libraries reach, by the device's clock.
"""

import functools
import sys
import time

import numpy as np
import pyopencl.array as cla

import compactla

from .cuda_clock import REPEATS, cuda_seconds, open_gpu, opencl_seconds

try:
    import cupy
    import torch
except ImportError:  # asv imports all files here
    cupy = torch = None

BYTES = 2**28  # of an array
CHECKED = 1000  # matrices
SIZES = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 16, 20, 24, 31, 32)


def least_seconds(call) -> float:
    """Least time of a call in CUDA, after one that isn't timed."""
    call()
    return min(cuda_seconds(call) for _ in range(REPEATS))


class Stacks:
    """Two factors and room for the products, of as many matrices of a size as there is room for."""

    def __init__(self, queue, dtype):
        rng = np.random.default_rng(1)
        self.memory = [np.resize(rng.standard_normal(10**6), BYTES // dtype.itemsize).astype(dtype) for _ in range(3)]
        self.queue, self.dtype = queue, dtype
        self.ours = [cla.to_device(queue, x) for x in self.memory]
        self.theirs = [cupy.asarray(x) for x in self.memory] if cupy else []

    def of_size(self, arrays, n):
        nm = BYTES // self.dtype.itemsize // n**2
        return [x[: nm * n * n].reshape(nm, n, n) for x in arrays]

    def calls(self, n):
        """For each library, its name, a function that returns seconds, and one that returns the first products."""
        a, b, c = self.of_size(self.ours, n)
        c.fill(0)
        gemm = functools.partial(compactla.gemm, a, b, c)
        yield "compactla", lambda: opencl_seconds(lambda: gemm().events[-1]), lambda: c[:CHECKED].get()
        if not self.theirs:
            return
        x, y, z = self.of_size(self.theirs, n)
        left, right, product = (torch.from_dlpack(t) for t in (x, y, z))
        bmm = functools.partial(torch.bmm, left, right, out=product)
        yield "torch.bmm", functools.partial(least_seconds, bmm), lambda: cupy.asnumpy(z[:CHECKED])
        z.fill(0)
        matmul = functools.partial(cupy.matmul, x, y, out=z)
        yield "cupy.matmul", functools.partial(least_seconds, matmul), lambda: cupy.asnumpy(z[:CHECKED])

    def line(self, n, speed):
        """Parts of the speed of a copy, by library."""
        a, b, _ = self.of_size(self.memory, n)
        expected = np.matmul(a[:CHECKED], b[:CHECKED], dtype="d")
        moved, found = 3 * a.nbytes, []
        for library, seconds, result in self.calls(n):
            part = moved / seconds() / speed
            error = np.abs(result() - expected).max() / np.finfo(self.dtype).eps
            found.append(f"{library} {part:.3f}" + (f" WRONG by {error:.0f} eps" if error > 1000 else ""))
        return "  ".join(found)


def main(limit=200.0, sizes=SIZES):
    """Print the table; nothing more is begun after so many seconds."""
    end = time.monotonic() + limit
    queue, speed = open_gpu()
    for char in "df":
        stacks = Stacks(queue, np.dtype(char))
        for n in sizes:
            if time.monotonic() > end:
                print("out of time")
                return
            print(f"{char} {n:2}: {stacks.line(n, speed)}", flush=True)
        del stacks


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]), *([tuple(map(int, sys.argv[2].split(",")))] if len(sys.argv) > 2 else []))
