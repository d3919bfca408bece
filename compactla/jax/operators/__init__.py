"""What kernels compute, on stacks of matrices, and its derivatives, which are made of the same.

Forward mode: M. Giles, Collected matrix derivative results for forward and reverse mode algorithmic differentiation,
2008; J. Townsend, Differentiating the singular value decomposition, 2016; G. Golub and V. Pereyra, The differentiation
of pseudo-inverses, 1973. It is linear in tangents by products and solutions alone, and reverse mode is its transpose.
"""

from compactla.jax.operators.bands import below, block_tridiagonal_solve, tridiagonal_solve
from compactla.jax.operators.factors import cholesky, det, eigh, qr, slogdet, svd, svdvals
from compactla.jax.operators.least_squares import lstsq, pinv
from compactla.jax.operators.systems import inv, product, solve, solve_triangular

__all__ = [
    "below",
    "block_tridiagonal_solve",
    "cholesky",
    "det",
    "eigh",
    "inv",
    "lstsq",
    "pinv",
    "product",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "tridiagonal_solve",
]
