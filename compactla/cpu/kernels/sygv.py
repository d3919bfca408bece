"""sygv at the pack level: potrf, solves with its factor from both sides, and syev."""

import math
from typing import Any

from numba import types

from compactla.checks import option
from compactla.cpu.emit.code import Code, check_fit, routine
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.emit.vectors import Flags, Vector
from compactla.cpu.kernels.potrf import potrf
from compactla.cpu.kernels.syev import syev
from compactla.cpu.kernels.trsm import trsm


def reduce(code: Code, A: Elements, L: Elements) -> None:
    """A <- inv(L) A inv(L^H), all of it, for a Hermitian A of which the lower triangle is read."""
    for i in code.each(A.m):
        A[i, i] = A[i, i].real
        for j in code.each(i):
            A[j, i] = A[i, j].conjugate()
    trsm.emit(code, L, A)
    trsm.emit(code, L, A, "R", "L", "C")


def infinite(code: Code, L: Elements) -> Flags:
    """Flags of lanes where a matrix had an infinity on the diagonal, which stays there in its factor."""
    total = code.registers(L.vector.reals, 1)
    total[0, 0] = code.zero(L.vector.reals)
    for i in code.each(L.m):
        total[0, 0] = total[0, 0] + L[i, i].real
    return total[0, 0] == math.inf


def spoil(code: Code, A: Elements, failed: Flags):
    """A NaN in A in the lanes that are flagged."""
    with code.when(failed.any(), likely=False):
        for i in code.each(code.min(A.m, 1)):
            A[i, i] = failed.select(A[i, i].constant(math.nan), A[i, i])


@routine
def sygv(code: Code, A: Any, B: Any, w: Any, info: Any, uplo: str = "L", jobz: str = "V", ahead: Any = ()) -> None:
    """w <- eigenvalues of A v = w B v, A <- eigenvectors, B <- L with L L^H = B, or U, in a Numba function.

    Parameters
    ----------
    A, B : matrix, or tuple of matrices
        n x n, from `matrix`: Hermitian, and positive definite; only one triangle of each is read, and the real part of
        the diagonal. Several packs of one size are worked on side by side, which is faster for small ones.
    w : matrix, or tuple of matrices
        n x 1, real: the eigenvalues, ascending.
    info : array of V int64, or of V for each pack
        Set to ``n + i + 1`` for matrices B whose pivot i is the first that is not positive, and to n for matrices A
        with NaN, or A or B with infinities, and those whose iteration did not end, whose results are NaN; otherwise
        left alone.
    uplo : str
        Which triangle of both: the constant "L" or "U".
    jobz : str
        The constant "V"; or "N", where A holds anything afterwards.
    ahead : tuple of matrices
        Of one known size, and contiguous: they are fetched into the cache meanwhile, where A is small.
    """
    upper = option("uplo", uplo, "LU") == "U"
    given = [(A, B, w)] if isinstance(A, Elements) else list(zip(A, B, w, strict=True))
    n = given[0][0].n
    for X, Y, values in given:
        check_fit("A", (X.m, X.n), (n, n))
        check_fit("B", (Y.m, Y.n), (n, n))
        check_fit("w", (values.m, values.n), (n, 1))
    # What potrf enters, so that it is known which lanes failed here
    entered = code.room(Vector(types.int64, given[0][0].vector.lanes), len(given))
    for t in range(len(given)):
        entered[t, 0] = code.zero(entered.vector)
    whole = [X.H if upper else X for X, *_ in given]
    factors = [Y.H if upper else Y for _, Y, _ in given]
    potrf.emit(code, factors, entered.base, "L", n)
    for t, (X, L) in enumerate(zip(whole, factors, strict=True)):
        reduce(code, X, L)
        failed = entered[t, 0] > 0
        spoil(code, X, failed | infinite(code, L))
        report_all(code, entered, info, t, failed)
    # The lower triangle of the whole A, which is as it was given, or its transpose
    syev.emit(code, [X for X, *_ in given], [values for *_, values in given], info, "L", jobz, ahead)
    if option("jobz", jobz, "NV") == "V":
        for (X, *_), L in zip(given, factors, strict=True):
            trsm.emit(code, L, X, "L", "L", "C")


def report_all(code: Code, entered: Elements, info: Any, t: int, failed: Flags):
    """Enter what was entered for pack t into info, where nothing is."""
    with code.when(failed.any(), likely=False):
        there = entered._replace(base=code.address(info, t * entered.vector.lanes))
        there[0, 0] = (there[0, 0] == 0).select(entered[t, 0], there[0, 0])
