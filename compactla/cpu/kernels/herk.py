"""herk at the pack level."""

from compactla.checks import option
from compactla.cpu.emit.code import routine
from compactla.cpu.kernels.symm import HermitianElements
from compactla.cpu.kernels.syrk import multiply_half, prepared


@routine
def herk(code, A, C, uplo="L", trans="N", alpha=1, beta=0, ahead=()):
    """C <- alpha op(A) op(A)^H + beta C for the V matrices of a pack, in a Numba function.

    Parameters
    ----------
    A, C : matrix
        Rectangular and Hermitian, from `matrix`. Only one triangle of C is read and written, and the imaginary parts
        of its diagonal are taken as 0 and become 0.
    uplo, trans
        As of `syrk`, but that "T" is for real matrices only.
    ahead
        As of `syrk`.
    alpha, beta : number
        As of `syrk`, but real.
    """
    C = C.H if option("uplo", uplo, "LU") == "U" else C
    A = A if option("trans", trans, "NC" if A.vector.is_complex else "NTC") == "N" else A.H
    scalars = prepared(code, A, C, alpha, beta, ahead)
    alpha, beta = (x if isinstance(x, int) else x.real for x in scalars)
    multiply_half(code, A, A.H, C, alpha, beta, HermitianElements)
