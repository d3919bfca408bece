"""gemm at the register level (`update`) and at the pack level (`gemm`)."""

from typing import Any

from compactla.cpu.emit.choices import is_halved
from compactla.cpu.emit.code import Code, check_fit, routine
from compactla.cpu.emit.index import is_known
from compactla.cpu.emit.loops import starts
from compactla.cpu.emit.matrices import Elements, held, tallest, tile_size

# More elements of C than this in one tile make it wait for its stores; columns from which on its tiles are narrow.
WAITING, LARGE = 20, 16
FEW, READ = (
    (3, 4),
    25,
)  # rows and columns of a tile of few elements; elements of a C that is read up to which all is one


def update(code: Code, products, C: Elements, alpha, beta, half=False):
    """Register tile: C <- alpha (A B + ...) + beta C for a C whose size is known, or its lower `half`.

    `products` are pairs A, B; elements of A that are None count as zeros. `alpha` and `beta` are 1, -1 or 0, or
    `Lanes`; where beta is `Lanes`, C is not read if it is zero.
    """
    literal = isinstance(beta, int)
    rows = [range(i + 1 if half else C.n) for i in range(C.m)]
    tile = [(i, j) for i, columns in enumerate(rows) for j in columns]
    c = code.registers(C.vector, C.m, C.n)
    for ij in tile:
        c[ij] = C[ij] if literal and beta == 1 else code.zero(C.vector)
    spare = held(C.vector) - (C.m * C.n + C.n + 1)  # registers
    begun = literal and beta == 1
    for A, B in products:
        for p in code.rounds(A.n, pairs=spare > 1):
            b = [B[p, j] for j in range(C.n)]
            for i, columns in enumerate(rows):
                a = A[i, p]
                if a is None:
                    continue
                a = -a if literal and alpha == -1 else a
                for j in columns:
                    c[i, j] = a * b[j] if is_known(p, 0) and not begun else a.fma(b[j], c[i, j])
            begun = True
    if literal:
        for ij in tile:
            C[ij] = c[ij]
        return
    with code.either(code.is_zero(beta)) as (zero, nonzero):
        with zero:
            for ij in tile:
                C[ij] = alpha * c[ij]
        with nonzero:
            for ij in tile:
                C[ij] = beta.fma(C[ij], alpha * c[ij])


@routine
def gemm(code: Code, A: Elements, B: Elements, C: Elements, alpha: Any = 1, beta: Any = 0, ahead: Any = ()) -> None:
    """C <- alpha A B + beta C for the V matrices of a pack, in a Numba function.

    Parameters
    ----------
    A, B, C : matrix
        m x k, k x n and m x n, from `matrix`; ``A.T`` and ``A.H`` are views.
    alpha, beta : number
        The constants alpha = 1 or -1 with beta = 0 or 1 are compiled in.
        If beta is zero C is not read, if alpha is zero A and B are not read.
    ahead : tuple of matrices
        Of one known size, and contiguous: they are fetched into the cache meanwhile.
    """
    k = A.n
    check_fit("B", (B.m, B.n), (A.n, C.n))
    check_fit("A", (A.m,), (C.m,))
    adds = isinstance(beta, int) and beta == 1
    if ahead:
        code.fetch_ahead(ahead, rounds(C, k, adds))
    if alpha not in (1, -1) or beta not in (0, 1):
        alpha, beta = (code.broadcast(x, C.vector) for x in (alpha, beta))
        k = code.is_zero(alpha).select(0, k)
    rows, columns = tile_of(C, adds)
    for i, m in code.tiles(C.m, rows):
        for j, n in code.tiles(C.n, columns):
            update(code, [(A.block(i, 0, m, k), B.block(0, j, k, n))], C.block(i, j, m, n), alpha, beta)


def tile_of(C, adds=False):
    """Rows and columns of the register tiles of a product, which `adds` to C or overwrites it.

    A matrix of known size that would be one large tile has two, since it waits for its last stores. A large one has
    tiles that are higher and narrower, where they are fewer and not many are cut off. Where a multiply-add at a time
    is all that a processor does, few elements are enough to keep it busy, and their stores are waited for less.
    """
    rows, columns = tile_size(C.vector, C.m, C.n)
    if not (isinstance(C.m, int) and isinstance(C.n, int)):
        return rows, columns
    if is_halved() and not C.vector.is_complex and C.m >= FEW[0] and not (adds and C.m * C.n < READ):
        columns = min(columns, FEW[1])
        return max(FEW[0], min(rows, FEW[0] * FEW[1] // columns)), columns
    if C.m <= rows and C.n <= columns:
        return (-(-C.m // 2) if C.m * C.n > WAITING else rows), columns
    if C.n >= LARGE and columns > 1:
        narrow = columns - 1
        high = tallest(C.vector, narrow)
        fewer = -(-C.m // high) * -(-C.n // narrow) < -(-C.m // rows) * -(-C.n // columns)
        if fewer and 9 * (-C.n % narrow) < C.n:
            return high, narrow
    return rows, columns


def rounds(C: Elements, k: int, adds: bool = False) -> int:
    """Number of rounds in the innermost loops of a product."""
    rows, columns = tile_of(C, adds)
    return len(starts(C.m, rows)) * len(starts(C.n, columns)) * k
