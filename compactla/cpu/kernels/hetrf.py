"""hetrf at the pack level."""

from typing import Any

from compactla.checks import option
from compactla.cpu.emit.code import Code, check_fit, routine
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.kernels.indefinite import Factorization


@routine
def hetrf(code: Code, A: Elements, ipiv: Any, info: Any, uplo: str = "L", ahead: Any = ()) -> None:
    """A <- L and D of L D L^H, or U and D of U D U^H, for the V matrices of a pack, in a Numba function.

    Parameters
    ----------
    A : matrix
        Hermitian, from `matrix`; only one triangle is read and written.
    ipiv : matrix of integers
        n x 1, which gets the row that each lane swapped with each row, as `compactla.hetrf` says.
    info : array of V int64
        Set to ``k + 1`` for a matrix where the block of D in row k is the first that is exactly zero; otherwise left
        alone.
    uplo : str
        Which triangle: the constant "L" or "U".
    ahead : tuple of matrices
        Nothing is fetched ahead.
    """
    upper = option("uplo", uplo, "LU") == "U"
    check_fit("A", (A.m, A.n), (A.n, A.n))
    check_fit("ipiv", (ipiv.m, ipiv.n), (A.n, 1))
    Factorization(code, A, ipiv, info, hermitian=True, upper=upper).run()
