"""Numba kernels: the pack level is public, for use inside `@njit` functions.

`matrix` views the V matrices of one pack as one matrix of vectors, which the routines `gemm`, `trsm` and `getrfnp` and
the arithmetic of vectors work on; `compactla.cpu.vocabulary` says what there is of that.
"""

from compactla.cpu.kernels.gemm import gemm
from compactla.cpu.kernels.getrfnp import getrfnp
from compactla.cpu.kernels.trsm import trsm
from compactla.cpu.lanes import matrix
from compactla.cpu.vocabulary import abs1, broadcast, conj, copysign, fma, fnma, maximum, minimum, rsqrt, select, sqrt

__all__ = [
    "abs1",
    "broadcast",
    "conj",
    "copysign",
    "fma",
    "fnma",
    "gemm",
    "getrfnp",
    "matrix",
    "maximum",
    "minimum",
    "rsqrt",
    "select",
    "sqrt",
    "trsm",
]
