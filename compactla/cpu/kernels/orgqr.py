"""orgqr at the register level (`generate`) and at the pack level (`orgqr`)."""

from typing import Any

from compactla.cpu.emit.code import Code, check_fit, routine
from compactla.cpu.emit.matrices import Elements, tile_size
from compactla.cpu.kernels.householder import panels, reflect, reflect_panel


def generate(code: Code, A: Elements, tau: Elements):
    """A <- the first columns of H_1 .. H_n, one after the other; A is zero above the diagonal."""
    one = code.zero(A.vector).constant(1)
    for p in range(A.n) if isinstance(A.n, int) else code.each(A.n):
        q = A.n - p - 1
        after, scale = q + 1, tau[q, 0]
        below, right = A.m - after, A.n - after
        v = A.block(after, q, below, 1)
        reflect(code, v, scale, A.block(q, after, 1, right), A.block(after, after, below, right))
        A[q, q] = one - scale
        for i in code.each(below):
            v[i, 0] = -(scale * v[i, 0])


@routine
def orgqr(code: Code, A: Elements, tau: Elements, ahead: Any = ()) -> None:
    """A <- the first n columns of Q, which `geqrf` left in A, for the V matrices of a pack, in a Numba function.

    Parameters
    ----------
    A : matrix
        m x n, m >= n, from `matrix`.
    tau : matrix
        n x 1.
    ahead : tuple of matrices
        Of one known size, and contiguous: they are fetched into the cache meanwhile.
    """
    check_fit("tau", (tau.m, tau.n), (A.n, 1))
    for j in code.each(A.n):
        for i in code.each(j):
            A[i, j] = code.zero(A.vector)
    for i, t in panels(code, A.n, min(tile_size(A.vector, A.m, A.n)), backwards=True):
        rows, behind = A.m - i, i + t
        panel, scales = A.block(i, i, rows, t), tau.block(i, 0, t, 1)
        reflect_panel(code, panel, scales, A.block(i, behind, rows, A.n - behind), adjoint=False)
        generate(code, panel, scales)
