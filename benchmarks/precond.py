"""The line preconditioner of the shipped matrix: new values, application, iterations that it takes."""

from importlib.resources import files

import numpy as np
from scipy.sparse import bsr_array
from scipy.sparse.linalg import LinearOperator, gmres

import compactla as cla

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
