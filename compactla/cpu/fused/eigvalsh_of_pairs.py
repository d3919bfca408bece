"""eigvalsh_of_pairs: as eigh_of_pairs, without eigenvectors."""

from compactla.cpu.fused.eigh_of_pairs import factored
from compactla.cpu.kernels.jacobi import arrange
from compactla.cpu.kernels.tridiagonal import eigen
from compactla.cpu.linalg.stacks import FAILED


def eigvalsh_of_pairs(code, vector, B, A, w, status, UPLO):
    """w <- eigenvalues, ascending"""
    W, _ = factored(code, vector, B, A, status, UPLO)
    values = code.room(vector.reals, A.m, 1)
    status.enter(FAILED, eigen(code, W, values, None))
    arrange(code, values)
    w.write(values)
    status.check(values, value=FAILED)
