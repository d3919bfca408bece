"""gttrs at the pack level: solves with the factors of gttrf."""

from compactla.cpu.emit.code import routine
from compactla.cpu.kernels.gbtrs import gbtrs


@routine
def gttrs(code, U, L, ipiv, B, pivoting=True, ahead=()):
    """B <- inv(A) B for the V matrices of a pack, with the factors of `gttrf`: as `gbtrs`, in a Numba function."""
    gbtrs.emit(code, U, L, ipiv, B, pivoting, ahead)
