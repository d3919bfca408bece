"""What else does the work of a case: NumPy, SciPy and Intel MKL, each on data in the form that suits it."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.linalg

import compactla as cla
from compactla.bench import cases, mkl
from compactla.bench.timing import best
from compactla.cpu.parallel import THREADS

BANDED = 16  # lines that SciPy's banded solver is timed on: it takes them one by one


class Peer(NamedTuple):
    """One way to do the work of a case."""

    name: str
    call: Callable[[], object]
    residual: Callable[[], float]
    scale: float = 1  # of its time: how much more work a case is than a call


def peers(case, library=None) -> list[Peer]:
    """The peers of a case, on the CPU wherever the case runs; MKL if `library` is one, from `mkl.load`."""
    found = [Peer(*peer) for peer in LIBRARIES[case.routine](case)]
    threads = case.threads.get("threads", THREADS)
    return found + ([Peer(*mkl.fastest(case, library, threads))] if library else [])


def peer(case, name) -> Peer:
    """The fastest peer of one library: "numpy", "scipy" or "mkl"."""
    if name == "mkl":
        return Peer(*mkl.fastest(case, mkl.load(), case.threads.get("threads", THREADS)))
    found = (Peer(*peer) for peer in LIBRARIES[case.routine](case) if peer[0].startswith(name))
    return min(found, key=lambda peer: best(peer.call, least=1))


# NumPy and SciPy: one call on the whole batch, which these libraries do in one thread.


def library_gemm(case):
    product, c = np.empty_like(case.c), case.c.copy()

    def call():
        np.matmul(case.a, case.b, out=product)
        if case.beta:
            np.add(c, product, out=c)

    name = "numpy matmul, add" if case.beta else "numpy matmul"
    return [(name, call, lambda: case.error(case.a @ case.b + case.beta * case.c))]


def library_trsm(case):
    right = case.options["side"] == "R"
    T, b = (np.ascontiguousarray(x.swapaxes(1, 2)) if right else x for x in (case.triangle(case.a), case.b))
    lower = not np.triu(T, 1).any()

    def triangular():
        return scipy.linalg.solve(T, b, assume_a=f"{'lower' if lower else 'upper'} triangular", check_finite=False)

    def general():
        return np.linalg.solve(T, b)

    def residual(solve):
        return lambda: case.error(solve().swapaxes(1, 2) if right else solve())

    return [
        ("numpy solve", general, residual(general)),
        ("scipy solve, triangular", triangular, residual(triangular)),
    ]


def library_getrfnp(case):
    def inverse():
        return np.linalg.inv(case.a)

    def inverse_residual():
        a, x = cases.widen(case.a), cases.widen(inverse())
        bound = case.n * cases.norm1(a) * cases.norm1(x)
        return cases.scaled(cases.norm1(a @ x - np.eye(case.n)), bound, case.dtype)

    def factor():
        return scipy.linalg.lu_factor(case.a, check_finite=False)

    # No rows are interchanged: the diagonal is dominant.
    return [
        ("scipy lu_factor", factor, lambda: case.error(factor()[0])),
        ("numpy inv", inverse, inverse_residual),
    ]


def library_pack(case):
    V = cla.pack(case.a[:1]).vlen
    full, rest = divmod(case.nm, V)
    item = (2,) if case.dtype.kind == "c" else ()
    source = case.a.view(np.finfo(case.dtype).dtype).reshape(case.nm, case.n, case.n, *item)

    def call():
        data = np.empty((full + bool(rest), case.n, case.n, *item, V), source.dtype)
        data[:full] = np.moveaxis(source[: full * V].reshape(full, V, *source.shape[1:]), 1, -1)
        if rest:
            unused = np.eye(case.n)[..., None] * [1, 0] if item else np.eye(case.n)
            data[full] = unused[..., None]
            data[full, ..., :rest] = np.moveaxis(source[full * V :], 0, -1)
        return data

    return [("numpy transpose", call, lambda: case.error(cla.Pack(call(), case.nm).unpack()))]


def library_unpack(case):
    A = cla.pack(case.a)
    V, result = A.vlen, np.empty_like(case.a)
    full, rest = divmod(case.nm, V)
    item = (2,) if case.dtype.kind == "c" else ()
    target = result.view(A.data.dtype).reshape(case.nm, case.n, case.n, *item)

    def call():
        target[: full * V].reshape(full, V, *target.shape[1:])[...] = np.moveaxis(A.data[:full], -1, 1)
        if rest:
            target[full * V :] = np.moveaxis(A.data[full, ..., :rest], -1, 0)

    def residual():
        call()
        return case.error(result)

    return [("numpy transpose", call, residual)]


class BlockThomas:
    """Block elimination in NumPy, with inverses of the diagonal blocks; block k of all lines is contiguous."""

    def __init__(self, case):
        self.E, self.D, self.F, self.rhs = (
            np.ascontiguousarray(a.swapaxes(0, 1)) for a in (case.lower, case.diag, case.upper, case.rhs)
        )
        self.W, self.G = np.empty_like(self.D), np.empty_like(self.F)

    def factor(self):
        D = self.D[0]
        for k in range(len(self.D)):
            self.W[k] = np.linalg.inv(D)
            if k + 1 < len(self.D):
                np.matmul(self.W[k], self.F[k], out=self.G[k])
                D = self.D[k + 1] - self.E[k] @ self.G[k]

    def solve(self):
        x = self.rhs.copy()
        for k in range(len(x)):
            x[k] = self.W[k] @ (x[k] - self.E[k - 1] @ x[k - 1] if k else x[k])
        for k in range(len(x) - 2, -1, -1):
            x[k] -= self.G[k] @ x[k + 1]
        return x.swapaxes(0, 1)


def library_lines(case):
    thomas = BlockThomas(case)
    thomas.factor()
    call = {"factor": thomas.factor, "solve": thomas.solve}[case.routine]
    return [("numpy block Thomas", call, lambda: case.error(thomas.solve()))]


def banded(case) -> Peer:
    """Factor and solve with SciPy's banded solver, line by line."""
    b, K, lines = case.n, case.K, min(BANDED, case.nm)
    wide = 2 * b - 1
    ab = np.zeros((lines, 2 * wide + 1, K * b), case.dtype)
    i, j = np.ogrid[:b, :b]
    for blocks, row, column in ((case.lower, 1, 0), (case.diag, 0, 0), (case.upper, 0, 1)):
        for k in range(blocks.shape[1]):
            rows, columns = (k + row) * b + i, (k + column) * b + j
            ab[:, wide + rows - columns, columns] = blocks[-lines:, k]
    rhs = case.rhs[-lines:].reshape(lines, K * b, case.nrhs)

    def call():
        return [scipy.linalg.solve_banded((wide, wide), ab[i], rhs[i], check_finite=False) for i in range(lines)]

    def residual():
        return case.error(np.reshape(call(), (lines, K, b, case.nrhs)))

    return Peer("scipy solve_banded", call, residual, case.nm / lines)


LIBRARIES = {
    "gemm": library_gemm,
    "trsm": library_trsm,
    "getrfnp": library_getrfnp,
    "pack": library_pack,
    "unpack": library_unpack,
    "factor": library_lines,
    "solve": library_lines,
}
