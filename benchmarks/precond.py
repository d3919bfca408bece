"""The line preconditioner of the shipped matrix: new values, application, iterations, peers; and finding lines."""

from importlib.resources import files

import numpy as np
from scipy.sparse import bsr_array, diags_array, kron, kronsum
from scipy.sparse.linalg import LinearOperator, gmres, splu

import compactla as cla
from compactla.bench.cases import on_device
from compactla.bench.measure import repeated

from . import common

try:
    from pyamg.relaxation.relaxation import block_gauss_seidel
    from pyamg.strength import symmetric_strength_of_connection
    from pyamg.util.utils import get_block_diag
except ImportError:  # all but what is PyAMG's runs without it
    block_gauss_seidel = symmetric_strength_of_connection = get_block_diag = None


def sherman5():
    with np.load(str(files("compactla") / "data" / "sherman5_b3.npz")) as system:
        M = bsr_array((system["data"], system["indices"], system["indptr"]))
        return M, system["lines"], system["rhs"]


class Precond:
    """sherman5: 48 lines of 23 blocks, 3 x 3"""

    version = "2"
    timeout = 300
    params = (common.DEVICES,)
    param_names = ("device",)

    def setup(self, device):
        self.queue = common.open_queue(device)
        self.context = self.queue and self.queue.context
        self.M, self.lines, self.rhs = sherman5()
        self.P = cla.LinePreconditioner(self.M, self.lines, queue=self.queue)
        self.small = cla.LinePreconditioner(self.M, self.lines, queue=self.queue, storage="float32")
        self.sweeps = cla.LineRelaxation(self.M, self.lines, queue=self.queue, scheme="gauss-seidel")
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

    def time_setup(self, device):
        cla.LinePreconditioner(self.M, self.lines, queue=self.queue)

    def time_update(self, device):
        self.P.update(self.M)  # waits for the device

    def time_apply(self, device):
        self.P @ self.rhs

    def time_apply_float32(self, device):
        self.small @ self.rhs

    def time_gauss_seidel(self, device):
        self.sweeps.solve(self.rhs)

    def track_iterations(self, device):
        return self.iterations()


class Peers:
    """The same lines factored and solved by SciPy's SuperLU, and a sweep of PyAMG's over points"""

    version = "1"

    def setup(self):
        M, lines, self.rhs = sherman5()
        line, place = np.empty((2, lines.size), int)
        line[lines], place[lines] = np.indices(lines.shape)
        row = np.repeat(np.arange(lines.size), np.diff(M.indptr))
        kept = (line[row] == line[M.indices]) & (abs(place[row] - place[M.indices]) <= 1)
        self.lines = bsr_array((M.data * kept[:, None, None], M.indices, M.indptr)).tocsr()
        self.lines.eliminate_zeros()
        order = (3 * lines.reshape(-1, 1) + np.arange(3)).ravel()  # with it, nothing fills in
        self.lines, self.ordered = self.lines[order][:, order].tocsc(), self.rhs[order]
        self.M, self.inverses = M, get_block_diag(M, 3)
        self.factors = self.factor()
        x = (cla.LinePreconditioner(M, lines) @ self.rhs)[order]
        np.testing.assert_allclose(self.factors.solve(self.ordered), x, rtol=1e-6, atol=1e-9)

    def factor(self):
        return splu(self.lines, permc_spec="NATURAL", diag_pivot_thresh=0)

    def time_scipy_factor(self):
        self.factor()

    def time_scipy_apply(self):
        self.factors.solve(self.ordered)

    def time_pyamg_block_gauss_seidel(self):
        block_gauss_seidel(self.M, np.zeros_like(self.rhs), self.rhs, blocksize=3, Dinv=self.inverses)


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
