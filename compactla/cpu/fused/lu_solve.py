"""lu_solve: linear systems whose matrices were factored."""

from compactla.cpu.kernels.getrs import getrs
from compactla.cpu.kernels.laswp import integers
from compactla.cpu.linalg.stacks import FAILED


def lu_solve(code, vector, LU, P, B, X, status, trans):
    """X <- inv(op(A)) B, with the factors of A"""
    n, r, kind = B.m, B.n, integers(vector)
    W, ipiv, R = code.room(vector, n, n), code.room(kind, n, 1), code.room(vector, n, r)
    LU.read(W)
    P.read(ipiv)
    B.read(R)
    wrong = code.registers(kind, 1)
    wrong[0, 0] = zero = code.zero(kind)
    rows = code.broadcast(n, kind)
    for q in code.each(n):
        row = ipiv[q, 0]
        there = (row > -1) & (row < rows)
        ipiv[q, 0] = there.select(row, zero)
        wrong[0, 0] = there.select(wrong[0, 0], zero.constant(1))
    status.enter(FAILED, wrong[0, 0] > 0)
    getrs.emit(code, W, ipiv, R, trans=trans)
    X.write(R)
    status.check(R)
