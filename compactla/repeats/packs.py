"""Packs, and integers beside them, in results of calls that are made again: each is around an array."""

from collections.abc import Callable
from typing import Any

from compactla.integers import Integers
from compactla.layout import Pack


def around(x: Any, adopted: Callable = lambda a, *like: a) -> tuple[Any, Callable] | None:
    """The array that a pack or integers are around, and what makes such of another array; None of other objects."""
    if not isinstance(x, Pack | Integers):
        return None
    a, nm, queue = x.view.buffer, x.nm, x.queue
    about = queue, a.shape, a.dtype, a.strides
    if isinstance(x, Integers):
        return a, lambda other: Integers(adopted(other, *about), nm, queue)
    like = Pack(a, nm)
    like.view.buffer, like.view.address = None, 0  # which would keep the memory
    return a, lambda other: like.around(adopted(other, *about))


def of_kind(x: Any, a: Any) -> Any:
    """A pack, or integers, like another, in this array."""
    return Pack(a, x.nm) if isinstance(x, Pack) else Integers(a, x.nm, x.queue)
