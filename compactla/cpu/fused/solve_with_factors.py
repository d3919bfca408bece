"""solve_with_factors: linear systems, and the factors of their matrices."""

from compactla.cpu.kernels.getrf import getrf
from compactla.cpu.kernels.laswp import integers
from compactla.cpu.kernels.trsm import trsm


def solve_with_factors(code, vector, A, B, X, LU, P, status):
    """X <- inv(A) B; LU, P <- the factors of A, and which rows were interchanged"""
    n, r = B.m, B.n
    W, ipiv = code.room(vector, n, n + r), code.room(integers(vector), n, 1)
    left, right = W.block(0, 0, n, n), W.block(0, n, n, r)
    A.read(left)
    B.read(right)
    getrf.emit(code, W, ipiv, status.info)
    LU.write(left)
    P.write(ipiv)
    status.fail()
    status.doubt(left)
    trsm.emit(code, left, right, uplo="U")
    X.write(right)
    status.check(right)
