"""getri at the pack level: the inverse, with the factors that getrf makes."""

from typing import Any

from compactla.cpu.emit.code import Code, check_fit, routine
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.kernels.getrinp import getrinp
from compactla.cpu.kernels.laswp import laswp


@routine
def getri(code: Code, A: Elements, ipiv: Any, info: Any, ahead: Any = ()) -> None:
    """A <- inv(A) for the V matrices of a pack, with the factors of `getrf`, in a Numba function.

    Parameters
    ----------
    A : matrix
        n x n, from `matrix`: L\\U.
    ipiv : matrix of integers
        n x 1: the row that each lane swapped with each row; nothing checks that there is such a row.
    info : array of V int64
        Set to ``i + 1`` for a matrix whose U has its first exact zero on the diagonal at i, which then holds anything;
        otherwise left alone.
    ahead : tuple of matrices
        Of one known size, and contiguous: they are fetched into the cache meanwhile.
    """
    check_fit("ipiv", (ipiv.m, ipiv.n), (A.m, 1))
    getrinp.emit(code, A, info, ahead)
    laswp.emit(code, A.T, ipiv, backward=True)
