"""Views of batches of matrices, as kernels see them."""

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np

from compactla.backends import backend
from compactla.calls.plans import Plans
from compactla.dtypes import REAL
from compactla.overlap import origin, repeats
from compactla.protocols import Runs


@dataclass(frozen=True, eq=False)
class Layout:
    """The key of a kernel. There is one object for each, which hashes fast: `layout` makes it."""

    dtype: np.dtype
    vlen: int
    m: int
    n: int
    strides: tuple[int, int] | None  # from row to row and column to column, where the matrices are contiguous
    common: bool = False


CALLS = 16  # that an operand knows
layout = functools.cache(Layout)
numbers = itertools.count()


T = TypeVar("T")


class Kept(Generic[T]):
    """A property that is kept: `functools.cached_property` without the lock, which costs half a microsecond."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute, self.name, self.__doc__ = compute, compute.__name__, compute.__doc__

    def __get__(self, instance: Any, owner: Any = None) -> T:
        if instance is None:
            return self  # type: ignore[return-value] # for what reads docstrings
        found = instance.__dict__[self.name] = self.compute(instance)
        return found


@dataclass
class View:
    """A batch of matrices, as kernels see it; strides count real elements and may be negative."""

    buffer: Any = field(compare=False)  # the array that owns the memory
    address: int  # of the first element: bytes on the CPU, real elements from the buffer's start on a device
    npack: int
    m: int
    n: int
    ps: int  # stride from pack to pack
    rs: int  # from row to row
    cs: int  # from column to column
    vlen: int
    dtype: np.dtype
    queue: Any
    common: bool = False  # one ordinary matrix for the whole batch
    source: Any = field(default=None, compare=False)  # of what the buffer is a copy of, to be made by each call

    lasts = True  # whether other calls may come with it

    @cached_property
    def number(self) -> int:
        """A number that no other view has, now or later."""
        return next(numbers)

    @cached_property
    def calls(self) -> Plans:
        """Earlier calls that write here, or read the last operand here; see `compactla.routine.Routine.run`."""
        return Plans(CALLS)

    @Kept
    def place(self) -> tuple[int, int, int, int]:
        """Where the elements are, as kernels are told: the address and the strides."""
        return self.address, self.ps, self.rs, self.cs

    @Kept
    def layout(self) -> Layout:
        size = self.size
        contiguous = (abs(self.rs), abs(self.cs)) in ((self.n * size, size), (size, self.m * size))
        return layout(self.dtype, self.vlen, self.m, self.n, (self.rs, self.cs) if contiguous else None, self.common)

    @property
    def size(self) -> int:
        """Real numbers of an element, in all lanes."""
        return (1 if self.common else self.vlen) * (2 if self.dtype.kind == "c" else 1)

    @property
    def item(self) -> int:
        """Bytes of a real element."""
        return REAL[self.dtype.char].itemsize

    @property
    def unit(self) -> int:
        """How far apart the addresses of neighbouring real elements are."""
        return 1 if self.queue is not None else self.item

    @cached_property
    def span(self) -> tuple[int, int]:
        """Where the memory begins and ends that the elements are in, in bytes; on a device those of a memory object."""
        if not self.npack * self.m * self.n:
            return 0, 0
        first, last = 0, self.size
        for end in (self.npack - 1) * self.ps, (self.m - 1) * self.rs, (self.n - 1) * self.cs:
            if end < 0:
                first += end
            else:
                last += end
        start = self.address
        if self.queue is not None:
            start = start * self.item + origin(self.buffer)[1] - self.buffer.offset
        return start + self.item * first, start + self.item * last

    @cached_property
    def repeats(self) -> bool:
        """Whether several elements are one place in memory."""
        return repeats((self.npack, self.m, self.n), (self.ps, self.rs, self.cs), self.size)

    @cached_property
    def run(self) -> Runs:
        """The module with the kernels."""
        return backend(self.queue, "run")

    @cached_property
    def T(self) -> "View":
        return replace(self, m=self.n, n=self.m, rs=self.cs, cs=self.rs)

    @cached_property
    def rows_reversed(self) -> "View":
        last = self.address + self.unit * max(self.m - 1, 0) * self.rs
        return replace(self, address=last, rs=-self.rs)

    @cached_property
    def reversed(self) -> "View":
        return self.rows_reversed.T.rows_reversed.T


class StackView(View):
    """Ordinary matrices as packs of one lane, of an array that a call comes with."""

    lasts = False


class StackInBytes(StackView):
    """The same on the CPU: strides count bytes, and may be those of any array."""

    @property
    def size(self) -> int:
        return self.dtype.itemsize

    @property
    def item(self) -> int:
        return 1

    @cached_property
    def run(self) -> Runs:
        return backend(None, "ordinary")


def lower_left(A: Any, B: Any, side: str, uplo: str, trans: str) -> tuple[Any, Any]:
    """The operands of a solve with a triangle, or a product, as views: A is lower triangular, left, and not transposed.

    op(A)^T X^T = B^T for side "R", and an upper triangle becomes a lower one when both axes are reversed.
    """
    upper = uplo == "U"
    if side == "R":
        B = B.T
    if (side == "R") == (trans == "N"):
        A, upper = A.T, not upper
    if upper:
        A, B = A.reversed, B.rows_reversed
    return A, B
