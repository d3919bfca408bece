"""compactla.linalg for JAX: functions of stacks of small matrices for programs that are compiled and differentiated.

Functions are called as those of the same names in `jax.numpy.linalg`, `jax.scipy.linalg` and `jax.lax.linalg`, and have
their results and derivatives. They work inside of `jax.jit`, `grad`, `jvp`, `hessian`, `vmap`, `pmap` and `shard_map`.
XLA calls our kernels: on a CPU by compiled code that never takes Python's lock, on a CUDA GPU in its own stream.
Nothing is compiled when this is installed; a kernel is when a function is first traced for some size and type of
matrices. Where there is no kernel, as for large matrices, JAX's function is called.

As in JAX nothing raises an error for the numbers in a matrix: one that has no result, as one that is singular, has
results of NaN, and changes no other. Numbers are computed in their own type.
"""

from compactla.jax.bands import block_tridiagonal_solve, tridiagonal_solve
from compactla.jax.factors import cholesky, det, eigh, qr, slogdet, svd, svdvals
from compactla.jax.systems import inv, lstsq, matmul, pinv, solve, solve_triangular
from compactla.jax.targets import register

__all__ = [
    "block_tridiagonal_solve",
    "cholesky",
    "det",
    "eigh",
    "inv",
    "lstsq",
    "matmul",
    "pinv",
    "qr",
    "register",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "tridiagonal_solve",
]
