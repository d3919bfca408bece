"""syr: A <- alpha x x^T + A, of which one triangle is touched."""

import numpy as np

from compactla.oracle import op, ratio, symmetric, triangle, widen


def operands(draw, n, **options):
    return draw(1, 1), draw(n, 1), draw(n, n)


def repeatable(alpha, x, a, **options):
    """Products are zero."""
    return alpha, np.zeros_like(x), a


def residual(before, after, uplo="L", adjoint="T"):
    """|A' - A - alpha x x^T| / (eps (|alpha| |x| |x|^T + |A|)), element by element of the triangle.

    Where alpha is zero, the triangle is as it was. `adjoint` is "C" for a Hermitian A.
    """
    alpha, x, a = widen(*before)
    (result,), eps = widen(after[2]), np.finfo(after[2].dtype).eps
    same = triangle(~((result == a) | (np.isnan(result) & np.isnan(a))), uplo)
    whole = symmetric(a, uplo, adjoint)
    error = np.abs(triangle(result - whole - alpha * (x @ op(x, adjoint)), uplo))
    bound = eps * triangle(np.abs(alpha) * (np.abs(x) @ op(np.abs(x), "T")) + np.abs(whole), uplo)
    return ratio(np.where(alpha == 0, np.where(same, np.inf, 0), error), bound)
