"""Vectors of right-hand sides, and those that solutions are written to."""

import numpy as np

from compactla.checks import (
    as_array,
    check_contiguous,
    check_device_array,
    check_kind,
    check_written,
    is_device_array,
)
from compactla.overlap import span


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


def check_out(out, rhs, dtype, queue, x0=None) -> None:
    """Refuse what the solution for `rhs`, of this dtype, cannot be written to; it may be `rhs` or `x0` itself."""
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
    check_written("out", out, {"rhs": rhs} if x0 is None else {"rhs": rhs, "x0": x0}, same=("rhs", "x0"))


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
    check_written("x", x, {"rhs": rhs}, same=("rhs",))


def check_apart(x, name, spans) -> None:
    """Refuse an array that shares memory with the blocks of lines, which are there by their names."""
    start, end, buffer = span(x)
    for block, (first, last, own) in spans.items():
        if start < last and first < end and buffer == own and x.size:
            raise ValueError(f"{name} shares memory with {block} of the lines, must not")
