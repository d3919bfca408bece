"""eigvals: the diagonal of a Schur form."""

from compactla.cpu.kernels.schur import eigen
from compactla.cpu.linalg.stacks import UNSURE


def eigvals(code, vector, A, w, status):
    """w <- eigenvalues of A"""
    W, values = code.room(vector, A.n, A.n), code.room(vector.twin, A.n)
    A.read(W)
    status.enter(UNSURE, eigen(code, W, values))
    w.write(values)
    status.check(values)
