"""gelsy: least squares of the smallest norm, for matrices of any rank."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from compactla.calls.recording import repeats
from compactla.dense.gels import madds, refuse
from compactla.layout import Pack
from compactla.routine import Matrix, Routine, check_packs
from compactla.scalars import scalar
from compactla.search import LANES, WARP, Choice, Kernel, Search, squares, strips
from compactla.types import Array, Events


@repeats("A", "B", "info")
def gelsy(
    A: Pack, B: Pack, rcond: Any = None, *, rank: Array = None, threads: int | None = None, wait_for: Events = None
) -> Array:
    """Least squares of the smallest norm, min ||B - A X||, for A of any rank, in place.

    Parameters
    ----------
    A : Pack
        nm matrices of m x n, of any rank, each of its own. What they hold afterwards is not said.
    B : Pack
        nm right-hand sides of max(m, n) x r, with A's dtype, vector length and device, of which the first m rows are
        read. On return the first n rows hold the solution. Where the rank is n, the squares of the elements
        below in a column have the same sum as those of its residual.
    rcond : number, optional
        Pivots that are smaller than this times the largest of their matrix count as zero; default: max(m, n) times the
        distance of 1 to the next larger number of this precision.
    rank : (nm,) ndarray of int64 or pyopencl.array.Array of int32, optional
        Where the result goes, where A lives: contiguous, on a device at the beginning of its buffer.
    threads : int, optional
        Maximum number of CPU threads, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        Events to wait for before starting (devices only), as for `compactla.gemm`.

    Returns
    -------
    (nm,) ndarray of int64 or pyopencl.array.Array of int32
        `rank`, or a new NumPy array: for each matrix how many of its pivots, the diagonal of R of `compactla.geqp3`,
        count before the first that does not. For packs on a device this waits until the device is done, unless `rank`
        is given: its ``events`` end with that of the solve.

    Raises
    ------
    TypeError, ValueError
        If the packs do not fit together, are read-only or share memory, `rcond` is not a number from 0 on, `rank` is no
        such array, or shares memory with one of them, or `threads` or `wait_for` is invalid, see `compactla.gemm`.

    See Also
    --------
    compactla.gels : for matrices of full rank, which takes less time.

    Notes
    -----
    LAPACK ``?gelsy``, with a rank for each matrix, which goes by pivots and not by estimates of condition numbers; and
    with none of its columns staying in front. The complete orthogonal factorization, A P = Q [T 0; 0 0] Z, is what
    KokkosKernels calls UTV. Matrices whose elements are all tiny, or of which one is huge, are multiplied by a power of
    two first, each by its own; so are right-hand sides.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> a, b = np.array([np.ones((2, 2)), np.eye(2)]), np.full((2, 2, 1), 3.0)
    >>> A, B = cla.pack(a), cla.pack(b)
    >>> cla.gelsy(A, B)
    array([1, 2])
    >>> B.unpack()[:, :, 0].round(12)
    array([[1.5, 1.5],
           [3. , 3. ]])
    """
    if not type(A) is type(B) is Pack or A.kind != B.kind:
        check_packs(A=A, B=B)
    m, n = A.m, A.n
    longer = n if m < n else m
    if B.m != longer:
        refuse(A, B)
    if rcond is None:
        rcond = longer * float(np.finfo(A.dtype).eps)
    number = scalar("rcond", rcond, A)
    if number.imag or not number.real >= 0:
        raise ValueError(f"rcond is {rcond!r}, must be a real number from 0 on")
    return ROUTINE.returned(A, (A.view, B.view), (number,), None, (), rank, threads, wait_for)


def candidates(size, dtype, lanes) -> Iterator[Choice]:
    r, m, n = size
    if m >= n:
        yield from strips("gelsy_strips", m, n + r, dtype, lanes)
    yield {}  # the kernel for all sizes


def local(choice, size):
    """Elements in local memory of a work-group."""
    r, m, n = size
    Q = choice["Q"]
    lines = 2 * (m + max(m, -(-(n + r) // Q) * Q)) + WARP
    return choice["LANES"] * (lines + n * max(n, Q) + 5 * n + 2 * Q) + 2


KERNELS = {
    "gelsy_strips": Kernel(
        {"LANES": LANES, "P": range(1, 2), "Q": range(2, 33)},
        group=lambda choice, size: choice["LANES"] * choice["Q"],
        local=local,
        whole=lambda choice, size: size[1] >= size[2] and choice["Q"].bit_count() == 1,
        file="strip_geqp3.cl",
        warps=True,
    )
}


ROUTINE = Routine(
    "gelsy",
    operands=(
        Matrix("A", "mn", written=True),
        Matrix("B", "kr", written=True),
        Matrix("jpvt", "n1", written=True, kind="integer", output=True, room=True),
        Matrix("tau", "l1", written=True, output=True, room=True),
    ),
    madds=madds,  # of the full rank
    scalars={"rcond": 0},
    outputs=("rank",),
    implied={"k": lambda m, n, **_: max(m, n), "l": lambda m, n, **_: min(m, n)},
    static=8,
    search=Search("gelsy", "gelsy.cl", KERNELS, candidates, squares(3)),
)
