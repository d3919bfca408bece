"""getrs at the pack level: both triangular solves with the factors that getrf makes, and its swaps."""

from typing import Any

from compactla.checks import option
from compactla.cpu.emit.code import Code, check_fit, routine
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.kernels.getrsnp import getrsnp
from compactla.cpu.kernels.laswp import laswp


@routine
def getrs(code: Code, A: Elements, ipiv: Any, B: Elements, trans: str = "N", ahead: Any = ()) -> None:
    """B <- inv(op(A)) B for the V matrices of a pack, with the factors of `getrf`, in a Numba function.

    Parameters
    ----------
    A, B : matrix
        L\\U, and right-hand sides, from `matrix`.
    ipiv : matrix of integers
        n x 1: the row that each lane swapped with each row; nothing checks that there is such a row.
    trans : str
        A constant as in LAPACK: whether op(A) is A, its transpose or its conjugate transpose.
    ahead : tuple of matrices
        Of one known size, and contiguous: they are fetched into the cache meanwhile.
    """
    trans = option("trans", trans, "NTC")
    check_fit("ipiv", (ipiv.m, ipiv.n), (B.m, 1))
    if trans == "N":
        laswp.emit(code, B, ipiv)
    getrsnp.emit(code, A, B, trans, ahead)
    if trans != "N":
        laswp.emit(code, B, ipiv, backward=True)
