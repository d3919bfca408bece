"""svd: the QR algorithm on a bidiagonal matrix."""

from compactla.cpu.kernels.bidiagonal import singular
from compactla.cpu.kernels.jacobi import arrange
from compactla.cpu.linalg.stacks import UNSURE


def svd(code, vector, A, U, s, Vh, status, wide):
    """U diag(s) Vh = A, in descending order."""
    P, values, Q = decompose(code, vector, A, status, wide, (U.n, Vh.m))
    U.write(P)
    s.write(values)
    Vh.write(Q.H)


def decompose(code, vector, A, status, wide, columns=None):
    """Left vectors, singular values and right vectors of A, which has more columns than rows if it is `wide`.

    Of vectors there are as many as `columns` says, or they are None.
    """
    m, n = (A.n, A.m) if wide else (A.m, A.n)
    W, values = code.room(vector, m, n), code.room(vector.reals, n, 1)
    A.read(W.H if wide else W)
    P = Q = None
    if columns:
        P, Q = code.room(vector, m, columns[wide]), code.room(vector, n, n)
    status.enter(UNSURE, singular(code, W, values, P, Q))
    for i in code.each(n):
        values[i, 0] = -values[i, 0]
    arrange(code, values, *((P.block(0, 0, m, n), Q) if columns else ()))
    for i in code.each(n):
        values[i, 0] = abs(values[i, 0])
    status.check(values)
    return (Q, values, P) if wide else (P, values, Q)
