"""``python -m compactla explain NAME``: which kernel runs for some matrices, why, and what the compilers made of it."""

import importlib
import inspect
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from compactla import dump, routine
from compactla.bench import cases
from compactla.bench.command import add_options, dtype, place, positive, queue_of, summary
from compactla.cpu import run
from compactla.cpu.cost import pack_bytes, width
from compactla.cpu.emit.machine import machine
from compactla.cpu.emit.matrices import tile_size
from compactla.cpu.emit.numba_matrices import KINDS
from compactla.cpu.emit.vectors import Vector
from compactla.cpu.threads.sharing import parts_for
from compactla.digests import PACKAGE
from compactla.layout import Pack

DESCRIPTION = """\
Run a routine once, and say which kernel that took: what the routine does, what was chosen and why, and on request the
code, which is compiled anew.
"""
# What devices have kernels for beside routines, and the letters of its sizes: blocks, right-hand sides, axes.
OTHERS = dict.fromkeys(("factor", "factor_few", "factor_watched", "kron2", "kron3"), "n")
OTHERS |= {"solve": "nr", "solve_few": "nr", "pack": "mn", "unpack": "mn"}
# What options print: endings of `dump`, for the CPU and for devices.
PRINTED = {"ir": (("ll",), ()), "asm": (("s",), ("ptx",)), "source": ((), ("cl", "log"))}
HELP = {
    "ir": "print LLVM's code (CPU only)",
    "asm": "print the assembly, where a compiler has one",
    "source": "print the program with its macros, and the compiler's log (devices only)",
}


def register(commands: Any) -> None:
    """Add the command to the parser's."""
    explain = commands.add_parser("explain", help="say which kernel a routine runs, and why", description=DESCRIPTION)
    names = explain.add_subparsers(required=True, metavar="NAME")
    for name in (*routine.names(), *OTHERS):
        row = routine.named(name) if name in routine.names() else None
        letters = row.letters if row else OTHERS[name]
        what = names.add_parser(name, allow_abbrev=False, help=summary(row) if row else "kernels of devices alone")
        what.set_defaults(run=run_explain, routine=name, row=row, letters=letters, options=[], threads=None)
        what.add_argument("--n", type=positive, default=5, help="all sizes that are not given (default: 5)")
        for letter in letters:
            if letter != "n":
                also = ["--nrhs"] * (letter == "r")
                what.add_argument(f"--{letter}", *also, dest=letter, type=positive, metavar=letter.upper())
        what.add_argument("--dtype", type=dtype, default="d", help="s, d, c or z, or NumPy's names (default: d)")
        what.add_argument(
            "--device", default="cpu" if row else "opencl", metavar="cpu|opencl[:NAME]", help="where it runs"
        )
        what.add_argument("--vlen", type=positive, metavar="V", help="vector length (default: what suits the device)")
        if row:
            add_options(what, row, row.scalars)
            what.add_argument("--nm", type=positive, default=1024, help="matrices in the batch (default: 1024)")
            what.add_argument("--threads", type=positive, metavar="T", help="default: one for each core")
        for option, text in HELP.items():
            what.add_argument(f"--{option}", action="store_true", help=text)


def run_explain(args) -> None:
    os.environ.setdefault("CUDA_CACHE_DISABLE", "1")  # NVIDIA's driver keeps programs without their logs
    queue = queue_of(args)
    wanted = {option: PRINTED[option][queue is not None] for option in PRINTED if getattr(args, option)}
    for option, endings in wanted.items():
        if not endings:
            raise ValueError(f"--{option} is for {'devices' if queue is None else '--device cpu'}")
    if queue is None and args.row is None:
        raise ValueError(f"--device is cpu, must be opencl or opencl:NAME: the CPU has no kernels for {args.routine}")
    sizes = {letter: getattr(args, letter) or args.n for letter in args.letters}
    options, case = {name: getattr(args, name) for name in args.options}, None
    if args.row:
        tell_row(args.row, sizes, args.dtype, options)
        where = args.dtype, queue, args.threads
        case = cases.Dense(args.routine, tuple(sizes.values()), args.nm, *where, args.vlen, **options)
    tell("runs on", place(args, queue))
    if queue is None:
        made = on_cpu(args.row, case, args.threads)
    else:
        made = on_device(args, queue, tuple(sizes.values()), case)
    for option, endings in wanted.items():
        texts = [(code, ending) for code in made for ending in endings if ending in code.texts]
        if not texts:
            tell(f"--{option}", "nothing: the compiler makes no such text, or had made the kernel before")
        for code, ending in texts:
            text = code.texts[ending]
            print(f"\n# {code.name}.{ending}\n{text.decode() if isinstance(text, bytes) else text}")


def tell(what, *lines) -> None:
    """Print lines, of which the first begins with a word for all."""
    for word, line in zip((what, *[""] * len(lines)), lines, strict=False):
        print(f"{word:<11}{line}")


