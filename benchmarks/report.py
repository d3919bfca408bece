"""Plots and tables of what asv measured: `python -m benchmarks.report`.

Every machine in benchmarks/results/asv gets a roofline, speeds and times, as SVG files in benchmarks/results, and a
part of the README.md there, with all tables. On all pages the table or plot NAME, such as
"fractions xeon-h200 opencl:gpu", replaces the text between the lines `<!-- report: NAME -->` and `<!-- end -->`.
"""

import argparse
import os
import re
import sys
from datetime import date
from pathlib import Path

from . import ROOT, report_scaling, report_tables
from .report_plots import draw
from .report_results import DEVICES, read_machines

SINCE = date(2026, 11, 28)  # of commits whose results stand on pages; older ones are asv's history
END = "<!-- end -->"
HEAD = """# What asv measured

`python -m benchmarks.report` writes this page from the results in `asv`, in double precision unless a table says
otherwise. Below each table are the commits that it comes from. `numba:1` and `numba:all` are one thread and all threads
of the CPU, `opencl:gpu` is the GPU.

"99±2%, 6.1x" means: the call reaches 99 % of the bound, that is, of the speed that max(flops / peak, bytes /
bandwidth) allows. This is the median of rounds in which the call takes turns with loops that measure the peak and the
bandwidth, and 2 % is half the distance between the quartiles. The fastest of the other libraries takes 6.1 times as
long in the same run: NumPy, SciPy and MKL's compact routines beside one thread, cuBLAS and PyTorch beside the GPU.
Without a ±, the peak and the bandwidth are those of the first minute of the run. Then the fraction is as uncertain as a
shared machine is unsteady.

Batches have 16384 matrices, and fill half a gigabyte on the GPU.
"""
TITLES = {
    "peaks": "Peak",
    "bandwidths": "Bandwidth",
    "fractions": "Batches of matrices of order n on",
    "lines": "Lines of 128 blocks on",
    "stacks": "Functions of `compactla.linalg` on matrices of order n: nanoseconds for a matrix, in",
    "preconditioner": "The line preconditioner, compared with SuperLU and PyAMG",
    "gains": "What the examples gain",
    "weak scaling": "The line preconditioner in PETSc, on more ranks",
    "network": "What two ranks of PETSc take to talk",
    "scaling model": "A model of the line preconditioner on many ranks: efficiency",
    "gpus": "Factors of new blocks, then ten solves, of lines of 64 blocks of 3 x 3 on GPUs of one process",
    "dask": "Three gigabytes of 8 x 8 systems in blocks, with two workers of Dask",
}


def pieces_of(machine):
    """The tables of a machine, by name."""
    name = machine.name
    pieces = {f"peaks {name}": report_tables.peaks(machine), f"bandwidths {name}": report_tables.bandwidths(machine)}
    for device in DEVICES:
        pieces[f"fractions {name} {device}"] = report_tables.fractions(machine, device)
    for device in DEVICES:
        pieces[f"lines {name} {device}"] = report_tables.lines(machine, device)
    for dtype in ("float64", "float32"):
        pieces[f"stacks {name} {dtype}"] = report_tables.stacks(machine, dtype)
    pieces[f"preconditioner {name}"] = report_tables.preconditioner(machine)
    pieces[f"gains {name}"] = report_tables.gains(machine)
    pieces |= {f"{piece} {name}": make(machine) for piece, make in report_scaling.PIECES.items()}
    return {piece: text for piece, text in pieces.items() if text}


def about(machine):
    """A sentence that describes a machine and names the commits of its results."""
    known = machine.about
    cores = known.get("num_cpu") and f"{known['num_cpu']} cores"
    parts = known.get("cpu"), cores, memory(known.get("ram")), known.get("os")
    commits = sorted((date, commit) for commit, date in machine.used.items())
    *others, last = (f"`{commit[:8]}` ({date})" for date, commit in commits)
    used = f"Commits {', '.join(others)} and {last}" if others else f"Commit {last}"
    return f"{', '.join(filter(None, parts)) or machine.name}. {used}."


def memory(ram):
    """Text for the memory that asv recorded: bytes, or what a person wrote."""
    return f"{int(ram) / 2**30:.0f} GB" if ram and ram.isdigit() else ram


def section(machine, pieces, plots):
    """The part of the page that is about one machine; its links are relative to the page."""
    text = [f"## {machine.name}\n", f"{about(machine)}\n"]
    text += [f"![{shows}]({machine.name}-{plot}.svg)\n" for plot, shows in plots.items()]
    for name, table in pieces.items():
        kind, _, device = name.partition(f" {machine.name}")
        text += [f"### {TITLES[kind]}{device}\n", table]
    return "\n".join(text)


def filled(text, pieces):
    """The text, with what stands between markers replaced by the pieces that they name."""
    before, *marked = re.split(r"<!-- report: (.*?) -->\n", text)
    result = [before]
    for name, following in zip(marked[::2], marked[1::2], strict=True):
        _, end, rest = following.partition(END)
        if not end:
            sys.exit(f"there is no `{END}` after `<!-- report: {name} -->`")
        if name not in pieces:
            sys.exit(f"there is no piece {name!r}, but: {', '.join(pieces) or 'none'}")
        result.append(f"<!-- report: {name} -->\n\n{pieces[name]}\n{END}{rest}")
    return "".join(result)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results", metavar="FOLDER")
    pages = [ROOT / "README.md", *(ROOT / "compactla").rglob("*.md"), *(ROOT / "benchmarks").glob("*.md")]
    parser.add_argument("--readme", type=Path, default=pages, nargs="+", metavar="FILE")
    parser.add_argument("--since", type=date.fromisoformat, default=SINCE, metavar="DATE", help="of commits")
    args = parser.parse_args()
    page, pieces, drawn = [HEAD], {}, {}
    for machine in read_machines(args.results / "asv", args.since):
        tables, plots = pieces_of(machine), draw(machine, args.results)
        if tables or plots:
            page.append(section(machine, tables, plots))
        pieces |= tables
        drawn |= {(plot, machine.name): shows for plot, shows in plots.items()}
    (args.results / "README.md").write_text("\n".join(page))
    for readme in args.readme:
        for (plot, name), shows in drawn.items():
            file = Path(os.path.relpath(args.results / f"{name}-{plot}.svg", readme.parent)).as_posix()
            pieces[f"plot {plot} {name}"] = f"![{shows}]({file})\n"
        readme.write_text(filled(readme.read_text(), pieces))


if __name__ == "__main__":
    main()
