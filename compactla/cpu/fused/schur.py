"""schur: the QR algorithm on a Hessenberg matrix."""

from compactla.cpu.kernels.schur import schur as decompose
from compactla.cpu.linalg.stacks import UNSURE


def schur(code, vector, A, T, Z, status):
    """T <- the Schur form of A, and Z <- Schur vectors"""
    W, V = code.room(vector, A.n, A.n), code.room(vector, A.n, A.n)
    A.read(W)
    status.enter(UNSURE, decompose(code, W, V))
    T.write(W)
    Z.write(V)
    status.check(W)
