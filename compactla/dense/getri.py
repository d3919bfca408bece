"""getri: inverses, with the factors of getrf."""

from typing import Any

from compactla.calls.recording import repeats
from compactla.dense import getrinp
from compactla.integers import Integers
from compactla.layout import Pack
from compactla.routine import Matrix, Routine, check_packs
from compactla.search import (
    ITEM,
    LANES,
    LARGEST_GRID,
    REGISTERS,
    SECTOR,
    WARP,
    Kernel,
    Search,
    grid,
    grids,
    registers,
    squares,
    team,
)
from compactla.types import Array, Events


@repeats("A", "info")
def getri(A: Pack, ipiv: Any, *, info: Array = None, threads: int | None = None, wait_for: Events = None) -> Array:
    """Inverses A <- inv(A) with the factors and the swaps that `compactla.getrf` leaves, in place.

    Parameters
    ----------
    A : Pack
        nm matrices of n x n: U on and above the diagonal, and L, with a unit diagonal, below. On return it holds the
        inverses of the matrices that were factored.
    ipiv : Integers, or (nm, n) array_like of int
        Pivots from `compactla.getrf`, or integers from 0 to n - 1: row i was swapped with row ipiv[i].
    info : (nm,) ndarray of int64 or pyopencl.array.Array of int32, optional
        Where the result goes, where A lives: contiguous, on a device at the beginning of its buffer.
    threads : int, optional
        Maximum number of CPU threads, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        Events to wait for before starting (devices only), as for `compactla.gemm`.

    Returns
    -------
    (nm,) ndarray of int64 or pyopencl.array.Array of int32
        `info`, or a new NumPy array. For each matrix 0, or 1 + the index of the first exact zero on the diagonal of U:
        it has no inverse, and its contents are undefined. No other matrix is touched. For packs on a
        device this waits until the device is done, unless `info` is given: its ``events`` end with that of the
        inversion.

    Raises
    ------
    TypeError, ValueError
        If A is not a pack of square matrices, or is read-only, `ipiv` is no such array or has entries that are no rows,
        `info` is no such array, or shares memory with A, or `threads` or `wait_for` is invalid, see `compactla.gemm`.

    See Also
    --------
    compactla.getrf, compactla.getrinp, compactla.linalg.inv

    Notes
    -----
    LAPACK ``?getri``. Reciprocals of the diagonal overflow where it is subnormal: matrices of so small entries have to
    be scaled first.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> A = cla.pack(np.array([[[1.0, 1.0], [2.0, 1.0]]]))
    >>> ipiv, info = cla.getrf(A)
    >>> cla.getri(A, ipiv)
    array([0])
    >>> A.unpack()
    array([[[-1.,  1.],
            [ 2., -1.]]])
    """
    if type(A) is not Pack:
        check_packs(A=A)
    if A.m != A.n:
        raise ValueError(f"A is {A.m} x {A.n}, must be square")
    swaps = Integers.given(ipiv, A, A.n, "ipiv")
    return ROUTINE.run((A.view, swaps.view), (), None, (), A.nm, info, threads, wait_for)


def candidates(size, dtype, lanes):
    for choice in getrinp.candidates(size, dtype, lanes):
        yield choice | {"kernel": choice["kernel"].replace("getrinp", "getri")}
    yield from grids("getri_grid", 2 * size[0], size[0], dtype, lanes)
    yield from on_columns("getri_rows", size[0], dtype, lanes)


def on_columns(kernel, n, dtype, lanes):
    """Choices of a kernel on packs with factors in local memory and columns of inverses in registers."""
    real = dtype.itemsize // (2 if dtype.kind == "c" else 1)
    for each in (3, 2, 1) if n <= WARP and lanes[0] > 1 else ():
        P = 2 * -(-n // (2 * each))  # neighbours read the same, two by two
        for some in sorted(some for some in lanes if some * real >= SECTOR):
            if WARP <= some * P <= 8 * WARP and registers(each * n, dtype) <= REGISTERS:
                yield {"kernel": kernel, "LANES": some, "P": P, "COLUMNS": each}


KERNELS = {
    "getri_item": ITEM,
    "getri_team": team({}, lambda choice, size: size[0] * (size[0] + 1) * choice["LANES"]),
    "getri_rows": Kernel(
        {"LANES": LANES, "P": range(1, WARP + 1), "COLUMNS": range(1, 4)},
        group=lambda choice, size: choice["LANES"] * choice["P"],
        local=lambda choice, size: choice["LANES"] * (size[0] * (size[0] + 6) + 4),
        file="rows_getri.cl",
    ),
    "getri_grid": grid("grid_getrs.cl", lambda n: 2 * n, lambda n: n, lambda m, n, choice: n + 1),
}

ROUTINE = Routine(
    "getri",
    operands=(Matrix("A", "nn", written=True), Matrix("ipiv", "n1", kind="integer")),
    madds=lambda n: 2 / 3 * n**3,
    outputs=("info",),
    search=Search("getri", "getri.cl", KERNELS, candidates, squares(1), LARGEST_GRID),
)
