"""inv: Gaussian elimination with row interchanges, then the inverses of the factors."""

from compactla.cpu.kernels.getrf import getrf
from compactla.cpu.kernels.getri import getri
from compactla.cpu.kernels.getrinp import getrinp
from compactla.cpu.kernels.laswp import integers, order_of

BLENDED = 8  # columns of real numbers up to which they are exchanged in registers


def inv(code, vector, A, X, status):
    """X <- inv(A)"""
    n = A.n
    W, ipiv = code.room(vector, n, n), code.room(integers(vector), n, 1)
    A.read(W)
    getrf.emit(code, W, ipiv, status.info)
    status.fail()
    status.doubt(W)
    ahead = *A.following, *X.following
    if X.takes_columns and n * len(vector.parts) > BLENDED:
        getrinp.emit(code, W, status.info, ahead=ahead)
        X.write_columns(W, order_of(code, ipiv, W.T, backward=True))
    else:
        getri.emit(code, W, ipiv, status.info, ahead=ahead)
        X.write(W)
    status.check(W)
