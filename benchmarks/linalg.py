"""Functions of compactla.linalg on stacks, in one thread, beside those of the same names in NumPy, PyTorch and JAX.

There are all of NumPy's that have a row.
"""

import functools
import inspect
from importlib.util import find_spec

import numpy as np

from compactla import linalg
from compactla.linalg.stacks import Stacked

from . import common

LIBRARIES = ["compactla", "numpy", "torch", "jax"]
STACKS = [100, 10_000, 200_000]
SIZES = [3, 6, 8, 12, 16, 24, 32]
LARGEST = 2**27  # bytes of a stack: there are fewer matrices where they are large


def functions():
    """The sizes of matrices that are given, as in rows, by the names of functions."""
    found = {}
    for name, function in inspect.getmembers(linalg, inspect.isfunction):
        rows = [row for value in function.__globals__.values() for row in as_rows(value)]
        if rows and hasattr(np.linalg, name):
            found[name] = [sizes for sizes in rows[0].inputs.values() if sizes != "11"]
    return found


def as_rows(value):
    """A row, or rows by options."""
    values = value.values() if isinstance(value, dict) else (value,)
    return [row for row in values if isinstance(row, Stacked)]


FUNCTIONS = functions()


def operands(name, stack, n):
    """Random matrices of order n with one right-hand side; positive definite ones where NumPy refuses others."""
    rng, nm = np.random.default_rng(n), min(stack, LARGEST // (8 * n * n))
    arrays = [rng.standard_normal((nm, *(1 if letter in "1r" else n for letter in sizes))) for sizes in FUNCTIONS[name]]
    try:
        getattr(np.linalg, name)(*[a[0] for a in arrays])
    except np.linalg.LinAlgError:
        a, *others = arrays
        arrays = [a @ a.swapaxes(1, 2) + n * np.eye(n), *others]
    return arrays


def one_by_one(*arrays):
    """numpy.linalg.lstsq, which does not take stacks."""
    return tuple(map(np.array, zip(*map(np.linalg.lstsq, *arrays), strict=True)))


def calls(name, arrays):
    """Calls to be timed, by library."""
    found = {"compactla": functools.partial(getattr(linalg, name), *arrays, threads=1)}
    found["numpy"] = functools.partial(one_by_one if name == "lstsq" else getattr(np.linalg, name), *arrays)
    for library, prepare in (("torch", in_torch), ("jax", in_jax)):
        if find_spec(library):
            found.update((library, call) for call in prepare(name, arrays))
    return found


def in_torch(name, arrays):
    import torch

    torch.set_num_threads(1)
    if function := getattr(torch.linalg, name, None):
        yield functools.partial(function, *map(torch.from_numpy, arrays))


def in_jax(name, arrays):
    import jax

    jax.config.update("jax_enable_x64", True)
    if function := getattr(jax.numpy.linalg, name, None):
        compiled, arrays = jax.jit(function), [*map(jax.numpy.asarray, arrays)]
        yield lambda: jax.block_until_ready(compiled(*arrays))


def same(name, found, expected):
    """Whether results are the same but for signs, which singular vectors and the like are free to have.

    Of general matrices eigenvalues have any order: their sums are.
    """
    if name in ("eig", "eigvals"):
        found, expected = (as_tuple(x)[0].sum(-1) for x in (found, expected))
    pairs = zip(as_tuple(found), as_tuple(expected), strict=True)
    return all(np.allclose(abs(x), abs(y), rtol=1e-6, atol=1e-6 * abs(y).max(initial=0)) for x, y in pairs)


def as_tuple(found):
    return found if isinstance(found, tuple) else (found,)


class Stacks(common.InTurns):
    """A stack of matrices in float64, one call after the other."""

    params = (LIBRARIES, list(FUNCTIONS), STACKS, SIZES)
    param_names = ("library", "function", "stack", "n")

    def prepare(self, name, stack, n):
        arrays = operands(name, stack, n)
        found = calls(name, arrays)
        assert same(name, found["compactla"](), found["numpy"]())
        return found, len(arrays[0])
