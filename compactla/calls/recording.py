"""Launches of a call that are recorded instead of made, for `compactla.prepare` to do it again and again."""

import functools
from collections.abc import Callable
from typing import Any

from compactla.foreign import accepts_foreign
from compactla.locks import Lock


class Recording:
    """The launches of a call; it goes where `threads` of the call goes, and what these say of its launches.

    Attributes
    ----------
    told : int or None, or list of pyopencl.Event
        What the call was given instead: at most how many threads work, or the events to wait for.
    steps : list of function
        What is to be done, in order.
    kept : list
        What has to live as long.
    lock : Lock, ReadWriteLock or None
        What a call holds, where only one at a time may be made: there is memory that calls write to and read again, or
        factors that no other call may change, or, with a `ReadWriteLock`, that no other call may use.
    """

    def __init__(self, threads):
        self.told: Any = threads
        self.steps: list[Callable] = []
        self.kept: list = []
        self.lock: Any = None

    def add(self, function, *args):
        """Do this in every call."""
        self.steps.append(functools.partial(function, *args))

    def keep(self, *objects, alone=False):
        """Let these live as long as there are calls."""
        self.kept += objects
        if alone:
            self.lock = self.lock or Lock()


class Unrecorded(Exception):
    """A call cannot be recorded; `instead` of it, a function without arguments does the same, if there is one."""

    def __init__(self, instead=None):
        super().__init__("a call cannot be recorded")
        self.instead = instead


def refuse(launch, instead=None) -> None:
    """Tell that a call cannot be recorded, if it is; a function of `launch` may do the same without checks."""
    if type(launch) is Recording:
        raise Unrecorded(instead and functools.partial(accepts_foreign(instead), launch.told))


def later(launch, function, *args) -> bool:
    """Whether a call is recorded: it then calls a function with these arguments and `launch`."""
    if type(launch) is not Recording:
        return False
    launch.add(accepts_foreign(function), *args, launch.told)
    return True


def do(launch, function, *args) -> None:
    """Call a function with these arguments and `launch`, or have it recorded."""
    if not later(launch, function, *args):
        function(*args, launch)


def uses(launch, lock, check) -> None:
    """Make a check now, and in each call that is recorded, which then reads what a `ReadWriteLock` is for."""
    check()
    if type(launch) is Recording:
        launch.lock = lock.for_calls()
        launch.add(check)
