"""ormqr at the pack level."""

from compactla.checks import option
from compactla.cpu.emit.code import check_fit, routine
from compactla.cpu.kernels.householder import reflect_all


@routine
def ormqr(code, A, tau, C, side="L", trans="N", ahead=()):
    """C <- op(Q) C or C op(Q) for the V matrices of a pack, Q as `geqrf` leaves it, in a Numba function.

    Parameters
    ----------
    A, tau : matrix
        The vectors of k reflectors below the diagonal of A, which has k columns, and their scalars, k x 1.
    C : matrix
        m x n, of as many rows as A for side "L", of as many columns for side "R".
    side, trans : str
        Constants: on which side Q is, and whether op(Q) is Q, "N", or Q^H, "C"; of real numbers "T" is "C".
    ahead : tuple of matrices
        Of one known size, and contiguous: they are fetched into the cache meanwhile.
    """
    trans = option("trans", trans, "NC" if C.vector.is_complex else "NTC")
    if option("side", side, "LR") == "R":  # (C Q)^H = Q^H C^H
        C, trans = C.H, "C" if trans == "N" else "N"
    check_fit("A", (A.m,), (C.m,))
    check_fit("tau", (tau.m, tau.n), (A.n, 1))
    reflect_all(code, A, tau, C, adjoint=trans != "N")
