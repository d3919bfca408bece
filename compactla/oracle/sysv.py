"""sysv: B <- inv(A) B, and A <- the factors of sytrf."""

import numpy as np

from compactla.oracle import identities, solve_ratio, symmetric, sytrf, widen


def operands(draw, n, r, trans="T", **options):
    return *sytrf.operands(draw, n, trans), draw(n, r)


def repeatable(a, b, **options):
    """Identities."""
    return identities(a), b


def residual(before, after, uplo="L", trans="T"):
    """The residual of A X = B; for "C" that of a Hermitian A."""
    (a, b), (x,) = widen(*before), widen(after[1])
    return solve_ratio(symmetric(a, uplo, trans), x, b, np.finfo(after[1].dtype).eps)


def free(**options):
    """A is free, since it is not known which rows were swapped."""
    return ("A",)


def spoil(q, k, a, b, **options):
    return sytrf.spoil(q, k, a)
