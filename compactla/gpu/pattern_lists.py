"""Lists of integers that kernels need of a pattern: made once, and kept on a device."""

import weakref

import numpy as np

from compactla.gpu.arrays import upload
from compactla.gpu.program import built


def on_device(pattern, queue, name, make):
    """The arrays of integers that `make` returns, as buffers of a device, which are kept for the pattern."""
    patterns = built(queue).__dict__.setdefault("patterns", weakref.WeakKeyDictionary())
    kept = patterns.setdefault(pattern, {})
    if name not in kept:
        kept[name] = [upload(a, queue).data for a in make()]  # which has been done when it returns
    return kept[name]


def small(*arrays):
    """Arrays of integers that are below 2^31."""
    return [np.asarray(a, np.int32) for a in arrays]
