"""eigvalsh: as eigh, without eigenvectors."""

from compactla.cpu.kernels.jacobi import arrange
from compactla.cpu.kernels.tridiagonal import eigen
from compactla.cpu.linalg.stacks import UNSURE


def eigvalsh(code, vector, A, w, status, UPLO):
    """w <- eigenvalues of A, ascending"""
    n = A.m
    W, values = code.room(vector, n, n), code.room(vector.reals, n, 1)
    A.read(W if UPLO == "L" else W.H)
    status.enter(UNSURE, eigen(code, W, values, None))
    arrange(code, values)
    w.write(values)
    status.check(values)
