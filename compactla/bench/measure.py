"""Measurements of a case: this package, called from Python and within compiled code, and its baselines."""

from collections.abc import Iterator
from typing import NamedTuple

import llvmlite.binding
import numba
import numpy as np

import compactla as cla
from compactla.bench import cases, kernels, lines
from compactla.bench.ceilings import processor
from compactla.bench.timing import calls_of, repetitions
from compactla.bench.turns import Turns, Work, in_turns
from compactla.cpu.emit.machine import machine
from compactla.cpu.threads.sharing import THREADS


class Row(NamedTuple):
    """One line of the table: a time, the work done in it, and what bounds it."""

    routine: str
    n: int
    nm: int
    dtype: str
    what: str
    in_cache: bool
    flops: float
    nbytes: int
    residual: float
    loop: str
    turns: Turns

    @property
    def seconds(self):
        return float(min(self.turns.seconds))


def row(case, what, turns, residual, in_cache=False) -> Row:
    work = case.flops, case.nbytes, residual, case.loop, turns
    return Row(case.routine, case.n, case.nm, case.dtype.name, what, in_cache, *work)


def measure(make, n, nm, baselines=None, iterations=None, **options) -> Iterator[Row]:
    """Rows of the routine of `cases` that ``make(n, nm, **options)`` makes, as they are measured.

    `options` include dtype, queue and threads. `baselines` are those of the repository's `benchmarks/baselines.py`.
    """
    case = make(n, nm, **options)
    where = {"queue": case.queue, "threads": case.threads.get("threads"), "rounds": iterations}
    yield row(case, "compactla", in_turns(calls_of(case), Work.of(case), **where), case.residual())
    cached = None
    if isinstance(case, cases.Dense) and case.queue is None:
        cached = make(n, cases.IN_CACHE, **options | {"threads": None})
        turns = in_turns(kernels.rounds_of(cached), Work.of(cached), threads=1)
        yield row(cached, "compactla", turns, cached.residual(), True)
    if baselines is None:
        return
    for other in baselines.of(case):
        turns = in_turns(repetitions(other.call), Work.of(case), **where)
        yield row(case, other.name, turns, other.residual())
    if cached and (found := baselines.in_cache(cached)):
        name, rounds_of, residual = found
        yield row(cached, name, in_turns(rounds_of, Work.of(cached), threads=1), residual(), True)


def measure_lines(n, nm, baselines=None, iterations=None, **options) -> Iterator[Row]:
    """Rows of factor and solve, and of both, as they are measured."""
    both = []
    for make in (lines.Factor, lines.Solve):
        for measured in measure(make, n, nm, baselines, iterations, **options):
            if measured.what == "compactla":
                both.append(measured)
            yield measured
    factor, solve = both
    together = factor._replace(
        routine="both",
        flops=factor.flops + solve.flops,
        nbytes=factor.nbytes + solve.nbytes,
        turns=factor.turns.then(solve.turns),
    )
    yield together
    if baselines is not None:
        case = lines.Solve(n, nm, **options)
        other, work = baselines.of_lines(case), Work.of(case)._replace(flops=together.flops, nbytes=together.nbytes)
        where = {"queue": case.queue, "threads": case.threads.get("threads"), "rounds": iterations}
        turns = in_turns(repetitions(other.call), work, **where)
        turns = turns._replace(seconds=turns.seconds * other.scale)
        yield together._replace(what=other.name, turns=turns, residual=other.residual())


def environment() -> dict:
    """Machine and software of a measurement."""
    return {
        "processor": processor(),
        "target": llvmlite.binding.get_host_cpu_name(),
        "register": machine()[0],
        "threads": THREADS,
        "versions": {"compactla": cla.__version__, "numba": numba.__version__, "numpy": np.__version__},
    }


def as_dict(measured: Row) -> dict:
    """A row for JSON files."""
    turns = measured.turns
    fractions = {name: getattr(turns, name)._asdict() for name in ("of_peak", "of_bandwidth", "of_bound")}
    known = {name: value for name, value in measured._asdict().items() if name != "turns"}
    return known | {"seconds": measured.seconds, "ceiling": turns.ceiling._asdict()} | fractions
