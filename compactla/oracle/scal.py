"""scal: X <- alpha X."""

import numpy as np

from compactla.oracle import ratio, widen


def operands(draw, m, n):
    return draw(1, 1), draw(m, n)


def repeatable(alpha, x):
    """A factor of -1, back and forth."""
    return np.full_like(alpha, -1), x


def residual(before, after):
    """|X' - alpha X| / (eps |alpha| |X|), element by element."""
    alpha, x = widen(*before)
    (result,), eps = widen(after[1]), np.finfo(after[1].dtype).eps
    return ratio(np.abs(result - alpha * x), eps * np.abs(alpha) * np.abs(x))
