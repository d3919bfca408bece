"""geqrf at the register level (`factor`) and at the pack level (`geqrf`)."""

from collections.abc import Sequence

from compactla.cpu.emit.code import Code, check_fit, routine
from compactla.cpu.emit.index import IntOrIndex, is_known
from compactla.cpu.emit.matrices import Elements, tile_size
from compactla.cpu.emit.prefetch import nbytes
from compactla.cpu.kernels.householder import panels, reflect, reflect_panel, reflector

ONE_BY_ONE = 12  # the largest size for which reflectors are applied as they are made
SIDE_BY_SIDE = 40_000  # bytes of packs that are: they stay in the cache


def step(code: Code, A: Elements, tau: Elements, k):
    """Reflector k, and what it makes of the columns on its right."""
    after = k + 1
    below, right = A.m - after, A.n - after
    x = A.block(after, k, below, 1)
    beta, scale = reflector(code, A[k, k], x)
    A[k, k], tau[k, 0] = beta, scale
    reflect(code, x, scale.conjugate(), A.block(k, after, 1, right), A.block(after, after, below, right))


def factor(code: Code, packs: Sequence[tuple[Elements, Elements]], count: IntOrIndex = 1) -> None:
    """Packs A, tau of one size side by side, because a step waits for its reflector: panel by panel, if not small.

    They are those that are given, or `count` that follow the only one.
    """
    (A, tau), *others = packs

    def each():
        if others:
            yield from packs
        else:
            with code.loop(count) as p:
                yield A.pack(p), tau.pack(p)

    k = code.min(A.m, A.n)
    small = isinstance(k, int) and max(A.m, A.n) <= ONE_BY_ONE
    for i, t in panels(code, k, max(k, 1) if small else min(tile_size(A.vector, A.m, A.n))):
        m, behind = A.m - i, i + t
        rest = A.n - behind
        for q in range(t) if isinstance(t, int) else code.each(t):
            for X, scales in each():
                step(code, X.block(i, i, m, t), scales.block(i, 0, t, 1), q)
        if not is_known(rest, 0):
            for X, scales in each():
                right = X.block(i, behind, m, rest)
                reflect_panel(code, X.block(i, i, m, t), scales.block(i, 0, t, 1), right, adjoint=True)


@routine
def geqrf(code, A, tau, ahead=()):
    """A <- R, and below it the reflectors whose product is Q, where A = Q R, for the V matrices of a pack.

    Parameters
    ----------
    A : matrix, or tuple of matrices
        m x n, from `matrix`; k = min(m, n). Several packs of one size are worked on side by side, which is faster for
        small ones.
    tau : matrix, or tuple of as many
        k x 1. It is overwritten.
    ahead : tuple of matrices
        Of one known size, and contiguous: they are fetched into the cache meanwhile.
    """
    alone = isinstance(A, Elements)
    packs = [(A, tau)] if alone else list(zip(A, tau, strict=True))
    A, tau = packs[0]
    for X, scales in packs:
        check_fit("A", (X.m, X.n), (A.m, A.n))
        check_fit("tau", (scales.m, scales.n), (code.min(A.m, A.n), 1))
    if not alone:
        factor(code, packs)
        return
    number = code.unknown(A.packs[0])
    known = isinstance(A.m, int) and isinstance(A.n, int)
    some = max(1, SIDE_BY_SIDE // max(nbytes(A), 1)) if known else 1
    with code.loop((number + (some - 1)) // some) as group:
        first = group * some
        factor(code, [(A.pack(first), tau.pack(first))], code.min(some, number - first))
