"""getrf: A <- L\\U with row interchanges."""

import numpy as np

from compactla.oracle import norm1, ratio, swapped, widen


def operands(draw, m, n, **options):
    """Matrices with large elements, one in a column, which are on the diagonal of every other one."""
    a, steps = draw(m, n), np.arange(min(m, n))
    for q in range(len(a)):
        a[q, (steps + q * (q % 2)) % max(m, 1), steps] += 2 * max(m, n)
    return (a,)


def repeatable(a, **options):
    """Unit upper triangular matrices: they are their own factors."""
    return (np.triu(a, 1) + np.eye(*a.shape[1:], dtype=a.dtype),)


def residual(before, after, threshold=1):
    """||P A - L U|| / (n eps ||A||) in the 1-norm (LAPACK's xGET01), or infinity where an element of L is too large.

    The column of a zero pivot is not scaled.
    """
    (a,), (lu,), eps = widen(before[0]), widen(after[0]), np.finfo(after[0].dtype).eps
    m, n = a.shape[1:]
    k = min(m, n)
    L, U = np.tril(lu[:, :, :k], -1), np.triu(lu[:, :k, :])
    product = (L + np.eye(m, k, dtype=L.dtype)) @ U
    product[:, :, :k] += L * (np.diagonal(U, axis1=-2, axis2=-1) == 0)[:, None, :]
    largest, ipiv = np.sqrt(2) if np.iscomplexobj(a) else 1, after[1][:, :, 0]
    wrong = (threshold * np.abs(L) > largest * (1 + 8 * eps)).any((1, 2)) | ((ipiv < 0) | (ipiv >= m)).any(1)
    error = norm1(swapped(a, np.clip(ipiv, 0, max(m - 1, 0))) - product)
    return np.where(wrong, np.inf, ratio(error, n * eps * norm1(a)))


def spoil(q, k, a, **options):
    """The rest of the column is zero."""
    a[q, :, k] = 0
    return k + 1
