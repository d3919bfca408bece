"""sytrs: B <- inv(A) B with the factors that sytrf leaves, and the swaps."""

import numpy as np

from compactla.oracle import dominant, identities, op, solve_ratio, widen
from compactla.oracle.sytrf import factors, in_reverse


def operands(draw, n, r, uplo="L", **options):
    """Factors, of which some have blocks of two rows, with swaps that differ from matrix to matrix."""
    a = dominant(draw(n, n)) / (2 * max(n, 1))
    a[:, range(n), range(n)] = np.real(np.einsum("qii->qi", a))
    ipiv = np.zeros((len(a), n), int)
    for q in range(len(a)):
        k = 0
        while k < n:
            two = int(q % 3 > 0 and k + 1 < n and k >= q % 3 - 1)
            place = k + two + (q + k) % (n - k - two)
            ipiv[q, k : k + 1 + two] = ~place if two else place
            if two:
                a[q, k + 1, k] += 2
            k += 1 + two
    if uplo.upper() == "U":
        a, ipiv = in_reverse(a, ipiv)
    return np.ascontiguousarray(a), np.ascontiguousarray(ipiv)[:, :, None], draw(n, r)


def repeatable(a, ipiv, b, **options):
    """Identities, and no swaps."""
    return identities(a), np.arange(a.shape[1])[None, :, None] + 0 * ipiv, b


def residual(before, after, uplo="L", trans="T"):
    """The residual of A X = B; for "C" that of a Hermitian A."""
    lu, b = widen(before[0], before[2])
    (x,) = widen(after[2])
    L, D = factors(lu, before[1][:, :, 0], uplo, trans)
    return solve_ratio(L @ D @ op(L, trans), x, b, np.finfo(after[2].dtype).eps)


def spoil(q, k, a, ipiv, b, **options):
    ipiv[q, :, 0] = range(a.shape[1])
    a[q, k, k] = 0
    return 0  # which there is none of
