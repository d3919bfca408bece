"""trmm at the pack level: products with triangles, in place.

There is one algorithm, for an upper triangle on the left, where the first rows of B are the first that no others wait
for: all other cases are views of it.
"""

from compactla.checks import option
from compactla.cpu.emit.code import check_fit, routine
from compactla.cpu.emit.loops import starts
from compactla.cpu.emit.matrices import Elements, tile_size
from compactla.cpu.kernels.gemm import update
from compactla.cpu.kernels.trsm import scaled
from compactla.view import lower_left


class Upper:
    """The upper triangle of a square tile as a factor of `update`."""

    def __init__(self, D: Elements, diag):
        self.D, self.n, self.diag = D, D.n, diag

    def __getitem__(self, ij):
        i, j = ij
        if i == j and self.diag == "U":
            return self.D.code.zero(self.D.vector.reals).constant(1)
        return self.D[ij] if i <= j else None


def multiply(code, A, B, diag):
    """B <- A B for an upper triangular A."""
    rows, columns = tile_size(B.vector, B.m, B.n)
    for i, t, _ in code.blocks(B.m, rows):
        for m in code.cases(t, rows):
            below = i + m
            rest = B.m - below
            D, U = Upper(A.block(i, i, m, m), diag), A.block(i, below, m, rest)
            for j, n in code.tiles(B.n, columns):
                X = B.block(i, j, m, n)
                update(code, [(D, X), (U, B.block(below, j, rest, n))], X, 1, 0)


@routine
def trmm(code, A, B, side="L", uplo="L", trans="N", diag="N", alpha=1, ahead=()):
    """B <- alpha op(A) B or alpha B op(A) for the V matrices of a pack, in a Numba function.

    Parameters
    ----------
    A, B : matrix
        Triangular and rectangular, from `matrix`.
    side, uplo, trans, diag : str
        Constants as in BLAS.
    alpha : number
        The constant 1 is compiled in. If alpha is zero A and B are not read.
    ahead : tuple of matrices
        Of one known size, and contiguous: they are fetched into the cache meanwhile.
    """
    side, uplo = option("side", side, "LR"), option("uplo", uplo, "LU")
    trans, diag = option("trans", trans, "NTC"), option("diag", diag, "NU")
    A, B = lower_left(A, B, side, uplo, trans)
    A, B = A.reversed, B.rows_reversed
    if ahead:
        code.fetch_ahead(ahead, rounds(B))
    check_fit("A", (A.m, A.n), (B.m, B.m))
    with scaled(code, B, alpha):
        multiply(code, A._replace(conj=A.conj != (trans == "C")), B, diag)


def rounds(B):
    """Number of rounds in the innermost loops of a product that overwrites B."""
    rows, columns = tile_size(B.vector, B.m, B.n)
    return sum(B.m - i for i in starts(B.m, rows)) * len(starts(B.n, columns))
