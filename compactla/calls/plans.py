"""Plans of calls: what was found out for operands of some types, shapes and strides, for the next call with such."""

from typing import Any

UNKNOWN: Any = object()  # in place of a plan that may be None


class Plans:
    """So many plans; for one more all are forgotten.

    Attributes
    ----------
    known : dict
        The plans, by what they depend on. It is looked up directly, which calls of a microsecond notice.
    limit : int
        How many there may be.
    """

    __slots__ = ("known", "limit")

    def __init__(self, limit: int = 4096) -> None:
        self.known: dict = {}
        self.limit = limit

    def add(self, key: Any, plan: Any) -> Any:
        """Enter a plan; returns it."""
        if len(self.known) >= self.limit:
            self.known.clear()
        self.known[key] = plan
        return plan


def signature(arrays: Any) -> tuple:
    """What plans depend on: types, shapes and strides of arrays."""
    return tuple([(a.dtype, a.shape, a.strides) for a in arrays])
