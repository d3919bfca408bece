"""The line preconditioner of the shipped matrix: new values, application, iterations that it takes; finding lines."""

from importlib.resources import files

import numpy as np
from pyamg.strength import symmetric_strength_of_connection
from scipy.sparse import bsr_array, diags_array, kron, kronsum
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


class FindLines:
    """125,000 block rows of a stretched grid: 2500 lines of 50 blocks"""

    version = "1"
    timeout = 300
    params = ([1, 3, 5],)
    param_names = ("b",)

    def setup(self, b):
        T = diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(50, 50))
        grid = kronsum(kronsum(T, T), 100 * T)  # the slowest index is that of the stretched direction
        self.M = kron(grid, np.eye(b) + 0.2, format="csr").tobsr((b, b))
        self.coordinates = np.indices((50, 50, 50)).reshape(3, -1).T * [0.01, 1, 1]
        for lines in (cla.find_lines(self.M), cla.find_lines(self.M, coordinates=self.coordinates)):
            assert [len(line) for line in lines] == [50] * 2500

    def time_from_coefficients(self, b):
        cla.find_lines(self.M)

    def time_from_coordinates(self, b):
        cla.find_lines(self.M, coordinates=self.coordinates)

    def time_pyamg_strength(self, b):
        """What PyAMG takes to find the strong couplings, which it does not join to lines."""
        symmetric_strength_of_connection(self.M, theta=0.25)
