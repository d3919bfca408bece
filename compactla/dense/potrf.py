"""potrf: Cholesky factorizations."""

import math
from collections.abc import Iterator

from compactla.calls.recording import repeats
from compactla.layout import Pack
from compactla.routine import Matrix, Routine, check_packs
from compactla.search import ITEM, LARGEST_GRID, REGISTERS, Choice, Search, grid, grids, items, registers, squares, team
from compactla.types import Array, Events


@repeats("A", "info")
def potrf(
    A: Pack, uplo: str = "L", *, info: Array = None, threads: int | None = None, wait_for: Events = None
) -> Array:
    """Cholesky factorizations of symmetric or Hermitian positive definite matrices, in place.

    Parameters
    ----------
    A : Pack
        nm matrices of n x n. One triangle is read, and the real part of the diagonal; on return it holds L of
        A = L L^H, or U of A = U^H U. The other triangle is not touched.
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
        not positive, or NaN: that matrix is not factored, and the contents of its triangle are undefined. No other
        matrix is touched. For packs on a device this waits until the device is done, unless `info` is given: its
        ``events`` end with that of the factorization.

    Raises
    ------
    TypeError, ValueError
        If A is not a pack of square matrices, or is read-only, `uplo` is unknown, `info` is no such array, or shares
        memory with A, or `threads` or `wait_for` is invalid, see `compactla.gemm`.

    See Also
    --------
    compactla.potrs, compactla.posv, compactla.linalg.cholesky

    Notes
    -----
    LAPACK ``?potrf``, Intel MKL ``mkl_?potrf_compact``, with an `info` for each matrix.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> A = cla.pack(np.array([[[4.0, 0.0], [2.0, 2.0]], [[1.0, 0.0], [2.0, 1.0]]]))
    >>> cla.potrf(A)
    array([0, 2])
    >>> A.unpack()[0]
    array([[2., 0.],
           [1., 1.]])
    """
    if type(A) is not Pack:
        check_packs(A=A)
    if A.m != A.n:
        raise ValueError(f"A is {A.m} x {A.n}, must be square")
    a, conj = A.view, None
    if ROUTINE.chosen(uplo) == ("U",):  # U^H = L
        a, conj = a.T, (A.is_complex,)
    return ROUTINE.run((a,), (), conj, (), A.nm, info, threads, wait_for)


def candidates(size, dtype, lanes) -> Iterator[Choice]:
    (n,) = size
    if registers(n * (n + 1) // 2, dtype) <= 280:  # of which some may be spilled
        yield from items("potrf_item")
    for columns in sorted({c for c in (2, 3, 4, 1) if c <= n}, key=lambda c: -(-n // c) * c - n):
        if n <= 32 and registers(columns * n, dtype) <= REGISTERS:
            count = -(-n // columns)
            for panel in (1, 0) if columns > 1 else (0,):
                for some in sorted(lanes, key=lambda some: abs(math.log(some * count / 160))):
                    if 64 <= some * count <= 512:
                        yield {"kernel": "potrf_team", "LANES": some, "COLUMNS": columns, "TEAM": count,
                               "PANEL": panel}  # fmt: skip
    yield from grids("potrf_grid", n, n, dtype, lanes)


def local(choice, size) -> int:
    columns = choice["COLUMNS"] if choice["PANEL"] else 1  # that go through local memory together
    return (2 * columns * size[0] + 1) * choice["LANES"]


KERNELS = {
    "potrf_item": ITEM,
    "potrf_team": team({"PANEL": range(2)}, local),
    "potrf_grid": grid("grid_potrf.cl", lambda n: n, lambda n: n),
}

ROUTINE = Routine(
    "potrf",
    operands=(Matrix("A", "nn", written=True, half=True),),
    madds=lambda n: n**3 / 6,
    options={"uplo": "LU"},
    outputs=("info",),
    paired=range(8, 13),
    search=Search("potrf", "potrf.cl", KERNELS, candidates, squares(1), LARGEST_GRID),
)
