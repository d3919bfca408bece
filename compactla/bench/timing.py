"""How long a call takes: the least of several, since other work on a machine only ever adds to it."""

import time

SLOW = 0.5  # seconds of a call that is not repeated often
SECONDS = 0.3  # that a call is repeated for
AT_ONCE = 0.01  # seconds of calls that a device gets before they are waited for
REPEATS = 4  # timings of a loop of compiled code
TIMINGS = 50  # of a kernel in such a loop
BURSTS, PAUSE = 4, 0.15  # measurements, and seconds between them
DURATION = 2e-3  # seconds that one timing of such a loop takes at least
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


def least(measure) -> float:
    """Least of what a measurement returns that is made a few times with pauses, since other work comes in bursts."""
    found = [measure()]
    for _ in range(BURSTS - 1):
        time.sleep(PAUSE)
        found.append(measure())
    return min(found)


def best_of_rounds(rounds_of, repeats=REPEATS) -> float:
    """Least time of a round, where ``rounds_of(count)`` is a call that makes so many."""
    rounds = 1
    while rounds < MOST and best(rounds_of(rounds), least=3) < DURATION:
        rounds *= 2
    return best(rounds_of(rounds), least=repeats) / rounds


def repeated(call, iterations=None) -> float:
    """Least time of a call that is repeated so often, or for `SECONDS`."""
    return best(call, 0 if iterations else SECONDS, iterations or 5)


def seconds_of(case, iterations=None) -> float:
    """Least time of a call of the case: on a device, of calls that follow each other without a wait."""
    calls = 1 if case.queue is None else max(1, round(AT_ONCE / best(case.run, least=1)))
    return repeated(lambda: case.run(calls), iterations) / calls
