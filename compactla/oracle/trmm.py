"""trmm: B <- alpha op(A) B, or B <- alpha B op(A)."""

import numpy as np

from compactla.oracle import op, ratio, triangle, widen
from compactla.oracle.trsm import repeatable as repeatable


def operands(draw, m, n, side="L", **options):
    return draw(m, m), draw(m, n) if side.upper() == "L" else draw(n, m)


def expected(a, b, side, uplo, trans, diag, alpha):
    """The result. What a zero factor multiplies is not read, as in BLAS."""
    if alpha == 0:
        return np.zeros_like(b)
    T = op(triangle(a, uplo, diag), trans)
    return alpha * (T @ b if side.upper() == "L" else b @ T)


def residual(before, after, side="L", uplo="L", trans="N", diag="N", alpha=1):
    """|B' - alpha op(A) B| / (n eps |alpha| |op(A)| |B|), element by element, or of B op(A)."""
    a, b = widen(*before)
    (result,), eps = widen(after[1]), np.finfo(after[1].dtype).eps
    bound = expected(np.abs(a), np.abs(b), side, uplo, trans, diag, a.shape[-1] * abs(alpha))
    return ratio(np.abs(result - expected(a, b, side, uplo, trans, diag, alpha)), eps * bound)
