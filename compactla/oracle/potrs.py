"""potrs: B <- inv(A) B with the factor that potrf leaves."""

import numpy as np

from compactla.oracle import dominant, identities, op, solve_ratio, triangle, widen


def operands(draw, n, r, **options):
    """Factors with real diagonals."""
    a = dominant(draw(n, n)) / (2 * max(n, 1))
    a[:, range(n), range(n)] = np.real(np.einsum("qii->qi", a))
    return a, draw(n, r)


def repeatable(a, b, **options):
    """Identities."""
    return identities(a), b


def residual(before, after, uplo="L"):
    """The residual of A X = B, with A = L L^H or U^H U."""
    a, b = widen(*before)
    (x,), eps = widen(after[1]), np.finfo(after[1].dtype).eps
    L = triangle(a, uplo) if uplo.upper() == "L" else op(triangle(a, uplo), "C")
    return solve_ratio(L @ op(L, "C"), x, b, eps)


def spoil(q, k, a, b, **options):
    a[q, k, k] = 0
    return 0  # which there is none of
