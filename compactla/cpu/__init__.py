"""Numba kernels: the pack level is public, for use inside `@njit` functions.

`matrix` views the V matrices of one pack as one matrix of vectors, which the routines, such as `gemm`, and the
arithmetic of vectors work on; `compactla.cpu.emit.numba_vectors` says what there is of that.
"""

import importlib

from compactla import routine
from compactla.cpu.emit.numba_matrices import matrix
from compactla.cpu.emit.numba_vectors import (
    abs1,
    broadcast,
    conj,
    copysign,
    fma,
    fnma,
    maximum,
    minimum,
    rsqrt,
    select,
    sqrt,
)

__all__ = ["abs1", "broadcast", "conj", "copysign", "fma", "fnma", "matrix", "maximum", "minimum", "rsqrt", "select"]
BANDS = "gbtrf", "gbtrs", "gttrf", "gttrs", "pbtrf", "pbtrs", "pttrf", "pttrs", "tbsv"  # at this level alone
NAMES = {*routine.names(), *BANDS, "kron_apply"}
__all__ += ["sqrt", *sorted(NAMES)]


def __getattr__(name):
    if name not in NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"compactla.cpu.kernels.{name}"), name)
    globals()[name] = found
    return found


def __dir__():
    return sorted({*globals(), *__all__})
