"""geqrf at the register level (`factor`) and at the pack level (`geqrf`)."""

from compactla.cpu.emit.code import Code, check_fit, routine
from compactla.cpu.emit.index import IntOrIndex, is_known
from compactla.cpu.emit.matrices import Elements, tile_size
from compactla.cpu.emit.prefetch import nbytes
from compactla.cpu.kernels.householder import panels, reflect, reflect_panel, reflector

ONE_BY_ONE = 10  # the largest size for which reflectors are applied as they are made
SIDE_BY_SIDE = 40_000  # bytes of packs that are: they stay in the cache


def step(code: Code, A: Elements, tau: Elements, k):
    """Reflector k, and what it makes of the columns on its right."""
    after = k + 1
    below, right = A.m - after, A.n - after
    x = A.block(after, k, below, 1)
    beta, scale = reflector(code, A[k, k], x)
    A[k, k], tau[k, 0] = beta, scale
    reflect(code, x, scale.conjugate(), A.block(k, after, 1, right), A.block(after, after, below, right))


def factor(code: Code, A: Elements, tau: Elements, count: IntOrIndex = 1) -> None:
    """`count` packs side by side, because a step waits for its reflector: panel by panel, if they are not small."""
    k = code.min(A.m, A.n)
    small = isinstance(k, int) and max(A.m, A.n) <= ONE_BY_ONE
    for i, t in panels(code, k, max(k, 1) if small else min(tile_size(A.vector, A.m, A.n))):
        m, behind = A.m - i, i + t
        panel, scales, right = A.block(i, i, m, t), tau.block(i, 0, t, 1), A.block(i, behind, m, A.n - behind)
        for q in range(t) if isinstance(t, int) else code.each(t):
            with code.loop(count) as p:
                step(code, panel.pack(p), scales.pack(p), q)
        if not is_known(right.n, 0):
            with code.loop(count) as p:
                reflect_panel(code, panel.pack(p), scales.pack(p), right.pack(p), adjoint=True)


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
    packs = code.unknown(A.packs[0])
    known = isinstance(A.m, int) and isinstance(A.n, int)
    some = max(1, SIDE_BY_SIDE // max(nbytes(A), 1)) if known else 1
    with code.loop((packs + (some - 1)) // some) as group:
        first = group * some
        factor(code, A.pack(first), tau.pack(first), code.min(some, packs - first))
