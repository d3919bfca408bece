"""gesvd: A = U diag(s) Vh, where U and Vh have orthonormal columns and rows, and s is in descending order."""

import numpy as np

from compactla.oracle import norm1, op, ratio, unitary_ratio, widen

SWEEPS = 40  # what info is where they do not suffice


def operands(draw, m, n, **options):
    return (draw(m, n),)


def repeatable(a, **options):
    """A itself: what is left in it has singular values of the same size."""
    return (a,)


def free(**options):
    """A may hold anything afterwards."""
    return ("A",)


def residual(before, after, compute_uv=True):
    """The largest of ||A - U S V^H|| / (max(m, n) eps ||A||) in the 1-norm (LAPACK's xBDT01), the same of U and V (its
    xUNT01), and the errors of s against NumPy's; infinite if s is not in order, or U and Vh are there or not against
    what was asked for.
    """
    (a,), (_, U, s, Vh) = before, after
    eps, size = np.finfo(s.dtype).eps, max(1, *a.shape[1:])
    if (U is not None) != compute_uv or (Vh is not None) != compute_uv:
        return np.full(len(a), np.inf)
    a, s = widen(a, s[:, :, 0])
    _, exponent = np.frexp(np.abs(a).max((1, 2), initial=0))
    scale = np.ldexp(s.dtype.type(1), -exponent)[:, None]  # LAPACK has trouble with numbers that are tiny
    a, s = a * scale[:, None], s * scale
    exact = np.linalg.svd(a.astype(np.complex128 if a.dtype.kind == "c" else np.float64), compute_uv=False)
    in_order = (s[:, 1:] <= s[:, :-1]).all(1) & (s >= 0).all(1)
    found = [np.where(in_order, 0, np.inf), ratio(np.abs(s - exact), size * eps * exact.max(1, initial=0)[:, None])]
    if compute_uv:
        U, Vh = widen(U, Vh)
        found += [unitary_ratio(U, eps), unitary_ratio(op(Vh, "C"), eps)]
        found.append(ratio(norm1(a - U * s[:, None] @ Vh), size * eps * norm1(a)))
    return np.max(found, axis=0)


def spoil(q, k, a, **options):
    a[q, k, k] = np.nan
    return SWEEPS
