"""lstsq_wide: lstsq for matrices of more columns than rows."""

from compactla.cpu.fused.lstsq import LeastSquares
from compactla.cpu.kernels.geqrf import factor
from compactla.cpu.kernels.gesvd import copy
from compactla.cpu.kernels.householder import reflect_all


def lstsq_wide(code, vector, A, B, rcond, X, residuals, rank, s, status):
    """X <- Q Y, where A = L Q^H, and Y is the smallest of all with the smallest norm of B - L Y"""
    m, n, r = A.m, A.n, B.n
    V, tau = code.room(vector, n, m), code.room(vector, m)
    L, C, x = code.room(vector, m, m), code.room(vector, m, r), code.room(vector, n, r)
    limit, zero = code.room(vector.reals, 1), code.zero(vector)
    A.read(V.H)
    B.read(C)
    rcond.read(limit)
    factor(code, [(V, tau)])
    copy(code, L, L, lambda x: zero)
    for j in code.each(m):
        for i in code.each(j + 1):
            L[j, i] = V[i, j].conjugate()
    found = LeastSquares(code, L, C, limit[0, 0])
    found.write(residuals, rank, s, status)
    copy(code, x, x, lambda x: zero)
    copy(code, found.x, x.block(0, 0, m, r))
    reflect_all(code, V, tau, x, adjoint=False)
    X.write(x)
    status.check(x)
