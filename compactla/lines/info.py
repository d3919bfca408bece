"""`info` of lines: where a factorization left it, until somebody reads it."""

from typing import Any, NamedTuple

import numpy as np

from compactla.checks import is_device_array, on_host, stays


class Rewritten(NamedTuple):
    """The `info` of a prepared call, which writes to it again."""

    array: Any


def own(info):
    """An `info` that no later call writes to: NumPy's integers, or an array in CUDA memory."""
    if type(info) is Rewritten:
        info = info.array.copy()
    if info is not None and is_device_array(info) and not stays(info):
        info = on_host(info).astype(np.int64)
    return info


def write(numbers, out) -> None:
    """Write integers to an array, which may live on a device."""
    if isinstance(out, np.ndarray):
        out[...] = numbers
    else:
        out.set(numbers.astype(out.dtype))
