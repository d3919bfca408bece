"""chud at the register level (`rotation`, `hyperbolic`) and at the pack level (`chud`).

There is one algorithm, for a lower triangle: an upper one is its conjugate transpose.
"""

from typing import Any, NamedTuple

from compactla.checks import option
from compactla.cpu.emit.code import Code, check_fit, routine
from compactla.cpu.emit.failures import report
from compactla.cpu.emit.index import is_known
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.emit.vectors import Flags, Lanes
from compactla.cpu.kernels.householder import keep
from compactla.cpu.kernels.norms import add_squares, into_range, is_right


class Turn(NamedTuple):
    """What makes [pivot, 0] of [l, x]: an orthogonal rotation, or a hyperbolic one, and whether there is none."""

    pivot: Lanes
    cosine: Lanes
    secant: Lanes | None  # 1 / cosine, of a hyperbolic one
    sine: Lanes
    failed: Flags


def rotation(code: Code, r: Lanes, x: Lanes) -> Turn:
    """The Givens rotation of a real r and any x; neither overflows nor underflows on the way."""
    found = code.registers(r.vector, 2), code.registers(x.vector, 1)
    pivot, sine = found
    squares = add_squares(x, r * r)

    def put(r, x, squares, back, mask=None):
        inverse = squares.rsqrt(regular=mask is None)
        for register, place, number in (pivot, 0, squares * inverse * back), (pivot, 1, r * inverse):
            register[place, 0] = number if mask is None else mask.select(number, register[place, 0])
        keep([sine], [x * inverse], mask)

    put(r, x, squares, r.constant(1))
    good = is_right(squares)
    with code.when(~good.all(), likely=False):
        scale, back = into_range(squares)
        small, other = r * scale, x * scale
        put(small, other, add_squares(other, small * small), back, ~good)
        none = (r == 0) & (x == 0)
        pivot[0, 0], pivot[1, 0] = none.select(r, pivot[0, 0]), none.select(r.constant(1), pivot[1, 0])
        sine[0, 0] = none.select(x, sine[0, 0])
    return Turn(pivot[0, 0], pivot[1, 0], None, sine[0, 0], ~(pivot[0, 0] >= 0))


def hyperbolic(code: Code, r: Lanes, x: Lanes) -> Turn:
    """The hyperbolic rotation of a real r and any x, which has to be smaller; scaled where squares are out of range."""
    scale, back = code.registers(r.vector, 1), code.registers(r.vector, 1)
    scale[0, 0] = back[0, 0] = r.constant(1)
    squares = r * r
    with code.when(~is_right(squares).all(), likely=False):
        scale[0, 0], back[0, 0] = into_range(squares)
    r, x = r * scale[0, 0], x * scale[0, 0]
    rest = (r - x.real) * (r + x.real)
    if x.vector.is_complex:
        rest = (-x.imag).fma(x.imag, rest)
    inverse, over = rest.rsqrt(), r.reciprocal()
    root = rest * inverse
    pivot = root * back[0, 0]  # NaN if r is infinite
    return Turn(pivot, root * over, r * inverse, x * over, ~((rest > 0) & (pivot >= 0)))


@routine
def chud(
    code: Code, A: Elements, X: Elements, info: Any, uplo: str = "L", downdate: bool = False, ahead: Any = ()
) -> None:
    """A <- the factor of L L^H + X X^H, or L L^H - X X^H, for the V matrices of a pack, in a Numba function.

    Parameters
    ----------
    A : matrix
        n x n, from `matrix`: L, or U = L^H, of which only one triangle is read and written. The imaginary parts of the
        diagonal are taken as 0 and become 0.
    X : matrix
        n x r; it is overwritten.
    info : array of V int64
        Set to ``i + 1`` for a matrix whose pivot i is the first that is not positive, or NaN, and which then holds
        anything; otherwise left alone.
    uplo : str
        Which triangle: the constant "L" or "U".
    downdate : bool
        A constant: whether X X^H is subtracted.
    ahead : tuple of matrices
        Of one known size, and contiguous: they are fetched into the cache meanwhile.
    """
    L = A.H if option("uplo", uplo, "LU") == "U" else A
    n, r = X.m, X.n
    check_fit("A", (A.m, A.n), (n, n))
    real = L._replace(conj=False)
    if ahead:
        code.fetch_ahead(ahead, n * (n - 1) // 2)
    reals = L.vector.reals
    turns, sines = code.room(reals, r, 2), code.room(L.vector, r)
    diagonal, column = code.registers(reals, 2), code.registers(L.vector, 1)
    for j in code.each(n if is_known(r, 1) else code.unknown(n)):
        diagonal[0, 0], diagonal[1, 0] = L[j, j].real, code.zero(reals)
        for p in code.each(r):
            turn = (hyperbolic if downdate else rotation)(code, diagonal[0, 0], X[j, p])
            diagonal[0, 0], turns[p, 0], sines[p, 0] = turn.pivot, turn.cosine, turn.sine
            if downdate:
                turns[p, 1] = turn.secant
            diagonal[1, 0] = turn.failed.select(diagonal[1, 0].constant(1), diagonal[1, 0])
        real[j, j] = diagonal[0, 0]
        report(code, [diagonal[1, 0] > 0], info, j + 1)
        for k in code.rounds(n - j - 1):
            i = j + 1 + k
            column[0, 0] = L[i, j]
            for p in code.each(r):
                x, y, c, s = column[0, 0], X[i, p], turns[p, 0], sines[p, 0]
                if downdate:  # by the new column: the mixed form of hyperbolic rotations, which is stable
                    x = column[0, 0] = (-s.conjugate()).fma(y, x) * turns[p, 1]
                    X[i, p] = (-s).fma(x, y * c)
                else:
                    column[0, 0], X[i, p] = s.conjugate().fma(y, x * c), (-s).fma(x, y * c)
            L[i, j] = column[0, 0]
