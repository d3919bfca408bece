"""posv: A <- L or U, and B <- inv(A) B."""

import numpy as np

from compactla.oracle import potrf, solve_ratio, symmetric, widen


def operands(draw, n, r, **options):
    return *potrf.operands(draw, n), draw(n, r)


def repeatable(a, b, **options):
    """Identities, which are their own factors."""
    return *potrf.repeatable(a), b


def residual(before, after, uplo="L"):
    """The larger of those of the factors, as of potrf, and of A X = B."""
    a, b = widen(*before)
    (x,), eps = widen(after[1]), np.finfo(after[1].dtype).eps
    solved = solve_ratio(symmetric(a, uplo, "C"), x, b, eps)
    return np.maximum(potrf.residual(before[:1], after[:1], uplo), solved)


def spoil(q, k, a, b, **options):
    return potrf.spoil(q, k, a)
