"""Teams of work-items that solve systems with triangles or factors, a matrix each: see `opencl/grid_triangular.cl`."""

from compactla.gpu.linalg.grid import LARGEST, WARP, numbers
from compactla.gpu.tuning import choices
from compactla.search import LOCAL_BYTES, registers

FILE = "grid_triangular.cl"
FUNCTIONS = ("cho_solve", "lu_solve", "solve_triangular")
ROWS = {4: 1, 8: 2, 16: 4, 64: 8, LARGEST: 16}  # of a grid, by the largest n
MANY = 8  # columns of B, from which on half of them do
OF_A_ROW = 8  # 4-byte registers for elements of B that a member has of a row
OF_PIVOT = 8  # bytes of local memory for a pivot
FEW, MOST = 16, 128  # work-items of a team, where it has few columns of B, and at most


def triangular(function, options, arrays, fit) -> dict[str, int]:
    """Macros of the kernel for a function of arrays; none if it has none, or matrices are too large."""
    device, number, computed = arrays[0].queue.device, fit.number, fit.computed
    if function.name not in FUNCTIONS or number["n"] > LARGEST or choices.is_cpu(device):
        return {}
    n = number["n"]
    P, Q, chunk = shape(n, number["r"], computed)
    wider = [Q]
    while P * wider[-1] < WARP:
        wider.append(2 * wider[-1])
    order = OF_PIVOT * n * (function.name == "lu_solve")
    panels = {Q: panel for Q in wider if (panel := room(n, chunk, P, Q, computed, order))}
    if not panels:
        return {}
    Q = max(panels, key=lambda Q: (panels[Q] == n, -Q))
    warps, copied = "NVIDIA" in device.platform.name, arrays[0].dtype == computed
    macros = {"P": P, "Q": Q, "TEAMS": teams(P, Q), "CHUNK": chunk, "PANEL": panels[Q], "DOWN": 0}
    macros |= {f"GRID_{function.name.upper()}": 1, "CLA_WARP": int(warps), "COPIED": int(copied)}
    return numbers(options) | macros


def teams(P, Q):
    """Matrices of a work-group."""
    return max(WARP // (P * Q), 1)


def room(n, chunk, P, Q, computed, order):
    """Columns or rows of a triangle for which there is local memory at a time; 0 if it has not enough for P of them.

    A team has `order` bytes for the order of rows.
    """
    for panel in (n, *range(-(-n // P) * P - P, 0, -P)):
        tile = n * (n | 1) + 31 if panel == n else max(n * (panel | 1), panel * (n | 1))
        if teams(P, Q) * ((tile + 2 * chunk * P * Q) * computed.itemsize + order + 4) <= LOCAL_BYTES:
            return panel
    return 0


def shape(n, r, computed) -> tuple[int, int, int]:
    """Rows and columns of the grid, and columns of B for each member."""
    P = next(rows for largest, rows in ROWS.items() if n <= largest)
    P = max(P // 2, 1) if r >= MANY else P
    Q, most = 1, OF_A_ROW // registers(1, computed)
    while Q < r and (2 * P * Q <= FEW or (Q * most < r and 2 * P * Q <= MOST)):
        Q *= 2
    return P, Q, min(-(-r // Q), most)
