"""Measure the choices for a processor: ``python -m compactla tune --device cpu``.

Each choice is between ways of doing the same, which are timed in turns, in one thread where threads are not what it is
about. What counts is the median of the ratios of neighbours, which other programs slow down alike. The results go to
the user's cache, where `compactla.cpu.emit.choices` finds them.
"""

import contextlib
import functools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import compactla as cla
from compactla.bench import timing
from compactla.bench.cases import Dense, Pack
from compactla.bench.ceilings import CHAINS, divisions, multiply_adds, processor
from compactla.bench.progress import progress_bar
from compactla.cpu import arrays, compile, run
from compactla.cpu.emit import choices
from compactla.cpu.emit.matrices import native_width
from compactla.cpu.threads import sharing

NEVER = 2**60
GAIN = 1.02  # how many times as fast what is chosen has to be
FOOTPRINTS = [2**k << 20 for k in range(7)]  # 1 to 64 MB
COSTS = [2**k for k in range(14, 21)]  # operations
ROUNDS, BURST = 60, 3e-4  # in turns, and seconds of one
PAUSE = 1e-3  # seconds after which threads sleep
INSTRUCTIONS = 1000  # of each of several
WAYS = [
    {"packs": packs, "first": first} for packs, first in ((1, False), (1, True), (2, False), (4, False), (6, False))
]


def tune() -> None:
    """Measure all choices, and save what is found."""
    file = choices.user_file()
    with progress_bar(len(MEASURED), "choices") as bar:
        bar.write(f"{processor()}: results go to {file}")
        for name, measure in MEASURED.items():
            found, words = measure()
            if found:
                choices.write(file, processor(), found)
            told = ", ".join(f"{choice} {value}" for choice, value in found.items())
            bar.write(f"{name:<10} {told or 'as before'}: {words}")
            bar.update()


@contextlib.contextmanager
def patched(module: Any, name: str, value: Any) -> Iterator[None]:
    """Another value of a name in a module, and no kernels that were chosen by the one before, while this lasts."""
    before = getattr(module, name)
    setattr(module, name, value)
    run.chosen.known.clear()
    try:
        yield
    finally:
        setattr(module, name, before)
        run.chosen.known.clear()


def times_as_fast(one: Callable, other: Callable, *, pause: float = 0.0) -> float:
    """How many times as fast the second of two calls is: the median of several rounds, in which each is first in turn.

    Other work on the machine slows both of a round down, or one of a few.
    """
    counts = [1 if pause else timing.enough(functools.partial(repeated, call), BURST)[0] for call in (one, other)]
    ratios = []
    for turn in range(ROUNDS):
        seconds = [0.0, 0.0]
        for k in (0, 1) if turn % 2 else (1, 0):
            time.sleep(pause)
            calls = repeated((one, other)[k], counts[k])
            start = time.perf_counter()
            calls()
            seconds[k] = (time.perf_counter() - start) / counts[k]
        ratios.append(seconds[0] / seconds[1])
    return float(np.median(ratios))


def repeated(call, count):
    """A call of as many calls."""

    def calls():
        for _ in range(count):
            call()

    return calls


def least(sizes: Sequence[int], ratios: Sequence[float]) -> int | None:
    """The least size from which on all gain; None if the largest does not."""
    gains = [ratio > GAIN for ratio in ratios]
    if not gains[-1]:
        return None
    return sizes[max((k for k, gain in enumerate(gains) if not gain), default=-1) + 1]


def listed(sizes, ratios, unit, name):
    """Ratios in words."""
    return (
        ", ".join(f"{ratio:.2f}" for ratio in ratios)
        + f" times as fast with {name} {sizes[0] // unit[0]} to "
        + (f"{sizes[-1] // unit[0]} {unit[1]}")
    )


def prepared(name: str, n: int, nm: int, far: int, **others: Any) -> Callable:
    """A prepared call, in one thread, of a routine whose kernel was made with other choices."""
    compile.compiled.cache_clear()
    chosen = choices.choices()._replace(**others)
    with patched(run, "FAR", far), patched(choices, "choices", lambda: chosen):
        case = Dense(name, n, nm, threads=1)
        case.call()
        call = case.prepared()
    compile.compiled.cache_clear()
    return functools.partial(call_of, case, call)


def call_of(case, call):
    """A call, and the case that its operands live in."""
    return call()


def measure_far() -> tuple[dict, str]:
    """Products and factorizations of matrices of several sizes, with packs fetched ahead and without."""
    ratios = []
    for footprint in FOOTPRINTS:
        found = []
        for name, n in (("gemm", 4), ("getrfnp", 8)):
            nm = footprint // ((3 if name == "gemm" else 1) * n * n * 8)
            found.append(times_as_fast(*(prepared(name, n, nm, value) for value in (NEVER, 0))))
        ratios.append(mean(found))
    return known("far", least(FOOTPRINTS, ratios)), listed(FOOTPRINTS, ratios, (2**20, "MB"), "packs fetched ahead, at")


