"""getrfnp: batches of the SC17 slides on every device."""

import numpy as np

import compactla as cla

from . import common


class Getrf(common.Benchmark):
    """A <- L\\U, timed on unit upper triangular matrices, which are their own factors"""

    def setup(self, device, n):
        self.open(device)
        a = common.random(common.BATCH, n, n)
        general = a + n * np.eye(n)
        A = self.pack(general)
        assert not cla.getrfnp(A).any()
        lower, upper = np.tril(A.unpack(), -1) + np.eye(n), np.triu(A.unpack())
        np.testing.assert_allclose(lower @ upper, general, rtol=0, atol=1e-13 * n)
        A = self.pack(np.triu(a, 1) + np.eye(n))
        self.run = lambda: cla.getrfnp(A)

    def time_getrfnp(self, device, n):
        self.timed()

    def track_gflops(self, device, n):
        return self.gflops(self.flops(n))

    def track_fraction_of_bound(self, device, n):
        return self.fraction_of_bound(self.flops(n), 2 * n**2 * 8 * common.BATCH)

    @staticmethod
    def flops(n):
        return common.BATCH * sum(k + 2 * k**2 for k in range(n))

    track_gflops.unit = "GFlop/s"
