"""nrm2: 2-norms of columns."""

import numpy as np

from compactla.oracle import ratio, widen


def operands(draw, m, n):
    return (draw(m, n),)


def repeatable(x):
    return (x,)


def residual(before, after):
    """|r - ||x||| / (m eps ||x||) of every column, which is scaled for that."""
    (x,), (r,), eps = widen(*before), widen(after[1]), np.finfo(after[1].dtype).eps
    largest = np.maximum(np.abs(x.real), np.abs(x.imag)).max(1, keepdims=True, initial=0)
    scale = np.where((largest > 0) & np.isfinite(largest), largest, 1)
    norm = scale * np.sqrt((np.abs(x / scale) ** 2).sum(1, keepdims=True))
    return ratio(np.abs(r - norm), max(x.shape[1], 1) * eps * norm)
