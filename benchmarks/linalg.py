"""Functions of compactla.linalg on stacks, in one thread, and beside them those of the same names in NumPy or SciPy,
PyTorch and JAX.

There are all functions that have a row and need nothing but its inputs.
"""

import functools
import inspect
import itertools
from importlib.util import find_spec

import numpy as np
import scipy.linalg

from compactla import linalg
from compactla.bench.timing import AT_ONCE, best
from compactla.linalg.stacks import Stacked

from . import common

LIBRARIES = ["compactla", "numpy", "torch", "jax"]
STACKS = [100, 10_000, 200_000]
SIZES = [3, 6, 8, 12, 16, 24, 32]
LARGEST = 2**28  # bytes of a stack: there are fewer matrices where they are large
ROUNDS = 3


def functions():
    """The sizes of inputs, as in rows, by the names of functions."""
    found = {}
    for name in linalg.__all__:
        function = getattr(linalg, name)
        rows = [row for row in getattr(function, "__globals__", {}).values() if isinstance(row, Stacked)]
        if rows and required(function) == len(rows[0].inputs):
            found[name] = rows[0].inputs
    return found


def required(function):
    """How many arguments a function needs."""
    parameters = inspect.signature(function).parameters.values()
    return sum(p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters)


FUNCTIONS = functions()


def operands(name, stack, n):
    """Random matrices of order n with one right-hand side; positive definite ones where NumPy refuses others."""
    rng, nm = np.random.default_rng(n), min(stack, LARGEST // (8 * n * n))
    arrays = [rng.standard_normal((nm, *(1 if letter in "1r" else n for letter in sizes))) for sizes in FUNCTIONS[name]]
    try:
        numpy_or_scipy(name)(*[a[:1] for a in arrays])
    except np.linalg.LinAlgError:
        a, *others = arrays
        arrays = [a @ a.swapaxes(1, 2) + n * np.eye(n), *others]
    return arrays


def numpy_or_scipy(name):
    return getattr(np.linalg, name, None) or getattr(scipy.linalg, name)


def calls(name, arrays):
    """What is timed, by library."""
    found = {"compactla": functools.partial(getattr(linalg, name), *arrays, threads=1)}
    found["numpy"] = functools.partial(numpy_or_scipy(name), *arrays)
    for library, prepare in (("torch", in_torch), ("jax", in_jax)):
        if find_spec(library):
            found |= {library: call for call in prepare(name, arrays)}
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


def same(found, expected):
    """Whether results are the same but for signs, which singular vectors and the like are free to have."""
    pairs = zip(as_tuple(found), as_tuple(expected), strict=True)
    return all(np.allclose(abs(x), abs(y), rtol=1e-6, atol=1e-6 * abs(y).max(initial=0)) for x, y in pairs)


def as_tuple(found):
    return found if isinstance(found, tuple) else (found,)


class Stacks(common.Once):
    """A stack of matrices in float64, one call after the other."""

    params = (LIBRARIES, list(FUNCTIONS), STACKS, SIZES)
    param_names = ("library", "function", "stack", "n")

    def setup(self, library, *parameters):
        self.measured = self.once(parameters, self.measure)
        if library not in self.measured:
            raise common.SkipNotImplemented(f"no {library} here")

    def measure(self, name, stack, n):
        """Nanoseconds for a matrix, by library: the least of what is measured in turns."""
        arrays = operands(name, stack, n)
        found = calls(name, arrays)
        assert same(found["compactla"](), found["numpy"]())
        seconds = {library: [] for library in found}
        for _, (library, call) in itertools.product(range(ROUNDS), found.items()):
            seconds[library].append(best(call, AT_ONCE, 2))
        return {library: 1e9 * min(times) / len(arrays[0]) for library, times in seconds.items()}

    def track_time_per_matrix(self, library, *_):
        return common.rounded(self.measured[library])

    track_time_per_matrix.unit = "ns"
