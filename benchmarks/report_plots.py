"""The plots of `benchmarks.report`: the figures of the SC17 slides, in float64."""

import itertools
import re
from functools import partial
from math import atan, degrees, isfinite, nan
from operator import mul, truediv

from .report_heat import heat
from .report_results import DEVICES, LEVELS, LOOPS, PEERS, ROUTINES, lines_of

# Of a roofline: the marks and colours of routines in turns; where the first and last points have labels.
MARKS = "o#332288", "s#44aa99", "^#999933", "P#ddcc77", "X#117733", "*#aa4499", "h#88ccee"
LINES = {"factor": ("D", "#882255", (-8, 4)), "solve": ("v", "#cc6677", (-8, 4))}
LIBRARIES = {  # what devices and libraries are called in legends, and their colours
    "numba": ("compactla", "#0072b2"),
    "opencl": ("compactla", "#0072b2"),
    "mkl": ("MKL compact", "#009e73"),
    "numpy": ("NumPy", "#e69f00"),
    "scipy": ("SciPy", "#cc79a7"),
    "cupy": ("cuBLAS", "#d55e00"),
    "torch": ("PyTorch", "#56b4e9"),
}
SHADES = "#cc79a7", "#0072b2", "#009e73"  # of stacks, the smallest first
BOUND = "bound: max(flops / peak, bytes / bandwidth)"
STYLE = {
    "font.size": 9,
    "font.sans-serif": ["DejaVu Sans"],
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "compactla",  # the same measurements make the same file
}


def draw(machine, folder):
    """Draw what there are results for, as SVG files in a folder; their names, and what they show."""
    from matplotlib import rc_context

    drawn = {}
    plots = {"roofline": roofline, "sizes": sizes, "lines": lines, "linalg": stacks}
    plots = {name: (plot.__doc__, plot) for name, plot in plots.items()}
    for dtype in ("float64", "float32"):
        plots[f"heat-{dtype}"] = (
            f"Functions of compactla.linalg on matrices of order n, {dtype}",
            partial(heat, dtype=dtype),
        )
    for name, (shows, plot) in plots.items():
        with rc_context(STYLE):
            before, machine.used = machine.used, {}
            figure = plot(machine)
            dates, machine.used = sorted(machine.used.values()), before | machine.used
            if figure is None:
                continue
            measured = " to ".join(str(date) for date in dict.fromkeys((dates[0], dates[-1])))
            figure.suptitle(f"{shows}\n{machine.about.get('cpu') or machine.name}, {measured}", fontsize=10)
            file = folder / f"{machine.name}-{name}.svg"
            figure.savefig(file, metadata={"Date": None})
        file.write_text(shortened(file.read_text()))
        drawn[name] = shows
    return drawn


def shortened(svg):
    """The picture in half the bytes: two decimals, no comments, names of groups, rotations by 0 or indentation."""
    for pattern, short in (
        (r"<!--.*?-->", ""),
        (r"(\d\.\d\d)\d+", r"\1"),
        (r'<g id="[^"]*">', "<g>"),
        (r' transform="rotate\(-0 [^"]*\)"', ""),
        (r"\n\s+", "\n"),
    ):
        svg = re.sub(pattern, short, svg, flags=re.DOTALL)
    return svg


def panels(rows, columns, width, height, **shared):
    """A figure with a grid of plots."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows + 1), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **shared)


def add_legend(figure):
    """Add one legend under all plots of a figure."""
    handles = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if BOUND in handles:
        handles[BOUND] = handles.pop(BOUND)  # the last
    columns = 4 if len(handles) > 5 else 5
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=columns, fontsize=8)
    figure.align_ylabels()


def devices_with(machine, *benchmarks):
    """The devices that have values of any of these; of OpenCL's the CPU only where there is no GPU."""
    found = [d for d in DEVICES if any(any(values(machine, benchmark, d)) for benchmark in benchmarks)]
    return [d for d in found if d != "opencl:cpu" or "opencl:gpu" not in found]


def values(machine, benchmark, device):
    """Values in float64 over all sizes, None where there are none."""
    return [machine.value(benchmark, device, "float64", n) for n in machine.sizes(benchmark)]


def draw_curves(axes, machine, benchmark, devices, scale=1):
    """A benchmark over sizes, on a device and in other libraries."""
    for device in devices:
        measured = zip(machine.sizes(benchmark), values(machine, benchmark, device), strict=True)
        points = [(n, scale * value) for n, value in measured if value]
        if points:
            label, color = LIBRARIES[device.partition(":")[0]]
            axes.plot(*zip(*points, strict=True), "o-", markersize=3, color=color, label=label)


