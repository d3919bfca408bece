"""posv: solves with symmetric or Hermitian positive definite matrices."""

from collections.abc import Iterator

from compactla.calls.recording import repeats
from compactla.dense import potrs
from compactla.layout import Pack
from compactla.routine import Matrix, Routine, check_packs
from compactla.search import (
    AND_COLUMNS,
    ITEM,
    LARGEST_GRID,
    Choice,
    Search,
    grid,
    on_rows_and_columns,
    rows,
    squares,
    team,
)
from compactla.types import Array, Events


@repeats("A", "B", "info")
def posv(
    A: Pack, B: Pack, uplo: str = "L", *, info: Array = None, threads: int | None = None, wait_for: Events = None
) -> Array:
    """Solves B <- inv(A) B with symmetric or Hermitian positive definite matrices, which are factored, in place.

    Parameters
    ----------
    A : Pack
        nm matrices of n x n. One triangle is read, and the real part of the diagonal; on return it holds L of
        A = L L^H, or U of A = U^H U, for `compactla.potrs`. The other triangle is not touched.
    B : Pack
        nm right-hand sides of n x r, with A's dtype, vector length and device; on return the solutions.
    uplo : {"L", "U"}
        Which triangle, and which of the two.
    info : (nm,) ndarray of int64 or pyopencl.array.Array of int32, optional
        Where the result goes, where A lives: contiguous, on a device at the beginning of its buffer.
    threads : int, optional
        Maximum number of CPU threads, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        Events to wait for before starting (devices only), as for `compactla.gemm`.

    Returns
    -------
    (nm,) ndarray of int64 or pyopencl.array.Array of int32
        `info`, or a new NumPy array. For each matrix 0, or k where the leading minor of order k is the first that is
        not positive, or NaN: the contents of its triangle and right-hand sides are undefined. No other matrix is
        touched. For packs on a device this waits until the device is done, unless `info` is given: its ``events`` end
        with that of the solve.

    Raises
    ------
    TypeError, ValueError
        If the packs do not fit together, one is read-only or shares memory with the other, `uplo` is unknown, `info`
        is no such array, or shares memory with a pack, or `threads` or `wait_for` is invalid, see `compactla.gemm`.

    See Also
    --------
    compactla.potrf, compactla.potrs, compactla.gesv

    Notes
    -----
    LAPACK ``?posv``, with an `info` for each matrix.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> a = np.array([[[4.0, 2.0], [2.0, 2.0]], [[1.0, 2.0], [2.0, 1.0]]])
    >>> X = cla.pack(np.ones((2, 2, 1)))
    >>> cla.posv(cla.pack(a), X)
    array([0, 2])
    >>> X.unpack()[0]
    array([[0. ],
           [0.5]])
    """
    if not type(A) is type(B) is Pack or A.kind != B.kind:
        check_packs(A=A, B=B)
    if (A.m, A.n) != (B.m, B.m):
        raise ValueError(f"A is {A.m} x {A.n}, must be {B.m} x {B.m}: B is {B.m} x {B.n}")
    a, conj = A.view, None
    if ROUTINE.chosen(uplo) == ("U",):  # U^H = L
        a, conj = a.T, (A.is_complex, False)
    return ROUTINE.run((a, B.view), (), conj, (), A.nm, info, threads, wait_for)


def candidates(size, dtype, lanes) -> Iterator[Choice]:
    """The candidates of potrs, whose kernels hold the same numbers."""
    for choice in potrs.candidates(size, dtype, lanes):
        yield {**choice, "kernel": choice["kernel"].replace("potrs", "posv")}
    yield from on_rows_and_columns("posv_rows", size[0], dtype, lanes)


KERNELS = {
    "posv_item": ITEM,
    "posv_team": team({}, lambda choice, size: (size[0] * (size[0] + 3) // 2 + 1) * choice["LANES"]),
    "posv_rows": rows("rows_posv.cl", lambda n, r: n, **AND_COLUMNS),
    "posv_grid": grid("grid_potrf.cl", lambda n, r: n + r, lambda n, r: n),
}

ROUTINE = Routine(
    "posv",
    operands=(Matrix("A", "nn", written=True, half=True), Matrix("B", "nr", written=True)),
    madds=lambda n, r: n**3 / 6 + n * n * r,
    options={"uplo": "LU"},
    outputs=("info",),
    search=Search("posv", "posv.cl", KERNELS, candidates, squares(2), LARGEST_GRID),
)
