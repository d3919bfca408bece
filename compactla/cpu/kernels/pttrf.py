"""pttrf at the pack level: positive definite tridiagonal matrices."""

from compactla.cpu.emit.code import routine
from compactla.cpu.kernels.gbtrf import guarded
from compactla.cpu.kernels.pbtrf import eliminate, keep_columns


class HermitianTridiagonal:
    """A Hermitian tridiagonal matrix: its main diagonal and the one below, which are 1 x n; n - 1 of that are read."""

    ku = 1

    def __init__(self, code, diag, lower):
        self.code, self.diag, self.lower, self.n, self.vector = code, diag, lower, diag.n, diag.vector

    def row(self, i, whole):
        """Element (i, i - 1), and the real part of the diagonal; zeros behind the last row."""
        x = guarded(self.code, self.diag, 0, i, i, whole)
        x = x._new(*x.real.parts, *x.constant(0).parts[1:])
        return [guarded(self.code, self.lower, 0, i - 1, i, whole), x]


@routine
def pttrf(code, diag, lower, F, info, ahead=()):
    """The factors L D L^H of the V positive definite tridiagonal matrices of a pack, in a Numba function.

    Parameters
    ----------
    diag, lower : matrix
        n x 1 and (n - 1) x 1, from `matrix`: the diagonal and the one below it, which are read only.
    F, info, ahead
        As of `pbtrf`, for one diagonal on either side.
    """
    n = diag.m
    source = HermitianTridiagonal(code, diag.T, lower.T._replace(n=n))
    eliminate(code, [source], n, [info], keep_columns(F))
