"""Times of calls: the least of several, since other work on a machine only ever adds to it."""

import math
import time
from collections.abc import Callable, Sequence

SLOW = 0.5  # seconds of a call that is not repeated often
SECONDS = 0.3  # that a call is repeated for
AT_ONCE = 0.01  # seconds of calls that a device, or several threads, get at once
REPEATS = 4  # timings of a loop of compiled code
PAUSE = 0.15  # seconds between parts of a measurement
DURATION = 2e-3  # seconds that one timing of such a loop takes at least
ROUNDS, FEW = 7, 2  # in turns, at least; of slow calls
MOST = 2**30  # rounds of a loop: compilers may have removed what does nothing


def best(call, seconds=0.0, least=7) -> float:
    """Least time of a call, in seconds, of at least `least` (2 if it is slow) and as many as fit into `seconds`."""
    start = time.perf_counter()
    call()
    times: list[float] = []
    end = time.perf_counter() + seconds
    if end - seconds - start > SLOW:
        least = min(least, 2)
    while len(times) < least or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def best_of_rounds(rounds_of, repeats=REPEATS) -> float:
    """Least time of a round, where ``rounds_of(count)`` is a call that makes so many."""
    rounds, _ = enough(rounds_of, DURATION)
    return best(rounds_of(rounds), least=repeats) / rounds


def enough(rounds_of, duration):
    """A number of rounds that take so many seconds at least, and the seconds that they take."""
    rounds = 1
    while (seconds := best(rounds_of(rounds), least=3)) < duration and rounds < MOST:
        rounds *= 2
    return rounds, seconds


def burst(rounds_of, duration):
    """A measurement of some such seconds: the least time of a round in a few timings, after one that does not count.

    That brings back what has left the caches since the last measurement. A slow call is timed once.
    """
    rounds, seconds = enough(rounds_of, duration / REPEATS)
    calls, repeats = rounds_of(rounds), math.ceil(min(REPEATS, duration / seconds))

    def measure():
        times = []
        while len(times) <= repeats and sum(times) < SLOW:
            start = time.perf_counter()
            calls()
            times.append(time.perf_counter() - start)
        return min(times[1:] or times) / rounds

    return measure


def in_turns(measures: Sequence[Callable], rounds: int | None = None, parts: int = 1) -> list[list[float]]:
    """Results of several measurements, by round: they follow each other, so that each sees what others saw.

    A part has so many rounds, or as many as fit into `SECONDS`; pauses are between, since other work comes in bursts.
    """
    found: list[list[float]] = [[] for _ in measures]
    for part in range(parts):
        time.sleep(PAUSE if part else 0)
        start, done, wanted = time.perf_counter(), 0, rounds or ROUNDS
        while done < wanted or (not rounds and time.perf_counter() < start + SECONDS):
            for times, measure in zip(found, measures, strict=True):
                times.append(measure())
            done += 1
            if not rounds and time.perf_counter() > start + SLOW:
                wanted = FEW
    return found


def repetitions(call):
    """``repetitions(call)(count)`` is a call that repeats it so often."""

    def rounds_of(count):
        def calls():
            for _ in range(count):
                call()

        return calls

    return rounds_of


def calls_of(case):
    """``calls_of(case)(count)`` is a call that runs a case so often, without a wait between calls on a device."""
    return lambda count: lambda: case.run(count)
