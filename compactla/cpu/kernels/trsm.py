"""trsm at the register level (`solve`) and at the pack level (`trsm`).

There is one algorithm, for a lower triangle on the left: all other cases are views of it (`lower_left`).
"""

from contextlib import contextmanager
from typing import Any

from compactla.checks import option
from compactla.cpu.emit.choices import divided
from compactla.cpu.emit.code import Code, check_fit, routine
from compactla.cpu.emit.index import is_known
from compactla.cpu.emit.loops import starts
from compactla.cpu.emit.matrices import Elements, held, tile_size
from compactla.cpu.emit.vectors import Lanes
from compactla.view import lower_left


def solve(code: Code, D: Elements, pivots, L: Elements, U: Elements, B: Elements, alone: bool = False):
    """Register tile: B <- inv(D) (B - L U) for a B whose size is known.

    D is lower triangular; `pivots` holds the reciprocals of its diagonal, or is None for a unit diagonal. Where L and U
    are empty and the rows of B are `alone`, they are rounds in which what is ahead is fetched.
    """
    columns = range(B.n)
    x = code.registers(B.vector, B.m, B.n)
    for i in range(B.m):
        for j in columns:
            x[i, j] = B[i, j]
    for p in code.rounds(L.n):
        u = [U[p, j] for j in columns]
        for i in range(B.m):
            a = -L[i, p]
            for j in columns:
                x[i, j] = a.fma(u[j], x[i, j])
    for i in code.steps(B.m) if alone else range(B.m):
        for q in range(i):
            d = -D[i, q]
            for j in columns:
                x[i, j] = d.fma(x[q, j], x[i, j])
        for j in columns:
            if pivots is not None:
                x[i, j] = x[i, j] * pivots[i, 0]
            B[i, j] = x[i, j]


def solve_columns(code: Code, D: Elements, pivots, B: Elements):
    """Register tile: B <- inv(D) B, column by column, for as many rows as `fits`; see `solve`."""
    rows = range(B.m)
    d = {(i, q): -D[i, q] for i in rows for q in rows[:i]}
    scale = None if pivots is None else [pivots[i, 0] for i in rows]
    for j in code.rounds(B.n):
        x: list[Lanes] = []
        for i in rows:
            b = B[i, j]
            for q in rows[:i]:
                b = d[i, q].fma(x[q], b)
            x.append(b if scale is None else b * scale[i])
            if i or scale is not None:
                B[i, j] = x[i]


def fits(B: Elements) -> bool:
    """Whether a triangle of as many rows as B has, its pivots and a column of B are in registers at once."""
    return isinstance(B.m, int) and 0 < B.m * (B.m + 3) // 2 <= held(B.vector) - 2


