"""sygv: A V = B V diag(w) for Hermitian A and positive definite B, V^H B V = I, w ascending, and B <- L or U."""

import numpy as np

from compactla.oracle import identities, norm1, op, potrf, ratio, symmetric, widen


def operands(draw, n, **options):
    """Matrices of which one triangle says what they are, and those of potrf."""
    return draw(n, n), *potrf.operands(draw, n)


def repeatable(a, b, **options):
    """Any matrix, with the identity, which is its own factor."""
    return a, identities(b)


def free(jobz="V", **options):
    return ("A",) if jobz.upper() == "N" else ()


def residual(before, after, uplo="L", jobz="V"):
    """||A V - B V W|| / (n eps ||A|| ||V||), ||I - V^H B V|| / (n eps) (LAPACK's xSGT01), of the factors, and order.

    Without eigenvectors, how far eigenvalues are from those that NumPy finds, in units of n eps ||A|| ||B^-1||.
    """
    (V, factor, w), eps = after, np.finfo(after[0].dtype).eps
    n = V.shape[1]
    a, b, V, w = widen(*(symmetric(x, uplo, "C") for x in before), V, w[:, :, 0])
    factored = potrf.residual(before[1:], [factor], uplo)
    disorder = np.where((np.diff(w, axis=1) < 0).any(1), np.inf, factored)
    if jobz.upper() == "N":
        a, b = (x.astype(complex if x.dtype.kind == "c" else float) for x in (a, b))
        inverse = np.linalg.inv(np.linalg.cholesky(b))
        reduced = inverse @ a @ op(inverse, "C")
        finite = np.isfinite(reduced).all((1, 2))[:, None]
        known = np.where(finite, np.linalg.eigvalsh(np.where(finite[:, None], reduced, 0)), np.nan)
        bound = n * eps * norm1(a) * norm1(inverse) ** 2
        return np.maximum(ratio(np.abs(w - known), bound[:, None]), disorder)
    with np.errstate(invalid="ignore"):
        error = ratio(norm1(a @ V - b @ V * w[:, None]), n * eps * norm1(a) * norm1(V))
        lengths = ratio(norm1(np.eye(n) - op(V, "C") @ b @ V), max(n, 1) * eps)
    return np.maximum(np.maximum(error, lengths), disorder)


def spoil(q, k, a, b, **options):
    return a.shape[1] + potrf.spoil(q, k, b)
