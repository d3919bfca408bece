"""The command line: ``python -m compactla solve MATRIX``, ``run``, ``bench``, ``tune``, ``explain``, ``info``."""

import argparse
import io
import os
import platform
import sys
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import llvmlite.binding
import numba
import numpy as np
import scipy.sparse

from compactla.backends import backend
from compactla.bench import command
from compactla.bench.ceilings import processor
from compactla.bench.progress import progress_bar
from compactla.checks import check_writable
from compactla.cli import explain, run
from compactla.cli.files import check_vector, read_lines, read_system, read_vector
from compactla.cpu.threads.sharing import THREADS
from compactla.dtypes import DTYPES
from compactla.gpu.devices import devices, queue_on
from compactla.gpu.probe import fault
from compactla.krylov import gmres
from compactla.lines.finding import find_lines
from compactla.lines.precond import LinePreconditioner
from compactla.lines.storage import STORAGE

RESTART, MOST_STEPS = 50, 1500
INTERRUPTED, UNREAD = 130, 141  # what shells say of a command that Ctrl-C ended, or whose output nobody reads


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one sentence."""

    def error(self, message):
        self.exit(2, f"{self.prog}: {message}\n")


def main(argv=None, formatwarning=None) -> None:
    """Run a command; `formatwarning` is how warnings look, but not those of a program that is run."""
    parser = Parser(prog="python -m compactla", description="Block line preconditioners and batched routines.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    solve = commands.add_parser("solve", help="solve a linear system with and without preconditioners")
    solve.set_defaults(run=run_solve)
    solve.add_argument("matrix", metavar="MATRIX", help=".npz, .mtx or .mtx.gz file")
    solve.add_argument("--block-size", type=int, metavar="B", help="size of the blocks, if the file has none")
    lines_help = "block rows of each line, from 0: .npy, .npz or rows of text (default: those in MATRIX, or else auto)"
    solve.add_argument("--lines", metavar="FILE|auto", help=lines_help)
    solve.add_argument("--rhs", metavar="FILE", help="default: that in MATRIX, or else MATRIX times ones")
    solve.add_argument("--device", default="cpu", metavar="cpu|opencl[:NAME]", help="where to factor and apply")
    solve.add_argument("--tol", type=float, default=1e-8, help="relative residual to reach (default: 1e-8)")
    solve.add_argument("--plot", metavar="FILE.png", help="draw the convergence histories")
    command.register(commands)
    tune = commands.add_parser("tune", help="find the fastest kernels for an OpenCL device, or choices for the CPU")
    tune.set_defaults(run=run_tune)
    tune.add_argument("routine", nargs="?", metavar="ROUTINE", help="default: all routines")
    tune.add_argument(
        "--device", default="opencl", metavar="cpu|opencl[:NAME]", help="default: the first OpenCL device"
    )
    dtypes = [dtype.name for dtype in DTYPES.values()]
    tune.add_argument("--dtype", action="append", choices=dtypes, help="may be repeated (default: float64, float32)")
    tune.add_argument("--storage", choices=tuple(STORAGE), help="of factors, for `solve` and `solve_few` alone")
    explain.register(commands)
    info = commands.add_parser("info", help="say which processor, threads and OpenCL devices there are")
    info.set_defaults(run=run_info)
    run.register(commands)
    parser.set_defaults(program=None)
    args = parser.parse_args(argv)
    if args.program:
        args.program(args)
        return
    warnings.formatwarning = formatwarning or warnings.formatwarning
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Solving may take long: show what there is. Names of files may have letters that a terminal has not.
        sys.stdout.reconfigure(line_buffering=True, errors="backslashreplace")
    try:
        args.run(args)
    except KeyboardInterrupt:
        parser.exit(INTERRUPTED, f"{parser.prog}: interrupted\n")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # which is flushed once more
        parser.exit(UNREAD)
    except Exception as error:
        expected = isinstance(error, (ValueError, TypeError, OSError, ImportError, RuntimeError, MemoryError))
        if not expected and not type(error).__module__.startswith("pyopencl"):
            raise
        parser.error(str(error).strip().split("\n")[0] or type(error).__name__)


class Solve(NamedTuple):
    """The result with one preconditioner."""

    name: str
    history: np.ndarray  # relative residual norm before the first step and after every step of GMRES
    residual: float  # true relative residual at the end
    converged: bool
    seconds: float


def run_solve(args) -> None:
    pyplot = None if args.plot is None else import_pyplot(args.plot)
    if not 0 < args.tol < 1:
        raise ValueError(f"--tol is {args.tol}, must be between 0 and 1")
    system = read_system(args.matrix, args.block_size)
    M = system.M
    lines, lines_from = lines_to_use(args, system)
    rhs, rhs_from = right_hand_side(args, M, system.rhs)
    queue = queue_on(args.device, "--device")
    b, nrow = M.blocksize[0], len(M.indptr) - 1
    size = f"n = {M.shape[0]}, {nrow} block rows of {b}, {len(M.indices)} blocks, {M.dtype}"
    print(f"matrix    {Path(args.matrix).name}: {size}")
    print(f"rhs       {rhs_from}")
    print(f"device    {'cpu' if queue is None else queue.device.name.strip()}")

    def build(M, lines):
        return timed(lambda: LinePreconditioner(M, lines, queue=queue))

    _, compile_time = timed(lambda: build(two_blocks(M), [[0, 1]])[0] @ np.ones(2 * b, rhs.dtype))
    with warnings.catch_warnings(record=True, action="always") as told:
        line, build_time = build(M, lines)
    factor_time = min(timed(lambda: line.update(M))[1] for _ in range(3))
    apply_time = min(timed(lambda: line @ rhs)[1] for _ in range(3))
    jacobi, _ = build(M, np.arange(nrow)[:, None])
    print(f"lines     {describe_lines(lines)}, {lines_from}")
    for warning in told:
        print(f"warning   {warning.message}")
    print(f"factors   line: {describe_info(line.info, 'line')}")
    print(f"          block Jacobi: {describe_info(jacobi.info, 'block')}")
    times = [duration(t) for t in (max(build_time - factor_time, 0), factor_time, apply_time, compile_time)]
    print("times     set-up {}, factor {}, apply {}; first use {} (compiles or loads kernels)".format(*times))

    limits = f"to relative residual {args.tol:g}, at most {MOST_STEPS} steps"
    print(f"\nGMRES({RESTART}), right-preconditioned, {limits}\n")
    print("preconditioner   iterations   residual         time")
    solves = []
    for name, P in (("none", None), ("block Jacobi", jacobi), ("line", line)):
        result = solve_with(name, P, M, rhs, args.tol)
        solves.append(result)
        steps, seconds = len(result.history) - 1, duration(result.seconds)
        remark = "" if result.converged else "   not converged"
        print(f"{name:<14} {steps:>12} {result.residual:>10.1e} {seconds:>12}{remark}")
    if pyplot:
        plot(pyplot, solves, Path(args.matrix).name, args.plot)


def lines_to_use(args, system):
    """The lines, and where they are from: FILE, or else the matrix file, or else the matrix."""
    M, lines, _, size = system
    if args.lines not in (None, "auto"):
        return read_lines(args.lines), f"from {args.lines}"
    if args.lines is None and lines is not None:
        if size not in (None, M.blocksize[0]):
            wanted = f"--lines must be given with --block-size {M.blocksize[0]}: FILE or auto"
            raise ValueError(f"{args.matrix} holds lines of blocks of {size}, {wanted}")
        return lines, "from the matrix file"
    find_lines(two_blocks(M))  # compiles or loads kernels
    lines, seconds = timed(lambda: find_lines(M))
    return lines, f"found in {duration(seconds)}"


def two_blocks(M):
    """The smallest matrix of the type of `M` that has two block rows."""
    b = M.blocksize[0]
    return scipy.sparse.eye_array(2 * b, dtype=M.dtype, format="csr").tobsr(blocksize=(b, b))


def right_hand_side(args, M, rhs):
    n = M.shape[0]
    if args.rhs is not None:
        rhs, where = read_vector(args.rhs, n), args.rhs
    elif rhs is not None:
        rhs, where = check_vector(args.matrix, rhs, n), "from the matrix file"
    else:
        rhs, where = M @ np.ones(n, M.dtype), "matrix times ones"
    if not np.isfinite(rhs).all() or not rhs.any():
        raise ValueError(f"the right-hand side ({where}) is zero or not finite")
    return near_one(rhs), where


def near_one(x):
    """`x` times a power of two, so that neither norms nor small residuals beside them overflow or underflow."""
    parts = x.view(x.real.dtype)
    return np.ldexp(parts, -np.frexp(abs(parts).max())[1]).view(x.dtype)


def solve_with(name, P, M, rhs, tol) -> Solve:
    """GMRES with a preconditioner, where that lives, or without one."""
    queue = None if P is None else P.queue
    run, b = backend(queue), backend(queue).upload(rhs, queue)
    with progress_bar(MOST_STEPS, name) as bar:

        def note(residual):
            bar.set_postfix_str(f"residual {residual / size:.1e}", refresh=False)
            bar.update()

        size, start = np.linalg.norm(rhs), time.perf_counter()
        x, report = gmres(M, b, M=P, rtol=tol, restart=RESTART, maxiter=MOST_STEPS, history=True, callback=note)
        x, seconds = run.download(x), time.perf_counter() - start
    residual = float(np.linalg.norm(rhs - M @ x) / size)
    return Solve(name, report.history / size, residual, report.converged, seconds)


def import_pyplot(path):
    if not str(path).endswith(".png"):
        raise ValueError(f"--plot is {path}, must end in .png")
    check_writable(path, "--plot")
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError("--plot needs matplotlib: pip install matplotlib") from error
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def plot(pyplot, solves, title, path) -> None:
    figure, axes = pyplot.subplots(layout="constrained")
    for solve in solves:
        axes.semilogy(solve.history, label=f"{solve.name}: {len(solve.history) - 1} iterations")
    axes.set_title(title.encode(errors="backslashreplace").decode(), parse_math=False)
    axes.set(xlabel=f"iterations of GMRES({RESTART})", ylabel="relative residual norm")
    axes.grid(alpha=0.3)
    axes.legend()
    with warnings.catch_warnings(action="ignore"):  # of letters that the font has not
        figure.savefig(path, dpi=150)
    pyplot.close(figure)
    print(f"\nplot      {path}")


def timed(call):
    """The result of a call, and how many seconds it took."""
    start = time.perf_counter()
    result = call()
    return result, time.perf_counter() - start


def duration(seconds: float) -> str:
    for unit, factor in (("s", 1), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def describe_lines(lines) -> str:
    lengths = [len(line) for line in lines]
    shortest, longest = min(lengths), max(lengths)
    return f"{len(lines)} of {shortest if shortest == longest else f'{shortest} to {longest}'} block rows"


def describe_info(info, what: str) -> str:
    failed = np.flatnonzero(info)
    if not len(failed):
        return f"all {len(info)} {what}s nonsingular"
    first = ", ".join(f"{what} {i} (row {info[i] - 1})" for i in failed[:3])
    return f"zero pivot in {len(failed)} of {len(info)} {what}s: {first}{', ...' if len(failed) > 3 else ''}"


def run_tune(args) -> None:
    if args.device == "cpu":
        given = {"ROUTINE": args.routine, "--dtype": args.dtype, "--storage": args.storage}
        for name, value in given.items():
            if value:
                raise ValueError(f"{name} is {value}, must be left out with --device cpu, which measures its choices")
        from compactla.bench import tune_cpu

        tune_cpu.tune()
        return
    from compactla.bench.tune import tune_all

    tune_all(args.routine, args.device, args.dtype or ("float64", "float32"), args.storage or "")


def run_info(args) -> None:
    print(f"processor   {processor()} ({llvmlite.binding.get_host_cpu_name()})")
    vectors = ", ".join(f"{dtype} {backend(None).default_vlen(dtype, None)}" for dtype in DTYPES.values())
    print(f"vectors     {vectors}")
    print(f"threads     {THREADS}")
    versions = f"numba {numba.__version__}, numpy {np.__version__}, scipy {scipy.__version__}"
    print(f"versions    python {platform.python_version()}, {versions}")
    found = devices()
    for device in found:
        fp64 = "fp64" if device.double_fp_config else "no fp64"
        driver = f"{device.platform.name}, driver {device.driver_version}"
        print(f"opencl      {device.name.strip()} ({driver}, {fp64})")
        if why := fault(device):
            print(f"            {why}")
    if not found:
        print("opencl      no devices")


if __name__ == "__main__":
    main(formatwarning=lambda message, *_: f"python -m compactla: {message}\n")
