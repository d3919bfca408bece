"""pinv: the product of the singular vectors, with reciprocals of the singular values that are not negligible."""

from compactla.cpu.fused.svd import decompose
from compactla.cpu.kernels.gemm import gemm


def pinv(code, vector, A, rcond, X, status, wide):
    """X <- the pseudo-inverse of A, of whose singular values those up to rcond times the largest count as zero."""
    n = A.m if wide else A.n
    P, values, Q = decompose(code, vector, A, status, wide, (n, n))
    factor = code.room(vector.reals, 1, 1)
    rcond.read(factor)
    limit, zero, one = factor[0, 0] * values[0, 0], code.zero(vector.reals), code.zero(vector.reals).constant(1)
    for k in code.each(n):
        x = values[k, 0]
        inverse = (x > limit).select(one / x, zero)
        for i in code.each(Q.m):
            Q[i, k] = inverse * Q[i, k]
    W = code.room(vector, X.m, X.n)
    gemm.emit(code, Q, P.H, W)
    X.write(W)
    status.check(W)
