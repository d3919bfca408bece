"""cholesky: A = L L^H or U^H U, which also makes `cho_factor`."""

import math

from compactla.cpu.kernels.potrf import potrf
from compactla.cpu.stacks import FAILED, UNSURE


def cholesky(code, vector, A, X, status, uplo, clean, check_finite="True"):
    """X <- the factor of A in one triangle; the other one is zero if it is `clean`, else that of A."""
    n = A.m
    W = code.room(vector, n, n)
    A.read(W)
    if clean == "no" and check_finite == "True":
        status.check(W)
    potrf.emit(code, W, status.info, uplo=uplo, ahead=(*A.following, *X.following))
    decide(code, W, status)
    if clean == "yes":
        L, zero = W.T if uplo == "U" else W, code.zero(vector)
        for i in code.each(n):
            for j in code.each(code.sub(code.sub(n, i), 1)):
                L[i, code.add(code.add(i, 1), j)] = zero
    X.write(W)


def decide(code, W, status):
    """Enter the matrices of which a pivot is not positive, and those of which one is not finite."""
    total = code.registers(W.vector.reals, 1)
    total[0, 0] = code.zero(W.vector.reals)
    for i in code.each(W.m):
        total[0, 0] = total[0, 0] + W[i, i].real
    last = W[code.sub(W.m, 1), code.sub(W.m, 1)].real
    suspect = ~((total[0, 0] < math.inf) & (last > 0))
    with code.builder.if_then(suspect.any(), likely=False):
        least = code.registers(W.vector.reals, 1)
        least[0, 0] = last
        for i in code.each(W.m):
            pivot = W[i, i].real
            least[0, 0] = (pivot <= 0).select(pivot, least[0, 0])
        status.enter(FAILED, least[0, 0] <= 0)
        status.enter(UNSURE, suspect)
