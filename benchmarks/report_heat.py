"""Heat maps of `benchmarks.report`: functions of `compactla.linalg` over the order of matrices."""

import ast
from math import log10, nan

from .report_results import STACKS

SCALES = {  # of a map: its title, colours, and values at their ends
    "of_bound": ("per cent of the bound, max(bytes / bandwidth, flops / peak)", "YlGnBu", (0, 1)),
    "ratio": ("times as fast as the fastest of {} (orange: slower)", "PuOr", (-2, 2)),
}
NAMES = {"torch": "PyTorch", "cupy": "CuPy", "jax": "JAX", "numpy": "NumPy", "scipy": "SciPy", "mkl": "MKL compact"}


def functions(machine, dtype):
    """Names of what was measured in a type, in the order of the benchmark."""
    time = f"{machine.stacks()}.track_time_per_matrix"
    keys = (key for run in machine.runs for key in run.values if key[:2] == (time, "'compactla'"))
    found = dict.fromkeys(key[2] for key in keys if key[3] == repr(dtype))
    return [ast.literal_eval(name) for name in found]


def of_bound(machine, function, dtype, n):
    """The fraction of the bound, and how it is written."""
    *_, part, _ = machine.stack(function, dtype, n)
    return (nan, "") if part is None else (part, f"{100 * part:.0f}")


def ratio(machine, function, dtype, n):
    """The logarithm of how many times as long the fastest other library takes, and how the ratio is written."""
    _, ours, best, *_ = machine.stack(function, dtype, n)
    if ours is None or best is None:
        return nan, ""
    times = best / ours
    return log10(times), ">999" if times > 999 else f"{times:.0f}" if times > 9.95 else f"{times:.1f}"


def compared_with(machine):
    """Words for the other libraries that were measured."""
    time = f"{machine.stacks()}.track_time_per_matrix"
    there = {key[1] for run in machine.runs for key in run.values if key[0] == time}
    names = [NAMES[library] for library in STACKS[machine.stacks()] if repr(library) in there]
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def heat(machine, dtype):
    """Two maps, one above the other: fractions of the bound, and ratios to the fastest other library."""
    from matplotlib.figure import Figure

    names = functions(machine, dtype)
    if not names:
        return None
    sizes = machine.sizes(f"{machine.stacks()}.track_time_per_matrix")
    figure = Figure(figsize=(8, 0.5 * len(names) + 1.5), layout="constrained")
    grid = figure.subplots(2, 1, sharex=True)
    for axes, entry, (title, colours, ends) in zip(grid, (of_bound, ratio), SCALES.values(), strict=True):
        cells = [[entry(machine, name, dtype, n) for n in sizes] for name in names]
        image = axes.pcolormesh(
            [[min(value, ends[1]) for value, _ in row] for row in cells],
            cmap=colours,
            vmin=ends[0],
            vmax=ends[1],
            edgecolors="white",
        )
        for row, line in enumerate(cells):
            for column, (value, text) in enumerate(line):
                dark = sum(image.cmap(image.norm(value))[:3]) < 1.5
                axes.text(
                    column + 0.5, row + 0.5, text, ha="center", va="center", fontsize=8, color="w" if dark else "0.1"
                )
        axes.set_title(title.format(compared_with(machine)), fontsize=9)
        axes.set_yticks([row + 0.5 for row in range(len(names))], names)
        axes.set_xticks([column + 0.5 for column in range(len(sizes))], sizes)
        axes.tick_params(length=0)
        axes.grid(False)
        axes.spines[:].set_visible(False)
        axes.invert_yaxis()
    grid[1].set_xlabel("n")
    return figure
