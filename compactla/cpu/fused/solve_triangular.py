"""solve_triangular: linear systems of triangular matrices."""

from compactla.cpu.emit.failures import report
from compactla.cpu.kernels.trsm import trsm


def solve_triangular(code, vector, A, B, X, status, uplo, trans, diag, check_finite):
    """X <- inv(op(A)) B; `check_finite`: A is checked as a whole."""
    n, r = B.m, B.n
    W, R = code.room(vector, n, n), code.room(vector, n, r)
    A.read(W)
    B.read(R)
    if check_finite:
        status.check(W)
    if diag == "N":
        for q in code.each(n):
            report(code, [W[q, q] == 0], status.info, q + 1)
        status.fail()
    trsm.emit(code, W, R, uplo=uplo, trans=trans, diag=diag)
    X.write(R)
    status.check(R)
