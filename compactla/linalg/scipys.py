"""Functions of SciPy, in our place."""

import functools
import math

import numpy as np


def on_stacks(function):
    """A function of SciPy on stacks of matrices, which may be empty stacks too."""

    @functools.wraps(function)
    def apply(*arrays, **options):
        lead = np.broadcast_shapes(*(a.shape[:-2] for a in arrays))
        if math.prod(lead):
            return function(*arrays, **options)
        found = function(*map(regular, arrays), **options)
        if isinstance(found, tuple):
            return tuple(np.empty(lead + x.shape, x.dtype) for x in found)
        return np.empty(lead + found.shape, found.dtype)

    return apply


def regular(a):
    """A matrix of the size and the type of those of a stack, for which there are results; zeros of integers."""
    m, n = a.shape[-2:]
    return np.zeros((m, n), a.dtype) if a.dtype.kind == "i" else np.eye(m, n, dtype=a.dtype)
