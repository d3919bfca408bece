"""trsm: batches of the SC17 slides on every device."""

import numpy as np

import compactla as cla

from . import common


def involution(x):
    """Lower triangular matrices that are their own inverses, [I 0; X -I]: solves go back and forth."""
    n = x.shape[1]
    a = np.zeros_like(x)
    a[:, range(n), range(n)] = np.where(np.arange(n) < n // 2, 1, -1)
    a[:, n // 2 :, : n // 2] = x[:, n // 2 :, : n // 2]
    return a


class Trsm(common.Benchmark):
    """B <- A^-1 B, A lower triangular, n right-hand sides"""

    def setup(self, device, n):
        self.open(device)
        a, b = common.random(2, common.BATCH, n, n)
        general = np.tril(a) + n * np.eye(n)
        x = cla.trsm(self.pack(general), self.pack(b)).unpack()
        np.testing.assert_allclose(general @ x, b, rtol=0, atol=1e-13 * n)
        A, B = self.pack(involution(a)), self.pack(b)
        self.run = lambda: cla.trsm(A, B)

    def time_trsm(self, device, n):
        self.timed()

    def track_gflops(self, device, n):
        return self.gflops(n**3 * common.BATCH)

    def track_fraction_of_bound(self, device, n):
        return self.fraction_of_bound(n**3 * common.BATCH, (n * (n + 1) // 2 + 2 * n**2) * 8 * common.BATCH)

    track_gflops.unit = "GFlop/s"
