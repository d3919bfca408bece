"""getrfnp at the register level (`factor`) and at the pack level (`getrfnp`)."""

from typing import Any

from numba import types

from compactla.checks import option
from compactla.cpu.emit.code import Code, Number, routine
from compactla.cpu.emit.failures import report
from compactla.cpu.emit.loops import starts
from compactla.cpu.emit.matrices import Elements, tile_size
from compactla.cpu.emit.vectors import Flags, Lanes
from compactla.cpu.kernels.trsm import solve_rows

# Pivots that are inverted by Newton's iteration, of real matrices so small that the divider would be waited for.
SMALL = {
    types.float32: {(2, 2): {0}, (3, 3): {1}},
    types.float64: {(2, 2): {0}, (3, 3): {1}, (4, 4): {1}},
}


def reciprocal(pivot: Lanes, many: bool = False) -> tuple[Flags, Lanes]:
    """Flags where a pivot is zero, and 1 / pivot: 1 for those, whose column stays as it is."""
    zero = pivot == 0
    return zero, zero.select(pivot.constant(1), pivot).reciprocal(many=many)


def away_from_zero(pivot: Lanes, amount: Lanes) -> Lanes:
    """The pivot moved by a positive amount: to the left if its real part is negative, else to the right."""
    return pivot + (pivot.real < 0).select(-amount, amount)


def factor(code: Code, L: Elements, U: Elements, A: Elements, pivots, info, first, diag, many=(), tiny=None):
    """Register tile: A <- the L\\U of A - L U, for a square A whose size is known.

    Sets `pivots` to the reciprocals of U's diagonal, which are stored in its place if `diag` is "R". A zero pivot
    is entered into `info`, counted from `first`, and leaves its column unscaled, as in LAPACK. The pivots of `many`
    are inverted by Newton's iteration, beside which the divider works on the others. All are moved away from zero by
    `tiny`, if that is given.
    """
    size = range(A.m)
    a = code.registers(A.vector, A.m, A.m)
    for i in size:
        for j in size:
            a[i, j] = A[i, j]
    for p in code.rounds(L.n):
        u = [U[p, j] for j in size]
        for i in size:
            lip = -L[i, p]
            for j in size:
                a[i, j] = lip.fma(u[j], a[i, j])
    zeros = []
    for q in size:
        if tiny is not None:
            a[q, q] = away_from_zero(a[q, q], tiny)
        zero, pivots[q, 0] = reciprocal(a[q, q], q in many)
        zeros.append(zero)
        for i in range(q + 1, A.m):
            a[i, q] = a[i, q] * pivots[q, 0]
            lip = -a[i, q]
            for j in range(q + 1, A.m):
                a[i, j] = lip.fma(a[q, j], a[i, j])
    for i in size:
        for j in size:
            A[i, j] = pivots[i, 0] if i == j and diag == "R" else a[i, j]
    report(code, zeros, info, first + 1)


@routine
def getrfnp(
    code: Code, A: Elements, info: Any, first: Any = 0, diag: str = "N", tiny: float = 0, ahead: Any = ()
) -> None:
    """A <- L\\U without pivoting for the V matrices of a pack, in a Numba function.

    Parameters
    ----------
    A : matrix
        m x n, from `matrix`.
    info : array of V int64
        Set to ``first + i + 1`` for a matrix whose pivot i is the first that is exactly zero; otherwise left alone.
    first : int
        What the first pivot counts as.
    diag : str
        "N", or the constant "R" to store the reciprocals of the pivots in their place, for `trsm` with this `diag`.
    tiny : number
        Real, and not negative: every pivot moves away from zero by it before it is used. The constant 0 is compiled in.
    ahead : tuple of matrices
        Of one known size, and contiguous: they are fetched into the cache meanwhile.
    """
    diag = option("diag", diag, "NR")
    away = None if tiny == 0 else code.broadcast(tiny, A.vector).real
    first = first.index(code) if isinstance(first, Number) else first
    tile = min(tile_size(A.vector, A.m, A.n))
    is_known = isinstance(A.m, int) and isinstance(A.n, int)
    many = SMALL.get(A.vector.dtype, {}).get((A.m, A.n), ()) if is_known else ()
    if ahead:
        rounds = sum((2 * i + 1) * k for i, k in enumerate(reversed(starts(min(A.m, A.n), tile))))
        code.fetch_ahead(ahead, rounds)
    for i, t, rest in code.blocks(code.min(A.m, A.n), tile):
        D, L, U = A.block(i, i, t, t), A.block(i, 0, t, i), A.block(0, i, i, t)
        pivots, ones = code.pivots(A, tile), code.pivots(A, tile, unit=True)
        for known in code.cases(t, tile):
            factor(code, L, U, D.block(0, 0, known, known), pivots, info, first + i, diag, many, away)
        for j, n in rest(A.n):
            code.shared(solve_rows, A.block(i, j, t, n), D, L, A.block(0, j, i, n), *([] if ones is None else [ones]))
        for j, m in rest(A.m):
            code.shared(solve_rows, A.block(j, i, m, t).T, D.T, U.T, A.block(j, 0, m, i).T, pivots)
