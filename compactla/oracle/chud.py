"""chud: A <- the factor of L L^H + X X^H, or L L^H - X X^H, in a triangle of A."""

import numpy as np

from compactla.oracle import identities, norm1, op, ratio, triangle, widen


def operands(draw, n, r, downdate=False, **options):
    """Triangles with large diagonals, of which the other half may be anything."""
    a, x = draw(n, n), draw(n, r)
    a[:, range(n), range(n)] = a[:, range(n), range(n)].real + 2 * max(n, 1) + (r if downdate else 0)
    return a, x


def repeatable(a, x, **options):
    """Nothing is added to identities."""
    return identities(a), np.zeros_like(x)


def free(**options):
    return {"X"}


def residual(before, after, uplo="L", downdate=False):
    """||L L^H +- X X^H - L' L'^H|| / (n eps (||L L^H|| + ||X X^H||)) in the 1-norm, of what the triangles stand for."""
    (factor, x), (new,), eps = widen(*before), widen(after[0]), np.finfo(after[0].dtype).eps
    n = max(1, *x.shape[1:])
    old, change, new = product(factor, uplo), x @ op(x, "C"), product(new, uplo)
    expected = old - change if downdate else old + change
    return ratio(norm1(expected - new), n * eps * (norm1(old) + norm1(change)))


def product(factor, uplo):
    """L L^H of what is in a triangle, whose diagonal is real."""
    L = triangle(factor, uplo)
    L = L if uplo.upper() == "L" else op(L, "C")
    diagonal = np.einsum("qii->qi", L)
    diagonal[...] = diagonal.real
    return L @ op(L, "C")


def spoil(q, k, a, x, downdate=False, **options):
    """More is subtracted than there is, or NaN added."""
    if downdate and x.shape[2]:
        a[q, k, k], x[q, k] = 1, 2
    else:
        a[q, k, k] = np.nan
    return k + 1
