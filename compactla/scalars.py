"""The scalars of the public functions: one number, or one for each matrix."""

import cmath
import functools
from typing import Any

import numpy as np

from compactla.backends import backend
from compactla.checks import as_array, check_contiguous, check_device_array, is_device_array
from compactla.dtypes import REAL
from compactla.foreign import adopt
from compactla.layout import Pack, pack
from compactla.routine import check_packs
from compactla.view import View

NUMBERS = int, float  # of Python, and NumPy's float64
OVERFLOW = 2.0**128 - 2.0**103  # the least number that is rounded to infinity in single precision


def scalar(name: str, value: Any, target: Any) -> Any:
    """The scalar as a Python number, complex for a complex pack or array `target`."""
    if not isinstance(value, NUMBERS):
        try:
            given = as_array(value, name)
        except ValueError:
            given = None
        if given is None or given.ndim or given.dtype.kind not in "biufc":
            raise TypeError(f"{name} is {value!r}, must be a number")
        if given.dtype.kind == "c" and target.dtype.kind != "c":
            raise TypeError(f"{name} is complex, must be real for matrices of {target.dtype}")
    elif -OVERFLOW < value < OVERFLOW:
        return complex(value) if target.dtype.kind == "c" else float(value)
    try:
        number = complex(value) if target.dtype.kind == "c" else float(value)
    except OverflowError:
        number = cmath.inf
    if max(abs(number.real), abs(number.imag)) < OVERFLOW:
        return number
    with np.errstate(over="ignore"):
        rounded = target.dtype.type(number)
    if cmath.isfinite(number) != cmath.isfinite(rounded) or number == number != value:
        raise ValueError(f"{name} is {value!r}, must be in the range of {target.dtype}")
    return number


def real_scalar(name: str, value: Any, target: Any) -> Any:
    """The `scalar`; a TypeError if it is not real."""
    number = scalar(name, value, target)
    if number.imag != 0:
        raise TypeError(f"{name} is {value!r}, must be real")
    return number


@functools.lru_cache(128)
def repeated(number, text, dtype, V, npack, queue) -> View:
    """One matrix of 1 x 1 for all of some packs; the `text` of a number tells zeros of both signs apart."""
    parts = [number.real, number.imag] if dtype.kind == "c" else [number]
    with np.errstate(over="ignore"):
        lanes = np.repeat(np.array(parts, REAL[dtype.char]), V)
    buffer = backend(queue).upload(lanes, queue)
    address = buffer.offset // buffer.dtype.itemsize if queue is not None else lanes.__array_interface__["data"][0]
    return View(buffer, address, npack, 1, 1, 0, len(lanes), len(lanes), V, dtype, queue)


def factors(name: str, value: Any, target: Any) -> View:
    """A number, or one for each matrix, as kernels see it: matrices of 1 x 1 where the pack `target` lives.

    One number is one pack, which all packs see.
    """
    if isinstance(value, Pack):
        check_packs(**{name: value, "X": target})
        return value.view
    queue, dtype, V = target.queue, target.dtype, target.vlen
    value = value if type(value) is np.ndarray else adopt(value, name)
    on_device = not isinstance(value, NUMBERS) and is_device_array(value)
    given = value if on_device or isinstance(value, NUMBERS) else as_array(value, name)
    if isinstance(value, NUMBERS) or (not on_device and given.ndim == 0):
        number = scalar(name, value, target)
        find = repeated if queue is None else repeated.__wrapped__  # what lies on devices is not kept
        return find(number, repr(number), dtype, V, target.view.npack, queue)
    if given.ndim != 1 or given.dtype.kind not in "biufc":
        has = f"{name} has shape {given.shape} and dtype {given.dtype}"
        raise TypeError(f"{has}, must be a number, or ({target.nm},) numbers: one for each matrix")
    if given.dtype.kind == "c" and not target.is_complex:
        raise TypeError(f"{name} is complex, must be real for packs of {dtype}")
    if len(given) != target.nm:
        raise ValueError(f"{name} has length {len(given)}, must have {target.nm}, one for each matrix")
    if on_device:
        if queue is None:
            raise TypeError(f"{name} lives on a device, must live on the CPU as the packs")
        check_device_array(given, queue, name)
        if given.dtype not in (dtype, REAL[dtype.char]):
            raise TypeError(f"{name}: dtype is {given.dtype}, must be {dtype} as of the packs")
        if given.dtype != dtype:
            check_contiguous(given, name)
        cast = given if given.dtype == dtype else given.astype(dtype)
    else:
        with np.errstate(over="ignore"):
            cast = given.astype(dtype)
        if not np.array_equal(np.isfinite(cast), np.isfinite(given)):
            raise ValueError(f"{name} has numbers out of the range of {dtype}, must have none")
    return pack(cast[:, None, None], V, queue=queue).view


def real_factors(name: str, value: Any, target: Any) -> View:
    """`factors` that have no imaginary parts; those of packs are not looked at."""
    if not isinstance(value, (Pack, *NUMBERS)):
        value = adopt(value, name)
        if is_device_array(value):
            is_real = value.dtype.kind != "c"
        else:
            value = as_array(value, name)
            is_real = value.dtype.kind != "c" or not (value.imag != 0).any()
        if not is_real:
            raise TypeError(f"{name} has imaginary parts, must be real")
    return factors(name, value, target)
