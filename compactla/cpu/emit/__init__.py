"""Writing kernels: vectors, matrices, loops and the code of one kernel, emitted while Numba compiles."""

from compactla.cpu.emit.code import Code, check_fit, routine

__all__ = ["Code", "check_fit", "routine"]
