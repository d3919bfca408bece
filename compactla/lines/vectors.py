"""Vectors of right-hand sides, and those that solutions are written to."""

import numpy as np

from compactla.checks import as_array, check_contiguous, check_device_array, check_kind, is_device_array, is_writeable
from compactla.overlap import share_memory, span


def as_rhs(rhs, shape, dtype, queue):
    """Right-hand sides as an array, of vectors of this shape or of several such for each line."""
    on_device = is_device_array(rhs)
    rhs = rhs if on_device else as_array(rhs, "rhs")
    if rhs.ndim not in (3, 4) or rhs.shape[:3] != shape:
        raise ValueError(f"rhs has shape {rhs.shape}, must be {shape} or {(*shape, 'nrhs')}")
    if on_device and queue is None:
        raise TypeError("rhs is a pyopencl Array, must be a NumPy array: the lines live on the CPU")
    if rhs.dtype != dtype and not np.can_cast(rhs.dtype, dtype, "same_kind"):
        raise TypeError(f"rhs: dtype is {rhs.dtype}, must cast to {dtype}")
    if on_device:
        check_device_array(rhs, queue, "rhs")
        check_contiguous(rhs, "rhs")
    return rhs


def check_out(out, rhs, dtype, queue) -> None:
    """Refuse what the solution for `rhs`, of this dtype, cannot be written to; it may be `rhs` itself."""
    if is_device_array(rhs) and not is_device_array(out):
        raise TypeError(f"out is a {type(out).__name__}, must be an array on the device as rhs")
    if is_device_array(rhs):
        check_device_array(out, queue, "out")
    else:
        check_kind(out, None, "out")
    if out.dtype != dtype:
        raise TypeError(f"out: dtype is {out.dtype}, must be {dtype}")
    if out.shape != rhs.shape:
        raise ValueError(f"out has shape {out.shape}, must be {rhs.shape} as rhs")
    check_contiguous(out, "out")
    if not is_writeable(out):
        raise ValueError("out is read-only, must be writeable")
    check_apart("out", out, "rhs", rhs)


def write(numbers, out) -> None:
    """Write integers to an array, which may live on a device."""
    if isinstance(out, np.ndarray):
        out[...] = numbers
    else:
        out.set(numbers.astype(out.dtype))


def check_rows(rhs, x, nrows, b, dtype, queue) -> None:
    """Refuse what are no vectors of block rows, so many or more, of which x can be written to."""
    for name, a in (("rhs", rhs), ("x", x)):
        check_kind(a, queue, name)
        if a.dtype != dtype:
            raise TypeError(f"{name}: dtype is {a.dtype}, must be {dtype}")
        if a.ndim != 3 or a.shape[1] != b or a.shape[0] < nrows or a.shape != rhs.shape:
            least = f"({nrows} or more, {b}, nrhs)"
            raise ValueError(f"{name} has shape {a.shape}, must be {least}, the same for rhs and x")
        check_contiguous(a, name)
        if queue is not None:
            check_device_array(a, queue, name)
    if not is_writeable(x):
        raise ValueError("x is read-only, must be writeable")
    check_apart("x", x, "rhs", rhs)


def check_apart(name, x, other, a) -> None:
    """Refuse x if it shares memory with `a` without being the same."""
    if x is not a and share_memory(x, a) and not is_same(x, a):
        raise ValueError(f"{name} shares memory with {other}, must be the same or apart from it")


def is_same(x, a) -> bool:
    """Whether two arrays are one place in memory, contiguous in the same order, and numbers of one type."""
    return x.dtype == a.dtype and x.shape == a.shape and x.strides == a.strides and span(x) == span(a)
