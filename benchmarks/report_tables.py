"""The tables of `benchmarks.report`, in Markdown: all in float64, empty where nothing was measured."""

import ast
import re

from .report_results import DEVICES, LEVELS, LOOPS, PEERS, ROUTINES, lines_of

BATCHES = {}  # of benchmarks by the heads of columns; of all routines, though not all have a second one
for _name, _benchmark in ROUTINES.items():
    BATCHES |= {_name: f"{_benchmark}Speed", f"{_name}, beta = 0": f"{_benchmark}ProductSpeed"}
BATCHES |= {"pack": "pack.PackTraffic", "unpack": "pack.UnpackTraffic"}
MATRICES = {"sherman5": "sherman5, 48 lines of 23 blocks, b = 3", "grid": "grid, 2500 lines of 50 blocks, b = 5"}


MARKS = "", "†", "‡", "§", "¶"  # of the newest commit in a table, and of older ones
COMMIT = re.compile(r"\{(\w+)\}")  # after what a run measured
PASSED = """Above 100 %: no loop moves bytes just as a routine does. The bound is the time of the loop that is most like it, for as
many bytes. A product reads three numbers for each that it writes, that loop two, and reading is faster than writing. LU
need not write the first row of U.
"""  # noqa: E501 - as wide as the pages
APART = """Above 100 % and without ±: the bandwidth was measured at another time than the call.
"""


def table(machine, header, rows, names=1):
    """A table in Markdown; rows that are empty after so many names are left out, and tables without rows.

    Notes below it name the commits, and say why bounds are passed.
    """
    filled = [row for row in rows if any(row[names:])]
    if not filled:
        return ""
    text = "".join(f"| {' | '.join(line)} |\n" for line in [header, ["---"] * len(header), *filled])
    runs = {run.commit: run for run in machine.runs}
    commits = sorted({*COMMIT.findall(text)}, key=lambda commit: (runs[commit].date, commit), reverse=True)
    marks = dict(zip(commits, MARKS, strict=False))
    used = [f"{marks[commit]} `{commit[:8]}` of {runs[commit].date}".strip() for commit in commits]
    passed = re.search(r"(1[1-9]\d|10[2-9])±\d+%", text), re.search(r"(1[1-9]\d|10[2-9])%", text)
    notes = [
        f"Commit {', '.join(used)}.\n",
        *(why for found, why in zip(passed, (PASSED, APART), strict=True) if found),
    ]
    return COMMIT.sub(lambda found: marks[found[1]], text) + "".join(f"\n{note}" for note in notes)


def number(x):
    """Three digits of a number at least."""
    return f"{x:.0f}" if x >= 99.95 else f"{x:#.3g}"


def rounded(x):
    return f"{x:.0f}"


def percent(x):
    return "" if x is None else f"{100 * x:.0f}%"


def milliseconds(seconds):
    return f"{number(1e3 * seconds)} ms"


def megabytes(size):
    return f"{size / 1e6:.0f} MB"


def times(ratio):
    """A ratio of times, such as "6.1x"; a library without a kernel for batches may take a million times as long."""
    return ">999x" if ratio > 999 else f"{ratio:.1f}x" if ratio < 9.95 else f"{ratio:.0f}x"


def listed(*parts):
    return ", ".join(part for part in parts if part)


def peaks(machine):
    """Multiply-adds in registers."""
    types = ["float64", "float32"]
    rows = [
        [f"`{device}`", *(machine.cell(number, "ceilings.Peak.track_peak", device, dtype) for dtype in types)]
        for device in DEVICES
    ]
    return table(machine, ["multiply-adds, GFlop/s", *types], rows)


def bandwidths(machine):
    """Loops over each cache and over memory."""
    rows = [
        [
            f"`{device}`, {level}",
            *(machine.cell(number, "ceilings.Bandwidth.track_bandwidth", device, level, loop) for loop in LOOPS),
        ]
        for device in DEVICES
        for level in LEVELS
    ]
    return table(machine, ["loops, GB/s", *LOOPS], rows)


def fractions(machine, device):
    """Fractions of the bound, over the order of the matrices, of what was measured on the machine."""
    found = {name: machine.sizes(f"{speed}.track_fraction_of_bound") for name, speed in BATCHES.items()}
    measured = [name for name, sizes in found.items() if sizes]
    sizes = sorted({n for sizes in found.values() for n in sizes})
    rows = [[str(n), *(fraction(machine, BATCHES[name], device, n) for name in measured)] for n in sizes]
    return table(machine, ["n", *measured], rows)


