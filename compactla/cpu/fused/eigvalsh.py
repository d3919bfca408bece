"""eigvalsh: as eigh, without eigenvectors."""

from compactla.cpu.fused.eigh import TURNED
from compactla.cpu.kernels.jacobi import arrange
from compactla.cpu.kernels.syev import syev
from compactla.cpu.kernels.tridiagonal import eigen
from compactla.cpu.stacks import UNSURE


def eigvalsh(code, vector, A, w, status, UPLO):
    """w <- eigenvalues of A, ascending"""
    n = A.m
    W, values = code.room(vector, n, n), code.room(vector.reals, n, 1)
    A.read(W if UPLO == "L" else W.H)
    if isinstance(n, int) and n <= TURNED:
        syev.emit(code, W, values, status.info, jobz="N")
    else:
        status.enter(UNSURE, eigen(code, W, values, None))
        arrange(code, values)
    w.write(values)
    status.check(values)
