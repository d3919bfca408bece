"""inv: Gaussian elimination with row interchanges, then the inverses of the factors."""

from compactla.cpu.kernels.getrf import getrf
from compactla.cpu.kernels.getri import getri
from compactla.cpu.kernels.laswp import integers


def inv(code, vector, A, X, status):
    """X <- inv(A)"""
    n = A.n
    W, ipiv = code.room(vector, n, n), code.room(integers(vector), n, 1)
    A.read(W)
    getrf.emit(code, W, ipiv, status.info)
    status.fail()
    status.doubt(W)
    getri.emit(code, W, ipiv, status.info, ahead=(*A.following, *X.following))
    X.write(W)
    status.check(W)
