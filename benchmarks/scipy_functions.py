"""Functions of compactla.linalg that SciPy has for single matrices, on stacks in one thread, beside a loop of SciPy's.

Where SciPy has none, it does the same in another way: a factor of the sum for an update. `solve mixed` is beside NumPy.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.optimize

from compactla import linalg

from . import common

LIBRARIES = ["compactla", "scipy"]
STACKS = [100, 2000]
SIZES = [3, 8, 16, 32]


class Function(NamedTuple):
    """A function: its operands for random matrices and the order of these, itself, its peer, and what is compared."""

    operands: Callable[..., tuple]
    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    compared: Callable[..., Any] = lambda x: x


def loop(function):
    """A function of SciPy on stacks, one matrix after the other."""

    def call(*arrays):
        found = [function(*matrices) for matrices in zip(*arrays, strict=True)]
        return tuple(map(np.array, zip(*found, strict=True))) if isinstance(found[0], tuple) else np.array(found)

    return call


def options(name, **given):
    """Our function and SciPy's with the same options, the latter in a loop."""
    return functools.partial(getattr(linalg, name), **given), loop(
        functools.partial(getattr(scipy.linalg, name), **given)
    )


def usual(a):
    return (a,)


def regular(a):
    """Matrices whose eigenvalues are far from negative numbers."""
    return (a / np.sqrt(a.shape[-1]) + 2 * np.eye(a.shape[-1]),)


def definite(a):
    return (a @ a.swapaxes(1, 2) + np.eye(a.shape[-1]),)


def symmetric(a):
    return (a + a.swapaxes(1, 2),)


def system(matrices):
    """A right-hand side beside matrices."""
    return lambda a: (*matrices(a), a[:, :, :1].copy())


def pairs(a):
    return *symmetric(a), *definite(a)


def sylvester(a):
    (b,) = regular(a)
    return b, b.swapaxes(1, 2).copy(), a


def contracting(a):
    return a / (2 * np.linalg.norm(a, axis=(1, 2), keepdims=True)), a


def update(a):
    return np.linalg.cholesky(definite(a)[0]), a[:, 0].copy()


def back(t, z):
    """The matrices that similarities began with."""
    return z @ t @ z.swapaxes(-1, -2)


def factor_of_sum(c, x):
    return scipy.linalg.cholesky(c @ c.T + np.outer(x, x), lower=True)


FUNCTIONS = {
    "schur": Function(usual, *options("schur"), lambda found: back(*found)),
    "hessenberg": Function(usual, *options("hessenberg", calc_q=True), lambda found: back(*found)),
    "eigh b": Function(pairs, lambda a, b, **how: linalg.eigh(a, b=b, **how), loop(scipy.linalg.eigh), lambda x: x[0]),
    "eigvalsh b": Function(pairs, lambda a, b, **how: linalg.eigvalsh(a, b=b, **how), loop(scipy.linalg.eigvalsh)),
    "ldl": Function(symmetric, *options("ldl"), lambda found: back(found[1], found[0])),
    "solve sym": Function(system(symmetric), *options("solve", assume_a="sym")),
    "solve pos": Function(system(definite), *options("solve", assume_a="pos")),
    "solve mixed": Function(system(regular), functools.partial(linalg.solve, compute="mixed"), np.linalg.solve),
    "cholesky_update": Function(update, linalg.cholesky_update, loop(factor_of_sum)),
    "nnls": Function(lambda a: (a, a[:, 0].copy()), linalg.nnls, loop(scipy.optimize.nnls), lambda found: found[1]),
    "sqrtm": Function(regular, *options("sqrtm")),
    "logm": Function(regular, *options("logm")),
    "fractional_matrix_power": Function(regular, *options("fractional_matrix_power", t=0.3)),
    "expm": Function(usual, *options("expm")),
    "solve_sylvester": Function(sylvester, *options("solve_sylvester")),
    "solve_continuous_lyapunov": Function(lambda a: (*regular(a), a), *options("solve_continuous_lyapunov")),
    "solve_discrete_lyapunov": Function(contracting, *options("solve_discrete_lyapunov")),
}


def calls(name, stack, n):
    """Calls to be timed, by library, whose results were compared."""
    function = FUNCTIONS[name]
    arrays = function.operands(np.random.default_rng(n).standard_normal((stack, n, n)))
    found = {
        "compactla": functools.partial(function.ours, *arrays, threads=1),
        "scipy": functools.partial(function.theirs, *arrays),
    }
    ours, theirs = (function.compared(call()) for call in found.values())
    scale = abs(theirs).max((1, 2) if theirs.ndim == 3 else None, keepdims=True, initial=0)
    assert (abs(ours - theirs) <= 1e-6 * scale).all(), name
    return found


class Functions(common.InTurns):
    """A stack of matrices in float64, one call after the other."""

    params = (LIBRARIES, list(FUNCTIONS), STACKS, SIZES)
    param_names = ("library", "function", "stack", "n")

    def prepare(self, name, stack, n):
        return calls(name, stack, n), stack
