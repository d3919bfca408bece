"""solve_banded: Gaussian elimination of A and B side by side, with row interchanges, in a window down the diagonal."""

from dataclasses import replace

from compactla.cpu.kernels.gbtrf import Band, BandWindow, eliminate, gbtrf
from compactla.cpu.kernels.gbtrs import backward, gbtrs
from compactla.cpu.kernels.laswp import integers


def solve_banded(code, vector, A, B, X, status, lower, upper, columns, check_finite):
    """X <- inv(A) B; there are so many `columns` of B, if these are few, else 0."""
    kl, A = lower, replace(A, m=lower + upper + 1)
    n, r = A.n, columns or B.n
    B, X = replace(B, n=r), replace(X, n=r)
    band, right = code.room(vector, A.m, n), code.room(vector, n, r)
    A.read(band)
    B.read(right)
    status.check(band.T, right)
    if columns:

        def keep(w, k, inverse, multiples, top, flags):
            band[0, k] = inverse
            for t in range(1, A.m):
                band[t, k] = top[t]
            for c in range(r):
                right[k, c] = top[A.m + c]

        eliminate(code, [BandWindow(Band(code, band, kl), right)], n, True, [status.info], keep)
        backward(code, band, right, A.m - 1)
    else:
        L, ipiv = code.room(vector, kl, n), code.room(integers(vector), n, 1)
        gbtrf.emit(code, band, band, L, ipiv, status.info, kl)
        gbtrs.emit(code, band, L, ipiv, right)
    status.fail()
    X.write(right)
    status.check(right)
