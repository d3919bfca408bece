"""eigh: the QR algorithm on a tridiagonal matrix."""

from compactla.cpu.fused.cholesky import hermitian_part
from compactla.cpu.kernels.jacobi import arrange
from compactla.cpu.kernels.tridiagonal import eigen
from compactla.cpu.linalg.stacks import UNSURE


def eigh(code, vector, A, w, X, status, UPLO, symmetrize=False):
    """w <- eigenvalues of A, ascending, and X <- eigenvectors; to `symmetrize` is to take those of (A + A^H) / 2"""
    n = A.m
    W, values = code.room(vector, n, n), code.room(vector.reals, n, 1)
    A.read(W if UPLO == "L" else W.H)
    if symmetrize:
        hermitian_part(code, W)
    V = code.room(vector, n, n)
    status.enter(UNSURE, eigen(code, W, values, V))
    arrange(code, values, V)
    w.write(values)
    X.write(V)
    status.check(values)
