"""eigh_of_pairs: A x = w B x, as eigh of inv(L) A inv(L^H), for B = L L^H."""

from compactla.cpu.kernels.jacobi import arrange
from compactla.cpu.kernels.potrf import potrf
from compactla.cpu.kernels.sygv import infinite, reduce
from compactla.cpu.kernels.tridiagonal import eigen
from compactla.cpu.kernels.trsm import trsm
from compactla.cpu.linalg.stacks import FAILED


def factored(code, vector, B, A, status, UPLO):
    """inv(L) A inv(L^H), and L."""
    n = A.m
    W, L = code.room(vector, n, n), code.room(vector, n, n)
    A.read(W if UPLO == "L" else W.H)
    B.read(L if UPLO == "L" else L.H)
    potrf.emit(code, L, status.info)
    status.enter(FAILED, infinite(code, L))
    reduce(code, W, L)
    status.fail()
    return W, L


def eigh_of_pairs(code, vector, B, A, w, X, status, UPLO):
    """w <- eigenvalues, ascending, and X <- eigenvectors"""
    n = A.m
    W, L = factored(code, vector, B, A, status, UPLO)
    values, V = code.room(vector.reals, n, 1), code.room(vector, n, n)
    status.enter(FAILED, eigen(code, W, values, V))
    arrange(code, values, V)
    trsm.emit(code, L, V, "L", "L", "C")
    w.write(values)
    X.write(V)
    status.check(values, value=FAILED)
