"""A call in turns with what bounds it: a fraction of the bound is that of the same seconds."""

from typing import NamedTuple

import numpy as np

from compactla.bench import timing
from compactla.bench.ceilings import Ceiling, fastest, level, memory_loops, peak_loop, within
from compactla.cpu.threads.sharing import THREADS


class Work(NamedTuple):
    """What a call does, as a `Case` says it, and what it is done with."""

    flops: float
    nbytes: int
    footprint: int
    loop: str
    dtype: np.dtype

    @classmethod
    def of(cls, case):
        return cls(*(getattr(case, name) for name in cls._fields))


class Fraction(NamedTuple):
    """The median of the ratios of several rounds, and their quartiles."""

    median: float
    lower: float
    upper: float

    @classmethod
    def of(cls, ratios):
        return cls(*(float(quantile) for quantile in np.quantile(ratios, (0.5, 0.25, 0.75))))

    @property
    def spread(self):
        """Half the distance between the quartiles."""
        return (self.upper - self.lower) / 2


class Turns(NamedTuple):
    """Seconds by round, of a call and of arithmetic and memory for its work, and the medians of the ceilings."""

    seconds: np.ndarray
    arithmetic: np.ndarray
    memory: np.ndarray
    ceiling: Ceiling

    @property
    def of_peak(self):
        return Fraction.of(self.arithmetic / self.seconds)

    @property
    def of_bandwidth(self):
        return Fraction.of(self.memory / self.seconds)

    @property
    def of_bound(self):
        return Fraction.of(np.maximum(self.arithmetic, self.memory) / self.seconds)

    def then(self, other):
        """One call after another, round by round."""
        rounds = min(len(self.seconds), len(other.seconds))
        sums = (a[:rounds] + b[:rounds] for a, b in zip(self[:3], other[:3], strict=True))
        return Turns(*sums, other.ceiling)


def in_turns(rounds_of, work, queue=None, threads=None, rounds=None, parts=1) -> Turns:
    """Bursts of a call in turns with bursts of multiply-adds and of the loops that move bytes as the call does.

    The loops run on a device, or on so many threads of the CPU (all by default). For the other arguments see
    `timing.best_of_rounds` and `timing.in_turns`.
    """
    threads = 0 if queue is not None else THREADS if threads is None else threads
    arithmetic = peak_loop(np.finfo(work.dtype).dtype.char, queue, threads)
    loops = memory_loops(within(work.footprint, queue, threads), queue, threads, work.loop)
    duration = timing.DURATION if threads == 1 else timing.AT_ONCE  # threads take a while to begin, as do devices
    called = [rounds_of, arithmetic.rounds_of, *(loop.rounds_of for _, loop in loops)]
    times = timing.in_turns([timing.burst(calls, duration) for calls in called], rounds, parts)
    seconds, peaks, *sweeps = map(np.array, times)
    rates = [loop.work / sweep for (_, loop), sweep in zip(loops, sweeps, strict=True)]
    medians = float(np.median(arithmetic.work / peaks)), fastest(loops, map(np.median, sweeps))
    ceiling = Ceiling(work.footprint, level(work.footprint, threads, queue), threads, *medians)
    return Turns(seconds, work.flops / arithmetic.work * peaks, work.nbytes / np.max(rates, axis=0), ceiling)
