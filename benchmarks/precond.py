"""The line preconditioner of the shipped matrix: new values, application, iterations that it takes."""

from importlib.resources import files

import numpy as np
from scipy.sparse import bsr_array
from scipy.sparse.linalg import LinearOperator, gmres

import compactla as cla
from compactla.bench.cases import on_device
from compactla.bench.measure import repeated

from . import common


class Precond:
    """sherman5: 48 lines of 23 blocks, 3 x 3"""

    version = "2"
    timeout = 300
    params = (common.DEVICES,)
    param_names = ("device",)

    def setup(self, device):
        self.queue = common.open_queue(device)
        self.context = self.queue and self.queue.context
        with np.load(str(files("compactla") / "data" / "sherman5_b3.npz")) as system:
            self.M = bsr_array((system["data"], system["indices"], system["indptr"]))
            self.rhs = system["rhs"]
            self.P = cla.LinePreconditioner(self.M, system["lines"], queue=self.queue)
        assert not self.P.info.any()
        assert self.iterations() < 150

    def iterations(self):
        """Steps of right preconditioned GMRES(50) to 1e-8."""
        operator = LinearOperator(self.M.shape, lambda y: self.M @ (self.P @ y), dtype=self.M.dtype)
        norms = []
        history = {"callback": norms.append, "callback_type": "pr_norm"}
        _, info = gmres(operator, self.rhs, rtol=1e-8, restart=50, maxiter=10, **history)
        assert info == 0
        return len(norms)

    def time_update(self, device):
        self.P.update(self.M)  # waits for the device

    def time_apply(self, device):
        self.P @ self.rhs

    def track_iterations(self, device):
        return self.iterations()


class FewLines:
    """Lines too few to fill a device, float64: cut into as many parts as suit, and against the same lines whole"""

    version = "1"
    timeout = 300
    params = (common.DEVICES, [(1, 100_000), (8, 10_000)], [3, 5, 10], ["update", "solve"])
    param_names = ("device", "lines, blocks", "b", "call")

    def setup(self, device, size, b, call):
        queue = common.open_queue(device)
        self.context = queue and queue.context
        M, lines = block_tridiagonal(*size, b)
        self.cut, self.whole = (cla.LinePreconditioner(M, lines, queue=queue, parts=parts) for parts in (None, 1))
        r = on_device(np.ones(M.shape[0]), queue)

        def update(P):
            P.update(M)  # waits for the device

        def solve(P):
            P.solve(r)
            if queue is not None:
                queue.finish()

        self.call = {"update": update, "solve": solve}[call]

    def time_call(self, *parameters):
        self.call(self.cut)

    def track_speed_up(self, *parameters):
        return repeated(lambda: self.call(self.whole)) / repeated(lambda: self.call(self.cut))


def block_tridiagonal(nlines, K, b):
    """A matrix that is nothing but lines, random with dominant diagonal blocks, and the lines."""
    rng = np.random.default_rng(0)
    blocks = rng.uniform(-1, 1, (nlines, K, 3, b, b))
    blocks[:, :, 1] += 4 * b * np.eye(b)
    there = np.ones((nlines, K, 3), bool)
    there[:, 0, 0] = there[:, -1, 2] = False
    columns = np.arange(nlines * K).reshape(nlines, K, 1) + np.array([-1, 0, 1])
    first = np.concatenate([[0], np.cumsum(there.sum(2))])
    return bsr_array((blocks[there], columns[there], first)), columns[:, :, 1]
