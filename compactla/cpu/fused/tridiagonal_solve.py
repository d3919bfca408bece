"""tridiagonal_solve: Gaussian elimination of A and B side by side, with row interchanges, in a window of two rows."""

from dataclasses import replace

from compactla.cpu.kernels.gbtrf import BandWindow, eliminate
from compactla.cpu.kernels.gbtrs import COLUMNS, backward
from compactla.cpu.kernels.gttrf import Tridiagonal


def tridiagonal_solve(code, vector, dl, d, du, B, X, status, columns):
    """X <- inv(A) B; element i of a diagonal is in row i. There are `columns` of B if these are few, else 0."""
    n, r = d.m, columns or B.n
    band = code.room(vector, 3, n)
    for row, diagonal in enumerate((dl, d, du)):
        diagonal.read(band.block(row, 0, 1, n).T)
    lower, diag, upper = (band.block(row, 0, 1, n) for row in range(3))
    shifted = lower.block(0, 1, 1, n)
    U, right = code.room(vector, 3, n), code.room(vector, n, r)
    B, X = replace(B, n=r), replace(X, n=r)
    B.read(right)
    for j, count in code.tiles(r, COLUMNS):
        rows = right.block(0, j, n, count)

        def keep(w, k, inverse, multiples, top, flags, rows=rows, count=count):
            U[0, k] = inverse
            for t in range(1, 3):
                U[t, k] = top[t]
            for c in range(count):
                rows[k, c] = top[3 + c]

        window = BandWindow(Tridiagonal(code, shifted, diag, upper), rows)
        eliminate(code, [window], n, True, [status.info], keep)
        backward(code, U, rows, 2)
    status.fail()
    X.write(right)
