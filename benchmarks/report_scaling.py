"""Tables of `benchmarks.report` of work on several processes: PETSc's ranks, a model of more, and Dask's workers."""

from math import isqrt, log2

from .report_tables import listed, number, percent, rounded, table

LINES = "weak_scaling.Lines.track_"
PARTS = ["set_up", "factor", "apply"]
RANKS = [2, 16, 128, 1024, 10_000]  # of the model
SLOWER = 10  # times as long as between two cores, in the model's second figures
DOUBLE = 8  # bytes


def sizes(machine):
    """What was measured: ranks, the root of a rank's lines, block rows of a line, size of a block."""
    keys = {key[1:] for run in machine.runs for key in run.values if key[0] == f"{LINES}step"}
    return sorted((tuple(map(int, key)) for key in keys), key=lambda key: (key[1:], key[0]))


def unknowns(side, length, b):
    return f"{side * side * length * b:,}"


def hundredths(x):
    return "" if x is None else f"{x:.2f}"


def weak_scaling(machine):
    """Times of a step of GMRES with lines, and of its parts."""
    rows = []
    for ranks, *size in sizes(machine):
        run = machine.newest(f"{LINES}step", ranks, *size)
        step, spread = (run.value(f"{LINES}{what}", ranks, *size) for what in ("step", "spread"))
        first = run.value(f"{LINES}step", 1, *size)
        parts = [machine.cell(number, f"{LINES}{part}", ranks, *size) for part in PARTS]
        cells = f"{number(step)}±{number(spread)}", hundredths(first and first / step)
        iterations = machine.cell(rounded, f"{LINES}iterations", ranks, *size)
        rows.append([str(ranks), unknowns(*size), *parts, iterations, *map(run.cell, cells)])
    parts = [f"{part.replace('_', ' ')}, ms" for part in PARTS]
    return table(machine, ["ranks", "unknowns a rank", *parts, "iterations", "step, ms", "efficiency"], rows, names=2)


def neighbours(ranks):
    """How many a rank has at most if columns of cells are cut into a grid of ranks, as square as possible."""
    sides = next((n, ranks // n) for n in range(isqrt(ranks), 0, -1) if ranks % n == 0)
    return sum(min(side - 1, 2) for side in sides)


def talk(run, ranks, side, length, b):
    """Milliseconds of a step in which ranks talk, with the latency, bandwidth and sums of two cores.

    A step of GMRES exchanges the faces of a rank's columns with each neighbour, and sums twice over all ranks.
    """
    two = 2, side, length, b
    exchange, reduction, iterations = (
        run.value(f"{LINES}{what}", *two) for what in ("exchange", "reduction", "iterations")
    )
    return 1e-3 * (iterations + 1) * (neighbours(ranks) * exchange + 2 * log2(ranks) * reduction)


def scaling_model(machine):
    """Efficiency on more ranks, then the same if they talk `SLOWER` times as long."""
    measured = [size for ranks, *size in sizes(machine) if ranks == 2]
    runs = [machine.newest(f"{LINES}exchange", 2, *size) for size in measured]

    def efficiency(run, ranks, size, factor):
        one, two = (run.value(f"{LINES}step", n, *size) for n in (1, 2))
        work = two - talk(run, 2, *size)
        return hundredths(one and one / (work + factor * talk(run, ranks, *size)))

    rows = [
        [
            f"{ranks:,}",
            *(
                run.cell(listed(efficiency(run, ranks, size, 1), efficiency(run, ranks, size, SLOWER)))
                for run, size in zip(runs, measured, strict=True)
            ),
        ]
        for ranks in RANKS
    ]
    return table(machine, ["ranks", *(f"{unknowns(*size)} unknowns a rank" for size in measured)], rows)


def network(machine):
    """What two ranks take to exchange vectors and to sum."""
    rows = []
    for ranks, *size in sizes(machine):
        run = machine.newest(f"{LINES}exchange", ranks, *size)
        one, face, reduction = (
            run.value(f"{LINES}{what}", ranks, *size) for what in ("exchange_of_one", "exchange", "reduction")
        )
        if face is not None:
            nbytes = DOUBLE * size[0] * size[1] * size[2]
            cells = f"{nbytes / 1000:.0f}", number(one), number(face), number(nbytes / face / 1000), number(reduction)
            rows.append([unknowns(*size), *map(run.cell, cells)])
    head = ["unknowns a rank", "face, KB", "exchange of a number, us", "of faces, us", "GB/s", "sum, us"]
    return table(machine, head, rows)


def dask(machine):
    """Seconds of Dask's workers, and the part of their time in which systems are solved."""
    name, libraries = "dask_blocks.Blocks.track_", {"compactla": "`linalg.solve`", "numpy": "`numpy.linalg.solve`"}
    columns = {"seconds": number, "share": percent}
    rows = [
        [shown, *(machine.cell(show, f"{name}{what}", library) for what, show in columns.items())]
        for library, shown in libraries.items()
    ]
    return table(machine, ["solved by", "the whole, s", "of it in solves"], rows)


def gpus(machine):
    """Milliseconds of factors and solves of lines on GPUs of one process."""
    name, rows = "cuda_scaling.Lines.track_step", []
    keys = {tuple(map(int, key[1:])) for run in machine.runs for key in run.values if key[0] == name}
    most = max((count for count, _ in keys), default=0)
    for lines in sorted({lines for _, lines in keys}):
        run = machine.newest(name, most, lines)
        one, all_of_them = (run.value(name, count, lines) for count in (1, most))
        rows.append([f"{lines:,}", *map(run.cell, (number(one), number(all_of_them), hundredths(one / all_of_them)))])
    return table(machine, ["lines a GPU", "1 GPU, ms", f"{most} GPUs, ms", "efficiency"], rows)


PIECES = {"weak scaling": weak_scaling, "network": network, "scaling model": scaling_model, "dask": dask, "gpus": gpus}
