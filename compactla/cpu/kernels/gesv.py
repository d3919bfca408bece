"""gesv at the pack level: getrf and getrs, one after the other."""

from numba import types

from compactla.cpu.emit.code import check_fit, routine
from compactla.cpu.emit.vectors import Vector
from compactla.cpu.kernels.getrf import getrf
from compactla.cpu.kernels.getrs import getrs

SMALL = 12  # rows up to which getrf has few loops to fetch in


@routine
def gesv(code, A, B, info, first=0, ahead=()):
    """A <- L\\U with row interchanges, B <- inv(A) B for the V matrices of a pack, in a Numba function.

    Parameters
    ----------
    A, B : matrix
        n x n, and right-hand sides, from `matrix`.
    info : array of V int64
        Set to ``first + i + 1`` for a matrix whose pivot i is the first that is exactly zero, and whose solution is
        not finite then; otherwise left alone.
    first : int
        What the first pivot counts as.
    ahead : tuple of matrices
        Of one known size, and contiguous: they are fetched into the cache meanwhile.
    """
    check_fit("A", (A.m, A.n), (B.m, B.m))
    ipiv = code.room(Vector(types.int64, A.vector.lanes), A.m, 1)
    early = isinstance(A.n, int) and A.n > SMALL
    getrf.emit(code, A, ipiv, info, first, ahead=ahead if early else ())
    getrs.emit(code, A, ipiv, B, "N", () if early else ahead)
