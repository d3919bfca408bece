"""How a call starts its work: now, or, where `compactla.prepare` records it, in each run of the prepared call.

Public functions take `threads` and `wait_for`; `compactla.checks.check_launch` makes one `Launch` of both, which goes
from there to whatever starts a kernel.
"""

import functools
from collections.abc import Callable
from typing import Any

from compactla.foreign import accepts_foreign
from compactla.locks import Lock


class Launch:
    """Work that starts now.

    Attributes
    ----------
    threads : int or None
        Largest number of threads on the CPU; None: as many as there are.
    events : sequence of pyopencl.Event
        What a device waits for first.
    recorded : bool
        Whether work is recorded instead.
    """

    __slots__ = ("events", "recorded", "threads")

    def __init__(self, threads: int | None = None, events: Any = (), recorded: bool = False) -> None:
        self.threads, self.events, self.recorded = threads, events, recorded

    def run(self, function: Callable, *args: Any) -> None:
        """Call a function with these arguments."""
        function(*args)

    def do(self, function: Callable, *args: Any) -> None:
        """Call a function with these arguments and a launch."""
        function(*args, self)

    def later(self, function: Callable, *args: Any) -> bool:
        """Whether each run calls a function with these arguments and a launch; if not, the caller goes on."""
        return False

    def keep(self, *objects: Any) -> None:
        """Let objects live as long as the work may be done."""

    def alone(self) -> None:
        """Let one thread at a time do the work: it writes to memory and reads that again."""

    def uses(self, lock: Any, check: Callable) -> None:
        """Check what the work reads: what a `ReadWriteLock` is for, which no other call may change meanwhile."""
        check()

    def changes(self, lock: Any) -> None:
        """Let no other call use what a `ReadWriteLock` is for, nor change it, while the work changes it."""

    def refuse(self, instead: Callable | None = None) -> None:
        """Tell that work cannot be recorded; `instead`, a function of a launch, does the same without checks."""


class Recording(Launch):
    """Work that is recorded.

    Attributes
    ----------
    steps : list of function
        The steps of each run, in order.
    kept : list
        Objects that live as long.
    lock : Lock, ReadWriteLock or None
        What a run holds, if one thread at a time may do the work, or if it uses, or changes, factors.
    """

    __slots__ = ("kept", "lock", "steps")

    def __init__(self, threads: Any = None, events: Any = ()) -> None:
        super().__init__(threads, events, True)
        self.steps: list[Callable] = []
        self.kept: list = []
        self.lock: Any = None

    def run(self, function: Callable, *args: Any) -> None:
        self.steps.append(functools.partial(function, *args))

    def do(self, function: Callable, *args: Any) -> None:
        self.later(function, *args)

    def later(self, function: Callable, *args: Any) -> bool:
        self.run(accepts_foreign(function), *args, Launch(self.threads, self.events))
        return True

    def keep(self, *objects: Any) -> None:
        self.kept += objects

    def alone(self) -> None:
        self.lock = self.lock or Lock()

    def uses(self, lock: Any, check: Callable) -> None:
        check()
        self.lock = lock.for_calls()
        self.run(check)

    def changes(self, lock: Any) -> None:
        self.lock = lock

    def refuse(self, instead: Callable | None = None) -> None:
        run = instead and functools.partial(accepts_foreign(instead), Launch(self.threads, self.events))
        raise Unrecorded(run)


class Unrecorded(Exception):
    """A call cannot be recorded; `instead` of it, a function without arguments does the same, if there is one."""

    def __init__(self, instead: Callable | None = None) -> None:
        super().__init__("a call cannot be recorded")
        self.instead = instead


NOW = Launch()
limited = functools.cache(Launch)  # in so many threads
