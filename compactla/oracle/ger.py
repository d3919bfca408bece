"""ger: A <- alpha x y^T + A, or alpha x y^H + A."""

import numpy as np

from compactla.oracle import op, ratio, widen


def operands(draw, m, n, **options):
    return draw(m, 1), draw(n, 1), draw(m, n)


def repeatable(x, y, a, **options):
    """Products are zero."""
    return np.zeros_like(x), y, a


def residual(before, after, alpha=1, conj=False):
    """|A' - A - alpha x y^T| / (eps (|alpha| |x| |y|^T + |A|)), element by element; for a zero alpha A is as it was."""
    x, y, a = widen(*before)
    (result,), eps = widen(after[2]), np.finfo(after[2].dtype).eps
    if alpha == 0:
        return ratio(np.where((result == a) | (np.isnan(result) & np.isnan(a)), 0, 1), 0)
    bound = abs(alpha) * np.abs(x) @ op(np.abs(y), "T") + np.abs(a)
    return ratio(np.abs(result - a - alpha * (x @ op(y, "C" if conj else "T"))), eps * bound)
