"""What a program asked of numpy.linalg and scipy.linalg while it was patched, and who computed it."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Any, NamedTuple

from compactla.cpu.threads import sharing
from compactla.linalg._numpy import copied
from compactla.patch import patching
from compactla.patch.codes import choosing
from compactla.patch.targets import Target


class Tally:
    """Calls of a function with arrays of some shapes.

    Attributes
    ----------
    calls, kernels : int
        How many, and how many of them ran a kernel.
    seconds : float
        The time that they took.
    """

    __slots__ = ("calls", "kernels", "seconds")

    def __init__(self) -> None:
        self.calls, self.kernels, self.seconds = 0, 0, 0.0

    def add(self, calls: int, kernels: int, seconds: float) -> None:
        self.calls += calls
        self.kernels += kernels
        self.seconds += seconds


class Local(threading.local):
    """What is known in one thread: whether a call goes on, how many kernels it has run, and all former calls."""

    def __init__(self, tallies: list[dict]) -> None:
        self.within, self.kernels = False, 0
        self.known: dict[Any, Tally] = {}
        tallies.append(self.known)


class Row(NamedTuple):
    """One line of a report: a function, the shapes of arrays, and the calls with such."""

    name: str
    shapes: tuple
    tally: Tally


class Report:
    """A record of calls of patched functions: of those within its block."""

    def __init__(self) -> None:
        self.tallies: list[dict] = []  # of each thread
        self.local = Local(self.tallies)

    def __enter__(self) -> "Report":
        patching.watch(self.watched)
        share: Any = sharing.share  # which starts all kernels
        share.__code__ = choosing(share, "choose()", SHARE, SHARE, self.count_kernel)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        share: Any = sharing.share
        share.__code__ = SHARE.__code__
        patching.watch(None)

    def watched(self, target: Target) -> Target:
        """A target whose calls are noted; not those that it makes of others."""
        ours, theirs = self._noting(target.name, target.ours), self._noting(target.name, target.theirs)
        return replace(target, ours=ours, theirs=theirs)

    def _noting(self, name: str, function: Callable) -> Callable:
        local, clock = self.local, time.perf_counter

        def call(*args, **options):
            if local.within:
                return function(*args, **options)
            local.within, local.kernels, start = True, 0, clock()
            try:
                return function(*args, **options)
            finally:
                seconds = clock() - start
                local.within = False
                key = name, shapes_of((*args, *options.values()))
                tally = local.known.get(key)
                if tally is None:
                    tally = local.known[key] = Tally()
                tally.add(1, local.kernels > 0, seconds)

        return call

    def count_kernel(self) -> bool:
        """Note that a kernel is run; False."""
        self.local.kernels += 1
        return False

    def rows(self) -> list[Row]:
        """What was called, those first that took the most time."""
        sums: dict[Any, Tally] = {}
        for known in self.tallies:
            for key, tally in known.copy().items():
                sums.setdefault(key, Tally()).add(tally.calls, tally.kernels, tally.seconds)
        rows = [Row(name, shapes, tally) for (name, shapes), tally in sums.items()]
        return sorted(rows, key=lambda row: -row.tally.seconds)


def total(rows: list[Row]) -> Tally:
    """The sum of the calls in lines of a report."""
    found = Tally()
    for _, _, tally in rows:
        found.add(tally.calls, tally.kernels, tally.seconds)
    return found


def shapes_of(args: Any) -> tuple:
    """The shapes of the arrays among arguments, and in tuples and lists of arrays; of all else nothing."""
    found: list[tuple] = []
    for x in args:
        shape = getattr(x, "shape", None)
        if type(shape) is tuple:
            found.append(shape)
        elif type(x) is tuple or (type(x) is list and x and hasattr(x[0], "shape")):
            found += shapes_of(x)
    return tuple(found)


SHARE = copied(sharing.share)
