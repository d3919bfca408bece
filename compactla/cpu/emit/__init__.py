"""Writing kernels: vectors, matrices, loops and the code of one kernel, emitted while Numba compiles.

How a kernel is described, and gets its arguments, is explained in `compactla.cpu.emit.call`.
"""

from compactla.cpu.emit.code import Code, check_fit, routine

__all__ = ["Code", "check_fit", "routine"]
