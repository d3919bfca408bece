"""gels: least squares and solutions of the smallest norm, for matrices of full rank."""

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
)
from compactla.types import Array, Events


@repeats("A", "B", "info")
def gels(
    A: Pack, B: Pack, trans: str = "N", *, info: Array = None, threads: int | None = None, wait_for: Events = None
) -> Array:
    """Least squares, min ||B - op(A) X||, or the X of the smallest norm with op(A) X = B, for A of full rank, in place.

    Parameters
    ----------
    A : Pack
        nm matrices of m x n. They are overwritten by their factors: R and the reflectors of Q as `compactla.geqrf`
        leaves them, of the conjugate transpose where m < n.
    B : Pack
        nm right-hand sides of max(m, n) x r, with A's dtype, vector length and device: as many rows are read as op(A)
        has. On return the first rows, as many as op(A) has columns, hold the solution; in a column, the squares of
        the elements below have the same sum as those of its residual.
    trans : {"N", "T", "C"}
        op(A) is A, its transpose, or its conjugate transpose.
    info : (nm,) ndarray of int64 or pyopencl.array.Array of int32, optional
        Where the result goes, where A lives: contiguous, on a device at the beginning of its buffer.
    threads : int, optional
        Maximum number of CPU threads, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        Events to wait for before starting (devices only), as for `compactla.gemm`.

    Returns
    -------
    (nm,) ndarray of int64 or pyopencl.array.Array of int32
        `info`, or a new NumPy array. For each matrix 0, or k where the k-th element on the diagonal of R is the first
        that is exactly zero: the rank is not full, and the contents of B are undefined. No other matrix is touched. For
        packs on a device this waits until the device is done, unless `info` is given: its ``events`` end with that of
        the solve.

    Raises
    ------
    TypeError, ValueError
        If the packs do not fit together, are read-only or share memory, `trans` is unknown, `info` is no such array, or
        shares memory with one of them, or `threads` or `wait_for` is invalid, see `compactla.gemm`.

    See Also
    --------
    compactla.gelsy : for matrices of any rank.

    Notes
    -----
    LAPACK ``?gels``, with an `info` for each matrix. Matrices whose elements are all tiny, or of which one is huge, are
    multiplied by a power of two first, each by its own; so are right-hand sides.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> a, b = np.tile([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], (100, 1, 1)), np.tile([[1.0], [3.0], [5.0]], (100, 1, 1))
    >>> A, B = cla.pack(a), cla.pack(b)
    >>> int(cla.gels(A, B).max())
    0
    >>> B.unpack()[0, :2].round(12)
    array([[1.],
           [2.]])
    """
    if not type(A) is type(B) is Pack or A.kind != B.kind:
        check_packs(A=A, B=B)
    (trans,) = ROUTINE.chosen(trans)
    m, n = A.m, A.n
    if B.m != (n if m < n else m):
        refuse(A, B)
    if trans == "T" and not A.is_complex:
        trans = "C"
    a, conj = A.view, None
    if m < n:  # op(A) is (A^H)^H, A^H or A^T
        a, conj = a.T, (A.is_complex and trans != "T", False, False)
        trans = "C" if trans == "N" else "N"
    return ROUTINE.returned(A, (a, B.view), (), conj, (trans,), info, threads, wait_for)


def refuse(A, B):
    """Refuse right-hand sides that do not have the rows of solutions and of residuals."""
    raise ValueError(f"B is {B.m} x {B.n}, must have {max(A.m, A.n)} rows: A is {A.m} x {A.n}")


def candidates(size, dtype, lanes) -> Iterator[Choice]:
    r, m, n = size
    if max(size) <= 32 and registers(m * n + n + m, dtype) <= REGISTERS:
        yield from items("gels_item")
    yield from columns_on_grids("gels_grid", m, n + r, dtype, lanes)
    if max(size) <= 32:
        yield from each_column("gels_column", m, n + r, dtype, lanes)


def local(size) -> int:
    r, m, n = size
    return 2 * (m + 5) + n + r


KERNELS = {
    "gels_item": ITEM,
    "gels_grid": grid("grid_geqrf.cl", lambda r, m, n: m, lambda r, m, n: n + r, room_for_reflectors),
    "gels_column": columns("column_geqrf.cl", lambda r, m, n: n + r, local),
}


def madds(r, m, n):
    """Multiply-adds of the factorization, and for each right-hand side those of the reflectors and a solve."""
    m, n = max(m, n), min(m, n)
    return n * n * (m - n / 3) + r * n * (2 * m - n / 2)


ROUTINE = Routine(
    "gels",
    operands=(
        Matrix("A", "mn", written=True),
        Matrix("B", "kr", written=True),
        Matrix("tau", "l1", written=True, output=True, room=True),
    ),
    madds=madds,
    options={"trans": "NTC"},
    compiled=("trans",),
    outputs=("info",),
    implied={"k": lambda m, n, **_: max(m, n), "l": lambda m, n, **_: min(m, n)},
    static=8,
    search=Search("gels", "gels.cl", KERNELS, candidates, squares(3), LARGEST_GRID),
)