def draw_bound(axes, machine, benchmark, fraction, device, bound, scale=1):
    """The bound over sizes: a function of a value and of the fraction of the bound that it is, in the same run."""
    bounds = []
    for n in machine.sizes(benchmark):
        run = machine.newest(benchmark, device, "float64", n)
        value, part = (run.value(name, device, "float64", n) for name in (benchmark, fraction))
        bounds.append(scale * bound(value, part) if value and part else nan)
    if any(map(isfinite, bounds)):
        axes.plot(machine.sizes(benchmark), bounds, "--", color="0.4", linewidth=1, label=BOUND)


def roofline(machine):
    """Speed over arithmetic intensity, float64; at the points: order of matrices or blocks"""
    peaks = {device: machine.value("ceilings.Peak.track_peak", device, "float64") for device in DEVICES}
    points = styles(machine)
    speeds = [f"{speed}.track_gflops" for speed, *_ in points.values()]
    devices = [device for device in devices_with(machine, *speeds) if peaks[device]]
    if not devices:
        return None
    figure, grid = panels(1, len(devices), 3.4 if len(devices) > 1 else 6, 3.6)
    for axes, device in zip(grid[0], devices, strict=True):
        draw_roofs(axes, machine, device, peaks[device])
        for routine, style in points.items():
            draw_points(axes, machine, device, routine, *style)
        axes.set(xscale="log", yscale="log", xlabel="flop / byte", title=DEVICES[device])
        plain_ticks(axes.xaxis, subs=(1,))
        plain_ticks(axes.yaxis)
    grid[0, 0].set_ylabel("GFlop/s")
    add_legend(figure)
    return figure


def measured(machine):
    """The routines that there are speeds of, and how their benchmarks begin."""
    kinds = "Speed.track_gflops", "InCache.track_fraction_of_peak"
    return {name: of for name, of in ROUTINES.items() if any(machine.sizes(f"{of}{kind}") for kind in kinds)}


def styles(machine):
    """The benchmarks behind the points of a roofline, their marks and colours, and the places of their labels."""
    routines = zip(measured(machine).items(), itertools.cycle(MARKS), strict=False)
    found = {name: (f"{of}Speed", style[0], style[1:], (5, -7)) for (name, of), style in routines}
    return found | {name: (f"blocktridiag.{name.capitalize()}Speed", *style) for name, style in LINES.items()}


def draw_roofs(axes, machine, device, peak):
    """The fastest loop over each cache and over memory, and the peak."""
    left, knees = 0.02, []  # names of roofs stand to the left of all points
    for level in LEVELS:
        found = (machine.value("ceilings.Bandwidth.track_bandwidth", device, level, loop) or 0 for loop in LOOPS)
        bandwidth, loop = max(zip(found, LOOPS, strict=True))
        if bandwidth:
            knees.append(peak / bandwidth)
            axes.plot([left, knees[-1]], [left * bandwidth, peak], color="0.45", linewidth=1)
            along = {"rotation": degrees(atan(bandwidth)), "rotation_mode": "anchor", "transform_rotates_text": True}
            near = len(knees) > 1 and knees[-1] < 1.5 * knees[-2]  # the next roof above: the name goes under this one
            name, x, va = f"{level} {bandwidth:.0f} GB/s, {loop}", 1.2 * left, "top" if near else "bottom"
            axes.text(x, x * bandwidth, name, **along, color="0.35", va=va, fontsize=7)
    right = 2 * max([4, *knees])
    axes.plot([min(knees, default=left), right], [peak, peak], color="0.45", linewidth=1)
    axes.annotate(f"multiply-adds {peak:.0f} GFlop/s", (right, peak), color="0.35", ha="right", va="bottom", fontsize=7)
    axes.set_xlim(left, right)


def draw_points(axes, machine, device, routine, speed, mark, color, offset):
    """Draw the speed of one routine over the operations for each byte that it moves."""
    points = {}
    for n in machine.sizes(f"{speed}.track_gflops"):
        run = machine.newest(f"{speed}.track_gflops", device, "float64", n)
        gflops = run.value(f"{speed}.track_gflops", device, "float64", n)
        bandwidth = run.value(f"{speed}.track_bandwidth", device, "float64", n)
        if gflops and bandwidth:
            points[n] = gflops / bandwidth, gflops
    if not points:
        return
    style = {"linestyle": "-", "linewidth": 0.5, "markersize": 4}
    axes.plot(*zip(*points.values(), strict=True), mark, color=color, label=routine, **style)
    for n in {min(points), max(points)}:
        axes.annotate(str(n), points[n], xytext=offset, textcoords="offset points", fontsize=7)


