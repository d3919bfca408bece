"""getrfnp: A <- L\\U without pivoting."""

import numpy as np

from compactla.oracle import dominant, norm1, ratio, widen


def operands(draw, m, n, **options):
    return (dominant(draw(m, n)),)


def repeatable(a, **options):
    """Unit upper triangular matrices: they are their own factors."""
    return (np.triu(a, 1) + np.eye(*a.shape[1:], dtype=a.dtype),)


def residual(before, after, tiny=0):
    """||A + S - L U|| / (n eps ||A + S||) in the 1-norm (LAPACK's xGET01); the column of a zero pivot is not scaled.

    S is diagonal, of `tiny` with the signs of the real parts of the pivots.
    """
    (a,), (lu,), eps = widen(*before), widen(*after), np.finfo(after[0].dtype).eps
    m, n = a.shape[1:]
    k = min(m, n)
    L, U = np.tril(lu[:, :, :k], -1), np.triu(lu[:, :k, :])
    product = (L + np.eye(m, k, dtype=L.dtype)) @ U
    product[:, :, :k] += L * (np.diagonal(U, axis1=-2, axis2=-1) == 0)[:, None, :]
    pivots = np.diagonal(U, axis1=-2, axis2=-1)
    a[:, range(k), range(k)] += np.where(pivots.real < 0, -tiny, tiny)
    return ratio(norm1(a - product), n * eps * norm1(a))


def spoil(q, k, a, tiny=0):
    """The row of L is zero, and so is the diagonal."""
    a[q, k, : k + 1] = 0
    return 0 if tiny else k + 1
