"""sysv: solves with symmetric matrices that may be indefinite."""

from compactla.calls.recording import repeats
from compactla.layout import Pack
from compactla.routine import Matrix, Routine, check_packs
from compactla.search import Search, squares
from compactla.types import Array, Events


@repeats("A", "B", "info")
def sysv(
    A: Pack, B: Pack, uplo: str = "L", *, info: Array = None, threads: int | None = None, wait_for: Events = None
) -> Array:
    """Solves B <- inv(A) B with symmetric matrices that may be indefinite, which are factored, in place.

    Parameters
    ----------
    A : Pack
        nm matrices of n x n. One triangle is read; on return it holds what
        `compactla.sytrf` leaves. The other triangle is not touched.
    B : Pack
        nm right-hand sides of n x r, with A's dtype, vector length and device; on return the solutions.
    uplo : {"L", "U"}
        Which triangle.
    info : (nm,) ndarray of int64 or pyopencl.array.Array of int32, optional
        Where the result goes, where the packs live: contiguous, on a device at the beginning of its buffer.
    threads : int, optional
        Maximum number of CPU threads, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        Events to wait for before starting (devices only), as for `compactla.gemm`.

    Returns
    -------
    (nm,) ndarray of int64 or pyopencl.array.Array of int32
        `info`, or a new NumPy array. For each matrix 0, or 1 + the index of the first block of D that is exactly zero,
        or NaN, as of `compactla.sytrf`: there is no solution, and the contents of B are undefined. No other system is
        touched. For packs on a device this waits until the device is done, unless `info` is given: its ``events`` end
        with that of the solves.

    Raises
    ------
    TypeError, ValueError
        If the packs do not fit together, one is read-only or shares memory with the other, `uplo` is unknown, `info`
        is no such array, or shares memory with a pack, or `threads` or `wait_for` is invalid, see `compactla.gemm`.

    See Also
    --------
    compactla.sytrf, compactla.sytrs, compactla.gesv, compactla.posv, compactla.linalg.solve

    Notes
    -----
    LAPACK ``?sysv``, in one kernel; which rows were swapped is not returned. Complex matrices are symmetric too, not
    Hermitian as those of `compactla.hesv`.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> a = np.array([[[0.0, 2.0], [2.0, 1.0]], [[4.0, 2.0], [2.0, 1.0]]])
    >>> X = cla.pack(np.ones((2, 2, 1)))
    >>> cla.sysv(cla.pack(a), X)
    array([0, 2])
    >>> X.unpack()[0]
    array([[0.25],
           [0.5 ]])
    """
    return solve(ROUTINE, A, B, uplo, info, threads, wait_for)


def row(name) -> Routine:
    """The row of sysv, or of hesv."""
    return Routine(
        name,
        operands=(
            Matrix("A", "nn", written=True, half=True),
            Matrix("B", "nr", written=True),
            Matrix("ipiv", "n1", written=True, kind="integer", output=True, room=True),
        ),
        madds=lambda n, r: n**3 / 6 + n * n * r,
        options={"uplo": "LU"},
        compiled=("uplo",),
        outputs=("info",),
        search=Search(name, f"{name}.cl", {}, lambda size, dtype, lanes: iter(()), squares(2)),
    )


def solve(routine: Routine, A: Pack, B: Pack, uplo: str, info: Array, threads: int | None, wait_for: Events) -> Array:
    """The solutions of `routine`, with its checks."""
    if not type(A) is type(B) is Pack or A.kind != B.kind:
        check_packs(A=A, B=B)
    if (A.m, A.n) != (B.m, B.m):
        raise ValueError(f"A is {A.m} x {A.n}, must be {B.m} x {B.m}: B is {B.m} x {B.n}")
    options = routine.chosen(uplo)
    return routine.returned(A, (A.view, B.view), (), None, options, info, threads, wait_for)


ROUTINE = row("sysv")
