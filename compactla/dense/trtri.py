"""trtri: inverses of triangular matrices."""

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
    grid,
    grids,
    items,
    registers,
    squares,
    team,
    teams,
)
from compactla.types import Array, Events


@repeats("A", "info")
def trtri(
    A: Pack, uplo: str = "L", diag: str = "N", *, info: Array = None, threads: int | None = None,
    wait_for: Events = None,
) -> Array:  # fmt: skip
    """Inverses of triangular matrices, A <- inv(A), in place.

    Parameters
    ----------
    A : Pack
        nm triangular matrices of n x n. The other triangle is neither read nor written.
    uplo : {"L", "U"}
        Whether A is lower or upper triangular.
    diag : {"N", "U"}
        "U": the diagonal is taken as ones, and neither read nor written.
    info : (nm,) ndarray of int64 or pyopencl.array.Array of int32, optional
        Where the result goes, where A lives: contiguous, on a device at the beginning of its buffer.
    threads : int, optional
        Maximum number of CPU threads, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        Events to wait for before starting (devices only), as for `compactla.gemm`.

    Returns
    -------
    (nm,) ndarray of int64 or pyopencl.array.Array of int32
        `info`, or a new NumPy array. For each matrix 0, or 1 + the index of the first exact zero on its diagonal: it
        has no inverse, and the contents of its triangle are undefined. No other matrix is touched. For packs on a
        device this waits until the device is done, unless `info` is given: its ``events`` end with that of the
        inversion.

    Raises
    ------
    TypeError, ValueError
        If A is not a pack of square matrices, or is read-only, an option is unknown, `info` is no such array, or shares
        memory with A, or `threads` or `wait_for` is invalid, see `compactla.gemm`.

    See Also
    --------
    compactla.trsm, compactla.trmm, compactla.getri, compactla.potrf

    Notes
    -----
    LAPACK ``?trtri``. Reciprocals of the diagonal overflow where it is subnormal: matrices of so small entries have to
    be scaled first.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> A = cla.pack(np.array([[[2.0, 0.0], [1.0, 1.0]], [[2.0, 0.0], [1.0, 0.0]]]))
    >>> cla.trtri(A)
    array([0, 2])
    >>> A.unpack()[0]
    array([[ 0.5,  0. ],
           [-0.5,  1. ]])
    """
    if type(A) is not Pack:
        check_packs(A=A)
    if A.m != A.n:
        raise ValueError(f"A is {A.m} x {A.n}, must be square")
    uplo, diag = ROUTINE.chosen(uplo, diag)
    a = A.view if uplo == "L" else A.view.T
    return ROUTINE.run((a,), (), None, (diag,), A.nm, info, threads, wait_for)


def candidates(size, dtype, lanes) -> Iterator[Choice]:
    (n,) = size
    if registers(n * (n + 1) // 2, dtype) <= REGISTERS:
        yield from items("trtri_item")
    if n <= 32:
        yield from teams("trtri_team", n, n, dtype, lanes)
    yield from grids("trtri_grid", 2 * n, n, dtype, lanes)


KERNELS = {
    "trtri_item": ITEM,
    "trtri_team": team({}, lambda choice, size: size[0] * (size[0] + 1) // 2 * choice["LANES"]),
    "trtri_grid": grid("grid_trsm.cl", lambda n: 2 * n, lambda n: n, lambda m, n, choice: 1),
}

ROUTINE = Routine(
    "trtri",
    operands=(Matrix("A", "nn", written=True, half=True),),
    madds=lambda n: n**3 / 6,
    options={"uplo": "LU", "diag": "NU"},
    compiled=("diag",),
    outputs=("info",),
    search=Search("trtri", "trtri.cl", KERNELS, candidates, squares(1), LARGEST_GRID),
)
