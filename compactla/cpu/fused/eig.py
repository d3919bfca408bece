"""eig: eigenvectors of a Schur form."""

from compactla.cpu.kernels.schur import eigen
from compactla.cpu.linalg.stacks import UNSURE


def eig(code, vector, A, w, X, status):
    """w <- eigenvalues of A, and X <- eigenvectors"""
    n = A.n
    W, Z = code.room(vector, n, n), code.room(vector, n, n)
    values, V = code.room(vector.twin, n), code.room(vector.twin, n, n)
    A.read(W)
    status.enter(UNSURE, eigen(code, W, values, V, Z))
    w.write(values)
    X.write(V)
    status.check(values, V)