def sizes(machine):
    """Speed over the order of the matrices, float64"""
    rows, routines = [], measured(machine)
    if devices_with(machine, *(f"{routine}InCache.track_fraction_of_peak" for routine in routines.values())):
        label = "fraction of peak\nin cache, one thread"
        rows.append(("InCache", "track_fraction_of_peak", "numba:1", ["mkl:1"], label))
    for device in devices_with(machine, *(f"{routine}Speed.track_gflops" for routine in routines.values())):
        rows.append(("Speed", "track_gflops", device, PEERS[device], f"GFlop/s\n{DEVICES[device]}"))
    if not rows:
        return None
    figure, grid = panels(len(rows), len(routines), 3, 2.1, sharex=True, sharey="row")
    for plots, (kind, unit, device, peers, label) in zip(grid, rows, strict=True):
        for axes, routine in zip(plots, routines.values(), strict=True):
            speed, fraction = f"{routine}{kind}.{unit}", f"{routine}{kind}.track_fraction_of_bound"
            draw_curves(axes, machine, speed, [device, *peers])
            draw_bound(axes, machine, speed, fraction, device, truediv)
            axes.set_xticks([3, 10, 16, 24, 32])
        plots[0].set(ylim=(0, 1.05 if kind == "InCache" else None), ylabel=label)
    for axes, routine in zip(grid[0], routines, strict=True):
        axes.set_title(routine)
    for axes in grid[-1]:
        axes.set_xlabel("n")
    add_legend(figure)
    return figure


def lines(machine):
    """Lines of 128 blocks, one right-hand side, float64"""
    routines = ["Factor", "Solve"]
    times = [f"blocktridiag.{routine}.time_call" for routine in routines]
    devices = devices_with(machine, *times)
    if not devices:
        return None
    figure, grid = panels(len(devices), len(routines), 4.2, 2.4, sharex=True, sharey="row")
    for plots, device in zip(grid, devices, strict=True):
        for axes, time, routine in zip(plots, times, routines, strict=True):
            draw_curves(axes, machine, time, [device, *PEERS[device]], scale=1e3)
            fraction = f"blocktridiag.{routine}Speed.track_fraction_of_bound"
            draw_bound(axes, machine, time, fraction, device, mul, scale=1e3)
            axes.set(yscale="log", xticks=machine.sizes(time))
        small, large = lines_of(device, 5), lines_of(device, 6)
        count = f"{small} lines" if small == large else f"{small} lines, {large} where b > 5"
        plots[0].set_ylabel(f"time / ms, {DEVICES[device]}\n{count}")
        plain_ticks(plots[0].yaxis)
    for axes, routine in zip(grid[0], routines, strict=True):
        axes.set_title(routine.lower())
    for axes in grid[-1]:
        axes.set_xlabel("block size b")
    add_legend(figure)
    return figure


def stacks(machine):
    """compactla.linalg and numpy.linalg on stacks of matrices of order n, float64, one thread"""
    time = "linalg.Stacks.track_time_per_matrix"
    found = {key[2:] for run in machine.runs for key in run.values if key[0] == time}
    if not found:
        return None
    names = sorted({key[0].strip("'") for key in found})
    columns, sizes = min(4, len(names)), machine.sizes(time)
    figure, grid = panels(-(-len(names) // columns), columns, 2.6, 1.9, sharex=True, sharey=True)
    for axes in grid.flat[len(names) :]:
        axes.set_axis_off()
    for axes, name in zip(grid.flat, names, strict=False):
        for stack, color in zip(sorted({int(key[1]) for key in found}), SHADES, strict=False):
            points = []
            for n in sizes:
                run = machine.newest(time, "numpy", name, stack, n)
                theirs, ours = (run.value(time, library, name, stack, n) for library in ("numpy", "compactla"))
                points += [(n, theirs / ours)] if theirs and ours else []
            if points:
                axes.plot(*zip(*points, strict=True), "o-", markersize=3, color=color, label=f"{stack:,} matrices")
        axes.axhline(1, color="0.4", linewidth=1)
        axes.set(title=name, yscale="log", xticks=[3, 8, 16, 24, 32])
        plain_ticks(axes.yaxis)
    for plots in grid:
        plots[0].set_ylabel("times as fast as NumPy")
    for axes in grid[-1]:
        axes.set_xlabel("n")
    add_legend(figure)
    return figure


def plain_ticks(axis, subs=(1, 2, 5)):
    """Numbers such as 0.2 and 50 at the ticks of a logarithmic axis."""
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
