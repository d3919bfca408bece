"""qr: Householder reflectors, and the matrix that they make."""

from compactla.cpu.kernels.geqrf import factor
from compactla.cpu.kernels.householder import reflect_all
from compactla.cpu.kernels.orgqr import orgqr


def qr(code, vector, A, *results, mode):
    """Q R <- A, or R alone, or, for the mode "raw", reflectors as those of LAPACK's geqrf."""
    *results, _ = results
    m, n = A.m, A.n
    k = code.min(m, n)
    W, tau = code.room(vector, m, n), code.room(vector, k)
    A.read(W)
    factor(code, [(W, tau)])
    if mode == "raw":
        for X, result in zip(results, (W.T, tau), strict=True):
            X.write(result)
        return
    *orthogonal, R = results
    V = W.block(0, 0, m, k)
    if orthogonal:
        (X,) = orthogonal
        Q = code.room(vector, m, X.n)
        generate = first_columns if mode == "reduced" else all_columns
        generate(code, V, tau, Q)
        X.write(Q)
    clear(code, V, lambda i: code.min(i, k))
    R.write(W.block(0, 0, R.m, n))


def first_columns(code, V, tau, Q):
    """Q <- as many columns as there are reflectors."""
    for i in code.each(V.m):
        for j in code.each(V.n):
            Q[i, j] = V[i, j]
    orgqr.emit(code, Q, tau)


def all_columns(code, V, tau, Q):
    """Q <- all of it, which is square."""
    zero = code.zero(Q.vector)
    clear(code, Q, lambda i: Q.n)
    for i in code.each(Q.m):
        Q[i, i] = zero.constant(1)
    reflect_all(code, V, tau, Q, adjoint=False)


def clear(code, A, count):
    """Zeros at the beginning of each row: ``count(i)`` of them."""
    for i in code.each(A.m):
        for j in code.each(count(i)):
            A[i, j] = code.zero(A.vector)
