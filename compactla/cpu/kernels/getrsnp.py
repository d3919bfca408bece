"""getrsnp at the pack level: both triangular solves with the factors that getrfnp makes."""

from compactla.checks import option
from compactla.cpu.emit.code import check_fit, routine
from compactla.cpu.kernels.trsm import forward, rounds


@routine
def getrsnp(code, A, B, trans="N", ahead=()):
    """B <- inv(op(A)) B for the V matrices of a pack, with the factors of `getrfnp`, in a Numba function.

    Parameters
    ----------
    A, B : matrix
        L\\U, and right-hand sides, from `matrix`.
    trans : str
        A constant as in LAPACK: whether op(A) is A, its transpose or its conjugate transpose.
    ahead : tuple of matrices
        Of one known size, and contiguous: they are fetched into the cache meanwhile.
    """
    trans = option("trans", trans, "NTC")
    check_fit("A", (A.m, A.n), (B.m, B.m))
    if ahead:
        code.fetch_ahead(ahead, 2 * rounds(B))
    op = A if trans == "N" else A.T if trans == "T" else A.H
    first, last = "UN" if trans == "N" else "NU"  # L has ones on its diagonal
    forward(code, op, B, first)
    forward(code, op.reversed, B.rows_reversed, last)
