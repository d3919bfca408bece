"""gels at the pack level, and what it shares with gelsy: matrices that are scaled, and solves with R."""

import numpy as np

from compactla.checks import option
from compactla.cpu.emit.code import Code, check_fit, routine
from compactla.cpu.emit.failures import report
from compactla.cpu.emit.matrices import Elements, tile_size
from compactla.cpu.emit.vectors import Lanes
from compactla.cpu.kernels.geqrf import step
from compactla.cpu.kernels.householder import reflect
from compactla.cpu.kernels.norms import largest
from compactla.view import lower_left


def scale(code: Code, *matrices: Elements) -> list[Lanes]:
    """Multiply each matrix by a power of two that keeps norms from overflow and underflow; returns these.

    It is 1 but for those whose elements are all tiny, or of which one is huge.
    """
    limits = np.finfo("f" if matrices[0].vector.real.bitwidth == 32 else "d")
    tiny, power = float(limits.tiny / limits.eps), float(limits.eps) ** 2
    factors = []
    for A in matrices:
        size = largest(code, A)
        one = size.constant(1)
        small, large = (size < tiny) & (size > 0), size > 1 / tiny
        factors.append(small.select(one.constant(1 / power), large.select(one.constant(power), one)))
        multiply_by(code, A, factors[-1])
    return factors


def multiply_by(code: Code, A: Elements, factor: Lanes):
    """A <- factor A; most factors are 1."""
    with code.when(~(factor == 1).all(), likely=False):
        with code.loop(A.m) as i, code.loop(A.n) as j:
            A[i, j] = A[i, j] * factor


def multiply(code: Code, A: Elements, tau: Elements, B: Elements, adjoint):
    """B <- Q B or Q^H B, reflector by reflector, which compiles faster than several of them at once."""
    k = code.min(A.m, A.n)
    for i in code.each(k):
        q = i if adjoint else k - i - 1
        after, below = q + 1, A.m - q - 1
        scale = tau[q, 0].conjugate() if adjoint else tau[q, 0]
        reflect(code, A.block(after, q, below, 1), scale, B.block(q, 0, 1, B.n), B.block(after, 0, below, B.n))


def substitute(code: Code, L: Elements, B: Elements, wanted=None):
    """B <- inv(L) B for a lower triangular L with a real diagonal, which is divided by: reciprocals might overflow.

    Rows of B become zero where ``wanted(q)`` says so of row q of L, which then counts as one of the identity.
    """
    _, widest = tile_size(B.vector, None, None)
    for j, n in code.tiles(B.n, widest):
        columns = [j + k for k in range(n)]
        with code.loop(L.m) as q:
            x = [B[q, k] / L[q, q].real for k in columns]
            if wanted:
                x = [wanted(q).select(y, code.zero(B.vector)) for y in x]
            for k, y in zip(columns, x, strict=True):
                B[q, k] = y
            after = q + 1
            with code.loop(L.m - after) as i:
                row = after + i
                a = -L[row, q]
                for k, y in zip(columns, x, strict=True):
                    B[row, k] = a.fma(y, B[row, k])


def clear(code: Code, B: Elements):
    """B <- 0"""
    with code.loop(B.m) as i, code.loop(B.n) as j:
        B[i, j] = code.zero(B.vector)


@routine
def gels(code, A, B, tau, info, trans="N", ahead=()):
    """B <- X of min ||B - op(A) X||, or of the smallest norm with op(A) X = B, for the V matrices of a pack.

    Parameters
    ----------
    A : matrix
        m x n, m >= n, from `matrix`: of a wide one the conjugate transpose ``A.H``, with the other `trans`. It becomes
        what `geqrf` leaves.
    B : matrix
        m x r, of which the first rows are read and, in the end, hold X: as many as op(A) has rows and columns.
    tau : matrix
        Room for n x 1.
    info : array of V int64
        Set to ``k + 1`` for a matrix where element k of the diagonal of R is the first that is exactly zero, for which
        B holds anything then; otherwise left alone.
    trans : str
        The constant "N", "T" or "C".
    ahead : tuple of matrices
        Nothing is fetched ahead.
    """
    trans = option("trans", trans, "NTC")
    if trans == "T":
        A = A._replace(conj=not A.conj)
    m, n = A.m, A.n
    check_fit("B", (B.m,), (m,))
    check_fit("tau", (tau.m, tau.n), (n, 1))
    given = m if trans == "N" else n
    size, size_of_b = scale(code, A, B.block(0, 0, given, B.n))
    for q in code.each(n):
        step(code, A, tau, q)
    R, x, rest = A.block(0, 0, n, n), B.block(0, 0, n, B.n), B.block(n, 0, m - n, B.n)
    with code.loop(n) as q:
        report(code, [R[q, q] == 0], info, q + 1)
    if trans == "N":
        multiply(code, A, tau, B, adjoint=True)
        substitute(code, *lower_left(R, x, "L", "U", "N"))
        multiply_by(code, x, size / size_of_b)
        multiply_by(code, rest, size.constant(1) / size_of_b)
    else:
        substitute(code, R.H, x)
        clear(code, rest)
        multiply(code, A, tau, B, adjoint=False)
        multiply_by(code, B, size / size_of_b)
