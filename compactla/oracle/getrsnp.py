"""getrsnp: B <- inv(op(A)) B with the factors L\\U of getrfnp."""

import numpy as np

from compactla.oracle import getrinp, op, solve_ratio, widen


def operands(draw, n, r, **options):
    return *getrinp.operands(draw, n), draw(n, r)


def repeatable(a, b, **options):
    """[I X; 0 -I], its own inverse."""
    return *getrinp.repeatable(a), b


def residual(before, after, trans="N"):
    """The residual of op(L U) X = B."""
    (b,), (x,) = widen(before[1]), widen(after[1])
    return solve_ratio(op(getrinp.product(before[0]), trans), x, b, np.finfo(after[1].dtype).eps)


def spoil(q, k, a, b, **options):
    a[q, k, k] = 0
    return 0  # which there is none of
