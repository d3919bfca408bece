"""Arguments as NumPy takes them, and where matrices of a stack are in memory."""

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy import ndarray

from compactla.checks import is_device_array

DOUBLE = np.dtype("d")


def as_arrays(*given, names=("a", "b")):
    """Arguments as arrays, and what wraps a result that is to be like the last of them.

    pyopencl Arrays stay what they are, if all of them are. None if one of them is of a type that replaces NumPy's
    functions by its own.
    """
    for a in given:
        if type(a) is not ndarray:
            break
    else:
        return given, None
    arrays, wrap = [], None
    for a in given:
        wrap = None
        if type(a) is not ndarray:
            if is_device_array(a):
                return all_on_device(given, names), None
            override = getattr(type(a), "__array_function__", None)
            if override is not None and override is not ndarray.__array_function__:
                return None
            wrap = getattr(a, "__array_wrap__", None)
            a = np.asarray(a)
        arrays.append(a)
    return arrays, wrap


def all_on_device(given, names):
    """Arguments of which one is a pyopencl Array; a TypeError if another is none."""
    for a, name in zip(given, names, strict=False):
        if not is_device_array(a):
            kind = f"{type(a).__module__}.{type(a).__qualname__}"
            raise TypeError(f"{name} is a {kind}, must be a pyopencl Array as the other is, or both on the CPU")
    return given


def common_type(dtype):
    """The type in which matrices are read; None if NumPy has to do with them."""
    if dtype.char in "fdFD":
        return dtype.newbyteorder("=")
    return DOUBLE if dtype.kind in "biu" else None


def as_lapack(a):
    """An array in the type in which SciPy calls LAPACK for it; others than numbers as they are."""
    for chars, dtype in ("?bBhHe", "f"), ("iIlLqQg", "d"), ("G", "D"):
        if a.dtype.char in chars:
            return a.astype(dtype)
    return a


def common_lead(arrays):
    """The shape of the stacks in front of the matrices, broadcast; None if that can't be."""
    try:
        return np.broadcast_shapes(*(a.shape[:-2] for a in arrays))
    except ValueError:
        return None


@dataclass(frozen=True)
class Place:
    """Where the matrices of a stack are.

    Attributes
    ----------
    char : str
        Their type, by NumPy's letter.
    m, n : int
        Their sizes.
    step, rs, cs : int
        Bytes from one to the next, from row to row, and from column to column.
    copy : function, optional
        What makes an array of which that is true.
    """

    char: str
    m: int
    n: int
    step: int
    rs: int
    cs: int
    copy: Callable | None = None


def place(a, lead, dtype):
    """Where the matrices of an array are, in a stack of shape `lead`, as ones of a type."""
    m, n = a.shape[-2:]
    copy = None
    if a.dtype == dtype:
        strides = np.broadcast_to(a, (*lead, m, n)).strides
        step = steady(lead, strides)
        if step is None:
            copy = functools.partial(spread, shape=(*lead, m, n), dtype=dtype)
    else:
        step = None if math.prod(a.shape[:-2]) > 1 else 0
        copy = functools.partial(spread, shape=a.shape if step == 0 else (*lead, m, n), dtype=dtype)
    if copy:
        item = dtype.itemsize
        return Place(dtype.char, m, n, m * n * item if step is None else step, n * item, item, copy)
    return Place(dtype.char, m, n, step, *strides[-2:])


def steady(lead, strides):
    """The bytes from one matrix to the next, if they are the same for all."""
    axes = [(size, stride) for size, stride in zip(lead, strides, strict=False) if size > 1]
    if any(outer != inner * size for (_, outer), (size, inner) in itertools.pairwise(axes)):
        return None
    return axes[-1][1] if axes else 0


def spread(a, shape, dtype):
    """A contiguous array of a shape that `a` is broadcast to."""
    return np.array(np.broadcast_to(a, shape), dtype, order="C")
