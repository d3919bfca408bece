"""solve_symmetric: linear systems with matrices of which one triangle says what they are."""

from compactla.cpu.kernels.hesv import hesv
from compactla.cpu.kernels.laswp import integers
from compactla.cpu.kernels.posv import posv
from compactla.cpu.kernels.sysv import sysv


def solve_symmetric(code, vector, A, B, X, status, assume_a, uplo):
    """X <- inv(A) B"""
    W, right = code.room(vector, A.m, A.n), code.room(vector, B.m, B.n)
    A.read(W)
    B.read(right)
    if assume_a == "pos":
        posv.emit(code, W, right, status.info, uplo)
    else:
        ipiv = code.room(integers(vector), A.m, 1)
        (hesv if assume_a == "her" else sysv).emit(code, W, right, ipiv, status.info, uplo)
        with code.when(status.flags.any(), likely=False):
            status.check(W)  # a pivot that is NaN is not zero
    status.fail()
    X.write(right)
    status.check(right)
