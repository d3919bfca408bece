"""pttrs at the pack level: solves with the factors of pttrf."""

from compactla.cpu.emit.code import routine
from compactla.cpu.kernels.pbtrs import pbtrs


@routine
def pttrs(code, F, B, ahead=()):
    """B <- inv(A) B for the V matrices of a pack, with the factors of `pttrf`: as `pbtrs`, in a Numba function."""
    pbtrs.emit(code, F, B, ahead)
