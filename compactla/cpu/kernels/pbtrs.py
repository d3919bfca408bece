"""pbtrs at the pack level: solves with the factors that pbtrf makes."""

from typing import Any

from compactla.cpu.emit.code import Code, routine
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.kernels.gbtrs import COLUMNS, backward, forward


@routine
def pbtrs(code: Code, F: Elements, B: Elements, ahead: Any = ()) -> None:
    """B <- inv(A) B for the V matrices of a pack, with the factors of `pbtrf`, in a Numba function.

    Parameters
    ----------
    F : matrix
        Results of `pbtrf`.
    B : matrix
        n x r, from `matrix`.
    ahead : tuple of matrices
        Nothing is fetched ahead.
    """
    ku = F.m - 1
    L = F.block(1, 0, ku, F.n)
    for j, r in code.tiles(B.n, COLUMNS):
        some = B.block(0, j, B.m, r)
        forward(code, L, some)
        backward(code, F, some, ku, unit=True)
