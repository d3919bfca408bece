"""What is recorded of a call instead of being done, for `compactla.prepare` to do it again and again."""

import functools
from collections.abc import Callable
from typing import Any


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
    alone : bool
        Whether only one call at a time may be made: there is memory that calls write to and read again.
    """

    def __init__(self, threads):
        self.told: Any = threads
        self.steps: list[Callable] = []
        self.kept: list = []
        self.alone = False

    def add(self, function, *args):
        """Do this in every call."""
        self.steps.append(functools.partial(function, *args))

    def keep(self, *objects, alone=False):
        """Let these live as long as there are calls."""
        self.kept += objects
        self.alone |= alone


class Unrecorded(Exception):  # noqa: N818
    """What a call does cannot be recorded; `instead` of it, a function without arguments does the same."""

    def __init__(self, instead=None):
        super().__init__("a call cannot be recorded")
        self.instead = instead


def do(launch, function, *args) -> None:
    """Call a function with these arguments and `launch`, or have it recorded."""
    if type(launch) is Recording:
        launch.add(function, *args, launch.told)
    else:
        function(*args, launch)


def instead(launch, function, *args) -> None:
    """Where a call is recorded, have a function called with these arguments and what it was told."""
    if type(launch) is Recording:
        raise Unrecorded(functools.partial(function, *args, launch.told))
