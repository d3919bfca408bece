"""geqrf: QR factorizations."""

import math
from collections.abc import Iterator

from compactla.calls.recording import repeats
from compactla.layout import Pack
from compactla.routine import Matrix, Routine, check_packs
from compactla.search import (
    ITEM,
    LARGEST_GRID,
    REGISTERS,
    Choice,
    Search,
    columns,
    columns_on_grids,
    each_column,
    grid,
    items,
    registers,
    room_for_reflectors,
    squares,
    team,
)
from compactla.types import Events


@repeats("A", "info")
def geqrf(A: Pack, *, threads: int | None = None, wait_for: Events = None) -> Pack:
    """QR factorizations A = Q R, in place.

    Parameters
    ----------
    A : Pack
        nm matrices of m x n; k = min(m, n). On return R is on and above the diagonal. Below it, column i holds what
        follows the one of v_i, where Q = H_1 .. H_k and H_i = I - tau_i v_i v_i^H, as LAPACK leaves it.
    threads : int, optional
        Maximum number of CPU threads, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        Events to wait for before starting (devices only), as for `compactla.gemm`.

    Returns
    -------
    Pack
        tau: nm columns of k x 1, where A lives. For `compactla.ormqr` and `compactla.orgqr`.

    Raises
    ------
    TypeError, ValueError
        If A is not a pack, or is read-only, or `threads` or `wait_for` is invalid, see `compactla.gemm`.

    See Also
    --------
    compactla.ormqr, compactla.orgqr, compactla.geqp3, compactla.gels, compactla.linalg.qr

    Notes
    -----
    LAPACK ``?geqrf``, Intel MKL ``mkl_?geqrf_compact``. The diagonal of R is real, of either sign. No norm overflows or
    underflows on the way to numbers that do not.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> A = cla.pack(np.array([[[3.0, 1.0], [4.0, 2.0]]]))
    >>> tau = cla.geqrf(A)
    >>> A.unpack()[0].round(2)
    array([[-5. , -2.2],
           [ 0.5,  0.4]])
    >>> tau.unpack()[0, :, 0].round(2)
    array([1.6, 0. ])
    """
    if type(A) is not Pack:
        check_packs(A=A)
    return ROUTINE.returned(A, (A.view,), threads=threads, wait_for=wait_for)


def madds(m, n) -> float:
    k = min(m, n)
    return 2 * k * (m * n - (m + n) * k / 2 + k * k / 3)


def candidates(size, dtype, lanes) -> Iterator[Choice]:
    m, n = size
    on_grids = columns_on_grids("geqrf_grid", m, n, dtype, lanes)
    if max(m, n) > 16:
        yield from on_grids
    if max(m, n) > 32:
        return
    if registers(m * n, dtype) <= 280:  # of which some may be spilled
        yield from items("geqrf_item")
    for wide in sorted({c for c in (2, 3, 1, 4) if c <= n}, key=lambda c: -(-n // c) * c - n):
        if registers(wide * m, dtype) <= REGISTERS:
            count = -(-n // wide)
            for some in sorted(lanes, key=lambda some: abs(math.log(some * count / 160))):
                if 64 <= some * count <= 512:
                    yield {"kernel": "geqrf_team", "LANES": some, "COLUMNS": wide, "TEAM": count}
    yield from each_column("geqrf_column", m, n, dtype, lanes)
    yield from on_grids


KERNELS = {
    "geqrf_item": ITEM,
    "geqrf_team": team({}, lambda choice, size: 2 * size[0] * choice["LANES"]),
    "geqrf_grid": grid("grid_geqrf.cl", lambda m, n: m, lambda m, n: n, room_for_reflectors),
    "geqrf_column": columns("column_geqrf.cl", lambda m, n: n, lambda size: 2 * (size[0] + 5)),
}

ROUTINE = Routine(
    "geqrf",
    operands=(Matrix("A", "mn", written=True), Matrix("tau", "k1", written=True, output=True)),
    madds=madds,
    implied={"k": lambda m, n: min(m, n)},
    together=True,
    search=Search("geqrf", "geqrf.cl", KERNELS, candidates, squares(2), LARGEST_GRID),
)
