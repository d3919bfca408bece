"""Batches of sparse matrices of one pattern, in one thread: products, and solves from new values to solutions.

The peers have the same values in their own forms, made before: NumPy dense matrices, SciPy a list of sparse ones.
Krylov methods have ILU0 here, and in SciPy its incomplete factors with a threshold.
"""

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import compactla as cla
from compactla.examples import batches

from . import common

MATRICES = 500
BATCHES = {
    "hydrogen": lambda: batches.hydrogen(MATRICES),
    "larger": lambda: batches.larger(MATRICES),
    "five-point": lambda: batches.five_point(MATRICES, 12, 12, convection=1.0),
}
GOAL = 1e-8


def ours(method, A, data, b):
    """Calls of compactla; values are taken anew where a solve depends on them."""
    if method == "product":
        return lambda: A.multiply(b, threads=1)
    if method == "lu":
        F = cla.BatchLU(A)

        def direct():
            F.update(data, threads=1)
            return F.solve(b, threads=1)

        return direct
    M, solve = cla.krylov.ILU0(A), getattr(cla.krylov, method)

    def iterate():
        A.update(data, threads=1)
        return solve(A, b, rtol=GOAL, M=M, threads=1)[0]

    return iterate


def numpys(method, a, b):
    """NumPy's product and solve with dense matrices."""
    compute = np.matmul if method == "product" else np.linalg.solve
    return lambda: compute(a, b[:, :, None])[:, :, 0]


def one_by_one(method, matrices, b):
    """SciPy's calls, one matrix after the other."""
    if method == "product":
        return lambda: np.array([a @ x for a, x in zip(matrices, b, strict=True)])
    if method == "lu":
        return lambda: np.array([spla.splu(a).solve(x) for a, x in zip(matrices, b, strict=True)])

    def solve(a, x):
        incomplete = spla.spilu(a)
        M = spla.LinearOperator(a.shape, incomplete.solve)
        return getattr(spla, method)(a, x, rtol=GOAL, M=M)[0]

    return lambda: np.array(list(map(solve, matrices, b)))


class Batches(common.InTurns):
    """500 matrices in float64, with one right-hand side each."""

    params = (["compactla", "numpy", "scipy"], ["product", "lu", "bicgstab", "gmres"], list(BATCHES))
    param_names = ("library", "method", "batch")

    def prepare(self, method, batch):
        data, indices, indptr = BATCHES[batch]()
        A, b = (
            cla.BatchCSR((data, indices, indptr)),
            np.random.default_rng(0).standard_normal((MATRICES, len(indptr) - 1)),
        )
        form = sp.csr_array if method == "product" else sp.csc_array
        matrices, a = [form(sp.csr_array((values, indices, indptr))) for values in data], A.toarray()
        found = {"compactla": ours(method, A, data, b), "scipy": one_by_one(method, matrices, b)}
        if method in ("product", "lu"):
            found["numpy"] = numpys(method, a, b)
        for call in found.values():
            x = call()
            off = x - a_times(a, b) if method == "product" else a_times(a, x) - b
            assert np.linalg.norm(off, axis=1).max() < 1e-5 * np.linalg.norm(b, axis=1).min()
        return found, MATRICES


def a_times(a, x):
    return (a @ x[:, :, None])[:, :, 0]
