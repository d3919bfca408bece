"""Measurements of a case: this package, called from Python and within compiled code, and its peers."""

from collections.abc import Iterator
from typing import NamedTuple

import llvmlite.binding
import numba
import numpy as np

import compactla as cla
from compactla.bench import cases, kernels, mkl
from compactla.bench.ceilings import bandwidth, level, peak, processor, working_sets
from compactla.bench.peers import Peer, banded, library_peers
from compactla.bench.timing import TIMINGS, best, best_of_rounds, repeated, seconds_of
from compactla.cpu.machine import machine
from compactla.cpu.parallel import THREADS


class Ceiling(NamedTuple):
    """The ceilings of the machine for a working set of so many bytes, measured: flop/s and bytes/s."""

    footprint: int
    level: str
    threads: int
    peak: float
    bandwidth: dict[str, float]

    def rate(self, loop) -> float:
        """Bandwidth of the loop of that name, or of the fastest where it was not measured."""
        return cases.bandwidth_of(loop, self.bandwidth)

    def least_time(self, flops, nbytes, loop) -> float:
        return max(flops / self.peak, nbytes / self.rate(loop))


class Row(NamedTuple):
    """One line of the table: a time, the work done in it, and what bounds it."""

    routine: str
    n: int
    nm: int
    dtype: str
    what: str
    in_cache: bool
    seconds: float
    flops: float
    nbytes: int
    residual: float
    loop: str
    ceiling: Ceiling

    @property
    def of_peak(self):
        return self.flops / self.seconds / self.ceiling.peak

    @property
    def of_bandwidth(self):
        return self.nbytes / self.seconds / self.ceiling.rate(self.loop)

    @property
    def of_bound(self):
        return max(self.of_peak, self.of_bandwidth)


def ceiling(footprint, dtype, queue=None, threads=None) -> Ceiling:
    """The ceilings of work on so many bytes on a device, or on threads of the CPU (all by default), measured now."""
    threads = 0 if queue is not None else THREADS if threads is None else threads
    rates = peak(dtype, queue, threads), bandwidth(footprint, queue, threads)
    return Ceiling(footprint, level(footprint, threads, queue), threads, *rates)


def roofs(dtype, queue=None, threads=None) -> list[Ceiling]:
    """The ceilings of a device, or of threads of the CPU: of each of its caches and of its memory."""
    return [ceiling(nbytes, dtype, queue, threads) for nbytes in working_sets(threads or THREADS, queue)]


def row(case, what, seconds, residual, bound, in_cache=False) -> Row:
    work = case.flops, case.nbytes, residual, case.loop, bound
    return Row(case.routine, case.n, case.nm, case.dtype.name, what, in_cache, seconds, *work)


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
    bound = ceiling(case.footprint, case.dtype, case.queue, case.threads.get("threads"))
    yield row(case, "compactla", seconds_of(case, iterations), case.residual(), bound)
    cached = None
    if isinstance(case, cases.Dense) and case.queue is None:
        cached = make(n, cases.IN_CACHE, **options | {"threads": None})
        cached_bound = ceiling(cached.footprint, cached.dtype, threads=1)
        seconds = best_of_rounds(kernels.rounds_of(cached), TIMINGS)
        yield row(cached, "compactla", seconds, cached.residual(), cached_bound, True)
    if not baselines:
        return
    for other in peers(case, library):
        seconds = repeated(other.call, iterations or 3)
        yield row(case, other.name, seconds, other.residual(), bound)
    if cached and library and mkl.has(case.routine):
        name, rounds_of, residual = mkl.fastest_in_cache(cached, library)
        yield row(cached, name, best_of_rounds(rounds_of, TIMINGS), residual(), cached_bound, True)


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
        seconds=factor.seconds + solve.seconds,
        flops=factor.flops + solve.flops,
        nbytes=factor.nbytes + solve.nbytes,
        ceiling=solve.ceiling,
    )
    yield together
    if baselines:
        other = banded(cases.Solve(n, nm, **options))
        seconds = repeated(other.call, iterations or 3) * other.scale
        yield together._replace(what=other.name, seconds=seconds, residual=other.residual())


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
    return measured._asdict() | {"ceiling": measured.ceiling._asdict()}
