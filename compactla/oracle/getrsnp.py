"""getrsnp: B <- inv(op(A)) B with the factors L\\U of getrfnp."""

import numpy as np

from compactla.oracle import getrinp, op, solve_ratio, widen


def operands(draw, n, r, **options):
    return *getrinp.operands(draw, n), draw(n, r)


def repeatable(a, b, **options):
    """[I X; 0 -I], its own inverse."""
    return *getrinp.repeatable(a), b


def residual(before, after, trans="N"):
    """Of op(L U) X = B."""
    lu, b = widen(*before)
    (x,), eps = widen(after[1]), np.finfo(after[1].dtype).eps
    return solve_ratio(op((np.tril(lu, -1) + np.eye(lu.shape[1])) @ np.triu(lu), trans), x, b, eps)


def spoil(q, k, a, b, **options):
    a[q, k, k] = 0
    return 0  # which there is none of
