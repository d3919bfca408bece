"""``python -m compactla run SCRIPT``: a program that is not changed, in which numpy.linalg is ours where that gains."""

import argparse
import atexit
import io
import os
import runpy
import sys
import zipfile
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from compactla.patch.patching import patch_numpy
from compactla.patch.report import Report, total

DESCRIPTION = """\
Run a program in which functions of numpy.linalg and scipy.linalg compute stacks of small matrices as compactla.linalg
does, and everything else as ever.
"""
HELP = "run a program with numpy.linalg and scipy.linalg patched"
USAGE = "python -m compactla run [--report] (SCRIPT ... | -m MODULE ...)"
ROWS = 40  # of a report
HEAD = "function", "shapes", "calls", "by kernels", "seconds"
OURS = {__file__, runpy.__file__, "<frozen runpy>"}  # files of frames between Python and the program


def register(commands: Any) -> None:
    """Add the command to the parser's."""
    run = commands.add_parser("run", usage=USAGE, help=HELP, description=DESCRIPTION, allow_abbrev=False)
    run.set_defaults(program=run_program, refuse=run.error)
    run.add_argument("--report", action="store_true", help="say at the end what was called, and for which shapes")
    run.add_argument("-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE", help="a module and its arguments")
    run.add_argument("script", nargs=argparse.REMAINDER, metavar="SCRIPT", help="a file and its arguments")


def run_program(args: Any) -> None:
    """Run the program, with the patch in force as long as the process lives."""
    words = args.module or args.script
    if not words:
        args.refuse("SCRIPT or -m MODULE must be given")
    if args.report:
        atexit.register(show, Report().__enter__(), os.getpid())
    patch_numpy()
    try:
        (run_module if args.module else run_script)(words)
    except Exception as error:
        traceback = within_program(error.__traceback__)
        if traceback is None and isinstance(error, OSError | ImportError):
            args.refuse(str(error))
        sys.excepthook(type(error), error.with_traceback(traceback), traceback)
        sys.exit(1)


def run_module(words: list[str]) -> None:
    """Run a module as ``python -m`` does, which has put the working directory on the path."""
    sys.argv[:] = words
    runpy.run_module(words[0], run_name="__main__", alter_sys=True)


def run_script(words: list[str]) -> None:
    """Run a file as ``python FILE`` does."""
    sys.argv[:], path = words, words[0]
    if Path(path).is_dir() or zipfile.is_zipfile(path):
        runpy.run_path(path, run_name="__main__")
        return
    path = os.path.abspath(path)
    with io.open_code(path) as stream:
        code = compile(stream.read(), path, "exec", dont_inherit=True)
    main = ModuleType("__main__")
    main.__file__ = path
    sys.modules["__main__"] = main
    if not sys.flags.safe_path:
        sys.path[0] = os.path.dirname(os.path.realpath(path))
    exec(code, vars(main))


def within_program(traceback: TracebackType | None) -> TracebackType | None:
    """The part of a traceback that is the program's."""
    while traceback and traceback.tb_frame.f_code.co_filename in OURS:
        traceback = traceback.tb_next
    return traceback


def show(report: Report, process: int) -> None:
    """Print a report of a process, but not in others that were forked from it."""
    if os.getpid() != process:
        return
    rows = report.rows()
    lines = [(row.name, shapes(row.shapes), *cells(row.tally)) for row in rows[:ROWS]]
    if len(rows) > ROWS:
        lines.append((f"{len(rows) - ROWS} more", "", *cells(total(rows[ROWS:]))))
    lines.append(("all", "", *cells(total(rows))))
    widths = [max(map(len, column)) for column in zip(HEAD, *lines, strict=True)]
    print("\npython -m compactla run: calls of functions of numpy.linalg and scipy.linalg\n", file=sys.stderr)
    for line in (HEAD, *lines):
        left, right = zip(line[:2], widths[:2], strict=True), zip(line[2:], widths[2:], strict=True)
        text = [f"{x:<{width}}" for x, width in left] + [f"{x:>{width}}" for x, width in right]
        print("   ".join(text), file=sys.stderr)


def cells(tally: Any) -> tuple[str, str, str]:
    """Numbers of a line of a report."""
    return f"{tally.calls}", f"{tally.kernels}", f"{tally.seconds:.4f}"


def shapes(found: tuple) -> str:
    """Shapes of arrays in a line of a report."""
    return ", ".join(map(str, found)) or "-"
