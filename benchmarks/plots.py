"""Draw what was measured: `python -m benchmarks.plots`; with `--measure` first measure this machine.

Measurements are kept in benchmarks/results, a JSON file for each processor; every file there is drawn anew.
"""

import argparse
import json
import re
from itertools import chain
from math import atan, degrees
from pathlib import Path

from compactla.bench import cases, mkl
from compactla.bench.ceilings import working_sets
from compactla.bench.measure import as_dict, ceiling, environment, from_dict, measure, measure_lines
from compactla.bench.table import ROWS, progress_bar, row_line
from compactla.cpu.parallel import THREADS

FOLDER = Path(__file__).parent / "results"
BATCH, LINES = 16384, 1024
SIZES, BLOCKS = [3, 5, 8, 10, 12, 15, 16, 20, 24, 32], [3, 5, 8, 10, 15]
LABELLED = [3, 5, 10, 15]  # in the roofline
ROUTINES = {"gemm": cases.Gemm, "trsm": cases.Trsm, "getrfnp": cases.Getrfnp}
COLORS = {"compactla": "#0072b2", "MKL": "#009e73", "numpy": "#e69f00", "scipy": "#cc79a7"}
MARKS = {"gemm": "o", "trsm": "s", "getrfnp": "^", "factor": "D", "solve": "v"}
NO_DATE = {"svg": {"Date": None}}  # the same measurements make the same file
STYLE = {
    "font.size": 9,
    "font.sans-serif": ["DejaVu Sans"],
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "compactla",
}


def measure_machine(library):
    """Measure all that is drawn, print it, and keep it; for minutes."""
    rows = []
    with progress_bar(len(ROUTINES) * len(SIZES) + len(BLOCKS)) as bar:
        bar.write(ROWS)
        batches = (measure(make, n, BATCH, library) for make in ROUTINES.values() for n in SIZES)
        for job in chain(batches, (measure_lines(b, LINES, library) for b in BLOCKS)):
            for row in job:
                rows.append(row)
                bar.write(row_line(row))
            bar.update()
    roofs = [ceiling(nbytes, "float64") for nbytes in working_sets(THREADS)]
    known = environment()
    name = re.sub(r"\W+", "-", f"{known['processor']} {known['target']}".lower()).strip("-")
    FOLDER.mkdir(exist_ok=True)
    results = known | {"roofs": [roof._asdict() for roof in roofs], "rows": [as_dict(row) for row in rows]}
    (FOLDER / f"{name}.json").write_text(json.dumps(results, default=float, indent=0) + "\n")


def draw(file, suffix="svg"):
    """The plots of one file of measurements, beside it."""
    from matplotlib import pyplot, rc_context

    results = json.loads(file.read_text())
    rows = [from_dict(row) for row in results["rows"]]
    threads = results["threads"]
    machine = f"{results['processor']} ({results['target']}), {threads} thread{'s' if threads > 1 else ''}, float64"
    with rc_context(STYLE):
        for name, plot in (("roofline", roofline), ("sizes", sizes), ("lines", lines)):
            figure = plot(pyplot, rows, results["roofs"])
            figure.suptitle(f"{plot.__doc__}\n{machine}", fontsize=10)
            target = file.with_name(f"{file.stem}-{name}.{suffix}")
            figure.savefig(target, dpi=100, metadata=NO_DATE.get(suffix))
            pyplot.close(figure)
            if suffix == "svg":
                target.write_text(shortened(target.read_text()))


def shortened(svg):
    """The same picture in half the bytes: two decimals, no comments, names of groups, rotations by 0, indentation."""
    for pattern, short in (
        (r"<!--.*?-->", ""),
        (r"(\d\.\d\d)\d+", r"\1"),
        (r'<g id="[^"]*">', "<g>"),
        (r' transform="rotate\(-0 [^"]*\)"', ""),
        (r"\n\s+", "\n"),
    ):
        svg = re.sub(pattern, short, svg, flags=re.DOTALL)
    return svg


def library_of(row):
    return row.what.split()[0]


def roofline(pyplot, rows, roofs):
    """Speed against arithmetic intensity, batches called from Python"""
    figure, axes = pyplot.subplots(figsize=(6.4, 4.4), layout="constrained")
    peak = max(roof["peak"] for roof in roofs) / 1e9
    left, right = 0.07, 8
    for roof in roofs:
        bandwidth = max(roof["bandwidth"].values()) / 1e9
        knee = peak / bandwidth
        axes.plot([left, knee, right], [left * bandwidth, peak, peak], color="0.45", linewidth=1)
        if knee > left:
            along = {"rotation": degrees(atan(bandwidth)), "rotation_mode": "anchor", "transform_rotates_text": True}
            name, x = f"{roof['level']} {bandwidth:.0f} GB/s", 1.05 * left
            axes.text(x, x * bandwidth, name, **along, color="0.35", va="bottom", fontsize=8)
    axes.annotate(f"multiply-adds {peak:.0f} GFlop/s", (right, peak), color="0.35", ha="right", va="bottom", fontsize=8)
    for color, (routine, mark) in enumerate(MARKS.items()):
        ours = (r for r in rows if r.routine == routine and r.what == "compactla" and not r.in_cache)
        drawn = [r for r in ours if r.n in LABELLED]
        points = [(r.flops / r.nbytes, r.flops / r.seconds / 1e9) for r in drawn]
        axes.plot(*zip(*points, strict=True), mark, color=f"C{color}", label=routine, linestyle="-", linewidth=0.5)
        for row, point in zip(drawn, points, strict=True):
            axes.annotate(str(row.n), point, xytext=(4, -8), textcoords="offset points", fontsize=7)
    axes.set(xscale="log", yscale="log", xlim=(left, right), xlabel="flop / byte", ylabel="GFlop/s")
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)
    axes.legend(loc="lower right", title="order of matrices at the points")
    return figure


