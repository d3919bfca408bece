"""``python -m compactla bench ROUTINE``: a table of what the routines reach, against the machine and against others."""

import argparse
import functools
import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from compactla import routine
from compactla.bench import cases, lanes
from compactla.bench.ceilings import processor, roofs
from compactla.bench.measure import as_dict, environment, measure, measure_lines
from compactla.bench.progress import progress_bar
from compactla.bench.table import CEILINGS, ROWS, ceiling_line, row_line
from compactla.checks import check_writable
from compactla.cpu.threads.sharing import THREADS
from compactla.digests import PACKAGE
from compactla.dtypes import DTYPES
from compactla.gpu.devices import queue_on
from compactla.gpu.probe import widest
from compactla.types import Queue

SIZES = [3, 5, 10, 15]  # those of the SC17 slides, as is the batch
BATCH = 16384
MOST = 2**63 - 1  # that arrays count
DESCRIPTION = """\
Measure a routine, in one run with what bounds it and with what else does its work.

The table has the least time of a call, and fractions of three ceilings, measured in turns with it by as many threads:
  peak    multiply-adds in registers
  bandw.  a plain loop over a working set of the same size, which reads and writes in the proportion that is nearest
  bound   the larger of the two times that these allow; "+-" is half the distance between the quartiles
A fraction is the median over rounds of some milliseconds: other work on a machine slows down both that it is made of.
It passes 100% where a routine reads more for each number that it writes than the loop does.
Every operand counts once for each time that it is read or written. Residuals are scaled by what rounding may cause, as
LAPACK's tests do, which accept less than 30; "wrong" is more than that.
  call      from Python, on packs that are there already
  in cache  64 matrices in a loop of compiled code, in one thread
With --lanes, there is before it what a call executes: the lanes that floating-point instructions work on, on average,
times the part of the lanes of packs that hold matrices; and the operations of all lanes, with the part of them that the
routine takes as BLAS and LAPACK count. The rest is done for lanes without a matrix, for lanes that wait for others, or
again. For this, kernels are compiled once more, in another process.
"""

BASELINES = """\
Baselines, where this runs from a clone of the repository: NumPy's and SciPy's routines for stacks of matrices, one
call as they are, on ordinary arrays; and the compact routines of Intel MKL, on packs, where the package mkl is
installed, in the fastest of its formats and in as many threads. Newer versions of MKL have slow kernels for processors
of AMD: `pip install mkl==2019.0` is the strong one. It is told to use AVX2 (MKL_DEBUG_CPU_TYPE=5) or AVX-512 (7)
there, unless that variable is set.
"""


def register(commands: Any) -> None:
    """Add the command to the parser's."""
    text: dict = {"description": DESCRIPTION, "epilog": BASELINES, "allow_abbrev": False}
    text["formatter_class"] = argparse.RawDescriptionHelpFormatter
    bench = commands.add_parser("bench", help="measure the routines against the machine and other libraries", **text)
    routines = bench.add_subparsers(required=True, metavar="ROUTINE")

    def add(name, run, help):
        what = routines.add_parser(name, help=help, **text)
        what.set_defaults(run=run, routine=name)
        what.add_argument("--dtype", type=dtype, default="d", help="s, d, c or z, or NumPy's names (default: d)")
        what.add_argument("--threads", type=positive, metavar="T", help="default: one for each core")
        what.add_argument("--device", default="cpu", metavar="cpu|opencl[:NAME]", help="where the packs live")
        return what

    def add_measured(name, run, help):
        what = add(name, run, help)
        what.add_argument("--no-baselines", action="store_true", help="leave out NumPy, SciPy and MKL")
        what.add_argument("--mkl", metavar="FILE", help="libmkl_rt to compare with (default: of the package mkl)")
        what.add_argument("--json", metavar="FILE", help="write the measurements to a file too")
        return what

    def add_batch(name, help, makes):
        what = add_measured(name, run_batch, help)
        what.set_defaults(work=help, makes=makes, options=[], lanes=False)
        what.add_argument("--n", type=positive, nargs="+", default=SIZES, help="orders of the matrices")
        what.add_argument("--nm", type=positive, default=BATCH, help=f"matrices in a batch (default: {BATCH})")
        return what

    for row in map(routine.named, routine.names()):
        what = add_batch(row.name, summary(row), [functools.partial(cases.Dense, row.name)])
        add_options(what, row)
        what.add_argument("--lanes", action="store_true", help="tell how much of what is executed is useful (CPU only)")
    add_batch("pack", "copies into the compact layout and back", [cases.Pack, cases.Unpack])
    line = add_measured("line", run_line, "block tridiagonal lines, factored and solved")
    line.add_argument("-N", type=positive, default=1024, metavar="LINES", help="lines (default: 1024)")
    line.add_argument("-L", type=positive, default=128, metavar="BLOCKS", help="blocks a line (default: 128)")
    line.add_argument("-B", type=positive, nargs="+", default=SIZES, metavar="SIZE", help="sizes of the blocks")
    line.add_argument("-Nvec", type=positive, default=1, metavar="VECTORS", help="right-hand sides (default: 1)")
    line.add_argument("--parts", type=positive, metavar="P", help="parts of a line (default: as many as suit)")
    line.add_argument("-Niter", type=positive, metavar="TIMES", help="rounds timed (default: what fits into 0.3 s)")
    add("ceilings", run_ceilings, "the machine itself: multiply-adds in registers, and loops over memory")


def add_options(parser: Any, row: Any, scalars: Any = None) -> None:
    """Add the options of a routine, and the scalars that change what it reads, which are 1 unless they are given."""
    parser.set_defaults(options=[*row.options, *row.scaling])
    for option, letters in row.options.items():
        parser.add_argument(f"--{option}", type=str.upper, choices=letters, default=letters[0])
    for scalar in row.scaling:
        parser.add_argument(f"--{scalar}", type=int, choices=(0, 1), default=int((scalars or {}).get(scalar, 1)))


