"""hesv at the pack level: hetrf and hetrs, one after the other."""

from typing import Any

from compactla.cpu.emit.code import Code, check_fit, routine
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.kernels.hetrf import hetrf
from compactla.cpu.kernels.hetrs import hetrs


@routine
def hesv(code: Code, A: Elements, B: Elements, ipiv: Any, info: Any, uplo: str = "L", ahead: Any = ()) -> None:
    """A <- the factors of `hetrf`, B <- inv(A) B for the V matrices of a pack, in a Numba function.

    Parameters
    ----------
    A, B : matrix
        Hermitian, of which one triangle is read and written, and right-hand sides, from `matrix`.
    ipiv : matrix of integers
        n x 1, which gets the rows that were swapped, as of `hetrf`.
    info : array of V int64
        Set to ``k + 1`` for a matrix where the block of D in row k is the first that is exactly zero, and whose
        solution is not finite then; otherwise left alone.
    uplo : str
        Which triangle: the constant "L" or "U".
    ahead : tuple of matrices
        Nothing is fetched ahead.
    """
    check_fit("A", (A.m, A.n), (B.m, B.m))
    hetrf.emit(code, A, ipiv, info, uplo)
    hetrs.emit(code, A, ipiv, B, uplo)
