"""Teams of work-items that hold a matrix in their registers, as grids of P rows and Q columns: see `opencl/grid.h`."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from compactla.gpu.tuning import choices
from compactla.search import LOCAL_BYTES, registers

WARP = 32  # work-items that go together
LARGEST = 128  # rows and columns
GROUP = 64  # work-items of a work-group, at least
OF_A_MEMBER = 144  # 4-byte registers for its part of a matrix, at most, where the team can be larger
FEW, OF_FEW = 64, 36  # members of teams that are small, and elements that each of those has, at most
SMALL = 8  # rows of matrices that suit four members
MOST = 512  # work-items of a team
BLOCKS = 24  # of steps that are written out, of LU factorizations with less than four columns of the grid
OTHERS = 64  # registers of a member for all else
ALL_REGISTERS = 65536  # of a work-group
ELEMENTS, OF_LU = 80, 160  # of a member in these, at most, and its 4-byte registers for them
TURNS = 4  # steps of these in which all columns that are left are taken for as many
OPTIONS = {"uplo": "LU", "trans": "NTC"}  # values, in the order of the numbers that kernels have for them


def shape(m, n, computed):
    """Rows and columns of the grid: as few members as have registers for the matrix, more if they are few."""
    P, Q = (2, 2) if max(m, n) <= SMALL else (4, 4)
    while P * Q < MOST:
        elements = math.ceil(m / P) * math.ceil(n / Q)
        if registers(elements, computed) <= OF_A_MEMBER and (P * Q >= FEW or elements <= OF_FEW):
            break
        P, Q = (P, 2 * Q) if P == Q else (2 * P, Q)
    return P, Q


def lu_shape(m, n, computed):
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


def cholesky_local(m, n, P, Q):
    """Two columns."""
    return 2 * (max(m, n) + max(P, Q) + WARP)


def lu_local(m, n, P, Q):
    """Two rows of each warp, two columns, pivots, and products of these."""
    warps, members = max(1, P * Q // WARP), min(P * Q, LARGEST)
    return 2 * warps * (n + 9 * Q) + 2 * (max(m, n) + 2 * P) + 2 * m + 3 * members


@dataclass(frozen=True)
class Grid:
    """A kernel for functions on stacks of matrices of which a team holds each.

    Attributes
    ----------
    file : str
        Its file in `opencl/`, with a kernel of the name `grid_` and that of the function.
    rows, columns : function
        Rows and columns of what a team holds, of the sizes by their letters.
    shape : function
        Rows and columns of the grid, of those that it holds, and of the computation dtype.
    local : function
        Elements that a team has in local memory, of the rows and columns that it holds, and of the grid.
    staged : function
        Further elements there for matrices that go through it, to be read and written by neighbours; if they do.
    """

    file: str
    rows: Callable[..., int]
    columns: Callable[..., int]
    shape: Callable[..., tuple[int, int]]
    local: Callable[..., int]
    staged: Callable[..., int] = lambda **_: 0


def lu(rows=lambda n, **_: n, columns=lambda n, **_: n):
    """Of matrices, with right-hand sides beside them; there are places for solutions, too."""

    def staged(**sizes):
        m, n = rows(**sizes), columns(**sizes)
        return m * (n + TURNS + 9)

    return Grid("grid_lu.cl", rows, columns, lu_shape, lu_local, staged)


GRIDS = {
    "cholesky": Grid("grid_cholesky.cl", lambda n, **_: n, lambda n, **_: n, shape, cholesky_local),
    "det": lu(),
    "slogdet": lu(),
    "inv": lu(),
    "lu_factor": lu(rows=lambda m, **_: m),
    "lu_solve": lu(columns=lambda n, r, **_: n + r),
    "solve": lu(columns=lambda n, r, **_: n + r),
}


def grid(function, options, device, number, computed) -> dict[str, object]:
    """Macros of the kernel for a function on matrices of these sizes; none if it has none, or they are too large."""
    kind = GRIDS.get(function.name)
    if kind is None or choices.is_cpu(device) or max(number.values()) > LARGEST:
        return {}
    m, n = kind.rows(**number), kind.columns(**number)
    P, Q = kind.shape(m, n, computed)
    local = (kind.local(m, n, P, Q) + m * number.get("r", 0)) * computed.itemsize
    staged = kind.staged(**number) * computed.itemsize
    teams = max(GROUP // (P * Q), 1)
    while teams * P * Q > WARP and teams * (local + staged) > LOCAL_BYTES:
        teams //= 2
    teams = max(teams, 1)
    staged *= teams * (local + staged) <= LOCAL_BYTES
    registered = registers(math.ceil(m / P) * math.ceil(n / Q), computed)
    if teams * local > LOCAL_BYTES or (registered + OTHERS) * P * Q > ALL_REGISTERS:
        return {}
    macros = numbers(options) | {f"GRID_{function.name.upper()}": 1, "STAGED": int(staged > 0)}
    macros |= {"DOWN": int(macros.get("UPLO") == 1), "TURNS": TURNS * (staged > 0 and Q == 1 and m <= P <= WARP)}
    return macros | {"P": P, "Q": Q, "TEAMS": teams, "CLA_WARP": 2 * ("NVIDIA" in device.platform.name)}


def numbers(options) -> dict[str, object]:
    """Macros of options."""
    return {name.upper(): OPTIONS[name].index(value) for name, value in options.items() if name in OPTIONS}
