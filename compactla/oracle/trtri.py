"""trtri: A <- inv(A) for a triangular A."""

import numpy as np

from compactla.oracle import dominant, inverse_ratio, triangle, trsm, widen


def operands(draw, n, **options):
    return (dominant(draw(n, n)) / (2 * max(n, 1)),)


def repeatable(a, uplo="L", diag="N"):
    """Triangles that neither grow nor shrink when they are inverted again and again."""
    return trsm.repeatable(a, a, uplo, diag)[:1]


def residual(before, after, uplo="L", diag="N"):
    """The residual of A X = I, for the matrices that the triangles stand for."""
    (a,), (x,) = widen(*before), widen(*after)
    return inverse_ratio(triangle(a, uplo, diag), triangle(x, uplo, diag), np.finfo(after[0].dtype).eps)


def spoil(q, k, a, uplo="L", diag="N"):
    a[q, k, k] = 0
    return k + 1 if diag.upper() == "N" else 0
