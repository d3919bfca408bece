"""solve: Gaussian elimination of A and B side by side, with row interchanges."""

from compactla.cpu.kernels.getrf import getrf
from compactla.cpu.kernels.laswp import integers
from compactla.cpu.kernels.trsm import trsm


def solve(code, vector, A, B, X, status):
    """X <- inv(A) B"""
    n, r = B.m, B.n
    W = code.room(vector, n, n + r)
    left, right = W.block(0, 0, n, n), W.block(0, n, n, r)
    A.read(left)
    B.read(right)
    getrf.emit(code, W, code.room(integers(vector), n, 1), status.info, left=False, ahead=A.following)
    status.fail()
    status.doubt(left)
    trsm.emit(code, left, right, uplo="U")
    X.write(right)
    status.check(right)
