"""Calls of routines that were made before with the same operands: these need not be checked again."""

import operator
from collections.abc import Callable, Sequence
from typing import Any

NUMBER = operator.attrgetter("number")


def find(
    row: Any, views: Sequence[Any], scalars: Any, conj: Any, compiled: tuple, threads: int | None
) -> tuple[tuple, Callable | None]:
    """The key of a call in memory, and a function that makes it again, or None.

    What a call makes follows from the operands that are given, whose views come first. 0.0 and -0.0 compare equal but
    are different scalars to a compiled kernel, so they get different keys.
    """
    last, given = views[row.main], row.given
    if given == 1:  # written out, for a map takes longer
        key: tuple = row, last.number, scalars, conj, compiled, threads
    elif given == 2:
        key = row, views[0].number, views[1].number, scalars, conj, compiled, threads
    elif given == 3:
        key = row, views[0].number, views[1].number, views[2].number, scalars, conj, compiled, threads
    else:
        key = row, *map(NUMBER, views[:given]), scalars, conj, compiled, threads
    call = last.calls.known.get(key)
    if call is None and not (scalars in row.fixed or all(map(is_exact, scalars))):
        key = *key, repr(scalars)
        call = last.calls.known.get(key)
    if call is not None:
        for i, _ in row.written:
            if not views[i].buffer.flags.writeable:
                return key, None
    return key, call


def is_exact(x) -> bool:
    """Whether numbers that are equal to this one have the same bits, which zeros of both signs have not."""
    return bool(x if type(x) is float else x.real and x.imag)


def remember(key: tuple, call: Callable, views: Sequence[Any], row: Any) -> None:
    """Remember a function for later calls, which may come with the same views."""
    last = views[row.main]
    if not any(A.common for A in views):
        last.calls.add(key, call)
