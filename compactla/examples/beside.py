"""What examples share: options of the command line, times of ways to do the same, and what these are beside."""

import argparse
import functools
import re
import time
import warnings

import numpy as np
import scipy.linalg

from compactla import linalg
from compactla.bench.timing import in_turns
from compactla.cpu.threads.sharing import THREADS


def arguments(doc, argv, **defaults):
    """Options of a program, which have the types of their defaults, and ``--plot``.

    Parameters
    ----------
    doc : str
        The text of the program's module, whose first line says what it does and how it is started.
    argv : list of str or None
        Arguments of the command line.
    **defaults
        What options are without them, by name; a tuple stands for several values.
    """
    name = re.search(r"``(python -m .*?) --plot", doc)[1]
    parser = argparse.ArgumentParser(prog=name, description=doc.splitlines()[0])
    for option, default in defaults.items():
        many = isinstance(default, tuple)
        kind = {"type": type(default[0] if many else default), "nargs": len(default) if many else None}
        parser.add_argument(f"--{option}", default=default, help="(default: %(default)s)", **kind)
    parser.add_argument("--plot", metavar="FILE.png", help="draw a picture")
    return parser.parse_args(argv)


def compare(ways, rounds=5):
    """Call functions that do the same in turns, and print their times, and ratios to the first.

    Parameters
    ----------
    ways : dict of str to function
        Functions by the names that are printed; the first is of compactla.
    rounds : int, optional
        How often each is called, after a first time, in which kernels are compiled or loaded.

    Returns
    -------
    dict
        What the functions returned, by name.
    """
    results = {}

    def timed(name):
        start = time.perf_counter()
        results[name] = ways[name]()
        return time.perf_counter() - start

    first, *_ = [timed(name) for name in ways]
    calls = [lambda name=name: timed(name) for name in ways]
    times = dict(zip(ways, np.array(in_turns(calls, rounds)), strict=True))
    ours = next(iter(times.values()))
    for name, theirs in times.items():
        low, ratio, high = np.quantile(theirs / ours, (0.25, 0.5, 0.75))
        told = f"{ratio:.3g} +- {(high - low) / 2:.2g} times as long"
        if theirs is ours:
            told = f"on {THREADS} threads (the first time {milliseconds(first)})"
        print(f"{name}: {milliseconds(np.median(theirs))}, {told}")
    return results


def milliseconds(seconds):
    return f"{1e3 * seconds:.3g} ms" if seconds < 0.9995 else f"{1e3 * seconds:.0f} ms"


def beside_numpy(program):
    """Results of a program with compactla.linalg and with numpy.linalg, whose times are compared."""
    ways = {"compactla.linalg": lambda: program(linalg), "numpy.linalg": lambda: program(np.linalg)}
    return compare(ways).values()


def solve_vectors(a, b):
    """NumPy's solve, for a vector of each matrix."""
    return np.linalg.solve(a, b[..., None])[..., 0]


def symmetric_by_loop(a, b):
    """Solutions by SciPy, one symmetric system after the other."""
    solve = functools.partial(scipy.linalg.solve, assume_a="sym", check_finite=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", scipy.linalg.LinAlgWarning)  # of matrices that are ill-conditioned, as expected
        return np.stack([solve(matrix, side) for matrix, side in zip(a, b, strict=True)])


def thomas(lower, diag, upper, u):
    """Thomas' algorithm in NumPy, for all tridiagonal systems along the first axis at once."""
    pivot, x = diag.copy(), u.copy()
    for k in range(1, len(u)):
        factor = lower[k - 1] / pivot[k - 1]
        pivot[k] -= factor * upper[k - 1]
        x[k] -= factor * x[k - 1]
    x[-1] /= pivot[-1]
    for k in reversed(range(len(u) - 1)):
        x[k] = (x[k] - upper[k] * x[k + 1]) / pivot[k]
    return x
