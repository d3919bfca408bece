"""getrf: LU factorizations with row interchanges."""

import math
from collections.abc import Iterator

from compactla.calls.recording import repeats
from compactla.integers import Integers
from compactla.layout import Pack
from compactla.routine import Matrix, Routine, check_packs
from compactla.scalars import scalar
from compactla.search import (
    ITEM,
    LANES,
    LARGEST_GRID,
    OF_A_MEMBER,
    TEAM,
    WARP,
    Choice,
    Kernel,
    Search,
    columns,
    each_column,
    grid,
    grids,
    items,
    on_rows,
    registers,
    rows,
    squares,
)  # fmt: skip
from compactla.types import Array, Events


@repeats("A", "info")
def getrf(
    A: Pack, *, threshold: float = 1, info: Array = None, threads: int | None = None, wait_for: Events = None
) -> tuple[Integers, Array]:
    """LU factorizations with partial pivoting, P A = L U, in place.

    Parameters
    ----------
    A : Pack
        nm matrices of m x n; on return U is on and above the diagonal, and L, with a unit diagonal, below.
    threshold : float
        From 0 to 1: a row stays where it is if its element is at least so many times the largest that it could be
        swapped for, by ``|re| + |im|``. 1 is partial pivoting, 0 none at all; between, elements of L are at most
        1 / threshold, and fewer rows move.
    info : (nm,) ndarray of int64 or pyopencl.array.Array of int32, optional
        Where the result goes, where A lives: contiguous, on a device at the beginning of its buffer.
    threads : int, optional
        Maximum number of CPU threads, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        Events to wait for before starting (devices only), as for `compactla.gemm`.

    Returns
    -------
    ipiv : Integers
        Where A lives; ``np.asarray(ipiv)`` is (nm, min(m, n)), as of `scipy.linalg.lu_factor`: row i was swapped with
        row ipiv[i], which counts from 0.
    info : (nm,) ndarray of int64 or pyopencl.array.Array of int32
        `info`, or a new NumPy array. For each matrix 0, or 1 + the index of its first pivot that is exactly zero. The
        factorization goes on without scaling that column, as LAPACK's does; no other matrix is touched. For packs on a
        device this waits until the device is done, unless `info` is given: its ``events`` end with that of the
        factorization.

    Raises
    ------
    TypeError, ValueError
        If A is not a pack, or is read-only, `threshold` is no number from 0 to 1, `info` is no such array, or shares
        memory with A, or `threads` or `wait_for` is invalid, see `compactla.gemm`.

    See Also
    --------
    compactla.getrs, compactla.getri, compactla.gesv, compactla.getrfnp, compactla.linalg.lu_factor

    Notes
    -----
    LAPACK ``?getrf``; with `threshold` Arm's ``armpl_dgetrftp_interleave_batch``. Columns are scaled by the reciprocal
    of their pivot, which overflows for subnormal pivots: matrices of so small entries have to be scaled first.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> A = cla.pack(np.array([[[1.0, 1.0], [2.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]]))
    >>> ipiv, info = cla.getrf(A)
    >>> np.asarray(ipiv), info
    (array([[1, 1],
           [0, 1]]), array([0, 1]))
    >>> A.unpack()[0]
    array([[2. , 1. ],
           [0.5, 0.5]])
    """
    if type(A) is not Pack:
        check_packs(A=A)
    if type(threshold) is not int or threshold != 1:
        threshold = scalar("threshold", threshold, A)
        if not (threshold.imag == 0 and 0 <= threshold.real <= 1):
            raise ValueError(f"threshold is {threshold}, must be from 0 to 1")
    return ROUTINE.returned(A, (A.view,), (threshold,), None, (), info, threads, wait_for)


OF_LU = 72  # elements that a member of a grid has, at most


def candidates(size, dtype, lanes) -> Iterator[Choice]:
    m, n = size
    if registers(m * n, dtype) <= 200:
        yield from items("getrf_item")
    yield from teams_and_grids("getrf", m, n, dtype, lanes)
    yield from each_column("getrf_column", m, n, dtype, lanes)
    yield from on_rows("getrf_rows", m, n, dtype, lanes)


def teams_and_grids(name, m, n, dtype, lanes) -> Iterator[Choice]:
    """Choices of the kernels of a routine with teams, for what a team holds."""
    if lanes == [1]:
        yield from rows_on_grids(f"{name}_grid", m, n, dtype)
    elif m <= 32:
        if m * n >= 256:  # local memory is the limit
            for choice in grids(f"{name}_grid", m, n, dtype, lanes, OF_LU):
                yield choice | {"STAGED": 0}
        yield from teams(f"{name}_team", n, lanes)


def teams(kernel, columns, lanes) -> Iterator[Choice]:
    """Choices of a kernel with teams that share out the columns of a matrix in local memory."""
    for team in sorted({-(-columns // each) for each in (1, 2, 3, 4)}, key=lambda team: abs(math.log(team / 12))):
        for some in sorted(lanes, key=lambda some: abs(math.log(some * team / 160))):
            if 64 <= some * team <= 512:
                yield {"kernel": kernel, "LANES": some, "TEAM": team}


def in_local(elements) -> Kernel:
    """A kernel whose work-groups have LANES matrices in local memory, TEAM work-items for each."""
    return Kernel(
        {"LANES": LANES, "TEAM": TEAM},
        group=lambda choice, size: choice["LANES"] * choice["TEAM"],
        local=lambda choice, size: elements(*size) * choice["LANES"],
    )


def room(m, n, choice):
    """Elements in local memory of a team: two rows of each warp, pivots, and what is on its way out."""
    P, Q = choice["P"], choice["Q"]
    out = m * (n + 1) * choice["STAGED"] if choice["LANES"] == 1 else (m + P) * Q
    return 2 * max(P * Q // WARP, 1) * (n + 5 * Q) + 2 * min(m, n) + out


def rows_on_grids(kernel, m, n, dtype) -> Iterator[Choice]:
    """Choices of a kernel whose teams hold ordinary matrices, each member elements of one row."""
    P = max(8, 1 << (m - 1).bit_length())
    Q = next(2**k for k in range(10) if -(-min(m, n) // 2**k) <= 32)  # so many blocks of steps
    while P * Q <= 1024:
        if WARP <= P * Q and registers(-(-n // Q), dtype) <= OF_A_MEMBER and P >= Q:
            choice = {"kernel": kernel, "LANES": 1, "P": P, "Q": Q}
            yield choice | {"STAGED": 1}
            yield choice | {"STAGED": 0}
        Q *= 2


KERNELS = {
    "getrf_item": ITEM,
    "getrf_team": in_local(lambda m, n: (m + 1) * n),
    "getrf_column": columns(
        "column_getrf.cl", lambda m, n: n, lambda size: 2 * (size[0] + 4) + size[0] + min(size), tiled=True
    ),
    "getrf_rows": rows("rows_getrf.cl", lambda m, n: n),
    "getrf_grid": grid("grid_getrf.cl", lambda m, n: m, lambda m, n: n, room, STAGED=range(2)),
}

ROUTINE = Routine(
    "getrf",
    operands=(Matrix("A", "mn", written=True), Matrix("ipiv", "k1", written=True, kind="integer", output=True)),
    madds=lambda m, n: m * n * min(m, n) / 2 - min(m, n) ** 3 / 6,
    scalars={"threshold": 1},
    fixed=frozenset({(1,)}),
    outputs=("info",),
    implied={"k": lambda m, n: min(m, n)},
    search=Search("getrf", "getrf.cl", KERNELS, candidates, squares(2), LARGEST_GRID),
)
