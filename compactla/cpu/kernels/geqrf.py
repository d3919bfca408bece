"""geqrf at the register level (`factor`) and at the pack level (`geqrf`)."""

from compactla.cpu.emit import Code, check_fit, routine
from compactla.cpu.kernels.householder import panels, reflect, reflect_panel, reflector
from compactla.cpu.simd import Elements, tile_size

ONE_BY_ONE = 10  # the largest size for which reflectors are applied as they are made


def factor(code: Code, A: Elements, tau: Elements):
    """A <- R, and the vectors of the reflectors below it, one after the other."""
    count = code.min(A.m, A.n)
    for k in range(count) if isinstance(count, int) else code.each(count):
        after = code.add(k, 1)
        below, right = code.sub(A.m, after), code.sub(A.n, after)
        x = A.block(after, k, below, 1)
        beta, scale = reflector(code, A[k, k], x)
        A[k, k], tau[k, 0] = beta, scale
        reflect(code, x, scale.conjugate(), A.block(k, after, 1, right), A.block(after, after, below, right))


@routine
def geqrf(code, A, tau, ahead=()):
    """A <- R, and reflectors H_1 .. H_k below it with Q = H_1 .. H_k, A = Q R, for the V matrices of a pack.

    Parameters
    ----------
    A : matrix
        m x n, from `matrix`; k = min(m, n).
    tau : matrix
        k x 1. It is overwritten.
    ahead : tuple of matrices
        Of one known size, and contiguous: they are fetched into the cache meanwhile.
    """
    count = code.min(A.m, A.n)
    check_fit("tau", (tau.m, tau.n), (count, 1))
    if isinstance(A.m, int) and isinstance(A.n, int) and max(A.m, A.n) <= ONE_BY_ONE:
        factor(code, A, tau)
        return
    for i, t in panels(code, count, min(tile_size(A.vector, A.m, A.n))):
        rows, behind = code.sub(A.m, i), code.add(i, t)
        panel, scales = A.block(i, i, rows, t), tau.block(i, 0, t, 1)
        factor(code, panel, scales)
        reflect_panel(code, panel, scales, A.block(i, behind, rows, code.sub(A.n, behind)), adjoint=True)