def sizes(pyplot, rows, roofs):
    """Speed over the order of the matrices"""
    figure, grid = pyplot.subplots(2, 3, figsize=(9, 5.6), sharex=True, sharey="row", layout="constrained")
    for column, routine in enumerate(ROUTINES):
        for axes, in_cache in zip(grid[:, column], (True, False), strict=True):
            drawn = [row for row in rows if row.routine == routine and row.in_cache == in_cache]
            for name, color in COLORS.items():
                best = fastest(row for row in drawn if library_of(row) == name)
                if best:
                    speed = [row.of_peak if in_cache else row.flops / row.seconds / 1e9 for row in best]
                    axes.plot([row.n for row in best], speed, "o-", markersize=3, color=color)
            ours = fastest(row for row in drawn if row.what == "compactla")
            bound = [row.flops / least_time(row) / (row.ceiling.peak if in_cache else 1e9) for row in ours]
            axes.plot([row.n for row in ours], bound, "--", color="0.4", linewidth=1)
            axes.set_xticks([3, 10, 16, 24, 32])
        grid[0, column].set_title(routine)
        grid[1, column].set_xlabel("n")
    grid[0, 0].set(ylim=(0, None), ylabel="fraction of peak, 1 thread\n64 matrices in cache")
    grid[1, 0].set(ylim=(0, None), ylabel=f"GFlop/s, {BATCH} matrices\ncalled from Python")
    add_legend(figure, rows, ROUTINES)
    return figure


def lines(pyplot, rows, roofs):
    """1024 block tridiagonal lines of 128 blocks, one right-hand side"""
    figure, grid = pyplot.subplots(1, 3, figsize=(9, 3.6), sharey=True, layout="constrained")
    for axes, routine in zip(grid, ("factor", "solve", "both"), strict=True):
        drawn = [row for row in rows if row.routine == routine]
        for name, color in COLORS.items():
            best = fastest(row for row in drawn if library_of(row) == name)
            if best:
                axes.plot([row.n for row in best], [row.seconds * 1e3 for row in best], "o-", markersize=3, color=color)
        ours = fastest(row for row in drawn if row.what == "compactla")
        axes.plot([row.n for row in ours], [1e3 * least_time(row) for row in ours], "--", color="0.4", linewidth=1)
        title = "factor and solve" if routine == "both" else routine
        axes.set(title=title, yscale="log", xlabel="block size b", xticks=BLOCKS)
    grid[0].set_ylabel("time / ms")
    plain_ticks(grid[0].yaxis, subs=(1,))
    add_legend(figure, rows, ("factor", "solve", "both"))
    return figure


def plain_ticks(axis, subs=(1, 2, 5)):
    """Numbers such as 0.2 and 50 at the ticks of a logarithmic axis."""
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))


def least_time(row):
    return row.ceiling.least_time(row.flops, row.nbytes, row.loop)


def fastest(rows):
    """The fastest row of each n."""
    best = {}
    for row in rows:
        if row.n not in best or row.seconds < best[row.n].seconds:
            best[row.n] = row
    return [best[n] for n in sorted(best)]


def add_legend(figure, rows, routines):
    """What the colours are, under the plots: each library, with the routines of it that are drawn, and the bound."""
    from matplotlib.lines import Line2D

    handles = []
    for name, color in COLORS.items():
        used = dict.fromkeys(label(row) for row in rows if library_of(row) == name and row.routine in routines)
        if used:
            handles.append(Line2D([], [], color=color, marker="o", markersize=3, label=", ".join(used)))
    bound = "max(flops / peak, bytes / bandwidth)"
    handles.append(Line2D([], [], color="0.4", linestyle="--", linewidth=1, label=bound))
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=8)


def label(row):
    """A library's name without the routine of it, which the page of the plots names; MKL's version is said."""
    library, *rest = row.what.split()
    return {"numpy": "NumPy", "scipy": "SciPy", "MKL": f"MKL {rest[0]} compact" if rest else ""}.get(library, library)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="measure this machine first, for some minutes")
    parser.add_argument("--mkl", metavar="FILE", help="libmkl_rt to compare with (default: of the package mkl)")
    args = parser.parse_args()
    if args.measure:
        measure_machine(mkl.load(args.mkl))
    for file in sorted(FOLDER.glob("*.json")):
        draw(file)


if __name__ == "__main__":
    main()
