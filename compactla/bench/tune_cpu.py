"""Measure the choices for a processor: ``python -m compactla tune --device cpu``.

Each choice is between two ways of doing the same, which are timed in turns, in one thread where threads are not what
it is about. The results go to the user's cache, where `compactla.cpu.emit.choices` finds them.
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
from compactla.bench.ceilings import processor
from compactla.bench.progress import progress_bar
from compactla.cpu import arrays, compile, run
from compactla.cpu.emit import choices
from compactla.cpu.threads import sharing

NEVER = 2**60
GAIN = 1.02  # how many times as fast what is chosen has to be
FOOTPRINTS = [2**k << 20 for k in range(7)]  # 1 to 64 MB
COSTS = [2**k for k in range(14, 21)]  # operations
ROUNDS, BURST = 60, 3e-4  # in turns, and seconds of one
PAUSE = 1e-3  # seconds after which threads sleep


def tune() -> None:
    """Measure all choices, and save what is found."""
    file = choices.user_file()
    with progress_bar(len(MEASURED), "choices") as bar:
        bar.write(f"{processor()}: results go to {file}")
        for name, measure in MEASURED.items():
            found, words = measure()
            if found is not None:
                choices.write(file, processor(), {name: found})
            known = getattr(choices.choices(), name)
            bar.write(f"{name:<8} {f'{known} as before' if found is None else found}: {words}")
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
    """How many times as fast the second of two calls is, by the least times of several rounds in turns."""
    counts = [1 if pause else timing.enough(functools.partial(repeated, call), BURST)[0] for call in (one, other)]
    least = [np.inf, np.inf]
    for _ in range(ROUNDS):
        for k, call in enumerate((one, other)):
            time.sleep(pause)
            calls = repeated(call, counts[k])
            start = time.perf_counter()
            calls()
            least[k] = min(least[k], (time.perf_counter() - start) / counts[k])
    return least[0] / least[1]


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


def prepared(name: str, n: int, nm: int, module: Any, choice: str, value: Any) -> Callable:
    """A prepared call of a routine whose kernel was chosen with that value, in one thread."""
    compile.compiled.cache_clear()
    with patched(module, choice, value):
        case = Dense(name, n, nm, threads=1)
        case.call()
        call = case.prepared()
    compile.compiled.cache_clear()
    return functools.partial(call_of, case, call)


def call_of(case, call):
    """A call, and the case that its operands live in."""
    return call()


def measure_far() -> tuple[int | None, str]:
    """Products and factorizations of matrices of several sizes, with packs fetched ahead and without."""
    ratios = []
    for footprint in FOOTPRINTS:
        found = []
        for name, n in (("gemm", 4), ("getrfnp", 8)):
            nm = footprint // ((3 if name == "gemm" else 1) * n * n * 8)
            found.append(times_as_fast(*(prepared(name, n, nm, run, "FAR", value) for value in (NEVER, 0))))
        ratios.append(float(np.exp(np.log(found).mean())))
    return least(FOOTPRINTS, ratios), listed(FOOTPRINTS, ratios, (2**20, "MB"), "packs fetched ahead, at")


def measure_past() -> tuple[int | None, str]:
    """Copies of arrays to packs, which are factored then, with stores past the caches and without."""
    ratios = []
    for footprint in FOOTPRINTS:
        case = Pack(5, footprint // 200, threads=1)

        def copied(limit, case=case):
            with patched(arrays, "past_caches", lambda: limit):
                cla.getrfnp(case.call(), threads=1)

        ratios.append(times_as_fast(lambda copy=copied: copy(NEVER), lambda copy=copied: copy(0)))
    return least(FOOTPRINTS, ratios), listed(FOOTPRINTS, ratios, (2**20, "MB"), "stores past the caches, at")


def measure_grain() -> tuple[int | None, str]:
    """Batches of several sizes, in one thread and in two, which have slept."""
    if sharing.THREADS == 1:
        return None, "there is one thread"
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
    return found and found // 6, listed(COSTS, ratios, (1000, "thousand operations"), "two threads, at")


MEASURED = {"far": measure_far, "past": measure_past, "grain": measure_grain}
