"""gesv: B <- inv(A) B, and A <- L\\U with row interchanges."""

import numpy as np

from compactla.oracle import getrf, identities, solve_ratio, widen


def operands(draw, n, r):
    return *getrf.operands(draw, n, n), draw(n, r)


def repeatable(a, b):
    """Identities."""
    return identities(a), b


def residual(before, after):
    """The residual of A X = B."""
    (a, b), (x,) = widen(*before), widen(after[1])
    return solve_ratio(a, x, b, np.finfo(after[1].dtype).eps)


def free():
    """A is free, since it is not known which rows were swapped."""
    return ("A",)


def spoil(q, k, a, b):
    """The rest of the column is zero."""
    a[q, :, k] = 0
    return k + 1
