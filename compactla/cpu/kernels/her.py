"""her at the pack level."""

from compactla.checks import option
from compactla.cpu.emit.code import routine
from compactla.cpu.kernels.scal import factor
from compactla.cpu.kernels.syr import update_half


@routine
def her(code, alpha, x, A, uplo="L", ahead=()):
    """A <- alpha x x^H + A for the V matrices of a pack, in a Numba function.

    Parameters
    ----------
    alpha : number, or matrix of 1 x 1
        As of `syr`, but real: imaginary parts are not read.
    x, A : matrix
        n x 1, and Hermitian, from `matrix`. Only one triangle of A is read and written, and the imaginary parts of its
        diagonal are taken as 0 and become 0, but where alpha is zero.
    uplo, ahead
        As of `syr`.
    """
    A = A.H if option("uplo", uplo, "LU") == "U" else A
    update_half(code, factor(code, alpha, A.vector).real, x, x.H, A, ahead, lambda diagonal: diagonal.real)
