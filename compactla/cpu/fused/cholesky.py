"""cholesky: A = L L^H or U^H U, which also makes `cho_factor`."""

import math

from compactla.cpu.kernels.potrf import potrf
from compactla.cpu.linalg.stacks import FAILED, UNSURE

FETCHED = 16  # rows up to which results are fetched into the cache before they are written


def cholesky(code, vector, A, X, status, uplo, clean, check_finite=True, doubts=True, symmetrize=False):
    """X <- the factor of A in one triangle; the other one is zero if it is `clean`, else that of A.

    Without `doubts` a pivot that is positive is one. To `symmetrize` is to factor (A + A^H) / 2.
    """
    n = A.m
    W = code.room(vector, n, n)
    if symmetrize:
        A.read(W)
        hermitian_part(code, W)
    elif clean == "yes" and uplo == "L":
        A.read_lower(W)
    else:
        A.read(W)
    if clean == "no" and check_finite:
        status.check(W)
    scale = largest(code, W)
    results = X.following if isinstance(n, int) and n <= FETCHED else ()
    potrf.emit(code, W, status.info, uplo=uplo, ahead=(*A.following, *results))
    decide(code, W, scale, status, doubts)
    if clean == "yes" and uplo == "L":
        X.write_lower(W)
        return
    if clean == "yes":
        clear(code, W.T)
    X.write(W)


def clear(code, L):
    """What is above the diagonal of L <- 0"""
    for i in code.each(L.m):
        for j in code.each(L.n - i - 1):
            L[i, i + 1 + j] = code.zero(L.vector)


def largest(code, W):
    """The largest element on the diagonal."""
    found = code.registers(W.vector.reals, 1)
    found[0, 0] = code.zero(W.vector.reals)
    for i in code.each(W.m):
        x = W[i, i].real
        found[0, 0] = (x > found[0, 0]).select(x, found[0, 0])
    return found[0, 0]


def hermitian_part(code, W):
    """Lower triangle of W <- that of (W + W^H) / 2"""
    half = code.zero(W.vector).constant(0.5)
    for i in code.each(W.m):
        for j in code.each(i):
            W[i, j] = (W[i, j] + W[j, i].conjugate()) * half


def decide(code, W, scale, status, doubts):
    """Enter the matrices of which a pivot is not positive, and those of which it may be so but for rounding."""
    vector = W.vector.reals
    total, least = code.registers(vector, 1), code.registers(vector, 1)
    total[0, 0], least[0, 0] = code.zero(vector), W[0, 0].real
    for i in code.each(W.m):
        root = W[i, i].real
        total[0, 0] = total[0, 0] + root
        least[0, 0] = (root < least[0, 0]).select(root, least[0, 0])
    if not doubts:
        status.enter(FAILED, ~((total[0, 0] < math.inf) & (least[0, 0] > 0)))
        return
    pivot, limit = least[0, 0], status.doubtful(code, W.m, vector) * scale  # of a pivot that fails there is no root
    certain = (total[0, 0] < math.inf) & (pivot > 0) & (pivot * pivot > limit)
    with code.when((~certain).any(), likely=False):
        status.enter(FAILED, (pivot == 0) | ((pivot < 0) & (-pivot >= limit)))
        status.enter(UNSURE, ~certain)
