"""The line preconditioner: set up, new values, application, iterations, memory; its peers; finding lines; few lines."""

import functools
from importlib.resources import files

import numpy as np
from scipy.sparse import bsr_array, diags_array, kron, kronsum
from scipy.sparse.linalg import LinearOperator, gmres, splu

import compactla as cla
from compactla.bench.cases import on_device

from . import common

try:
    from pyamg.relaxation.relaxation import block_gauss_seidel
    from pyamg.strength import symmetric_strength_of_connection
    from pyamg.util.utils import get_block_diag
except ImportError:  # all but what is PyAMG's runs without it
    block_gauss_seidel = symmetric_strength_of_connection = get_block_diag = None


def sherman5():
    """An oil reservoir: 48 lines of 23 blocks, 3 x 3; matrix, lines and right-hand side."""
    with np.load(str(files("compactla") / "data" / "sherman5_b3.npz")) as system:
        M = bsr_array((system["data"], system["indices"], system["indptr"]))
        return M, system["lines"], system["rhs"]


def grid(b=5):
    """A stretched grid: 2500 lines of 50 blocks, b x b; matrix, lines and right-hand side."""
    T = diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(50, 50))
    M = kron(kronsum(kronsum(T, T), 100 * T), np.eye(b) + 0.2, format="csr").tobsr((b, b))
    lines = np.arange(50**3).reshape(50, -1).T  # the slowest index is that of the stretched direction
    return M, lines, np.ones(M.shape[0])


MATRICES = {"sherman5": sherman5, "grid": grid}


def along(M, lines):
    """The part of a matrix that couples neighbours on a line."""
    line, place = np.empty((2, lines.size), int)
    line[lines], place[lines] = np.indices(lines.shape)
    row = np.repeat(np.arange(lines.size), np.diff(M.indptr))
    kept = (line[row] == line[M.indices]) & (abs(place[row] - place[M.indices]) <= 1)
    L = bsr_array((M.data * kept[:, None, None], M.indices, M.indptr)).tocsr()
    L.eliminate_zeros()
    return L


class Precond(common.Benchmark):
    """Devices, and matrices"""

    repeat = (5, 20, 2.0)
    params = (common.OURS, list(MATRICES))
    param_names = ("device", "matrix")
    P = None

    def setup(self, device, matrix):
        common.require(device)
        if self.P is None:  # asv repeats the setup before every call
            self.prepare(device, matrix)

    def prepare(self, device, matrix):
        self.M, self.lines, self.rhs = MATRICES[matrix]()
        queue, threads = common.open_queue(device, "float64"), common.threads_of(device)
        self.context = queue and queue.context
        options = {"queue": queue} | ({"threads": threads} if threads else {})
        self.make = functools.partial(cla.LinePreconditioner, self.M, self.lines, **options)
        self.P = self.make()
        np.testing.assert_allclose(self.P @ (along(self.M, self.lines) @ self.rhs), self.rhs, rtol=1e-6, atol=1e-9)

    def time_setup(self, *_):
        self.make()

    def time_update(self, *_):
        self.P.update(self.M)  # waits for the device

    def time_apply(self, *_):
        self.P @ self.rhs

    def peakmem_setup(self, *_):
        self.make()

    def track_iterations(self, *_):
        """Steps of right preconditioned GMRES(50) to 1e-8."""
        operator = LinearOperator(self.M.shape, lambda y: self.M @ (self.P @ y), dtype=self.M.dtype)
        norms = []
        history = {"callback": norms.append, "callback_type": "pr_norm"}
        _, info = gmres(operator, self.rhs, rtol=1e-8, restart=50, maxiter=10, **history)
        assert info == 0
        return len(norms)


class Variants(common.Benchmark):
    """Other operators on sherman5: factors in a smaller type, and a sweep over coloured lines"""

    repeat = (5, 20, 2.0)
    params = (common.OURS, ["float32", "gauss-seidel"])
    param_names = ("device", "variant")
    P = None

    def setup(self, device, variant):
        common.require(device)
        if self.P is None:
            M, lines, self.rhs = sherman5()
            queue, threads = common.open_queue(device, "float64"), common.threads_of(device)
            self.context = queue and queue.context
            make, options = {
                "float32": (cla.LinePreconditioner, {"storage": "float32"}),
                "gauss-seidel": (cla.LineRelaxation, {"scheme": "gauss-seidel"}),
            }[variant]
            self.P = make(M, lines, queue=queue, threads=threads, **options)
            np.testing.assert_allclose(self.P @ self.rhs, make(M, lines, **options) @ self.rhs, rtol=1e-4, atol=1e-6)

    def time_apply(self, *_):
        self.P @ self.rhs


