"""Teams of work-items that hold a matrix in their registers, as grids of P rows and Q columns: see `opencl/grid.h`."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from compactla.gpu.tuning import choices
from compactla.search import LOCAL_BYTES, registers, tall

WARP = 32  # work-items that go together
LARGEST = 128  # rows and columns
GROUP = 64  # work-items of a work-group, at least
OF_SQUARE = 44  # elements of a member of these, or pairs of 4-byte registers
OF_A_MEMBER = 144  # 4-byte registers for its part of a matrix, at most, where the team can be larger
OF_FEW = {4: 36, 16: 36, 32: 72}  # elements of a member, at most, where there are so few
SMALL = 8  # rows of matrices that suit four members
MOST = 512  # work-items of a team
BLOCKS = 24  # of steps that are written out, of LU factorizations with less than four columns of the grid
ALL_REGISTERS = 65536  # of a work-group
ELEMENTS, OF_LU, OTHERS = 80, 160, 64  # of a member in these, at most, its 4-byte registers for them, and for all else
OF_ROWS, MOST_OF_ROWS = 80, 168  # registers of a member for rows of its own: if no more need be, and at most
MOST_BESIDE = 4  # right-hand sides that are solved for while a Cholesky factor is made
TURNS = 4  # steps of these in which few columns change
# Values of options, in the order of the numbers that kernels have for them.
OPTIONS: dict[str, Sequence[str]] = {"uplo": "LU", "trans": "NTC", "diag": "NU"}
OPTIONS |= {"clean": ("no", "yes"), "mode": ("r", "reduced", "complete", "raw")}


def shape(m, n, computed):
    """Rows and columns of the grid: as few members as have registers for the matrix, more if they are few."""
    P, Q = (2, 2) if max(m, n) <= SMALL else (4, 4)
    while P * Q < MOST:
        elements = math.ceil(m / P) * math.ceil(n / Q)
        if registers(elements, computed) <= OF_A_MEMBER and elements <= OF_FEW.get(P * Q, elements):
            break
        P, Q = (2 * P, Q) if P == Q else (P, 2 * Q)
    return P, Q


def posv_shape(m, n, computed):
    """Rows and columns of the grid: fewer, as its members wait for each other in every step of the solution too."""
    elements = math.ceil(n / 4) ** 2  # of which a triangle is in registers
    if n > SMALL and max(elements, registers(elements, computed) / 2) <= OF_A_MEMBER:
        return 4, 4
    return shape(m, n, computed)


def lu_shape(m, n, computed):
    """Rows and columns of the grid: a part of a warp whose members have whole rows, with as few idle as can be."""
    found = []
    for P in [4] * (m <= 12 and computed.itemsize < 16) + [8, 16, WARP]:
        held = registers(-(-m // P) * n, computed)
        if held <= MOST_OF_ROWS:
            found.append((-(-m // P) * P, held > OF_ROWS, P))
    return (min(found)[2], 1) if m <= WARP and found else row_shape(m, n, computed)


def row_shape(m, n, computed):
    """Rows and columns of the grid: a row for each member of a part of a warp, else as few as have registers."""
    if m <= WARP and held(n, computed):
        return max(SMALL, 1 << (m - 1).bit_length()), 1
    Q = 1
    while (Q < 4 and math.ceil(min(m, n) / Q) > BLOCKS) or not held(math.ceil(n / Q), computed):
        Q *= 2
    P = max(WARP // Q, Q)
    while not held(math.ceil(m / P) * math.ceil(n / Q), computed):
        P *= 2
    return P, Q


def held(elements, computed):
    """Whether a member has registers for so many elements in LU factorizations."""
    return elements <= ELEMENTS and registers(elements, computed) <= OF_LU


def square(m, n, computed):
    """Rows and columns of a grid with about as many of both, of as few members as have registers for their parts."""
    members = 1
    while True:
        P = 1 << (members.bit_length() - 1) // 2
        Q = members // P
        elements = math.ceil(m / P) * math.ceil(n / Q)
        held = registers(elements, computed)
        enough = max(elements / (1 + (members == WARP)), held / 2) <= OF_SQUARE  # a warp needs no barriers
        if enough or members >= MOST or (members >= MOST // 2 and held <= OF_A_MEMBER):
            return P, Q
        members *= 2


def cholesky_local(m, n, P, Q, warps):
    """Two columns."""
    return 2 * (max(m, n) + max(P, Q) + WARP)


def posv_local(m, n, P, Q, warps):
    """Two columns, and rows of a block of steps."""
    return (2 + min(P, Q)) * (max(m, n) + max(P, Q) + WARP) + 2 * MOST_BESIDE


def lu_local(m, n, P, Q, warps):
    """Two rows of each warp, two columns, pivots, and products of these."""
    several, members = max(1, P * Q // WARP), min(P * Q, LARGEST)
    return 2 * several * (n + 9 * Q) + 2 * (max(m, n) + 2 * P) + 2 * m + 3 * members


def bidiagonal_local(m, n, P, Q, warps):
    """Two columns and rows, four numbers of each column, and sums over both; a warp has those of some columns."""
    rows, columns, parts = -(-m // P) * P, -(-n // Q) * Q, Q // min(Q, WARP // P) if warps else Q
    lines = 2 * (rows + max(rows, columns)) + WARP + 4 * n + P * Q
    return lines + (parts > 1) * parts * (rows + P) + (0 if warps else P * (columns + Q))


def least_squares_local(m, n, P, Q, warps):
    """Those, and what solutions of a lower rank take: five rotations of each column, and some numbers."""
    return bidiagonal_local(m, n, P, Q, warps) + 16 * n + 32


def qr_local(m, n, P, Q, warps):
    """Six rows and columns, and two rows for each row of the grid where sums do not go through warps."""
    return 6 * (max(m, n) + max(P, Q) + WARP) + (0 if warps else 2 * P * (n + 2 * Q))


@dataclass(frozen=True)
class Grid:
    """A kernel for functions on stacks of matrices of which a team holds each.

    Attributes
    ----------
    file : str
        Its file in `opencl/`, with a kernel of the name `grid_` and that of the function.
    rows, columns : function
        Rows and columns of what a team holds, of the sizes by their letters and of options.
    shape : function
        Rows and columns of the grid, of those that it holds, and of the computation dtype.
    local : function
        Elements that a team has in local memory, of the rows and columns that it holds, of the grid, and of whether
        there are warps.
    staged : function
        Further elements there for matrices that go through it, to be read and written by neighbours; if they do.
    others : int
        Registers of a member for all else; without them the kernel is too slow.
    down : bool
        Whether neighbours are always in a column of the grid.
    suits : function
        Whether it is for these sizes and options.
    """

    file: str
    rows: Callable[..., int]
    columns: Callable[..., int]
    shape: Callable[..., tuple[int, int]]
    local: Callable[..., int]
    staged: Callable[..., int] = lambda **_: 0
    others: int = 0
    down: bool = False
    suits: Callable[..., bool] = lambda **_: True


def order(n, **_):
    return n


def rows(m, **_):
    return m


def few_definite(assume_a, r, **_):
    return assume_a == "pos" and r <= MOST_BESIDE


def with_right_hand_sides(n, r, **_):
    return n + r


def columns_of_qr(m, n, mode, **_):
    return max(m, n) if mode == "complete" else n


def lu(rows=order, columns=order):
    """Of matrices, with right-hand sides beside them; there are places for solutions, too."""

    def staged(**sizes):
        return (rows(**sizes) + TURNS) * (columns(**sizes) + TURNS + 9) + WARP

    return Grid("grid_lu.cl", rows, columns, lu_shape, lu_local, staged, OTHERS)


def longer(m, n, **_):
    return max(m, n)


def shorter_with_right_hand_sides(m, n, r=0, **_):
    return min(m, n) + r


BIDIAGONAL = Grid("grid_bidiagonal.cl", longer, shorter_with_right_hand_sides, square, bidiagonal_local, down=True)
GRIDS = {
    "cholesky": Grid("grid_cholesky.cl", order, order, shape, cholesky_local),
    "det": lu(),
    "slogdet": lu(),
    "inv": lu(),
    "lu_factor": lu(rows),
    "solve_symmetric": Grid("grid_posv.cl", order, order, posv_shape, posv_local, suits=few_definite),
    "solve": lu(columns=with_right_hand_sides),
    "svdvals": BIDIAGONAL,
    "lstsq": replace(BIDIAGONAL, local=least_squares_local),
    "qr": Grid("grid_qr.cl", rows, columns_of_qr, tall, qr_local, down=True),
}


def grid(function, options, device, number, computed) -> dict[str, int]:
    """Macros of the kernel for a function on matrices of these sizes; none if it has none, or they are too large."""
    kind = GRIDS.get(function.name)
    if kind is None or choices.is_cpu(device) or max(number.values()) > LARGEST:
        return {}
    sizes, warps = number | options, "NVIDIA" in device.platform.name
    if not kind.suits(**sizes):
        return {}
    m, n = kind.rows(**sizes), kind.columns(**sizes)
    P, Q = kind.shape(m, n, computed)

    def local_of(P, Q):
        return (kind.local(m, n, P, Q, warps) + m * number.get("r", 0)) * computed.itemsize

    while P * Q < WARP and WARP // (P * Q) * local_of(P, Q) > LOCAL_BYTES:
        P, Q = (2 * P, Q) if P < Q else (P, 2 * Q)  # so that a warp has fewer matrices
    local = local_of(P, Q)
    staged = kind.staged(**sizes) * computed.itemsize
    teams = max(GROUP // (P * Q), 1)
    while teams * P * Q > WARP and teams * (local + staged) > LOCAL_BYTES:
        teams //= 2
    teams = max(teams, 1)
    staged *= teams * (local + staged) <= LOCAL_BYTES
    registered = registers(math.ceil(m / P) * math.ceil(n / Q), computed)
    if teams * local > LOCAL_BYTES or (registered + kind.others) * P * Q > ALL_REGISTERS:
        return {}
    macros = numbers(options) | {f"GRID_{function.name.upper()}": 1, "STAGED": int(staged > 0)}
    macros |= {"DOWN": int(kind.down or macros.get("UPLO") == 1)}
    macros |= {"TURNS": TURNS * (staged > 0 and Q == 1 and m <= WARP)}
    return macros | {"P": P, "Q": Q, "TEAMS": teams, "CLA_WARP": 2 * warps}


def numbers(options) -> dict[str, int]:
    """Macros of options."""
    return {name.upper(): OPTIONS[name].index(value) for name, value in options.items() if name in OPTIONS}
