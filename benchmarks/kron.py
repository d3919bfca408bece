"""Kronecker products of items of two and three axes, in one thread, beside NumPy and PyTorch."""

import functools
from importlib.util import find_spec

import numpy as np

import compactla as cla

from . import common

LIBRARIES = ["compactla", "copy", "matmul", "tensordot", "einsum", "torch"]
SIZES = [4, 6, 8, 10, 12, 16, 24]
ITEMS, LARGEST = 10_000, 2**26  # items; bytes of them
SUMS = {2: "il,jm,plm->pij", 3: "il,jm,kn,plmn->pijk"}


def operands(axes, m, dtype):
    """Random factors and items."""
    rng = np.random.default_rng(m)
    nm = min(ITEMS, LARGEST // (8 * m**axes))
    return [*rng.standard_normal((axes, m, m)).astype(dtype)], rng.standard_normal((nm, *[m] * axes)).astype(dtype)


def matmul(factors, X):
    """The last axis first, one factor after the other."""
    *others, last = factors
    Y = X @ last.T
    if len(others) == 2:
        Y = others[1] @ Y
    return (factors[0] @ Y.reshape(len(X), X.shape[1], -1)).reshape(X.shape)


def tensordot(factors, X):
    for factor in reversed(factors):
        X = np.tensordot(X, factor, (len(factors), 1))
        X = np.moveaxis(X, -1, 1)
    return X


def in_torch(factors, X):
    import torch

    torch.set_num_threads(1)
    given = [torch.from_numpy(a) for a in (*factors, X)]
    return functools.partial(torch.einsum, SUMS[len(factors)], *given)


def calls(axes, m, dtype):
    """Calls to be timed, by library, a copy of the items as a bound, and how many items there are."""
    factors, X = operands(axes, m, dtype)
    Y = np.empty_like(X)
    found = {
        "compactla": functools.partial(cla.kron_apply, factors, X, Y, threads=1),
        "copy": functools.partial(np.copyto, Y, X),
        "matmul": functools.partial(matmul, factors, X),
        "tensordot": functools.partial(tensordot, factors, X),
        "einsum": functools.partial(np.einsum, SUMS[axes], *factors, X, optimize=True),
    }
    if find_spec("torch"):
        found["torch"] = in_torch(factors, X)
    return found, len(X)


class KroneckerProducts(common.InTurns):
    """Items one after the other; they take 4 m^3 floating-point operations with two axes, and 6 m^4 with three."""

    params = (LIBRARIES, [2, 3], SIZES, common.DTYPES)
    param_names = ("library", "axes", "m", "dtype")

    def prepare(self, axes, m, dtype):
        return calls(axes, m, dtype)
