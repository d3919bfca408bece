"""gels: B <- X of min ||B - op(A) X||, or of the smallest norm with op(A) X = B."""

import numpy as np

from compactla.oracle import dominant, identities, norm1, op, ratio, widen


def operands(draw, r, m, n, **options):
    """Matrices with large diagonals."""
    return dominant(draw(m, n)), draw(max(m, n), r)


def repeatable(a, b, **options):
    """Identities."""
    return identities(a), b


def free(**options):
    """The factors, of which nothing but the solution is looked at."""
    return ("A",)


def residual(before, after, trans="N"):
    a, b = widen(*before)
    (x,), eps = widen(after[1]), np.finfo(after[1].dtype).eps
    return least_squares(op(a, trans), b, x, eps, np.full(len(a), min(a.shape[1:])))


def spoil(q, k, a, b, **options):
    if a.shape[1] < a.shape[2]:
        a[q, k] = 0
    else:
        a[q, :, k] = 0
    return k + 1


def least_squares(T, b, x, eps, rank):
    """The error of B <- X of min ||B - T X|| with the smallest norm, in the 2-norms of columns.

    The largest of ||T^H (B - T X)|| / (size ||T|| (||B|| + ||T|| ||X||)) (LAPACK's xQRT17), of the part of X that is
    not of the rows of T, in units of size ||X|| ||T|| ||T^+|| (xQRT14), and, where the columns are independent, of how
    much longer or shorter than the residual the rest of B is, in units of size ||B||; size is eps times the largest of
    all sizes.
    """
    (m, n), size = T.shape[1:], max(*T.shape[1:], x.shape[2]) * eps
    rest, b, x = x[:, n:], b[:, :m], x[:, :n]
    difference = b - T @ x
    norm = norm1(T)[:, None]
    slope = ratio(lengths(op(T, "C") @ difference), size * norm * (lengths(b) + norm * lengths(x)))
    excess = ratio(np.abs(lengths(rest) - lengths(difference)), size * lengths(b))
    _, s, rows = np.linalg.svd(T.astype(complex if np.iscomplexobj(T) else float), full_matrices=False)
    rows = rows * (np.arange(s.shape[1]) < rank[:, None])[:, :, None]
    smallest = np.where(np.arange(s.shape[1]) < rank[:, None], s, np.inf).min(1, initial=np.inf)
    condition = s.max(1, initial=0) / smallest
    outside = ratio(lengths(x - op(rows, "C") @ (rows @ x)), size * condition[:, None] * lengths(x))
    return np.maximum.reduce([slope, outside, np.where(rank == n, excess, 0)])


def lengths(a):
    """The 2-norms of all columns."""
    return np.sqrt((np.abs(a) ** 2).sum(1))
