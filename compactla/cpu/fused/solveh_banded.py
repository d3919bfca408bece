"""solveh_banded: factors L D L^H of a band matrix, and both solves."""

from dataclasses import replace

from compactla.cpu.kernels.pbtrf import pbtrf
from compactla.cpu.kernels.pbtrs import pbtrs


def solveh_banded(code, vector, A, B, X, status, upper, columns, lower, check_finite):
    """X <- inv(A) B; there are so many `columns` of B, if these are few, else 0."""
    A, r = replace(A, m=upper + 1), columns or B.n
    B, X = replace(B, n=r), replace(X, n=r)
    band, factors, right = code.room(vector, A.m, A.n), code.room(vector, A.m, A.n), code.room(vector, A.n, r)
    A.read(band)
    B.read(right)
    status.check(band.T, right)
    pbtrf.emit(code, band, factors, status.info, lower)
    status.fail()
    pbtrs.emit(code, factors, right)
    X.write(right)
    status.check(right)
