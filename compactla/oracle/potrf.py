"""potrf: A <- L for A = L L^H, or A <- U for A = U^H U."""

import numpy as np

from compactla.oracle import identities, norm1, op, ratio, symmetric, triangle, widen


def operands(draw, n, **options):
    """Hermitian matrices with large diagonals."""
    a = draw(n, n)
    a = (a + op(a, "C")) / 2
    a[:, range(n), range(n)] += 2 * max(n, 1)
    return (a,)


def repeatable(a, **options):
    """Identities, which are their own factors."""
    return (identities(a),)


def residual(before, after, uplo="L"):
    """||A - L L^H|| / (n eps ||A||) in the 1-norm (LAPACK's xPOT01), of what the triangles stand for."""
    (a,), (factor,), eps = widen(*before), widen(*after), np.finfo(after[0].dtype).eps
    n, a = a.shape[1], symmetric(a, uplo, "C")
    L = triangle(factor, uplo) if uplo.upper() == "L" else op(triangle(factor, uplo), "C")
    return ratio(norm1(a - L @ op(L, "C")), n * eps * norm1(a))


def spoil(q, k, a, **options):
    a[q, k, k] = -1
    return k + 1
