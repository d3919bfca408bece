"""cholesky_update: rotations of a factor and of what is added to, or subtracted from, the product."""

from compactla.cpu.fused.cholesky import clear
from compactla.cpu.kernels.chud import chud


def cholesky_update(code, vector, C, X, F, status, uplo, downdate):
    """F <- the factor of C C^H + X X^H, or - X X^H, with zeros in the other triangle"""
    W, Y = code.room(vector, C.m, C.n), code.room(vector, X.m, X.n)
    (C.read_lower if uplo == "L" else C.read)(W)
    X.read(Y)
    chud.emit(code, W, Y, status.info, uplo, downdate)
    status.fail()
    clear(code, W.T if uplo == "U" else W)
    F.write(W)
