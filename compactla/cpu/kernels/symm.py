"""symm at the pack level, and what it shares with hemm: products with matrices of which one triangle is stored.

There is one algorithm, for a lower triangle on the left: all other cases are views of it.
"""

from compactla.checks import option
from compactla.cpu.emit.code import check_fit, routine
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.kernels.gemm import rounds, tile_of, update


class Symmetric:
    """A square tile of a symmetric matrix, of whose memory the lower triangle is used."""

    def __init__(self, D: Elements):
        self.D, self.vector, self.m, self.n = D, D.vector, D.m, D.n

    def __getitem__(self, ij):
        i, j = ij
        return self.D[ij] if i >= j else self.D[j, i]

    def __setitem__(self, ij, x):
        self.D[ij] = x


class HermitianElements(Symmetric):
    """A square tile of a Hermitian matrix: imaginary parts on the diagonal count as 0, and become 0."""

    def __getitem__(self, ij):
        i, j = ij
        x = super().__getitem__(ij)
        return x.real if i == j else x.conjugate() if i < j else x

    def __setitem__(self, ij, x):
        i, j = ij
        super().__setitem__(ij, x.real if i == j else x)


def multiply(code, A, B, C, alpha, beta, tile):
    """C <- alpha A B + beta C for an A of which the lower triangle is stored; `tile` is one of the classes above."""
    check_fit("A", (A.m, A.n), (C.m, C.m))
    check_fit("B", (B.m, B.n), (C.m, C.n))
    if alpha in (1, -1) and beta in (0, 1):
        multiply_tiles(code, A, B, C, alpha, beta, tile)
        return
    alpha, beta = (code.broadcast(x, C.vector) for x in (alpha, beta))
    with code.either(code.is_zero(alpha)) as (zero, nonzero):
        with zero, code.loop(C.m) as i, code.loop(C.n) as j:
            update(code, [], C.block(i, j, 1, 1), alpha, beta)
        with nonzero:
            multiply_tiles(code, A, B, C, alpha, beta, tile)


def multiply_tiles(code, A, B, C, alpha, beta, tile):
    rows, columns = tile_of(C)
    for i, t, _ in code.blocks(C.m, rows):
        for m in code.cases(t, rows):
            below = i + m
            rest = C.m - below
            D, right = tile(A.block(i, i, m, m)), A.block(below, i, rest, m)
            right = right.H if tile is HermitianElements else right.T
            for j, n in code.tiles(C.n, columns):
                left = A.block(i, 0, m, i), B.block(0, j, i, n)
                products = [left, (D, B.block(i, j, m, n)), (right, B.block(below, j, rest, n))]
                update(code, products, C.block(i, j, m, n), alpha, beta)


@routine
def symm(code, A, B, C, side="L", uplo="L", alpha=1, beta=0, ahead=()):
    """C <- alpha A B + beta C or alpha B A + beta C for the V matrices of a pack, in a Numba function.

    Parameters
    ----------
    A, B, C : matrix
        Symmetric, of which one triangle is read, and rectangular, from `matrix`.
    side, uplo : str
        Constants as in BLAS.
    alpha, beta : number
        The constants alpha = 1 or -1 with beta = 0 or 1 are compiled in.
        If beta is zero C is not read, if alpha is zero A and B are not read.
    ahead : tuple of matrices
        Of one known size, and contiguous: they are fetched into the cache meanwhile.
    """
    side, uplo = option("side", side, "LR"), option("uplo", uplo, "LU")
    if side == "R":
        B, C = B.T, C.T
    if ahead:
        code.fetch_ahead(ahead, rounds(C, C.m))
    multiply(code, A.T if uplo == "U" else A, B, C, alpha, beta, Symmetric)
