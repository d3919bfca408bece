"""getrfnp at the register level (`eliminated`) and at the pack level (`getrfnp`)."""

import functools
import operator
from typing import Any

from compactla.checks import option
from compactla.cpu.emit.code import Code, Number, check_fit, routine
from compactla.cpu.emit.failures import factor
from compactla.cpu.emit.index import is_known
from compactla.cpu.emit.loops import starts
from compactla.cpu.emit.machine import NEWTON, divided
from compactla.cpu.emit.matrices import Elements, tile_size
from compactla.cpu.emit.vectors import Flags, Lanes
from compactla.cpu.kernels.trsm import solve_rows

REGULAR = 2, 3  # sizes of matrices whose pivots are taken for regular


def reciprocal(pivot: Lanes, many: bool = False) -> tuple[Flags, Lanes]:
    """Flags where a pivot is zero, and 1 / pivot: 1 for those, whose column stays as it is."""
    zero, one = pivot == 0, pivot.constant(1)
    if many:
        return zero, zero.select(one, pivot).reciprocal(many=True)
    return zero, zero.select(one, pivot.reciprocal())


def away_from_zero(pivot: Lanes, amount: Lanes) -> Lanes:
    """The pivot moved by a positive amount: to the left if its real part is negative, else to the right."""
    return pivot + (pivot.real < 0).select(-amount, amount)


class Square:
    """Register tile of A - L U, square and of known size.

    Where its pivots are taken for `regular` it is stored at the end, else bit by bit: many stores at once are slow.
    """

    def __init__(self, code: Code, L: Elements, U: Elements, A: Elements, diag: str, regular: bool):
        self.A, self.size, self.diag, self.regular = A, range(A.m), diag, regular
        self.inverses: list[Lanes] = []
        self.zeros: list[Flags] = []
        a = self.a = code.registers(A.vector, A.m, A.m)
        for i in self.size:
            for j in self.size:
                a[i, j] = A[i, j]
        for p in code.rounds(L.n):
            u = [U[p, j] for j in self.size]
            for i in self.size:
                lip = -L[i, p]
                for j in self.size:
                    a[i, j] = lip.fma(u[j], a[i, j])

    def eliminate(self, q, many, tiny):
        """Eliminate column q, by Newton's iteration if it is one of `many`; returns the reciprocal of its pivot."""
        a, below = self.a, self.size[q + 1 :]
        if tiny is not None:
            a[q, q] = away_from_zero(a[q, q], tiny)
        if self.regular:  # which the last one need not be
            zero, inverse = a[q, q] == 0, a[q, q].reciprocal(many, regular=q < self.size[-1])
        else:
            zero, inverse = reciprocal(a[q, q], many)
        self.zeros.append(zero)
        self.inverses.append(inverse)
        if not self.regular:
            self._store_row(q)
        for i in below:
            a[i, q] = a[i, q] * inverse
            if not self.regular:
                self.A[i, q] = a[i, q]
            lip = -a[i, q]
            for j in below:
                a[i, j] = lip.fma(a[q, j], a[i, j])
        return inverse

    def _store_row(self, q):
        """Store what is U of row q."""
        self.A[q, q] = self.inverses[q] if self.diag == "R" else self.a[q, q]
        for j in self.size[q + 1 :]:
            self.A[q, j] = self.a[q, j]

    def store(self):
        """Store what is not stored yet."""
        for q in self.size if self.regular else ():
            self._store_row(q)
            for j in self.size[:q]:
                self.A[q, j] = self.a[q, j]

    def failed(self):
        """Flags of the pivots that are zero."""
        return self.zeros

    def spoiled(self):
        """Flags where a zero was taken for a regular pivot, or the last one is: what follows is infinite, then NaN."""
        return functools.reduce(operator.or_, self.zeros[-2:-1], self.a[self.size[-1], self.size[-1]].is_zero_or_nan())


@functools.cache
def eliminated(slow: frozenset[int], diag: str):
    """What emits the elimination of tiles L, U, A, pivots: A <- the L\\U of A - L U; see `failures.factor`.

    Sets `pivots` to the reciprocals of U's diagonal, which are stored in its place if `diag` is "R". A zero pivot
    leaves its column unscaled, as in LAPACK; what follows one that was taken for regular is infinite, then NaN. Those
    that are `slow` are left to the divider. All are moved away from zero by `tiny`, if that is given.
    """

    def emit(code, tiles, regular, tiny=None):
        squares = [Square(code, L, U, A, diag, regular) for L, U, A, _ in tiles]
        for q in squares[0].size:
            for square, (*_, pivots) in zip(squares, tiles, strict=True):
                pivots[q, 0] = square.eliminate(q, q not in slow, tiny)
        return squares

    return emit


@routine
def getrfnp(
    code: Code, A: Elements, info: Any, first: Any = 0, diag: str = "N", tiny: float = 0, ahead: Any = ()
) -> None:
    """A <- L\\U without pivoting for the V matrices of a pack, in a Numba function.

    Parameters
    ----------
    A : matrix, or tuple of matrices
        m x n, from `matrix`. Several packs of one size are worked on side by side.
    info : array of V int64, or of V for each pack
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
    packs = [A] if isinstance(A, Elements) else A
    A = packs[0]
    for X in packs:
        check_fit("A", (X.m, X.n), (A.m, A.n))
    away = None if tiny == 0 else code.broadcast(tiny, A.vector).real
    first = first.index(code) if isinstance(first, Number) else first
    tile = min(tile_size(A.vector, A.m, A.n))
    if ahead:
        rounds = sum((2 * i + 1) * k for i, k in enumerate(reversed(starts(min(A.m, A.n), tile))))
        code.fetch_ahead(ahead, rounds * len(packs))
    for i, t, rest in code.blocks(code.min(A.m, A.n), tile):
        pivots = [code.pivots(X, tile) for X in packs]
        ones = code.pivots(A, tile, unit=True)
        for known in code.cases(t, tile):
            work = eliminated(left_to_divider(A, known, diag), diag)
            work = work if away is None else functools.partial(work, tiny=away)
            parts = [(X.block(i, 0, known, i), X.block(0, i, i, known), X.block(i, i, known, known)) for X in packs]
            tiles = [(*part, inverses) for part, inverses in zip(parts, pivots, strict=True)]
            factor(code, work, tiles, info, first + i, regular=away is None and is_whole(A, known) and known in REGULAR)
        for X, inverses in zip(packs, pivots, strict=True):
            D, L, U = X.block(i, i, t, t), X.block(i, 0, t, i), X.block(0, i, i, t)
            for j, n in rest(X.n):
                unit = [] if ones is None else [ones]
                code.shared(solve_rows, X.block(i, j, t, n), D, L, X.block(0, j, i, n), *unit)
            for j, m in rest(X.m):
                code.shared(solve_rows, X.block(j, i, m, t).T, D.T, U.T, X.block(j, 0, m, i).T, inverses)


def is_whole(A, size):
    """Whether a tile of such a size is all of A."""
    return is_known(A.m, size) and is_known(A.n, size)


def left_to_divider(A, size, diag):
    """The pivots of a tile of such a size whose reciprocals are left to the divider: all, if A is more than that."""
    if not is_whole(A, size):
        return frozenset(range(size))
    count, parts = size if diag == "R" else size - 1, len(A.vector.parts)
    work = parts**2 * sum(k * (k + 1) for k in range(size))
    return frozenset(divided(count, work, A.vector.real.bitwidth, parts, NEWTON + 2))  # zeros are looked for