def summary(row: Any) -> str:
    """The work of a routine: the first sentence of its function."""
    return str(row.function.__doc__).split("\n")[0].removesuffix(".")


def positive(text: str) -> int:
    number = int(text)
    if not 1 <= number <= MOST:
        raise argparse.ArgumentTypeError(f"{text} must be positive{'' if number < 1 else f', at most {MOST}'}")
    return number


def dtype(text: str) -> np.dtype:
    try:
        found = DTYPES.get(text) or np.dtype(text)
    except (TypeError, ValueError, SyntaxError):
        found = None
    if found is None or found not in DTYPES.values():
        raise argparse.ArgumentTypeError(f"{text!r} must be s, d, c or z, or float32, float64, complex64 or complex128")
    return found


def queue_of(args: Any) -> Queue:
    """A queue on the device that is asked for, or None for the CPU."""
    queue = queue_on(args.device, "--device")
    if queue is None:
        return None
    if args.threads:
        raise ValueError("--threads is for --device cpu")
    if args.dtype.char in "dD" and not queue.device.double_fp_config:
        raise ValueError(f"--dtype is {args.dtype}, must be s or c: {queue.device.name.strip()} has no fp64")
    return queue


def run_batch(args) -> None:
    options = {name: getattr(args, name) for name in args.options}
    chosen = "".join(f", {name} = {value}" for name, value in options.items())
    if args.lanes:
        tell_lanes(args, options)
    jobs = [functools.partial(measure, make, n, args.nm, **options) for n in args.n for make in args.makes]
    show(args, f"{args.work}{chosen}; {args.nm} matrices, n x n", jobs)


def tell_lanes(args, options) -> None:
    """Print how many of the lanes and operations that are executed are useful, for each size."""
    if queue_of(args) is not None:
        raise ValueError("--lanes is for --device cpu")
    for n in args.n:
        for make in args.makes:
            found = lanes.utilisation(make, n, args.nm, dtype=args.dtype, threads=args.threads, **options)
            share = f"{found.useful:.2f} of {found.width} useful in {found.instructions} floating-point instructions"
            print(f"lanes      n = {n}: {share}, {found.filled:.0%} of the lanes of packs filled")
            print(f"operations n = {n}: {found.share:.0%} of {found.operations} useful")


def run_line(args) -> None:
    options = {"K": args.L, "nrhs": args.Nvec, "parts": args.parts, "iterations": args.Niter}
    jobs = [functools.partial(measure_lines, b, args.N, **options) for b in args.B]
    show(args, f"{args.N} lines of {args.L} blocks, n x n, right-hand sides: {args.Nvec}", jobs)


def show(args, work, jobs) -> None:
    """Run the jobs, which yield rows, and print them as they come."""
    if args.json is not None:
        check_writable(args.json, "--json")
    queue = queue_of(args)
    baselines = None if args.no_baselines else load_baselines(args.mkl)
    print(f"routine    {args.routine}: {work}, {args.dtype}")
    print(f"runs on    {place(args, queue)}")
    tell_vectors(queue, args.dtype)
    if not args.no_baselines:
        print(f"baselines  {baselines or 'none: they are in benchmarks/ of the repository, beside the package'}")
    print(f"\n{ROWS}")
    shared = {"dtype": args.dtype, "queue": queue, "threads": args.threads, "baselines": baselines}
    rows = []
    with progress_bar(len(jobs)) as bar:
        for job in jobs:
            for row in job(**shared):
                rows.append(row)
                bar.write(row_line(row))
            bar.update()
    print("\nceilings   medians beside the last row: multiply-adds in GFlop/s, loops over a working set in GB/s")
    print(f"\n{CEILINGS}")
    for measured in {ceiling[:3]: ceiling for ceiling in (row.turns.ceiling for row in rows)}.values():
        print(ceiling_line(measured))
    if args.json is not None:
        Path(args.json).write_text(json.dumps(environment() | {"rows": [as_dict(row) for row in rows]}, indent=1))


def run_ceilings(args) -> None:
    queue = queue_of(args)
    print(f"runs on    {place(args, queue)}, {args.dtype}")
    tell_vectors(queue, args.dtype)
    print(f"\n{CEILINGS}")
    for threads in [args.threads] if args.threads or queue is not None else sorted({1, THREADS}):
        for roof in roofs(args.dtype, queue, threads):
            print(ceiling_line(roof))


def load_baselines(mkl):
    """The baselines in `benchmarks/` beside the package; None where the package is installed without them.

    `mkl` is the file of MKL's library, or None.
    """
    if not (PACKAGE.parent / "benchmarks" / "baselines.py").is_file():
        if mkl is not None:
            raise ValueError(f"--mkl is {mkl}, must be left out: baselines are in the repository, and not installed")
        return None
    return importlib.import_module("benchmarks.baselines").Baselines(mkl)


def tell_vectors(queue, dtype) -> None:
    """Print which vectors the ceilings of a device are measured in, if its driver fails at the longest."""
    for real in dict.fromkeys(("double" if dtype.char in "dD" else "float", "float") if queue else ()):
        lanes, why = widest(queue.device, real)
        if why:
            print(f"vectors    {why}: ceilings are measured in {real}{lanes}")


def place(args: Any, queue: Queue) -> str:
    """Where the routines run, in words."""
    if queue is not None:
        return queue.device.name.strip()
    threads = args.threads or THREADS
    return f"{processor()}, {threads} thread{'s' if threads > 1 else ''}"
