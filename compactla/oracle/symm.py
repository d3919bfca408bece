"""symm: C <- alpha A B + beta C, or C <- alpha B A + beta C, of a symmetric A."""

import numpy as np

from compactla.oracle import ratio, symmetric, widen


def operands(draw, m, n, side="L", **options):
    b, c = (draw(m, n) if side.upper() == "L" else draw(n, m) for _ in range(2))
    return draw(m, m), b, c


def repeatable(a, b, c, **options):
    return a, b, c


def expected(a, b, c, side, alpha, beta):
    """The result. What a zero factor multiplies is not read, as in BLAS."""
    product = alpha * (a @ b if side.upper() == "L" else b @ a) if alpha else 0
    return product + (beta * c if beta else np.zeros_like(c))


def residual(before, after, side="L", uplo="L", alpha=1, beta=0, trans="T"):
    """|C' - C| / (eps (n |alpha| |A| |B| + |beta| |C|)), element by element; `trans` is "C" for a Hermitian A."""
    a, b, c = widen(*before)
    (result,), eps = widen(after[2]), np.finfo(after[2].dtype).eps
    a = symmetric(a, uplo, trans)
    bound = expected(np.abs(a), np.abs(b), np.abs(c), side, a.shape[-1] * abs(alpha), abs(beta))
    return ratio(np.abs(result - expected(a, b, c, side, alpha, beta)), eps * bound)
