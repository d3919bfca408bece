"""Vectors beside a batch of matrices: arrays or packs, as packs of columns and back."""

from typing import Any

import numpy as np

from compactla.arithmetic import copied
from compactla.backends import backend, device_module
from compactla.calls.launch import Launch
from compactla.checks import as_array, check_device_array, is_device_array, on_host
from compactla.layout import Pack, packed
from compactla.types import Queue


def after(launch: Launch, queue: Queue) -> None:
    """Have all that a device is still to do wait for the events of a launch."""
    if launch.events:
        device_module("sparse").barrier(queue, launch.events)


def columns(x: Any, name: str, A: Any, n: int) -> tuple[Pack, int]:
    """Columns of n rows for each matrix of A as a pack where A lives, and how many axes they had."""
    x = vectors(x, name, A, n)
    if isinstance(x, Pack):
        return x, 3
    return packed(one_column(x) if x.ndim == 2 else x, A.vlen, A.queue, unit=0), x.ndim


def vectors(x: Any, name: str, A: Any, n: int) -> Any:
    """Columns of n rows for each matrix of A: a pack where A lives, or an array of its type, there or on the host."""
    if isinstance(x, Pack):
        if (x.queue and x.queue.context) != (A.queue and A.queue.context):
            raise TypeError(f"{name} lives on {x.device}, must live where A does")
        if (x.nm, x.m, x.vlen, x.dtype) != (A.nm, n, A.vlen, A.dtype):
            raise ValueError(f"{name} is {x!r}, must have {A.nm} matrices of {n} rows, {A.dtype}, vlen={A.vlen}")
        return x
    on_device = is_device_array(x) and A.queue is not None
    x = x if on_device else as_array(x, name)
    if x.dtype.kind not in "biufc" or not np.can_cast(x.dtype, A.dtype, "safe"):
        raise TypeError(f"{name}: dtype is {x.dtype}, must be {A.dtype} or one that it holds")
    if x.ndim not in (2, 3) or x.shape[:2] != (A.nm, n):
        raise ValueError(f"{name} has shape {x.shape}, must be ({A.nm}, {n}) or ({A.nm}, {n}, nrhs)")
    if on_device:
        check_device_array(x, A.queue, name)
    if x.dtype != A.dtype:
        cast = device_module("linalg.arrays").spread if on_device else None
        x = cast(x, x.shape, x.strides, A.dtype) if cast else x.astype(A.dtype)
    return x


def one_column(x):
    """Vectors (nm, n) as matrices of one column, without a copy."""
    return device_module("bands").columns(x) if is_device_array(x) else x[:, :, None]


def as_given(X: Pack, x: Any, ndim: int) -> Any:
    """Columns in the kind of x: a pack, or an array of so many axes."""
    if isinstance(x, Pack):
        return X
    if is_device_array(x):
        out = backend(X.queue).empty(X.shape, X.dtype, X.queue, x.allocator)
        return X.unpack(out=out).reshape(X.shape[:ndim])
    return on_host(X.unpack()).reshape(X.shape[:ndim])


def contiguous(X: Pack) -> Pack:
    """The pack, or a copy whose memory has no gaps."""
    if X.data.flags.c_contiguous:
        return X
    return copied(X, X.beside(X.m, X.n), unit=0)
