"""gemm: C <- alpha op(A) op(B) + beta C."""

import numpy as np

from compactla.oracle import op, ratio, widen


def operands(draw, m, n, k, transa="N", transb="N", **scalars):
    a = draw(m, k) if transa.upper() == "N" else draw(k, m)
    b = draw(k, n) if transb.upper() == "N" else draw(n, k)
    return a, b, draw(m, n)


def repeatable(a, b, c, **options):
    return a, b, c


def expected(a, b, c, alpha=1, beta=0, transa="N", transb="N"):
    """The result. What a zero factor multiplies is not read, as in BLAS."""
    product = alpha * (op(a, transa) @ op(b, transb)) if alpha else 0
    return product + (beta * c if beta else np.zeros_like(c))


def residual(before, after, alpha=1, beta=0, transa="N", transb="N"):
    """|C' - C| / (eps (k |alpha| |op(A)| |op(B)| + |beta| |C|)), element by element."""
    a, b, c = widen(*before)
    (result,), eps = widen(after[2]), np.finfo(after[2].dtype).eps
    k = op(a, transa).shape[-1]
    bound = expected(np.abs(a), np.abs(b), np.abs(c), k * abs(alpha), abs(beta), transa, transb)
    return ratio(np.abs(result - expected(a, b, c, alpha, beta, transa, transb)), eps * bound)
