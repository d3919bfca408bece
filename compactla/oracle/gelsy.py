"""gelsy: B <- the X of the smallest norm of min ||B - A X||, for A of any rank."""

import numpy as np

from compactla.oracle import dominant, widen
from compactla.oracle.gels import free, least_squares, repeatable

__all__ = ["free", "operands", "repeatable", "residual"]


def operands(draw, r, m, n, **options):
    """Matrices of all ranks from 0 to min(m, n), in turns: exactly, since all numbers are small integers.

    The first column is longer than others, beside which what rounding leaves of dependent ones is small.
    """
    k = min(m, n)
    left, right = (dominant(np.round(4 * draw(*shape)), 8) for shape in ((m, k), (k, n)))
    ranks = np.arange(len(left)) % (k + 1)
    a = (left * (np.arange(k) < ranks[:, None])[:, None]) @ right
    a[:, :, :1] *= 8
    return a, draw(max(m, n), r)


def residual(before, after):
    a, b = widen(*before)
    (x,), eps = widen(after[1]), np.finfo(after[1].dtype).eps
    s = np.linalg.svd(before[0], compute_uv=False)
    return least_squares(a, b, x, eps, (s > 1e-4 * s.max(1, initial=0, keepdims=True)).sum(1))
