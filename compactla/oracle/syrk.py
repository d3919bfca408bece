"""syrk: C <- alpha op(A) op(A)^T + beta C, of which one triangle is touched."""

import numpy as np

from compactla.oracle import op, ratio, symmetric, triangle, widen


def operands(draw, n, k, trans="N", **options):
    return draw(n, k) if trans.upper() == "N" else draw(k, n), draw(n, n)


def repeatable(a, c, **options):
    return a, c


def expected(a, c, alpha, beta, adjoint):
    """The result. What a zero factor multiplies is not read, as in BLAS."""
    product = alpha * (a @ op(a, adjoint)) if alpha else 0
    return product + (beta * c if beta else np.zeros_like(c))


def residual(before, after, uplo="L", trans="N", alpha=1, beta=0, adjoint="T"):
    """|C' - C| / (eps (k |alpha| |op(A)| |op(A)^T| + |beta| |C|)), element by element of the triangle.

    `adjoint` is "C" for a Hermitian C.
    """
    a, c = widen(*before)
    (result,), eps = widen(after[1]), np.finfo(after[1].dtype).eps
    a, c = op(a, trans), symmetric(c, uplo, adjoint)
    bound = expected(np.abs(a), np.abs(c), a.shape[-1] * abs(alpha), abs(beta), adjoint)
    return ratio(np.abs(triangle(result - expected(a, c, alpha, beta, adjoint), uplo)), eps * bound)
