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


@dataclass(frozen=True)
class Grid:
    """A kernel for functions on stacks of matrices of which a team holds each.

    Attributes
    ----------
    file : str
        Its file in `opencl/`, with a kernel of the name `grid_` and that of the function.
    rows, columns : function
        Rows and columns of what a team holds, of the sizes by their letters.
    lines : function
        Rows and columns of it that are in local memory at a time, of the sizes of the grid's part of a member.
    """

    file: str
    rows: Callable[..., int]
    columns: Callable[..., int]
    lines: int


GRIDS = {"cholesky": Grid("grid_cholesky.cl", lambda n, **_: n, lambda n, **_: n, lines=2)}


def grid(function, options, device, number, computed) -> dict[str, object]:
    """Macros of the kernel for a function on matrices of these sizes; none if it has none, or they are too large."""
    kind = GRIDS.get(function.name)
    if kind is None or choices.is_cpu(device):
        return {}
    return macros_of(
        kind, options, kind.rows(**number), kind.columns(**number), computed, "NVIDIA" in device.platform.name
    )


def macros_of(kind, options, m, n, computed, warps) -> dict[str, object]:
    if max(m, n) > LARGEST:
        return {}
    P, Q = shape(m, n, computed)
    team = P * Q
    teams = max(GROUP // team, 1)
    if teams * kind.lines * (max(m, n) + max(P, Q)) * computed.itemsize > LOCAL_BYTES:
        return {}
    macros: dict[str, object] = {name.upper(): int(value == "U") for name, value in options.items() if name == "uplo"}
    down = bool(macros.get("UPLO"))
    return macros | {"P": P, "Q": Q, "TEAMS": teams, "CLA_WARP": int(warps and team <= WARP), "DOWN": int(down)}


def shape(m, n, computed) -> tuple[int, int]:
    """Rows and columns of the grid: as few members as have registers for the matrix, more if they are few."""
    P, Q = (2, 2) if max(m, n) <= SMALL else (4, 4)
    while P * Q < MOST:
        elements = math.ceil(m / P) * math.ceil(n / Q)
        if registers(elements, computed) <= OF_A_MEMBER and (P * Q >= FEW or elements <= OF_FEW):
            break
        P, Q = (P, 2 * Q) if P == Q else (2 * P, Q)
    return P, Q
