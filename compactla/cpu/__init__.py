"""Numba kernels: the pack level is public, for use inside `@njit` functions.

`matrix` views the V matrices of one pack as one matrix of vectors, which the routines (`gemm`, `trsm`, `getrfnp`,
`potrf`, `potrs`) and the arithmetic of vectors work on.
"""

from compactla.cpu.kernels.gemm import gemm
from compactla.cpu.kernels.getrfnp import getrfnp
from compactla.cpu.kernels.potrf import potrf
from compactla.cpu.kernels.potrs import potrs
from compactla.cpu.kernels.trsm import trsm
from compactla.cpu.lanes import broadcast, conj, fma, fnma, matrix

__all__ = ["broadcast", "conj", "fma", "fnma", "gemm", "getrfnp", "matrix", "potrf", "potrs", "trsm"]
