"""getrinp: A <- inv(A) with the factors L\\U of getrfnp."""

import numpy as np

from compactla.oracle import dominant, inverse_ratio, widen


def operands(draw, n):
    """Factors as of matrices with large diagonals."""
    a = dominant(draw(n, n))
    return (np.triu(a) + np.tril(a, -1) / (2 * max(n, 1)),)


def repeatable(a):
    """[I X; 0 -I], its own inverse."""
    n, half = a.shape[1], a.shape[1] // 2
    own = np.zeros_like(a)
    own[:, range(n), range(n)] = np.where(np.arange(n) < half, 1, -1)
    own[:, :half, half:] = a[:, :half, half:] / (2 * max(n, 1))
    return (own,)


def product(lu):
    """L U"""
    (lu,) = widen(lu)
    return (np.tril(lu, -1) + np.eye(lu.shape[1])) @ np.triu(lu)


def residual(before, after):
    """The residual of (L U) X = I."""
    (x,) = widen(*after)
    return inverse_ratio(product(*before), x, np.finfo(after[0].dtype).eps)


def spoil(q, k, a):
    a[q, k, k] = 0
    return k + 1
