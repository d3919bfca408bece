"""NumPy 1 on Windows, simulated where it is imported before all else: arrays that compactla makes of integers are of
32 bits, where it names no type."""

import functools
import sys

import numpy as np

MAKERS = [
    *("arange", "array", "asarray", "ascontiguousarray", "zeros", "ones", "empty", "full", "indices"),
    *("append", "atleast_1d", "concatenate", "repeat", "stack", "tile", "where", "cumprod", "cumsum", "prod", "sum"),
]
LARGER = {np.dtype(np.int64), np.dtype(np.uint64), np.dtype(np.uint32)}


def has_larger(x):
    """Whether there are integers of 64 bits among arguments, or what makes such of others."""
    if isinstance(x, list | tuple):
        return any(map(has_larger, x))
    return getattr(x, "dtype", None) in LARGER


def of_windows(make):
    @functools.wraps(make)
    def made(*args, **options):
        if not sys._getframe(1).f_globals.get("__name__", "").startswith("compactla"):
            return make(*args, **options)
        if options.get("dtype") is int or any(x is int for x in args):
            options = {name: np.int32 if x is int else x for name, x in options.items()}
            return make(*(np.int32 if x is int else x for x in args), **options)
        found = make(*args, **options)
        types = [x for x in (*args, options.get("dtype")) if isinstance(x, type | np.dtype)]
        if types or found.dtype != np.int64 or has_larger(args):
            return found
        return found.astype(np.int32)

    return made


for name in MAKERS:
    setattr(np, name, of_windows(getattr(np, name)))
