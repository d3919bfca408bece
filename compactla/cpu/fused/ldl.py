"""ldl: factors of matrices that may be indefinite, with the interchanges in them."""

from compactla.cpu.kernels.hetrf import hetrf
from compactla.cpu.kernels.indefinite_factors import separate
from compactla.cpu.kernels.laswp import integers
from compactla.cpu.kernels.sytrf import sytrf


def ldl(code, vector, A, LU, D, perm, status, uplo, hermitian):
    """LU, D, perm <- L or U, the diagonal blocks, and the order of rows in which LU is triangular"""
    n, kind = A.m, integers(vector)
    W, blocks = code.room(vector, n, n), code.room(vector, n, n)
    ipiv, order = code.room(kind, n, 1), code.room(kind, n, 1)
    A.read(W)
    (hetrf if hermitian else sytrf).emit(code, W, ipiv, status.info, uplo)
    separate(code, W, ipiv, blocks, order, hermitian, uplo == "U")
    LU.write(W)
    D.write(blocks)
    perm.write(order)
    status.check(W, blocks)
