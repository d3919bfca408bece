"""Arguments as NumPy takes them, and where matrices of a stack are in memory."""

import functools
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import ndarray

from compactla.checks import is_device_array, stays
from compactla.cpu.memory.matrices import lie
from compactla.foreign import adopt
from compactla.strides import in_stack

DOUBLE = np.dtype("d")
# Numbers of a stack up to which it is copied if matrices are not contiguous: there is no kernel more to compile.
FEW = 4096


def as_arrays(*given: Any, devices: tuple[str, ...] = ()) -> Any:
    """Arguments as arrays, and a function that makes a result like the last argument, or None.

    None alone if an argument is of a type that replaces NumPy's functions by its own. `devices` is for functions that
    take pyopencl Arrays, which are left as they are: names of the arguments, all of which have to be such Arrays then.
    """
    for a in given:
        if type(a) is not ndarray:
            break
    else:
        return given, None
    arrays, wrap, given = [], None, adopt(given, "argument")
    for a in given:
        wrap = None
        if type(a) is not ndarray:
            if is_device_array(a):
                return on_device(given, devices, kind_of(a)), None
            override = getattr(type(a), "__array_function__", None)
            if override is not None and override is not ndarray.__array_function__:
                return None
            wrap = getattr(a, "__array_wrap__", None)
            a = np.asarray(a)
        arrays.append(a)
    return arrays, wrap


def told(function, **options):
    """The options of a function that are not its defaults: types that replace NumPy's functions may know no others."""
    usual = defaults(function)
    return {name: value for name, value in options.items() if value is not usual[name]}


@functools.cache
def defaults(function):
    """The defaults of the parameters of a function."""
    return {name: parameter.default for name, parameter in inspect.signature(function).parameters.items()}


def kind_of(a):
    """The name that errors give to an array on a device."""
    return "array in CUDA memory" if stays(a) else "pyopencl Array"


def on_device(given, names, there):
    """Arguments of which one is an array on a device; a TypeError if another is none, or if there should be none."""
    if not names:
        raise TypeError(f"an argument is a {there}, must be a NumPy array: see its method get")
    for a, name in zip(given, names, strict=True):
        if not is_device_array(a):
            kind = f"{type(a).__module__}.{type(a).__qualname__}"
            raise TypeError(f"{name} is a {kind}, must be a {there} as the other is, or both on the CPU")
    return given


def common_type(dtype):
    """The type in which matrices are read; None if NumPy has to do with them."""
    if dtype.char in "fdFD":
        return dtype.newbyteorder("=")
    return DOUBLE if dtype.kind in "biu" else None


def as_lapack(a):
    """An array in the type in which SciPy calls LAPACK for it; others than numbers as they are."""
    if a.dtype.char in "fdFD":
        return a
    for chars, dtype in ("?bBhHe", "f"), ("iIlLqQg", "d"), ("G", "D"):
        if a.dtype.char in chars:
            return a.astype(dtype)
    return a


def common_lead(arrays):
    """The shape of the stacks in front of the matrices, broadcast; None if that can't be."""
    leads = {a.shape[:-2] for a in arrays}
    if len(leads) == 1:
        return leads.pop()
    try:
        return np.broadcast_shapes(*leads)
    except ValueError:
        return None


@dataclass(frozen=True)
class StackPlace:
    """The place of a stack's matrices in memory.

    Attributes
    ----------
    char : str
        The type of the matrices, by NumPy's letter.
    m, n : int
        The sizes of the matrices.
    step, rs, cs : int
        Bytes from one to the next, from row to row, and from column to column.
    copy : function, optional
        Copies an array first, so that this is true.
    """

    char: str
    m: int
    n: int
    step: int
    rs: int
    cs: int
    copy: Callable | None = None


def place(a, lead, dtype):
    """The place of an array's matrices in a stack of shape `lead`, converted to a type."""
    m, n = a.shape[-2:]
    item, own = dtype.itemsize, a.shape[:-2]
    if a.dtype == dtype:
        (*_, rs, cs), step = in_stack(a, lead)
        few = math.prod(lead) * m * n <= FEW
        if step is not None and not (few and lie(m, n, step, rs, cs, item) != "whole"):
            return StackPlace(dtype.char, m, n, step, rs, cs)
    shape = own if math.prod(own) == 1 else lead
    copy = functools.partial(spread, shape=(*shape, m, n), dtype=dtype)
    return StackPlace(dtype.char, m, n, 0 if shape is own else m * n * item, n * item, item, copy)


def spread(a, shape, dtype):
    """A contiguous array of a shape that `a` is broadcast to."""
    return np.array(a if a.shape == shape else np.broadcast_to(a, shape), dtype, order="C")