class Peers(common.Benchmark):
    """SciPy's SuperLU on the same lines, and a sweep of PyAMG over points"""

    repeat = (3, 10, 2.0)
    params = (list(MATRICES),)
    param_names = ("matrix",)
    factors = None

    def setup(self, matrix):
        if self.factors is not None:
            return
        self.M, lines, self.rhs = MATRICES[matrix]()
        b = self.M.blocksize[0]
        order = (b * lines.reshape(-1, 1) + np.arange(b)).ravel()  # with it, nothing fills in
        self.L, self.ordered = along(self.M, lines)[order][:, order].tocsc(), self.rhs[order]
        self.inverses = get_block_diag(self.M, b) if get_block_diag else None
        self.factors = self.factor()
        x = (cla.LinePreconditioner(self.M, lines) @ self.rhs)[order]
        np.testing.assert_allclose(self.factors.solve(self.ordered), x, rtol=1e-6, atol=1e-9)

    def factor(self):
        return splu(self.L, permc_spec="NATURAL", diag_pivot_thresh=0)

    def time_scipy_factor(self, *_):
        self.factor()

    def time_scipy_apply(self, *_):
        self.factors.solve(self.ordered)

    def time_pyamg_block_gauss_seidel(self, *_):
        size = self.M.blocksize[0]
        block_gauss_seidel(self.M, np.zeros_like(self.rhs), self.rhs, blocksize=size, Dinv=self.inverses)


class FindLines(common.Benchmark):
    """125,000 block rows of a stretched grid: 2500 lines of 50 blocks"""

    params = ([1, 3, 5],)
    param_names = ("b",)
    M = None

    def setup(self, b):
        if self.M is None:
            self.M, _, _ = grid(b)
            self.coordinates = np.indices((50, 50, 50)).reshape(3, -1).T * [0.01, 1, 1]
            for lines in (cla.find_lines(self.M), cla.find_lines(self.M, coordinates=self.coordinates)):
                assert [len(line) for line in lines] == [50] * 2500

    def time_from_coefficients(self, b):
        cla.find_lines(self.M)

    def time_from_coordinates(self, b):
        cla.find_lines(self.M, coordinates=self.coordinates)

    def time_pyamg_strength(self, b):
        """PyAMG finds the strong couplings, and does not join them to lines."""
        symmetric_strength_of_connection(self.M, theta=0.25)


class FewLines(common.Benchmark):
    """Lines too few to fill a device, float64: cut into as many parts as suit, and against the same lines whole"""

    params = (common.OURS, [(1, 100_000), (8, 10_000)], ["update", "solve"], [3, 5, 10])
    param_names = ("device", "lines, blocks", "call", "b")
    cut = None

    def setup(self, device, size, call, b):
        common.require(device)
        if self.cut is None:
            self.prepare(device, size, call, b)

    def prepare(self, device, size, call, b):
        queue, threads = common.open_queue(device, "float64"), common.threads_of(device)
        self.context = queue and queue.context
        M, lines = block_tridiagonal(*size, b)
        options = {"queue": queue, "threads": threads}
        self.cut, self.whole = (cla.LinePreconditioner(M, lines, parts=parts, **options) for parts in (None, 1))
        r = on_device(np.ones(M.shape[0]), queue)

        def update(P):
            P.update(M)  # waits for the device

        def solve(P):
            P.solve(r)
            if queue is not None:
                queue.finish()

        self.call = {"update": update, "solve": solve}[call]

    def time_call(self, *_):
        self.call(self.cut)

    def track_speed_up(self, *_):
        whole, cut = (common.repeated(lambda M=M: self.call(M)) for M in (self.whole, self.cut))
        return common.rounded(whole / cut)


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