def measure_past() -> tuple[dict, str]:
    """Copies of arrays to packs, which are factored then, with stores past the caches and without."""
    ratios = []
    for footprint in FOOTPRINTS:
        case = Pack(5, footprint // 200, threads=1)

        def copied(limit, case=case):
            with patched(arrays, "past_caches", lambda: limit):
                cla.getrfnp(case.call(), threads=1)

        ratios.append(times_as_fast(lambda copy=copied: copy(NEVER), lambda copy=copied: copy(0)))
    return known("past", least(FOOTPRINTS, ratios)), listed(
        FOOTPRINTS, ratios, (2**20, "MB"), "stores past the caches, at"
    )


def measure_grain() -> tuple[dict, str]:
    """Batches of several sizes, in one thread and in two, which have slept."""
    if sharing.THREADS == 1:
        return {}, "there is one thread"
    n, ratios = 5, []
    A = cla.Pack.identity(8, n, n)
    _, cost, _ = run.kernel_and_arguments(cla.routine.named("getrfnp"), [A.view], (0.0,), None, ())
    for total in COSTS:
        A = cla.Pack.identity(max(2, int(total / cost)) * A.vlen, n, n)
        with patched(sharing, "GRAIN", 1):
            one, two = (functools.partial(cla.getrfnp, A, threads=threads) for threads in (1, 2))
            two()
            ratios.append(times_as_fast(one, two, pause=PAUSE))
    found = least(COSTS, ratios)
    # Two threads start where one takes three grains off the other.
    return known("grain", found and found // 6), listed(COSTS, ratios, (1000, "thousand operations"), "two threads, at")


def measure_fetching() -> tuple[dict, str]:
    """Products and factorizations of matrices in memory, of which packs are fetched in several ways."""
    before = choices.choices()
    ways = [{"packs": before.packs, "first": before.first}]
    ways += [way for way in WAYS if way not in ways]
    found = np.ones((2, len(ways)))
    for ratios, (name, n, count) in zip(found, (("gemm", 8, 3), ("getrfnp", 15, 1)), strict=True):
        nm = FOOTPRINTS[-1] // (count * n * n * 8)
        usual, *others = (prepared(name, n, nm, 0, **way) for way in ways)
        ratios[1:] = [times_as_fast(usual, call) for call in others]
    means = [mean(ratios) for ratios in found.T.tolist()]
    best = int(np.argmax(means))
    names = (f"{way['packs']} {'near' if way['first'] else 'far'}" for way in ways)
    told = ", ".join(f"{ratio:.2f} with {name}" for ratio, name in zip(means, names, strict=True))
    return ways[best] if means[best] > GAIN else {}, f"{told} times as fast"


def measure_divisions() -> tuple[dict, str]:
    """Divisions of registers beside multiply-adds of them."""
    found: dict = {}
    told = []
    for name, char in (("double", "d"), ("single", "f")):
        lanes = native_width(np.dtype(char))
        ratio = times_as_fast(instructions(char, lanes, True), instructions(char, lanes, False))
        found |= known(name, max(1, round(ratio)))
        told.append(f"{ratio:.1f}")
    return found, " and ".join(told) + " multiply-adds in the time of a division"


def measure_halves() -> tuple[dict, str]:
    """Multiply-adds of registers, and of half registers."""
    lanes = native_width(np.dtype("d"))
    if lanes < 8:
        return {}, "registers are not so wide"
    ratio = times_as_fast(*(instructions("d", width, False) for width in (lanes, lanes // 2)))
    return {"halved": ratio > (1 + 2) / 2}, f"{ratio:.2f} times as fast with half registers"


def instructions(char: str, lanes: int, divides: bool) -> Callable:
    """A call of many multiply-adds or divisions of registers of so many lanes, which do not depend on each other."""
    x = np.full((1, CHAINS, 1, lanes), 0.5, char)
    kernel = divisions(lanes) if divides else multiply_adds(lanes)
    return functools.partial(kernel, x[0], INSTRUCTIONS)


def mean(ratios: Sequence[float]) -> float:
    """The geometric mean."""
    return float(np.exp(np.log(ratios).mean()))


def known(name: str, value: int | None) -> dict:
    """The choice, if something was found that may be one."""
    return {name: value} if choices.is_choice(name, value) else {}


MEASURED = {
    "halves": measure_halves,
    "divisions": measure_divisions,
    "fetching": measure_fetching,
    "far": measure_far,
    "past": measure_past,
    "grain": measure_grain,
}
