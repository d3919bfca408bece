"""trsm: B <- alpha inv(op(A)) B, or B <- alpha B inv(op(A))."""

import numpy as np

from compactla.oracle import dominant, op, ratio, solve_ratio, triangle, widen


def operands(draw, n, r, side="L", **options):
    a = dominant(draw(n, n))
    return a / (2 * max(n, 1)), draw(n, r) if side.upper() == "L" else draw(r, n)


def repeatable(a, b, uplo="L", diag="N", **options):
    """[I 0; X -I], its own inverse, or [I 0; X I] for a unit diagonal, whose powers grow slowly; or transposed."""
    m, half = a.shape[1], a.shape[1] // 2
    own = np.zeros_like(a)
    own[:, range(m), range(m)] = np.where((np.arange(m) < half) | (diag.upper() == "U"), 1, -1)
    own[:, half:, :half] = a[:, half:, :half]
    return own if uplo.upper() == "L" else own.swapaxes(1, 2), b


def residual(before, after, side="L", uplo="L", trans="N", diag="N", alpha=1):
    """The residual of op(A) X = alpha B, or of X op(A) = alpha B; for a zero alpha nothing is read, and X is zero."""
    a, b = widen(*before)
    (x,), eps = widen(after[1]), np.finfo(after[1].dtype).eps
    if alpha == 0:
        return ratio(np.abs(x), 0)
    T, right = op(triangle(a, uplo, diag), trans), alpha * b
    if side.upper() == "R":
        T, x, right = (y.swapaxes(-1, -2) for y in (T, x, right))
    return solve_ratio(T, x, right, eps)


def spoil(q, k, a, b, **options):
    a[q, k, k] = 0
    return 0  # which there is none of
