"""syev: A V = V diag(w) for Hermitian A, V of orthonormal columns, and w ascending."""

import numpy as np

from compactla.oracle import norm1, op, ratio, symmetric, unitary_ratio, widen


def operands(draw, n, **options):
    """Matrices of which one triangle says what they are."""
    return (draw(n, n),)


def repeatable(a, **options):
    """Any matrix: what is left is another matrix of numbers in (-1, 1)."""
    return (a,)


def free(jobz="V", **options):
    return ("A",) if jobz.upper() == "N" else ()


def residual(before, after, uplo="L", jobz="V"):
    """||A - V W V^H|| / (n eps ||A||) and ||I - V^H V|| / (n eps) in the 1-norm (LAPACK's xSYT21), and order.

    Without eigenvectors, how far eigenvalues are from those that NumPy finds, in units of n eps ||A||.
    """
    (a,), (V, w), eps = before, after, np.finfo(after[0].dtype).eps
    n = a.shape[1]
    a, V, w = widen(symmetric(a, uplo, "C"), V, w[:, :, 0])
    size = norm1(a)
    disorder = np.where((np.diff(w, axis=1) < 0).any(1), np.inf, 0)
    if jobz.upper() == "N":
        known = np.linalg.eigvalsh(a.astype(complex if a.dtype.kind == "c" else float))
        return ratio(np.abs(w - known), n * eps * size[:, None]) + disorder
    with np.errstate(invalid="ignore"):
        error = ratio(norm1(a - (V * w[:, None]) @ op(V, "C")), n * eps * size)
        return np.maximum(error, unitary_ratio(V, eps)) + disorder


def spoil(q, k, a, **options):
    a[q, k, k] = np.inf
    return a.shape[1]
