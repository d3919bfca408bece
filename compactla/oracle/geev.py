"""geev: A V = V diag(w), with columns of V of length 1."""

import numpy as np

from compactla.oracle import norm1, ratio, widen


def operands(draw, n, **options):
    return (draw(n, n),)


def repeatable(a, **options):
    """A itself: what is left in it is a triangular matrix of numbers of the same size."""
    return (a,)


def free(compute_v=True):
    """A may hold anything afterwards."""
    return ("A",)


def residual(before, after, compute_v=True):
    """||A V - V diag(w)|| / (n eps ||A|| ||V||) in the 1-norm (LAPACK's xGET22), and | ||v|| - 1 | / (n eps).

    Without eigenvectors, the smallest singular value of A - w in units of n eps ||A||.
    """
    (a,), (_, w, V, _), eps = before, after, np.finfo(after[1].dtype).eps
    n = a.shape[1]
    if (V is not None) != compute_v:
        return np.full(len(a), np.inf)
    if not compute_v:
        values = w.reshape(len(a), n, 1, 1).astype(complex)
        shifted = a[:, None] - values * np.eye(n)
        least = np.linalg.svd(shifted, compute_uv=False)[..., -1] if n else np.zeros((len(a), 0))
        return ratio(least, n * eps * norm1(a)[:, None])
    a, w, V = widen(a, w[:, :, 0], V)
    with np.errstate(invalid="ignore"):
        lengths = np.sqrt((np.abs(V) ** 2).sum(1))
        return np.maximum(
            ratio(norm1(a @ V - V * w[:, None]), n * eps * norm1(a) * norm1(V)), ratio(np.abs(lengths - 1), n * eps)
        )


def spoil(q, k, a, **options):
    a[q, k, k] = np.inf
    return a.shape[1]
