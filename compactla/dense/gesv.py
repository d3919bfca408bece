"""gesv: solves of linear systems."""

from collections.abc import Iterator

from compactla.calls.recording import repeats
from compactla.dense.getrf import in_local, room, teams_and_grids
from compactla.layout import Pack
from compactla.routine import Matrix, Routine, check_packs
from compactla.search import (
    AND_COLUMNS,
    ITEM,
    LARGEST_GRID,
    Choice,
    Search,
    columns,
    each_column,
    grid,
    items,
    on_rows_and_columns,
    registers,
    rows,
    squares,
)
from compactla.types import Array, Events


@repeats("A", "B", "info")
def gesv(A: Pack, B: Pack, *, info: Array = None, threads: int | None = None, wait_for: Events = None) -> Array:
    """Solves B <- inv(A) B by LU factorizations with partial pivoting, in place.

    Parameters
    ----------
    A : Pack
        nm matrices of n x n; on return L and U of P A = L U, as `compactla.getrf` leaves them.
    B : Pack
        nm right-hand sides of n x r, with A's dtype, vector length and device; on return the solutions.
    info : (nm,) ndarray of int64 or pyopencl.array.Array of int32, optional
        Where the result goes, where the packs live: contiguous, on a device at the beginning of its buffer.
    threads : int, optional
        Maximum number of CPU threads, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        Events to wait for before starting (devices only), as for `compactla.gemm`.

    Returns
    -------
    (nm,) ndarray of int64 or pyopencl.array.Array of int32
        `info`, or a new NumPy array. For each matrix 0, or 1 + the index of its first pivot that is exactly zero: there
        is no solution, and its contents are undefined. No other system is touched. For packs on a device
        this waits until the device is done, unless `info` is given: its ``events`` end with that of the solves.

    Raises
    ------
    TypeError, ValueError
        If the packs do not fit together, are read-only or share memory, `info` is no such array, or shares memory with
        them, or `threads` or `wait_for` is invalid, see `compactla.gemm`.

    See Also
    --------
    compactla.getrf, compactla.getrs, compactla.posv, compactla.linalg.solve

    Notes
    -----
    LAPACK ``?gesv``, in one kernel; which rows were swapped is not returned. Pivots are divided by through their
    reciprocals, which overflow for subnormal pivots: matrices of so small entries have to be scaled first.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> a, b = np.tile([[1.0, 2.0], [4.0, 2.0]], (100, 1, 1)), np.ones((100, 2, 3))
    >>> A, X = cla.pack(a), cla.pack(b)
    >>> bool(cla.gesv(A, X).any())
    False
    >>> bool(np.allclose(a @ X.unpack(), b))
    True
    """
    if not type(A) is type(B) is Pack or A.kind != B.kind:
        check_packs(A=A, B=B)
    if (A.m, A.n) != (B.m, B.m):
        raise ValueError(f"A is {A.m} x {A.n}, must be {B.m} x {B.m}: B is {B.m} x {B.n}")
    return ROUTINE.run((A.view, B.view), (), None, (), B.nm, info, threads, wait_for)


def candidates(size, dtype, lanes) -> Iterator[Choice]:
    n, r = size
    if registers(n * (n + r), dtype) <= 200 and n + r <= 32:
        yield from items("gesv_item")
    yield from teams_and_grids("gesv", n, n + r, dtype, lanes)
    yield from each_column("gesv_column", n, n + r, dtype, lanes)
    yield from on_rows_and_columns("gesv_rows", size[0], dtype, lanes)


def room_with_solutions(m, n, choice):
    """As `compactla.dense.getrf.room`, with right-hand sides beside the matrix."""
    return max(room(m, n, choice), room(m, n, choice | {"STAGED": 0}) + m * (n - m))


KERNELS = {
    "gesv_item": ITEM,
    "gesv_team": in_local(lambda n, r: n * (n + r + 1)),
    "gesv_column": columns("column_getrf.cl", lambda n, r: n + r, lambda size: 4 * size[0] + 10, tiled=True),
    "gesv_rows": rows("rows_getrf.cl", lambda n, r: n, **AND_COLUMNS),
    "gesv_grid": grid("grid_getrf.cl", lambda n, r: n, lambda n, r: n + r, room_with_solutions, STAGED=range(2)),
}

ROUTINE = Routine(
    "gesv",
    operands=(Matrix("A", "nn", written=True), Matrix("B", "nr", written=True)),
    madds=lambda n, r: n**3 / 3 + n * n * r,
    outputs=("info",),
    search=Search("gesv", "gesv.cl", KERNELS, candidates, squares(2), LARGEST_GRID),
)