def fraction(machine, speed, device, n):
    """The fraction of the bound, and how many times as long the fastest peer of the same run takes."""
    run = machine.newest(f"{speed}.track_fraction_of_bound", device, "float64", n)
    part = of_bound(run, speed, device, n)
    ours, *peers = (run.value(f"{speed}.track_bandwidth", name, "float64", n) for name in (device, *PEERS[device]))
    best = max(filter(None, peers), default=None)
    return run.cell(listed(part, times(ours / best) if ours and best else ""))


def of_bound(run, speed, device, n):
    """The fraction of the bound and, of runs that have it, half the distance between its quartiles."""
    part, spread = (
        run.value(f"{speed}.track_fraction_{what}", device, "float64", n) for what in ("of_bound", "spread")
    )
    return with_spread(part, spread)


def with_spread(part, spread):
    """A fraction, and half the distance between its quartiles if it is known."""
    return percent(part) if part is None or spread is None else f"{100 * part:.0f}±{percent(spread)}"


def stacks(machine, dtype):
    """Functions on stacks, over the order of the matrices."""
    if not machine.stacks():
        return ""
    benchmark = f"{machine.stacks()}.track_time_per_matrix"
    sizes = machine.sizes(benchmark)
    functions = dict.fromkeys(key[2] for run in machine.runs for key in run.values if key[0] == benchmark)
    rows = [
        [f"`{name}`", *(stack(machine, name, dtype, n) for n in sizes)] for name in map(ast.literal_eval, functions)
    ]
    return table(machine, ["", *map(str, sizes)], rows)


def stack(machine, function, dtype, n):
    """Nanoseconds for a matrix, the fraction of the bound, and the ratio to the fastest of the others."""
    run, ours, best, *reached = machine.stack(function, dtype, n)
    if ours is None:
        return ""
    return run.cell(listed(number(ours), with_spread(*reached), times(best / ours) if best else ""))


def lines(machine, device):
    """Fractions of the bound of factoring and solving lines, over the size of the blocks."""
    speeds = [f"blocktridiag.{name}Speed" for name in ("Factor", "Solve")]
    sizes = sorted({b for speed in speeds for b in machine.sizes(f"{speed}.track_fraction_of_bound")})
    rows = [
        [str(b), str(lines_of(device, b)), *(fraction(machine, speed, device, b) for speed in speeds)] for b in sizes
    ]
    return table(machine, ["b", "lines", "factor", "solve"], rows, names=2)


def preconditioner(machine):
    """The line preconditioner on each device, and what stands beside it."""
    rows = []
    for matrix, what in MATRICES.items():
        for device in DEVICES:
            seconds = (
                machine.cell(milliseconds, f"precond.Precond.time_{call}", device, matrix)
                for call in ("setup", "update", "apply")
            )
            iterations = machine.cell(rounded, "precond.Precond.track_iterations", device, matrix)
            memory = machine.cell(megabytes, "precond.Precond.peakmem_setup", device, matrix)
            rows.append([what, f"`{device}`", *seconds, iterations, memory])
        factor, apply, sweep = (
            machine.cell(milliseconds, f"precond.Peers.time_{call}", matrix)
            for call in ("scipy_factor", "scipy_apply", "pyamg_block_gauss_seidel")
        )
        rows.append([what, "SciPy SuperLU", "", factor, apply, "", ""])
        rows.append([what, "PyAMG, a sweep", "", "", sweep, "", ""])
    head = ["matrix", "device", "set up", "new values", "apply", "iterations", "peak memory"]
    return table(machine, head, rows, names=2)


def gains(machine):
    """Times of examples, and of what they are compared with."""
    name = "gallery.Examples.track_"
    rows = []
    for key in dict.fromkeys(key[1] for run in machine.runs for key in run.values if key[0] == f"{name}ratio"):
        compared = ast.literal_eval(key)
        run = machine.newest(f"{name}ratio", compared)
        ours, ratio, spread = (run.value(f"{name}{what}", compared) for what in ("milliseconds", "ratio", "spread"))
        example, way, other = compared.split(" | ")
        what = f"`{example}`: {way}, {number(ours)} ms"
        rows.append([what, other, run.cell(f"{number(ratio)}±{number(spread)}")])
    return table(machine, ["example", "compared with", "times as long"], sorted(rows))
