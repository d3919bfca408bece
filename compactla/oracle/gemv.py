"""gemv: y <- alpha op(A) x + beta y."""

from compactla.oracle import gemm


def operands(draw, m, n, trans="N", **scalars):
    return gemm.operands(draw, m, 1, n, trans)


def repeatable(a, x, y, **options):
    return a, x, y


def residual(before, after, alpha=1, beta=0, trans="N"):
    """The residual of gemm."""
    return gemm.residual(before, after, alpha, beta, trans)
