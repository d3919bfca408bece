"""hemm at the pack level."""

from compactla.checks import option
from compactla.cpu.emit.code import routine
from compactla.cpu.kernels.gemm import rounds
from compactla.cpu.kernels.symm import HermitianElements, multiply


@routine
def hemm(code, A, B, C, side="L", uplo="L", alpha=1, beta=0, ahead=()):
    """C <- alpha A B + beta C or alpha B A + beta C for the V matrices of a pack, in a Numba function.

    Parameters
    ----------
    A, B, C : matrix
        Hermitian, of which one triangle is read, and rectangular, from `matrix`. Imaginary parts on the diagonal of A
        are taken as 0.
    side, uplo, alpha, beta, ahead
        As of `symm`.
    """
    side, uplo = option("side", side, "LR"), option("uplo", uplo, "LU")
    if side == "R":  # A^T is the matrix of conjugates
        A, B, C = A._replace(conj=not A.conj), B.T, C.T
    if ahead:
        code.fetch_ahead(ahead, rounds(C, C.m))
    multiply(code, A.H if uplo == "U" else A, B, C, alpha, beta, HermitianElements)
