"""potrf at the register level (`eliminated`) and at the pack level (`potrf`).

There is one algorithm, for a lower triangle: an upper one is its conjugate transpose.
"""

import math
from typing import Any

from compactla.checks import option
from compactla.cpu.emit.choices import NEWTON, divided
from compactla.cpu.emit.code import Code, Number, check_fit, routine
from compactla.cpu.emit.failures import factor
from compactla.cpu.emit.index import is_known
from compactla.cpu.emit.loops import starts
from compactla.cpu.emit.matrices import Elements, tile_size
from compactla.cpu.kernels.trsm import solve_rows

LARGEST = 4  # rows of a tile: of those several fit into the registers, and the last pivot of a tile waits for few


class Triangle:
    """Register tile of the lower triangle of A - L L^H, Hermitian and of known size, whose diagonal is real.

    A column is loaded, and what precedes it subtracted, when it is its turn: fewer registers wait than if all columns
    were changed at once, so that several triangles are in registers side by side.
    """

    def __init__(self, code: Code, L: Elements, A: Elements):
        self.A, self.size = A, range(A.m)
        self.below = code.registers(A.vector, A.m, A.m)
        self.diagonal = code.registers(A.vector.reals, A.m)
        self.is_loaded = not is_known(L.n, 0)
        if self.is_loaded:
            for q in self.size:
                self._load(q)
            for p in code.rounds(L.n):
                column = {i: L[i, p] for i in self.size}
                for j in self.size:
                    self._subtract(column, j)

    def _load(self, q):
        """Load column q."""
        self.diagonal[q, 0] = self.A[q, q].real
        for i in self.size[q + 1 :]:
            self.below[i, q] = self.A[i, q]

    def _subtract(self, column, j):
        """Subtract column j of x x^H for a column x, given by rows from j on."""
        y = column[j]
        for part in (y.real, y.imag) if y.vector.is_complex else (y,):
            self.diagonal[j, 0] = (-part).fma(part, self.diagonal[j, 0])
        for i in self.size[j + 1 :]:
            self.below[i, j] = (-column[i]).fma(y.conjugate(), self.below[i, j])

    def eliminate(self, q, regular, slow=False):
        """Turn column q, from which those before it are subtracted, into that of L; returns 1 / L[q, q].

        A pivot that is not positive stays as it is, and all that follows becomes NaN. Where pivots are said to be
        `regular`, positive and finite, one that is not becomes NaN as well. One that is `slow` is left to the divider.
        """
        pivot = self.diagonal[q, 0]
        root = pivot.sqrt() if slow else None
        inverse = pivot.rsqrt(regular=regular) if root is None else root.reciprocal()
        root = pivot * inverse if root is None else root
        self.diagonal[q, 0] = root if regular else ((pivot > 0) & (pivot < math.inf)).select(root, pivot)
        for i in self.size[q + 1 :]:
            x = self.below[i, q]
            waited_for = i == q + 1  # by the next pivot
            self.below[i, q] = pivot.rsqrt(x, regular) if waited_for else x * inverse
        return inverse

    def advance(self, q):
        """Prepare column q: load it, and subtract the columns of L before it."""
        if not self.is_loaded:
            self._load(q)
        for k in self.size[:q]:
            self._subtract({i: self.below[i, k] for i in self.size[q:]}, q)

    def store(self):
        real = self.A._replace(conj=False)
        for i in self.size:
            for j in range(i):
                self.A[i, j] = self.below[i, j]
            real[i, i] = self.diagonal[i, 0]

    def failed(self):
        """Flags of the pivots that are not positive."""
        return [~(self.diagonal[q, 0] > 0) for q in self.size]

    def spoiled(self):
        """Flags of the last pivot, which tells whether there are any."""
        return self.failed()[-1]


def eliminated(code, tiles, regular, last=False):
    """The triangles of tiles L, A, pivots: A - L L^H factored side by side in registers; see `eliminate`.

    Sets the pivots to the reciprocals of the diagonal; not the one that nothing follows if they are the `last` tiles.
    The last pivot of others, for which nothing in the tile waits, is left to the divider where that is fast, and
    others are before it.
    """
    triangles = [Triangle(code, L, A) for L, A, _ in tiles]
    *others, final = triangles[0].size
    vector = triangles[0].below.vector
    fast = len(others) > 2 and not vector.is_complex and bool(divided(1, NEWTON, vector.real.bitwidth))
    for q in others if last else [*others, final]:
        for triangle, (_, _, pivots) in zip(triangles, tiles, strict=True):
            triangle.advance(q)
            pivots[q, 0] = triangle.eliminate(q, regular, slow=fast and q == final)
    for triangle in triangles if last else ():
        triangle.advance(final)
        pivot = triangle.diagonal[final, 0]
        triangle.diagonal[final, 0] = (pivot > 0).select(pivot.sqrt(), pivot)
    return triangles


def eliminated_last(code, tiles, regular):
    """The same of the last tiles."""
    return eliminated(code, tiles, regular, last=True)


@routine
def potrf(code: Code, A: Elements, info: Any, uplo: str = "L", first: Any = 0, ahead: Any = ()) -> None:
    """A <- L with L L^H = A, or U with U^H U = A, for the V matrices of a pack, in a Numba function.

    Parameters
    ----------
    A : matrix, or tuple of matrices
        Hermitian, from `matrix`; only one triangle is read and written, and the imaginary parts of its diagonal are
        taken as 0 and become 0. Several packs of one size are worked on side by side, which is faster for small ones.
    info : array of V int64, or of V for each pack
        Set to ``first + i + 1`` for a matrix whose pivot i is the first that is not positive, and which is then on the
        diagonal, while the matrix holds anything from there on; otherwise left alone.
    uplo : str
        Which triangle: the constant "L" or "U".
    first : int
        What the first pivot counts as.
    ahead : tuple of matrices
        Of one known size, and contiguous: they are fetched into the cache meanwhile.
    """
    upper = option("uplo", uplo, "LU") == "U"
    packs = [X.H if upper else X for X in ([A] if isinstance(A, Elements) else A)]
    for X in packs:
        check_fit("A", (X.m, X.n), (packs[0].m, packs[0].m))
    first = first.index(code) if isinstance(first, Number) else first
    L = packs[0]
    regular = code.zero(L.vector.reals).is_estimated
    tile = min(*tile_size(L.vector, L.m, L.n), LARGEST)
    if ahead:
        rounds = sum((i + 1) * k for i, k in enumerate(reversed(starts(L.m, tile))))
        code.fetch_ahead(ahead, rounds * len(packs))
    for i, t, rest in code.blocks(L.m, tile):
        last = isinstance(i, int) and i + t == L.m
        pivots = [code.pivots(X._replace(vector=X.vector.reals), tile) for X in packs]
        for m in code.cases(t, tile):
            blocks = [(X.block(i, 0, m, i), X.block(i, i, m, m)) for X in packs]
            tiles = [(*block, inverses) for block, inverses in zip(blocks, pivots, strict=True)]
            factor(code, eliminated_last if last else eliminated, tiles, info, first + i, regular)
        for j, m in rest(L.m):
            for X, inverses in zip(packs, pivots, strict=True):
                D, left = (Y._replace(conj=not Y.conj) for Y in (X.block(i, i, t, t), X.block(i, 0, t, i)))
                rows = X.block(j, i, m, t).T, D, left, X.block(j, 0, m, i).T
                code.shared(solve_rows, *rows, inverses)