def tell_row(row, sizes, dtype, options) -> None:
    """Print what the row of a routine says for such matrices."""
    number, unread = row.numbers(sizes.values()), {name for name in row.scaling if options[name] == 0}
    tell("routine", f"{row.name}: {summary(row)}, {dtype} ({file_of(row.function)})")
    operands = []
    for A in row.operands:
        m, n = (number[letter] for letter in A.sizes)
        words = [f"{A.name}  {m} x {n} ({A.sizes})", A.kind, "one triangle" * A.half, "made here" * A.output]
        words += ["work space" * A.room, "written" * A.written, "not read" * (A.scaled_by in unread)]
        operands.append(", ".join(filter(None, words)))
    tell("operands", *operands, *(f"{name}  an integer, made here" for name in row.outputs))
    chosen = [f"{name} = {options[name]} of {', '.join(map(str, values))}" for name, values in row.options.items()]
    chosen += [f"{name} = {value}" for name, value in scalars_of(row, options).items()]
    tell("options", *(chosen or ["none"]))
    flops = 2 * row.work(sizes.values()) * (4 if dtype.kind == "c" else 1)
    nbytes = row.elements(sizes.values(), dtype, unread) * dtype.itemsize
    work = f"{flops:g} flops and {nbytes:g} bytes of a matrix, {flops / nbytes:.3g} flops a byte"
    tell("bound", f"{work}; bench {row.name} measures what the machine allows")


def scalars_of(row, options) -> dict:
    return {name: options.get(name, default) for name, default in row.scalars.items()}


def file_of(found) -> Path:
    """The file of a function or module, from the package's folder on."""
    return Path(inspect.getfile(found)).relative_to(PACKAGE.parent)


def on_cpu(row, case, threads) -> list[dump.DumpedCode]:
    """Print which kernel the CPU runs, and return its code."""
    with dump.collected() as made:
        case.call()
    views = [A.view for A in case.bound.args if type(A) is Pack]
    main, kernels = views[-1], importlib.import_module(f"compactla.cpu.kernels.{row.name}")
    lanes, (register, registers) = width(main.dtype, main.vlen), machine()
    scalars = tuple(scalars_of(row, case.options).values())
    why = run.left_open(row, case.sizes, scalars if scalars in row.fixed else None)
    tell("kernel", f"{file_of(kernels)}, {f'for any size: {why}' if why else 'compiled for these sizes'}")
    tell("vectors", f"{lanes} lanes, in {registers} registers of {register} bytes; V = {main.vlen}")
    C = SimpleNamespace(vector=Vector(KINDS[main.dtype.char], lanes), m=None, n=None)
    if not why:
        C.m, C.n = main.m, main.n
    rows, columns = getattr(kernels, "tile_of", lambda C: tile_size(C.vector, C.m, C.n))(C)
    tell("tiles", f"at most {rows} x {columns} vectors, in registers")
    cost = run.pack_cost(row, case.sizes, main.layout)
    parts = parts_for(main.npack * cost, main.npack, threads)
    tell("threads", f"{parts}: {main.npack} packs of {cost:.3g} operations")
    nbytes = main.npack * sum(pack_bytes(view.layout) for view in views)
    is_far = not why and nbytes > run.FAR
    limit = "not where sizes are unknown" if why else f"{'' if is_far else 'not '}above {run.FAR / 1e6:g} MB"
    tell("prefetch", f"{'yes' if is_far else 'no'}, {limit}: {nbytes / 1e6:.3g} MB in the batch")
    tell("compiled", *[f"{code.name}: {code.key}" for code in made] or ["before, in this process"])
    return made


def on_device(args, queue, size, case) -> list[dump.DumpedCode]:
    """Print which kernel a device runs, and return its program."""
    from compactla.bench import tune
    from compactla.bench.filling import filling
    from compactla.gpu.arrays import default_vlen
    from compactla.gpu.launch import plans
    from compactla.gpu.tuning import choices

    name, search = args.routine, choices.searches()[args.routine]
    vlen = args.vlen or default_vlen(args.dtype, queue)
    with tune.counted_as(queue, name):
        call = case.call if case else filling(name, queue, size, args.dtype, vlen, 0).start
        with dump.collected() as made:
            call()
            queue.finish()
        used = [plan.choice for plan in plans(queue).known.values() if plan]
        ran = [choice for choice in used if choice.get("kernel") in search.kernels]
    is_general = case and scalars_of(args.row, case.options).get("beta") != args.row.scalars.get("beta")
    choice, why = choices.reasoned(queue.device, search, size, args.dtype, vlen, "beta" if is_general else "")
    tell("choice", tune.describe(choice), why)
    if choice in ran:
        local = search.local_bytes(choice, size, args.dtype)
        group = f"{search.group_size(choice, size)} work-items, {local:g} bytes of local memory"
        tell("kernel", f"{choice['kernel']} in opencl/{search.file_of(choice)}", f"work-groups of {group}; V = {vlen}")
    else:
        general = f"kernels for any size in {', '.join(f'opencl/{code.name}.cl' for code in made)}"
        instead = ", ".join(map(tune.describe, ran)) or general
        tell("kernel", f"{instead}{', as the choice does not build' if choice else ''}; V = {vlen}")
    logs = [tune.resources(str(code.texts.get("log", ""))) for code in made]
    tell("compiled", *(f"{code.name}{f': {log}' if log else ''}" for code, log in zip(made, logs, strict=True)))
    return made
