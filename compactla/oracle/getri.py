"""getri: A <- inv(A) with the factors L\\U of getrf, and the swaps of rows."""

import numpy as np

from compactla.oracle import getrinp, inverse_ratio, swapped, widen


def operands(draw, n):
    """Factors of matrices with large diagonals, and swaps that differ from matrix to matrix."""
    (a,) = getrinp.operands(draw, n)
    rows, places = np.ogrid[: len(a), :n]
    return a, ((places + rows + 1) % max(n, 1))[:, :, None]


def repeatable(a, ipiv):
    """[I X; 0 -I], its own inverse, and no swaps."""
    return *getrinp.repeatable(a), np.arange(a.shape[1])[None, :, None] + 0 * ipiv


def product(lu, ipiv):
    """The matrices that were factored."""
    return swapped(getrinp.product(lu), ipiv[:, :, 0], back=True)


def residual(before, after):
    (x,) = widen(after[0])
    return inverse_ratio(product(*before), x, np.finfo(after[0].dtype).eps)


def spoil(q, k, a, ipiv):
    a[q, k, k] = 0
    return k + 1
