"""getrs: B <- inv(op(A)) B with the factors L\\U of getrf, and the swaps of rows."""

import numpy as np

from compactla.oracle import getri, op, solve_ratio, widen


def operands(draw, n, r, **options):
    return *getri.operands(draw, n), draw(n, r)


def repeatable(a, ipiv, b, **options):
    return *getri.repeatable(a, ipiv), b


def residual(before, after, trans="N"):
    """The residual of op(A) X = B."""
    (b,), (x,) = widen(before[2]), widen(after[2])
    return solve_ratio(op(getri.product(*before[:2]), trans), x, b, np.finfo(after[2].dtype).eps)


def spoil(q, k, a, ipiv, b, **options):
    a[q, k, k] = 0
    return 0  # which there is none of
