"""gemm: batches of the SC17 slides on every device, and a batch in cache on one thread against the peak."""

import numba
import numpy as np

import compactla as cla
from compactla.cpu import gemm, matrix

from . import ceilings, common


class Gemm(common.Benchmark):
    """C <- A B + C"""

    def setup(self, device, n):
        self.open(device)
        a, b = common.random(2, common.BATCH, n, n)
        A, B = self.pack(a), self.pack(b)
        C = cla.gemm(A, B, self.pack(np.ones_like(a)), beta=1)
        np.testing.assert_allclose(C.unpack(), a @ b + 1, rtol=0, atol=1e-13 * n)
        self.run = lambda: cla.gemm(A, B, C, beta=1)

    def time_gemm(self, device, n):
        self.timed()

    def track_gflops(self, device, n):
        return self.gflops(2 * n**3 * common.BATCH)

    def track_fraction_of_bound(self, device, n):
        return self.fraction_of_bound(2 * n**3 * common.BATCH, 4 * n**2 * 8 * common.BATCH)

    track_gflops.unit = "GFlop/s"


def make_sweep(V, n):
    @numba.njit
    def sweep(a, b, c, rounds):
        for _ in range(rounds):
            for p in range(len(a)):
                A, B, C = matrix(a[p], V, n, n), matrix(b[p], V, n, n), matrix(c[p], V, n, n)
                gemm(A, B, C, 1, 1)

    return sweep


class GemmInCache:
    """64 matrices, 16 x 16, float64, one thread: C <- A B + C at the pack level, the size compiled in."""

    version = "1"
    timeout = 300

    def setup(self):
        n, nm, rounds = 16, 64, 200
        a, b = common.random(2, nm, n, n)
        A, B, C = cla.pack(a), cla.pack(b), cla.Pack.zeros(nm, n, n)
        sweep = make_sweep(A.vlen, n)
        sweep(A.data, B.data, C.data, 1)
        np.testing.assert_allclose(C.unpack(), a @ b, rtol=0, atol=1e-13 * n)
        self.flops = 2 * n**3 * nm * rounds
        self.run = lambda: sweep(A.data, B.data, C.data, rounds)

    def track_gflops(self):
        return self.flops / ceilings.best(self.run) / 1e9

    def track_fraction_of_peak(self):
        return self.flops / ceilings.best(self.run) / ceilings.peak(threads=1)

    track_gflops.unit = "GFlop/s"
