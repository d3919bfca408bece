"""hetrs at the pack level."""

from typing import Any

from compactla.checks import option
from compactla.cpu.emit.code import Code, check_fit, routine
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.kernels.indefinite_factors import Solution


@routine
def hetrs(code: Code, A: Elements, ipiv: Any, B: Elements, uplo: str = "L", ahead: Any = ()) -> None:
    """B <- inv(A) B for the V matrices of a pack, with the factors of `hetrf`, in a Numba function.

    Parameters
    ----------
    A, B : matrix
        Factors, of which one triangle is read, and right-hand sides, from `matrix`.
    ipiv : matrix of integers
        n x 1, from `hetrf`; nothing checks that there are such rows.
    uplo : str
        Which triangle: the constant "L" or "U".
    ahead : tuple of matrices
        Nothing is fetched ahead.
    """
    upper = option("uplo", uplo, "LU") == "U"
    check_fit("A", (A.m, A.n), (B.m, B.m))
    check_fit("ipiv", (ipiv.m, ipiv.n), (B.m, 1))
    Solution(code, A, ipiv, B, hermitian=True, upper=upper).run()
