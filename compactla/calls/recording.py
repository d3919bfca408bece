"""Calls with arrays on a device like those of earlier calls, of which only the launches are made again.

The first call of a function with arrays of some types, shapes and strides is an ordinary one. The second one is
recorded beside: the memory that it asks for, the kernels that it launches, and which of their arguments follow from
where arrays are. Each later one takes memory for its results and launches these kernels, with the arguments that follow
from where its own arrays are. What can't be recorded so, such as a look at numbers, is an ordinary call each time.
"""

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from compactla.calls.arrays import Arrays
from compactla.calls.notes import AGAIN, SIMPLE, Notes, state
from compactla.calls.plans import UNKNOWN
from compactla.foreign import Function, accepts_foreign, in_cuda, inner_calls, is_inner_call, root

PACKED = {"compactla.layout", "compactla.integers"}  # modules of packs, and of integers beside them
HOST = np.ndarray
NUMBERS = {float, complex}  # those of which zeros have signs


def repeats(*written: str, host: bool = False) -> Callable[[Function], Function]:
    """Let a function take arrays of other libraries, as `accepts_foreign` does, and repeat calls by their launches.

    What it does must follow from the types, shapes and strides of arrays, and from all other arguments. It may write to
    arrays that it is given under the names in `written`. With `host` arrays on the host are taken as well.
    """
    return functools.partial(_repeating, written, host)


def _repeating(written, host, function):
    ordinary = accepts_foreign(function, host)

    @functools.wraps(function)
    def call(*args, **keywords):
        first = args[0] if args else None
        of = type(first)
        if of is tuple and first:  # factors, which live where all else does
            first = first[0]
            of = type(first)
        if (of.__name__ == "Pack" and first.queue is None) or of is HOST:
            return function(*args, **keywords)
        key: Any = [function]
        given: list = []
        starts: list[int] = []
        known = read(args, key, given, starts)
        for name, x in keywords.items():
            key.append(name)
            known = known and read((x,), key, given, starts)
        if not known or not given or is_inner_call():
            return ordinary(*args, **keywords)
        kind, key = _kinds[type(given[0])], tuple(key)
        kept = kind.known(given[0])
        again = kept.known.get(key, UNKNOWN)
        if again is UNKNOWN:
            found = ordinary(*args, **keywords)
            kept.add(key, None)
            return found
        if again is None:
            found, again = record(kind, function, written, given, args, keywords)
            kept.add(key, again)
            return found
        if again is not AGAIN:
            found = again(given, starts)
            if found is not AGAIN:
                return found
        return ordinary(*args, **keywords)

    return call


def read(args: Any, key: list, given: list, starts: list[int], within: bool = False) -> bool:
    """Append what a call depends on to its key, and arrays and where they begin to lists; whether all is known.

    That is of lists as well, but not of lists `within` others.
    """
    for x in args:
        kind = type(x)
        arrays = _kinds.get(kind, UNKNOWN)
        if arrays is UNKNOWN:
            if root(kind) and not in_cuda(x):
                return False
            arrays = _kinds[kind] = kind_of_arrays(kind)
        if arrays is not None:
            about = arrays.read(x, starts)
            if about is None:
                return False
            key.append(about)
            given.append(x)
        elif kind in SIMPLE:
            key += kind, x
        elif kind in NUMBERS:
            key.append(repr(x))
        elif kind is tuple or kind is list:
            key += kind, len(x)
            if within or not (x and type(x[0]) not in NUMBERS and read(x, key, given, starts, True)):
                return False
        else:
            return False
    return True


def kind_of_arrays(kind: type) -> Arrays | None:
    """What reads arrays of a type and repeats calls with them; None for all other types."""
    if kind.__module__ in PACKED:
        return of_devices("opencl").PACKS
    package = root(kind)
    if package:
        return of_devices("cuda").kind(package, kind)
    if kind.__module__ == "pyopencl.array" and kind.__name__ == "Array":
        return of_devices("opencl").KIND
    return None


def of_devices(name):
    """A module of `repeats`, which imports what only they need."""
    return importlib.import_module(f"compactla.repeats.{name}")


def record(kind, function, written, given, args, keywords):
    """The result of a call, and a function of arrays and their beginnings that makes it again.

    That is AGAIN if there is none, and None if another call has to be recorded.
    """
    notes = state.notes = Notes()
    mine = {id(x): x for x in given}

    def placed(x):
        if id(x) in mine:
            return next(seen)
        return type(x)(map(placed, x)) if type(x) in (tuple, list) else x

    try:
        seen = iter([_kinds[type(x)].seen(x, number, notes) for number, x in enumerate(given)])
        with inner_calls():
            found = function(*[placed(x) for x in args], **{name: placed(x) for name, x in keywords.items()})
    finally:
        state.notes = None
    again = None if notes.failed else AGAIN
    if not (notes.refused or notes.failed):
        bound = inspect.signature(function).bind(*args, **keywords).arguments
        targets = [number for number, x in enumerate(given) for name in written if bound.get(name) is x]
        again = kind.again(notes, targets, found) or AGAIN
    return kind.handed_back(notes, given, found), again


_kinds: dict[type, Arrays | None] = {}
