"""Ordinary arrays of three axes as operands: nm matrices of any strides, NumPy's or on a device, and what they must be.

On devices they are packs of one lane, for which there are kernels; on the CPU V of them at a time are transposed in
registers, see `compactla.cpu.ordinary`.
"""

from typing import Any

import numpy as np

from compactla.checks import check_device_array, check_dtype, check_kind, is_device_array
from compactla.dtypes import REAL
from compactla.foreign import adopt, is_foreign
from compactla.overlap import address, has_repeats
from compactla.types import Array, Queue
from compactla.view import StackInBytes, StackView, View


def is_stack(a: Any) -> bool:
    """Whether an object is an array of three axes, wherever it lives."""
    return (isinstance(a, np.ndarray) or is_device_array(a) or is_foreign(a)) and a.ndim == 3


def stack_views(**operands: Any) -> list[View]:
    """Views of arrays of three axes, or of two for one matrix that stands for all, which have to fit the last."""
    operands = {name: X if type(X) is np.ndarray else adopt(X, name) for name, X in operands.items()}
    last, C = next(reversed(operands.items()))
    queue = queue_of(C, last)
    for name, X in operands.items():
        check_place(X, queue, name)
    check_stacks(**operands)
    return [view_of(X, len(C), queue) for X in operands.values()]


def view_of(X, nm, queue):
    """The view of an array, or of one matrix that stands for nm."""
    *step, rs, cs = X.strides
    ps, (m, n) = step[0] if step else 0, X.shape[-2:]
    if queue is None:
        return StackInBytes(X, address(X), nm, m, n, ps, rs, cs, 1, X.dtype, None)
    item = REAL[X.dtype.char].itemsize
    return StackView(X, X.offset // item, nm, m, n, ps // item, rs // item, cs // item, 1, X.dtype, queue)


def queue_of(C: Array, name: str) -> Queue:
    """The queue of an array on a device, which it must have; None of others."""
    if not is_device_array(C):
        return None
    check_device_array(C, C.queue, name)
    return C.queue


def check_place(X: Any, queue: Queue, name: str) -> None:
    """Refuse what is no array on the device of the queue, or on the CPU if that is None."""
    check_kind(X, queue, name)
    if queue is not None:
        check_device_array(X, queue, name)


def check_stacks(**operands: Array) -> np.dtype:
    """Refuse arrays that are no stacks like the last of them, which is written; the type of all."""
    last, C = next(reversed(operands.items()))
    dtype = check_dtype(C.dtype, last)
    for name, X in operands.items():
        check_same(X, name, dtype, last)
        if X.ndim not in (2, 3):
            raise ValueError(f"{name} has shape {X.shape}, must have three axes, or two for one matrix")
        if X.ndim == 3 and len(X) != len(C):
            raise ValueError(f"{name} has {len(X)} matrices, must have {len(C)} as {last}")
    if has_repeats(C):
        raise ValueError(f"{last} has strides {C.strides}, must have memory of its own for every element")
    return dtype


def check_same(X: Array, name: str, dtype: np.dtype, other: str) -> None:
    """Refuse an array of another type."""
    if X.dtype != dtype:
        raise TypeError(f"{name} is of {X.dtype}, must be of {dtype} as {other}")
