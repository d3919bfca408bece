"""axpy: Y <- alpha X + Y."""

import numpy as np

from compactla.oracle import ratio, widen


def operands(draw, m, n):
    return draw(1, 1), draw(m, n), draw(m, n)


def repeatable(alpha, x, y):
    """Multiples are zero."""
    return alpha, np.zeros_like(x), y


def residual(before, after):
    """|Y' - alpha X - Y| / (eps (|alpha| |X| + |Y|)), element by element; Y is as it was where alpha is zero."""
    alpha, x, y = widen(*before)
    (result,), eps = widen(after[2]), np.finfo(after[2].dtype).eps
    same = (result == y) | (np.isnan(result) & np.isnan(y))
    error = np.where(alpha == 0, np.where(same, 0, np.inf), np.abs(result - alpha * x - y))
    return ratio(error, eps * (np.abs(alpha) * np.abs(x) + np.abs(y)))
