"""What a function on stacks of matrices is, and how it is called."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy import ndarray
from numpy.linalg import LinAlgError

from compactla.checks import check_launch
from compactla.cpu import stacks as cpu
from compactla.linalg import failures
from compactla.linalg.places import common_lead, common_type, place
from compactla.view import backend

# What is computed with, and what results are: by the common type of matrices.
COMPUTED = {"f": ("d", "f"), "d": ("d", "d"), "F": ("D", "F"), "D": ("D", "D")}
MANY = 4096  # plans that are kept


@dataclass(frozen=True)
class Result:
    """What is returned for a matrix.

    Attributes
    ----------
    sizes : str
        Two letters, of its rows and columns; one for a vector, none for a number.
    kind : str
        What it holds, if not the numbers of the matrices: "real" ones of their precision, or a type of integers.
    """

    sizes: str
    kind: str = ""


@dataclass(frozen=True)
class Plan:
    """How arrays of some types, shapes and strides are computed.

    Attributes
    ----------
    kernel : compactla.cpu.stacks.Kernel or None
        What computes them; None if NumPy does.
    lead : tuple of int
        Shape of the stack.
    copies : list of (function or None)
        How inputs are copied first, those that have to be; empty if there are none.
    """

    kernel: "cpu.Kernel | None" = None
    lead: tuple[int, ...] = ()
    copies: list = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Stacked:
    """A function on stacks of matrices that has a kernel, which computes V at a time.

    Attributes
    ----------
    name : str
        That of the kernel, and of its file in `compactla.cpu.fused`, and of its function in `compactla.gpu.composed`.
    inputs : tuple of str
        For each matrix two letters, of its rows and columns; "1" is one. A number, "11", has no say in the type, nor
        have integers, whose type is a third letter.
    outputs : tuple of Result
        What is returned for each.
    work : function
        Multiply-adds for each, of the sizes by their letters.
    numpy : function
        What computes the same with NumPy or SciPy, of the arrays, and of the options by their names.
    probe : function, optional
        What raises a LinAlgError for a matrix that has no result, if not `numpy`: of the first matrix and the options.
    regular : function
        A matrix that has a result, of its rows and columns, and of the options by their names.
    message : str or function
        That of the error, or what makes it of the results of the first matrix that fails; default: what NumPy says of
        that matrix.
    error : type
        The error; a warning leaves results as they are.
    options : tuple of str
        What is compiled into kernels.
    implied : dict
        Sizes that follow from others, in turn: by letter, functions of these.
    extent : function
        How large matrices are, for what follows: of the sizes by their letters.
    largest : int
        The largest extent for which the kernel is used.
    fewest : function
        How many matrices there must be: of their extent.
    paired : int
        The largest size of which two vector registers of matrices are worked on side by side: they wait less.
    names : tuple of str
        What messages call the inputs.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[Result, ...]
    work: Callable[..., float]
    numpy: Callable
    probe: Callable | None = None
    regular: Callable = lambda m, n, **_: np.eye(m, n)
    message: str | Callable[..., str] = ""
    error: type[Exception] = LinAlgError
    options: tuple[str, ...] = ()
    implied: dict[str, Callable[..., int]] = field(default_factory=dict)
    extent: Callable[..., int] = lambda **sizes: max(sizes.values())
    largest: int = 32
    fewest: Callable[[int], int] = lambda n: 1
    paired: int = 0
    names: tuple[str, ...] = ("a", "b")
    plans: dict[tuple, Plan] = field(default_factory=dict)

    def __call__(self, arrays, options=(), on_error="raise", compute="double", threads=None):
        """Results for arrays (..., m, n): a list of arrays.

        Parameters
        ----------
        arrays : sequence of ndarray
            The inputs.
        options : tuple
            Values of the options.
        on_error, compute, threads
            As of `compactla.linalg.solve`.
        """
        if on_error != "raise":
            choose("on_error", on_error, ("raise", "nan"))
        if compute != "double":
            choose("compute", compute, ("double", "same"))
        if type(arrays[0]) is not ndarray:
            return backend(arrays[0].queue, "stacks").run(self, arrays, options, on_error, compute, threads)
        if threads is not None:
            check_launch(threads, None, None)
        if len(arrays) == 1:
            (a,) = arrays
            key = options, compute, a.dtype, a.shape, a.strides
        elif len(arrays) == 2:
            a, b = arrays
            key = options, compute, a.dtype, a.shape, a.strides, b.dtype, b.shape, b.strides
        else:
            key = options, compute, *(x for a in arrays for x in (a.dtype, a.shape, a.strides))
        plan = self.plans.get(key)
        if plan is None:
            if len(self.plans) >= MANY:
                self.plans.clear()
            plan = self.plans[key] = self._plan(options, compute, arrays)
        if plan.kernel is None:
            return failures.through_numpy(self, arrays, options, on_error)
        read = arrays
        if plan.copies:
            read = [a if copy is None else copy(a) for a, copy in zip(arrays, plan.copies, strict=True)]
        results, status = plan.kernel.run(read, threads)
        if status[-1]:
            failures.settle(self, arrays, options, results, status[:-1].reshape(plan.lead), on_error)
        return results

    def _plan(self, options, compute, arrays):
        """How arrays of these types, shapes and strides are computed."""
        types = [np.dtype(x[2]) if x[2:] else common_type(a.dtype) for x, a in zip(self.inputs, arrays, strict=True)]
        lead, number = common_lead(arrays), self.sizes(arrays)
        if lead is None or number is None or any(dtype is None for dtype in types):
            return Plan()
        nm, extent = math.prod(lead), self.extent(**number)
        if not min(number.values()) or extent > self.largest or not 0 < nm >= self.fewest(extent):
            return Plan()
        own = [letters == "11" or bool(letters[2:]) for letters in self.inputs]
        common = np.result_type(*(dtype for dtype, apart in zip(types, own, strict=True) if not apart)).char
        computed, result = (common, common) if compute == "same" else COMPUTED[common]
        read = [dtype if apart else np.dtype(common) for dtype, apart in zip(types, own, strict=True)]
        places = [place(a, lead, dtype) for a, dtype in zip(arrays, read, strict=True)]
        made = self.made(lead, number, result)
        kernel = cpu.kernel(self, options, np.dtype(computed), nm, number, places, made)
        copies = [p.copy for p in places]
        return Plan(kernel, lead, copies if any(copies) else [])

    def made(self, lead, number, char):
        """Shapes and types of results, of matrices of a type by its letter."""
        kinds = {"": char, "real": char.lower()}
        shapes = [lead + tuple(number[letter] for letter in output.sizes) for output in self.outputs]
        return [(shape, np.dtype(kinds.get(x.kind, x.kind))) for shape, x in zip(shapes, self.outputs, strict=True)]

    def sizes(self, arrays):
        """What all letters stand for; None if the matrices do not fit together."""
        number = {"1": 1}
        for letters, a in zip(self.inputs, arrays, strict=True):
            if a.ndim < 2:
                return None
            for letter, size in zip(letters[:2], a.shape[-2:], strict=True):
                if number.setdefault(letter, size) != size:
                    return None
        for letter, size in self.implied.items():
            number[letter] = size(**number)
        return number


def choose(name, value, allowed):
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} is {value!r}, must be {' or '.join(map(repr, allowed))}")


def named(result):
    """What makes a tuple of the same type as this one: a function of its elements."""
    return type(result) if hasattr(result, "_fields") else lambda *elements: elements
