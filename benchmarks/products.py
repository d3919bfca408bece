"""gemm on ordinary arrays, in one thread, beside the same on packs, numpy.matmul and torch.bmm."""

import functools
from importlib.util import find_spec

import numpy as np

import compactla as cla

from . import common
from .linalg import LARGEST

LIBRARIES = ["compactla", "packs", "numpy", "torch"]
SIZES = [3, 4, 8, 16, 32]
STACKS = [100, 10_000]


def calls(a, b, c):
    """Calls that write products of stacks, by library."""
    found = {
        "compactla": functools.partial(cla.gemm, a, b, c, threads=1),
        "packs": functools.partial(cla.gemm, *map(cla.pack, (a, b, c)), threads=1),
        "numpy": functools.partial(np.matmul, a, b, out=c),
    }
    if find_spec("torch"):
        import torch

        torch.set_num_threads(1)
        left, right, product = map(torch.from_numpy, (a, b, c))
        found["torch"] = functools.partial(torch.bmm, left, right, out=product)
    return found


class Products(common.InTurns):
    """Products of square matrices, one call after the other."""

    params = (LIBRARIES, common.DTYPES, STACKS, SIZES)
    param_names = ("library", "dtype", "stack", "n")

    def prepare(self, dtype, stack, n):
        rng, nm = np.random.default_rng(n), min(stack, LARGEST // (8 * n * n))
        a, b = rng.standard_normal((2, nm, n, n)).astype(dtype)
        c = np.empty_like(a)
        found = calls(a, b, c)
        found["compactla"]()
        assert np.allclose(c, a @ b, rtol=1e-4, atol=1e-4)
        return found, nm
