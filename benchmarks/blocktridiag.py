"""Block-tridiagonal systems: 1024 lines of 128 blocks, factored and solved on every device."""

import numpy as np

import compactla as cla

from . import common

LINES, BLOCKS = 1024, 128


def random_blocks(b):
    """Lower, diagonal and upper blocks, the diagonal dominant."""
    lower, upper = common.random(2, LINES, BLOCKS - 1, b, b)
    return lower, common.random(LINES, BLOCKS, b, b) + 4 * b * np.eye(b), upper


def residual(lower, diag, upper, x, rhs):
    r = rhs - np.einsum("lkij,lkj->lki", diag, x)
    r[:, 1:] -= np.einsum("lkij,lkj->lki", lower, x[:, :-1])
    r[:, :-1] -= np.einsum("lkij,lkj->lki", upper, x[:, 1:])
    return np.abs(r).max()


class Lines(common.Benchmark):
    params = (common.DEVICES, [3, 5])
    param_names = ("device", "b")

    def factored(self, lower, diag, upper):
        """The factored matrix, after a solve with it was found right, and its right-hand sides."""
        T = cla.BlockTridiag(lower, diag, upper, queue=self.queue)
        assert not T.factor().any()
        rhs = common.random(*diag.shape[:3])
        assert residual(lower, diag, upper, T.solve(rhs), rhs) < 1e-13
        return T, rhs


class Factor(Lines):
    """LU of the lines, timed on a matrix that is its own factor: unit upper triangular, no lower blocks"""

    def setup(self, device, b):
        self.open(device)
        lower, diag, upper = random_blocks(b)
        self.factored(lower, diag, upper)
        diag = np.triu(diag, 1) + np.eye(b)
        T = cla.BlockTridiag(np.zeros_like(lower), diag, upper, queue=self.queue)
        self.run = T.refactor

    def time_factor(self, device, b):
        self.timed()

    def track_gflops(self, device, b):
        return self.gflops(self.flops(b))

    def track_fraction_of_bound(self, device, b):
        return self.fraction_of_bound(self.flops(b), 2 * (3 * BLOCKS - 2) * b**2 * 8 * LINES)

    @staticmethod
    def flops(b):
        getrf, trsm, gemm = sum(k + 2 * k**2 for k in range(b)), b**2 * (2 * b - 1), 2 * b**3
        return LINES * (BLOCKS * getrf + (BLOCKS - 1) * (trsm + gemm))

    track_gflops.unit = "GFlop/s"


class Solve(Lines):
    """One right-hand side, on the device"""

    def setup(self, device, b):
        self.open(device)
        T, rhs = self.factored(*random_blocks(b))
        if self.queue is not None:
            import pyopencl.array

            rhs = pyopencl.array.to_device(self.queue, rhs)
        self.run = lambda: T.solve(rhs)

    def time_solve(self, device, b):
        self.timed()

    def track_gflops(self, device, b):
        return self.gflops(self.flops(b))

    def track_fraction_of_bound(self, device, b):
        return self.fraction_of_bound(self.flops(b), ((3 * BLOCKS - 2) * b**2 + 2 * BLOCKS * b) * 8 * LINES)

    @staticmethod
    def flops(b):
        return LINES * (3 * BLOCKS - 2) * 2 * b**2

    track_gflops.unit = "GFlop/s"
