"""trsv at the pack level: trsm with one column."""

from compactla.cpu.emit.code import routine
from compactla.cpu.kernels.trsm import trsm


@routine
def trsv(code, A, x, uplo="L", trans="N", diag="N", ahead=()):
    """x <- inv(op(A)) x for the V matrices of a pack, in a Numba function.

    Parameters
    ----------
    A, x : matrix
        Triangular, and n x 1, from `matrix`.
    uplo, trans, diag : str
        Constants as in BLAS; `diag` "R" says that A holds the reciprocals of its diagonal.
    ahead : tuple of matrices
        Of one known size, and contiguous: they are fetched into the cache meanwhile.
    """
    trsm.emit(code, A, x.block(0, 0, x.m, 1), "L", uplo, trans, diag, ahead=ahead)
