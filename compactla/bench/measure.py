"""Measurements of a case: this package, called from Python and within compiled code, and its peers."""

from collections.abc import Iterator
from typing import NamedTuple

import llvmlite.binding
import numba
import numpy as np

import compactla as cla
from compactla.bench import cases, kernels, mkl
from compactla.bench.ceilings import processor
from compactla.bench.peers import Peer, banded, library_peers
from compactla.bench.timing import best, calls_of, repetitions
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


def peers(case, library=None) -> list[Peer]:
    """The peers of a case, on the CPU wherever the case runs; MKL if `library` is one, from `mkl.load`."""
    compact = mkl_peers(case, library) if library else []
    return library_peers(case) + compact


def peer(case, name) -> Peer:
    """The fastest peer of one library: "numpy", "scipy" or "mkl"."""
    found = mkl_peers(case, mkl.load()) if name == "mkl" else library_peers(case)
    named = [peer for peer in found if peer.name.lower().startswith(name)]
    return min(named, key=lambda peer: best(peer.call, least=1))


def mkl_peers(case, library) -> list[Peer]:
    """The fastest of MKL's formats, if MKL does such a thing."""
    if not mkl.has(case.routine):
        return []
    return [Peer(*mkl.fastest(case, library, case.threads.get("threads", THREADS)))]


def measure(make, n, nm, library=None, baselines=True, iterations=None, **options) -> Iterator[Row]:
    """Rows of the routine of `cases` that ``make(n, nm, **options)`` makes, as they are measured.

    `options` include dtype, queue and threads. `library` is MKL or None, see `mkl.load`.
    """
    case = make(n, nm, **options)
    where = {"queue": case.queue, "threads": case.threads.get("threads"), "rounds": iterations}
    yield row(case, "compactla", in_turns(calls_of(case), Work.of(case), **where), case.residual())
    cached = None
    if isinstance(case, cases.Dense) and case.queue is None:
        cached = make(n, cases.IN_CACHE, **options | {"threads": None})
        turns = in_turns(kernels.rounds_of(cached), Work.of(cached), threads=1)
        yield row(cached, "compactla", turns, cached.residual(), True)
    if not baselines:
        return
    for other in peers(case, library):
        turns = in_turns(repetitions(other.call), Work.of(case), **where)
        yield row(case, other.name, turns, other.residual())
    if cached and library and mkl.has(case.routine):
        name, rounds_of, residual = mkl.fastest_in_cache(cached, library)
        yield row(cached, name, in_turns(rounds_of, Work.of(cached), threads=1), residual(), True)


def measure_lines(n, nm, library=None, baselines=True, iterations=None, **options) -> Iterator[Row]:
    """Rows of factor and solve, and of both, as they are measured."""
    both = []
    for make in (cases.Factor, cases.Solve):
        for measured in measure(make, n, nm, library, baselines, iterations, **options):
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
    if baselines:
        case = cases.Solve(n, nm, **options)
        other, work = banded(case), Work.of(case)._replace(flops=together.flops, nbytes=together.nbytes)
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
