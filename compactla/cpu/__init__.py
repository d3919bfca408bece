"""Numba kernels: the pack level is public, for use inside `@njit` functions.

`matrix` views the V matrices of one pack as one matrix of vectors, which the routines `gemm`, `trsm` and `getrfnp` and
the arithmetic of vectors work on.
"""

from compactla.cpu.gemm import gemm
from compactla.cpu.getrf import getrfnp
from compactla.cpu.lanes import broadcast, conj, fma, fnma, matrix
from compactla.cpu.trsm import trsm

__all__ = ["broadcast", "conj", "fma", "fnma", "gemm", "getrfnp", "matrix", "trsm"]
