"""posv at the pack level: Cholesky factors, and solves with them."""

from typing import Any

from compactla.cpu.emit.code import Code, routine
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.kernels.potrf import potrf
from compactla.cpu.kernels.potrs import potrs


@routine
def posv(code: Code, A: Elements, B: Elements, info: Any, uplo: str = "L", ahead: Any = ()) -> None:
    """A <- L with L L^H = A, or U with U^H U = A, and B <- inv(A) B, for the V matrices of a pack, in a Numba function.

    Parameters
    ----------
    A, B : matrix
        Hermitian positive definite, of which one triangle is read and written, and right-hand sides, from `matrix`.
    info : array of V int64
        Set to ``i + 1`` for a matrix whose pivot i is the first that is not positive, which then holds anything, and so
        does B; otherwise left alone.
    uplo : str
        Which triangle: the constant "L" or "U".
    ahead : tuple of matrices
        Of one known size, and contiguous: they are fetched into the cache meanwhile.
    """
    potrf.emit(code, A, info, uplo)
    potrs.emit(code, A, B, uplo, ahead)