def tile_of(B: Elements, unit: bool) -> tuple[int, int]:
    """Rows and columns of a register tile of B: all its rows, if they and a few columns fill most registers.

    Then nothing waits for what was stored just before. Many pivots, which are not `unit`, take registers too.
    """
    tallest, widest = tile_size(B.vector, B.m, B.n)
    if isinstance(B.m, int) and isinstance(B.n, int) and B.m > tallest:
        columns = min((held(B.vector) - 2) // B.m, B.n)
        if columns >= min(2 if unit else 3, B.n) and 3 * B.m * columns >= 2 * held(B.vector):
            return B.m, columns
    return tallest, widest


def is_tall(B, tallest):
    """Whether a tile of so many rows has all those of B, and more than tiles of other routines."""
    return is_known(B.m, tallest) and tallest > tile_size(B.vector, B.m, B.n)[0]


def solve_rows(code, B, D, L, U, pivots=None):
    """B <- inv(D) (B - L U) tile by tile, for a B of no more rows than a tile has."""
    if is_known(L.n, 0) and fits(B):
        solve_columns(code, D, pivots, B)
        return
    tallest, widest = tile_of(B, pivots is None)
    alone = is_tall(B, tallest)
    for m in code.cases(B.m, tallest):
        for j, n in code.tiles(B.n, widest):
            known = D.block(0, 0, m, m), pivots, L.block(0, 0, m, L.n), U.block(0, j, U.m, n), B.block(0, j, m, n)
            solve(code, *known, alone)


def forward(code, A, B, diag):
    """B <- inv(A) B for a lower triangular A; `diag` is "N", "U", or "R" if A holds the reciprocals of its diagonal."""
    tallest = B.m if fits(B) else tile_of(B, diag == "U")[0]
    for i, m in code.spans(B.m, tallest):
        D = A.block(i, i, m, m)
        pivots = code.pivots(B, tallest, unit=diag == "U")
        if diag != "U":
            slow = left_to_divider(B.vector, m, B.n)
            for q in range(m) if isinstance(m, int) else code.each(m):
                pivots[q, 0] = D[q, q] if diag == "R" else D[q, q].reciprocal(many=q not in slow)
        rows = B.block(i, 0, m, B.n), D, A.block(i, 0, m, i), B.block(0, 0, i, B.n)
        code.shared(solve_rows, *rows, *([] if pivots is None else [pivots]))


def left_to_divider(vector, m, n):
    """The pivots of m rows and n columns whose reciprocals are left to the divider."""
    if not (isinstance(m, int) and isinstance(n, int)):
        return ()
    parts = len(vector.parts)
    return divided(m, parts**2 * n * m * (m + 1) / 2, vector.real.bitwidth, parts)


@contextmanager
def scaled(code, B, alpha):
    """B <- alpha B, then what the caller emits; B becomes zero, whatever it holds, where alpha is zero."""
    if alpha == 1:
        yield
        return
    alpha = code.broadcast(alpha, B.vector)
    with code.either(code.is_zero(alpha)) as (zero, nonzero):
        with zero, code.loop(B.m) as i, code.loop(B.n) as j:
            B[i, j] = code.zero(B.vector)
        with nonzero:
            with code.when(~code.is_zero(alpha - code.zero(B.vector).constant(1))):
                with code.loop(B.m) as i, code.loop(B.n) as j:
                    B[i, j] = alpha * B[i, j]
            yield


@routine
def trsm(
    code: Code, A: Elements, B: Elements, side: str = "L", uplo: str = "L", trans: str = "N", diag: str = "N",
    alpha: Any = 1, ahead: Any = (),
) -> None:  # fmt: skip
    """B <- alpha inv(op(A)) B or alpha B inv(op(A)) for the V matrices of a pack, in a Numba function.

    Parameters
    ----------
    A, B : matrix
        Triangular and rectangular, from `matrix`.
    side, uplo, trans, diag : str
        Constants as in BLAS; `diag` "R" says that A holds the reciprocals of its diagonal.
    alpha : number
        The constant 1 is compiled in. If alpha is zero A and B are not read.
    ahead : tuple of matrices
        Of one known size, and contiguous: they are fetched into the cache meanwhile.
    """
    side, uplo = option("side", side, "LR"), option("uplo", uplo, "LU")
    trans, diag = option("trans", trans, "NTC"), option("diag", diag, "NUR")
    A, B = lower_left(A, B, side, uplo, trans)
    if ahead:
        code.fetch_ahead(ahead, rounds(B, diag == "U"))
    check_fit("A", (A.m, A.n), (B.m, B.m))
    with scaled(code, B, alpha):
        forward(code, A._replace(conj=A.conj != (trans == "C")), B, diag)


def rounds(B, unit=False):
    """Number of rounds in the innermost loops of a solve for B."""
    if fits(B) and isinstance(B.n, int):
        return B.n
    tallest, widest = tile_of(B, unit)
    rows = B.m if is_tall(B, tallest) else sum(starts(B.m, tallest))
    return rows * len(starts(B.n, widest))
