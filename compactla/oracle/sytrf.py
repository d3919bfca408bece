"""sytrf: A <- L and D with A = L D L^T, or U and D with A = U D U^T, in blocks of one and of two rows."""

import numpy as np

from compactla.oracle import identities, norm1, op, ratio, symmetric, widen


def operands(draw, n, trans="T", **options):
    """Symmetric matrices, or Hermitian ones for "C"; every other has zeros on its diagonal, and blocks of two rows."""
    a = draw(n, n)
    a = (a + op(a, trans)) / 2
    if n > 1:
        a[1::2, range(n), range(n)] = 0
    return (a,)


def repeatable(a, **options):
    """Identities, which are their own factors."""
    return (identities(a),)


def in_reverse(lu, ipiv):
    """The factors of the matrices in reverse order of rows and columns, from those of the other triangle."""
    n = lu.shape[-1]
    return lu[:, ::-1, ::-1], np.where(ipiv < 0, -n - 1, n - 1)[:, ::-1] - ipiv[:, ::-1]


def beginnings(ipiv):
    """Flags of the first rows of blocks of two, of a lower triangle."""
    begins = np.zeros((len(ipiv), ipiv.shape[1] + 1), bool)
    for k in range(ipiv.shape[1] - 1):
        begins[:, k] = (ipiv[:, k] < 0) & ~begins[:, k - 1]
    return begins


def factors(lu, ipiv, uplo="L", trans="T"):
    """L or U, with all interchanges, and D, as matrices, of what sytrf leaves, and pivots (nm, n)."""
    if uplo.upper() == "U":
        return [x[:, ::-1, ::-1] for x in factors(*in_reverse(lu, ipiv), "L", trans)]
    n, each = lu.shape[-1], np.arange(len(lu))
    L, D, begins = identities(lu), np.zeros_like(lu), beginnings(ipiv)
    for k in reversed(range(n)):
        first = begins[:, k]
        column = lu[:, k + 1 :, k].copy()
        column[first, :1] = 0
        L[:, k + 1 :] += column[:, :, None] * L[:, k : k + 1]
        row = np.where(first, k + 1, k)
        place = np.clip(np.where(begins[:, k - 1], k, np.where(ipiv[:, k] < 0, ~ipiv[:, k], ipiv[:, k])), 0, n - 1)
        L[each, row], L[each, place] = L[each, place], L[each, row]
        D[:, k, k] = lu[:, k, k].real if trans == "C" else lu[:, k, k]
        if k + 1 < n:
            D[:, k + 1, k] = np.where(first, lu[:, k + 1, k], 0)
            D[:, k, k + 1] = op(D, trans)[:, k, k + 1]
    return [L, D]


def residual(before, after, uplo="L", trans="T"):
    """||A - L D L^T|| / (n eps ||A||) in the 1-norm (LAPACK's xSYT01), or infinity where a pivot is no row."""
    (a,), (lu,), eps = widen(*before), widen(after[0]), np.finfo(after[0].dtype).eps
    n, ipiv = a.shape[1], after[1][:, :, 0]
    a = symmetric(a, uplo, trans)
    L, D = factors(lu, ipiv, uplo, trans)
    pivots = in_reverse(lu, ipiv)[1] if uplo.upper() == "U" else ipiv
    apart = beginnings(pivots)[:, : max(n - 1, 0)] & (pivots[:, :-1] != pivots[:, 1:])
    wrong = ((ipiv < -n) | (ipiv >= n)).any(1) | apart.any(1)
    return np.where(wrong, np.inf, ratio(norm1(a - L @ D @ op(L, trans)), n * eps * norm1(a)))


def spoil(q, k, a, **options):
    """The identity, with a zero in its place."""
    a[q] = np.eye(a.shape[1])
    a[q, k, k] = 0
    return k + 1
