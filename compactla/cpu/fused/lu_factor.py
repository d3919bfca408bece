"""lu_factor: Gaussian elimination with row interchanges."""

from compactla.cpu.kernels.getrf import getrf
from compactla.cpu.kernels.laswp import integers


def lu_factor(code, vector, A, LU, P, status):
    """LU, P <- the factors of A, and which rows were interchanged"""
    W, ipiv = code.room(vector, A.m, A.n), code.room(integers(vector), P.m, 1)
    A.read(W)
    getrf.emit(code, W, ipiv, status.info)
    LU.write(W)
    P.write(ipiv)
    status.check(W)
    status.fail()
    status.doubt(W)
