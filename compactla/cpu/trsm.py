"""trsm at the register level (`solve`), at the pack level (`trsm`), and over a batch.

There is one algorithm, for a lower triangle on the left: all other cases are views of it (`lower_left`).
"""

from compactla.cpu.emit import Code, routine
from compactla.cpu.lanes import at
from compactla.cpu.simd import Elements, tile_size
from compactla.pack import lower_left


def solve(code: Code, D: Elements, pivots, L: Elements, U: Elements, B: Elements, alpha):
    """Register tile: B <- inv(D) (alpha B - L U) for a B whose size is known.

    D is lower triangular; `pivots` are the reciprocals of its diagonal, None for a unit diagonal.
    `alpha` is 1 or `Lanes`.
    """
    columns = range(B.n)
    x = code.registers(B.vector, B.m, B.n)
    for i in range(B.m):
        for j in columns:
            x[i, j] = B[i, j] if alpha == 1 else alpha * B[i, j]
    with code.loop(L.n) as p:
        u = [U[p, j] for j in columns]
        for i in range(B.m):
            a = -L[i, p]
            for j in columns:
                x[i, j] = a.fma(u[j], x[i, j])
    for i in range(B.m):
        for q in range(i):
            d = -D[i, q]
            for j in columns:
                x[i, j] = d.fma(x[q, j], x[i, j])
        for j in columns:
            if pivots is not None:
                x[i, j] = x[i, j] * pivots[i, 0]
            B[i, j] = x[i, j]


def forward(code, A, B, diag, alpha):
    """B <- alpha inv(A) B tile by tile, for a lower triangular A."""
    tile = tile_size(B.vector, B.m, B.n)
    for i, m in code.tiles(B.m, tile):
        D = A.block(i, i, m, m)
        pivots = None
        if diag != "U":
            pivots = code.registers(B.vector, m)
            for q in range(m):
                pivots[q, 0] = D[q, q] if diag == "R" else D[q, q].reciprocal()
        for j, n in code.tiles(B.n, tile):
            solve(code, D, pivots, A.block(i, 0, m, i), B.block(0, j, i, n), B.block(i, j, m, n), alpha)


def scaled_forward(code, A, B, diag, alpha):
    """`forward` with any alpha; B becomes zero, whatever A and B hold, where alpha is zero."""
    if alpha == 1:
        forward(code, A, B, diag, 1)
        return
    alpha = code.broadcast(alpha, B.vector)
    with code.builder.if_else(code.is_zero(alpha)) as (zero, nonzero):
        with zero, code.loop(B.m) as i, code.loop(B.n) as j:
            B[i, j] = code.zero(B.vector)
        with nonzero:
            forward(code, A, B, diag, alpha)


@routine
def trsm(code, A, B, side="L", uplo="L", trans="N", diag="N", alpha=1):
    """B <- alpha inv(op(A)) B or alpha B inv(op(A)) for the V matrices of a pack, in a Numba function.

    Parameters
    ----------
    A, B : matrix
        Triangular and rectangular, from `matrix`.
    side, uplo, trans, diag : str
        Constants as in BLAS; `diag` "R" says that A holds the reciprocals of its diagonal.
    alpha : number
        The constant 1 is compiled in. If alpha is zero A and B are not read.
    """
    A, B = lower_left(A, B, side, uplo, trans)
    scaled_forward(code, A._replace(conj=A.conj != (trans == "C")), B, diag, alpha)


@routine
def trsm_lower(code, A, B, diag, alpha, fixed):
    """The solve with a lower triangle on the left; alpha is 1 if `fixed` is not empty."""
    scaled_forward(code, A, B, diag, 1 if fixed else alpha)


def trsm_batch(diag, fixed, A_form, B_form, width, digest):
    """Kernel for packs lo to hi; addresses, sizes and strides are those of `View`."""

    def kernel(lo, hi, V, m, n, alpha, a, ap, ar, ac, b, bp, br, bc):
        for p in range(lo, hi):
            for v in range(0, V, width):
                A = at(a, p * ap + v, m, m, ar, ac, V, A_form)
                B = at(b, p * bp + v, m, n, br, bc, V, B_form)
                trsm_lower(A, B, diag, alpha, fixed)
        return digest

    return kernel
