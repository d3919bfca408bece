"""Functions on stacks of matrices: their description, and how they are called."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from compactla.calls.launch import NOW
from compactla.calls.plans import Plans, signature
from compactla.checks import check_launch, stays
from compactla.cpu.linalg import stacks as cpu
from compactla.linalg import devices, failures
from compactla.linalg.arguments import common_lead, common_type, place
from compactla.linalg.failures import Failure

DOUBLE = {"f": "d", "F": "D"}  # computation dtypes, by those of matrices, if they differ


@dataclass(frozen=True)
class Result:
    """A result for each matrix.

    Attributes
    ----------
    sizes : str
        Two letters, of its rows and columns; one for a vector, none for a number.
    kind : str
        Type of its numbers, if not that of the matrices: "real" or "complex" for those of their precision, or one of
        integers.
    """

    sizes: str
    kind: str = ""


@dataclass(frozen=True)
class Limits:
    """Stacks for which a kernel is used; all others are left to NumPy.

    Attributes
    ----------
    largest : int
        Largest extent of matrices.
    fewest : function
        Smallest number of matrices, of their extent.
    extent : function
        Extent of matrices, of the sizes by their letters; default: the largest size.
    """

    largest: int = 32
    fewest: Callable[[int], int] = lambda n: 1 if n <= 32 else 4 if n <= 64 else 6
    extent: Callable[..., int] = lambda **sizes: max(sizes.values())

    def hold(self, fit: Any) -> bool:
        """Whether there are enough matrices, and these are not too large."""
        extent = self.extent(**fit.number)
        return extent <= self.largest and fit.nm >= self.fewest(extent)


# Of solutions with factors: most of their time are moves, and lanes without a matrix take as long as others.
SOLVED = Limits(128, lambda n: 1 if n <= 32 else 4 if n <= 64 else 10)


class Fit(NamedTuple):
    """Sizes and types of arrays that fit together."""

    lead: tuple[int, ...]  # shape of the stack
    nm: int  # number of matrices
    number: dict[str, int]  # sizes by their letters
    common: np.dtype  # common type of matrices
    computed: np.dtype  # computation dtype
    made: list[tuple[tuple[int, ...], np.dtype]]  # shapes and types of results


@dataclass(frozen=True)
class StackPlan:
    """A plan for arrays of these types, shapes and strides.

    Attributes
    ----------
    kernel : compactla.cpu.linalg.stacks.StackKernel or None
        The kernel; None if NumPy computes them.
    lead : tuple of int
        Shape of the stack.
    copies : list of (function or None)
        Functions that copy inputs first, if they have to be copied; empty if none has.
    """

    kernel: "cpu.StackKernel | None" = None
    lead: tuple[int, ...] = ()
    copies: list = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Stacked:
    """A function on stacks of matrices that has a kernel, which computes V at a time.

    Attributes
    ----------
    name : str
        Name of the kernel, of its file in `compactla.cpu.fused`, and of its function in `compactla.linalg.composed`.
    inputs : dict
        Sizes of the inputs, by name: two letters, of rows and columns; "1" is one. A number, "11", has no say in the
        type, nor have integers, whose type is a third letter.
    outputs : tuple of Result
        Results for each matrix.
    work : function
        Multiply-adds for each, of the sizes by their letters.
    numpy : function
        The function of NumPy or SciPy, of the arrays, and of the options by their names.
    failure : compactla.linalg.failures.Failure
        What it does for matrices that have no result.
    options : tuple of str
        Names of the options, whose values are compiled into kernels.
    implied : dict
        Sizes that follow from others, in turn: by letter, functions of these.
    limits : Limits
        Stacks for which the kernel is used.
    compiled : str
        Letters of sizes that are compiled in where they are small and others are not: short loops take longest to end.
    static : bool
        Whether sizes are compiled in where that makes kernels faster: not if they take too long to compile for that.
    fails : bool
        Whether there are matrices that have no result.
    paired : int
        The largest size of which two vector registers of matrices are worked on side by side: they wait less. Only of
        sizes that are compiled in, unless it is above these.
    plans : Plans
        Plans for the arrays of former calls.
    """

    name: str
    inputs: dict[str, str]
    outputs: tuple[Result, ...]
    work: Callable[..., float]
    numpy: Callable
    failure: Failure = field(default_factory=Failure)
    options: tuple[str, ...] = ()
    implied: dict[str, Callable[..., int]] = field(default_factory=dict)
    limits: Limits = Limits()
    compiled: str = ""
    static: bool = True
    fails: bool = True
    paired: int = 0
    plans: Plans = field(default_factory=Plans, init=False)

    def __call__(self, arrays, options=(), on_error="raise", compute=None, threads=None):
        """Results for arrays (..., m, n): a list of arrays.

        Parameters
        ----------
        arrays : sequence of ndarray
            The inputs.
        options : tuple
            Values of the options.
        on_error, compute, threads
            See `compactla.linalg.solve`.
        """
        if on_error != "raise":
            choose("on_error", on_error, ("raise", "nan"))
        if compute is None:
            compute = precision(arrays[0])
        elif compute != "same" and compute != "double":
            choose("compute", compute, ("double", "same"))
        if type(arrays[0]) is not ndarray:
            return devices.run(self, arrays, options, on_error, compute, threads)
        launch = NOW if threads is None else check_launch(threads, None, None)
        if len(arrays) == 1:
            (a,) = arrays
            key = options, compute, a.dtype, a.shape, a.strides
        elif len(arrays) == 2:
            a, b = arrays
            key = options, compute, a.dtype, a.shape, a.strides, b.dtype, b.shape, b.strides
        else:
            key = options, compute, signature(arrays)
        plan = self.plans.known.get(key)
        if plan is None:
            plan = self.plans.add(key, self._plan(options, compute, arrays))
        if plan.kernel is None:
            return failures.through_numpy(self, arrays, options, on_error)
        read = arrays
        if plan.copies:
            read = [a if copy is None else copy(a) for a, copy in zip(arrays, plan.copies, strict=True)]
        results, status = plan.kernel.run(read, launch)
        if status[-1]:
            failures.settle(self, arrays, options, results, status[:-1].reshape(plan.lead), on_error)
        return results

    def _plan(self, options, compute, arrays):
        """Make the plan for arrays of these types, shapes and strides."""
        sizes = self.inputs.values()
        types = [np.dtype(x[2]) if x[2:] else common_type(a.dtype) for x, a in zip(sizes, arrays, strict=True)]
        fit = None if any(dtype is None for dtype in types) else self.fit(arrays, types, compute)
        if fit is None or not self.limits.hold(fit):
            return StackPlan()
        read = [dtype if own(letters) else fit.common for letters, dtype in zip(sizes, types, strict=True)]
        places = [place(a, fit.lead, dtype) for a, dtype in zip(arrays, read, strict=True)]
        copies = [p.copy for p in places]
        return StackPlan(cpu.kernel(self, options, fit, places), fit.lead, copies if any(copies) else [])

    def gains(self, *shapes: tuple[int, ...]) -> bool:
        """Whether there is a kernel for arrays of these shapes, of numbers that NumPy computes with."""
        fit = self.fit([np.broadcast_to(0.0, shape) for shape in shapes], [np.dtype("d")] * len(shapes), "double")
        return fit is not None and self.limits.hold(fit)

    def fit(self, arrays: Sequence, types: Sequence, compute: str) -> Fit | None:
        """Sizes and types of arrays, read as these types; None if they are empty, or do not fit together."""
        lead, number = common_lead(arrays), self.sizes(arrays)
        if lead is None or number is None or not math.prod(lead) or not min(number.values()):
            return None
        typed = zip(self.inputs.values(), types, strict=True)
        common = np.result_type(*(dtype for letters, dtype in typed if not own(letters)))
        computed = common if compute == "same" else np.dtype(DOUBLE.get(common.char, common))
        return Fit(lead, math.prod(lead), number, common, computed, self.made(lead, number, common.char))

    def made(self, lead: tuple[int, ...], number: dict[str, int], char: str) -> list:
        """Shapes and types of results, of matrices of a type by its letter."""
        kinds = {"": char, "real": char.lower(), "complex": char.upper()}
        shapes = [lead + tuple(number[letter] for letter in output.sizes) for output in self.outputs]
        return [(shape, np.dtype(kinds.get(x.kind, x.kind))) for shape, x in zip(shapes, self.outputs, strict=True)]

    def sizes(self, arrays: Sequence) -> dict[str, int] | None:
        """Sizes by their letters; None if the matrices do not fit together."""
        number = {"1": 1}
        for letters, a in zip(self.inputs.values(), arrays, strict=True):
            if a.ndim < 2:
                return None
            for letter, size in zip(letters[:2], a.shape[-2:], strict=True):
                if number.setdefault(letter, size) != size:
                    return None
        for letter, size in self.implied.items():
            number[letter] = size(**number)
        return number


def own(letters: str) -> bool:
    """Whether an input has a type of its own, and no say in that of results."""
    return letters == "11" or bool(letters[2:])


def precision(a):
    """The usual value of `compute` for an array."""
    return "same" if stays(a) else "double"


def check_options(on_error: str, compute: str | None = None, threads: int | None = None) -> None:
    """Refuse options that functions on stacks do not know, also where nothing is computed here."""
    choose("on_error", on_error, ("raise", "nan"))
    if compute is not None:
        choose("compute", compute, ("double", "same"))
    check_launch(threads, None, None)


def choose(name: str, value: Any, allowed: Sequence[str]) -> None:
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} is {value!r}, must be {' or '.join(map(repr, allowed))}")


def named(result):
    """A function that makes tuples of the same type as this one, of their elements."""
    return type(result) if hasattr(result, "_fields") else lambda *elements: elements
