"""What examples share: options of the command line, times of ways to do the same, and pictures."""

import argparse
import contextlib
import re
import time

import numpy as np

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
    results, seconds : dict
        What the functions returned, and their median times, by name.
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
    return results, {name: float(np.median(theirs)) for name, theirs in times.items()}


def milliseconds(seconds):
    return f"{1e3 * seconds:.3g} ms" if seconds < 0.9995 else f"{1e3 * seconds:.0f} ms"


def beside_numpy(program):
    """Results of a program with compactla.linalg and with numpy.linalg, whose times are compared."""
    ways = {"compactla.linalg": lambda: program(linalg), "numpy.linalg": lambda: program(np.linalg)}
    return compare(ways)[0].values()


@contextlib.contextmanager
def drawing(path, columns=2, **layout):
    """Axes side by side, written to a file at the end, with the legends that they have labels for."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2 + 4.5 * columns, 4), layout="constrained")
    grid = figure.subplots(1, columns, squeeze=False, **layout)[0]
    yield figure, *grid
    for axes in grid:
        if axes.get_legend_handles_labels()[0]:
            axes.legend()
    figure.savefig(path, dpi=120)
    print(f"plot: {path}")


def draw_residuals(axes, histories, title, xlabel="iterations"):
    """Norms of residuals in each iteration, relative to the first, by name."""
    for name, history in histories.items():
        axes.semilogy(np.asarray(history) / history[0], label=f"{name}: {len(history) - 1} {xlabel}")
    axes.set(title=title, xlabel=xlabel, ylabel="relative residual")
    axes.grid(alpha=0.3)
