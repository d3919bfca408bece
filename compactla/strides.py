"""Strides of stacks of matrices."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from compactla.types import Array


@dataclass(frozen=True)
class Place:
    """Where matrices are in memory: sizes, and bytes from each to the next, from row to row and column to column."""

    m: int
    n: int
    step: int
    rs: int
    cs: int

    @property
    def strides(self) -> tuple[int, int, int]:
        return self.step, self.rs, self.cs

    @property
    def T(self) -> "Place":
        return Place(self.n, self.m, self.step, self.cs, self.rs)

    def rank(self, size: int) -> tuple[bool, int]:
        """How well rows serve, of elements of `size` bytes: contiguous ones, then long ones."""
        return (self.n == 1 or self.cs == size, self.n)


def in_stack(a: Array, lead: Sequence[int]) -> tuple[tuple[int, ...], int | None]:
    """Strides of an array that is broadcast to a stack of shape `lead`, and bytes from each matrix to the next.

    The latter are None if they differ.
    """
    own = [stride if size > 1 else 0 for size, stride in zip(a.shape[:-2], a.strides[:-2], strict=True)]
    axes = [0] * (len(lead) - len(own)) + own
    return (*axes, *a.strides[-2:]), steady(lead, axes)


def steady(lead, strides):
    """The bytes from each matrix to the next; None if they differ."""
    axes = [(size, stride) for size, stride in zip(lead, strides, strict=True) if size > 1]
    if any(outer != inner * size for (_, outer), (size, inner) in itertools.pairwise(axes)):
        return None
    return axes[-1][1] if axes else 0


def in_two_axes(lead: Sequence[int], strides: Sequence[Sequence[int]]) -> Any:
    """Sizes (outer, inner) of a stack of shape `lead` as one of two axes, and the strides of several arrays then.

    None if their strides are not those of two axes.
    """
    for split in range(max(len(lead), 1)):
        outer, inner = lead[:split], lead[split:]
        found = [(steady(outer, own[:split]), steady(inner, own[split:])) for own in strides]
        if not any(None in two for two in found):
            return (math.prod(outer), math.prod(inner)), found
    return None
