"""dot: inner products of columns."""

import numpy as np

from compactla.oracle import ratio, widen


def operands(draw, m, n, **options):
    return draw(m, n), draw(m, n)


def repeatable(x, y, **options):
    return x, y


def residual(before, after, conj=False):
    """|d - X . Y| / (m eps |X| . |Y|) of every column."""
    x, y = widen(*before)
    (d,), eps = widen(after[2]), np.finfo(after[2].dtype).eps
    products = (x.conj() if conj else x) * y
    bound = x.shape[1] * eps * np.abs(products).sum(1, keepdims=True)
    return ratio(np.abs(d - products.sum(1, keepdims=True)), bound)
