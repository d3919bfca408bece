"""syev: eigenvalues and eigenvectors of symmetric and Hermitian matrices."""

from collections.abc import Iterator

from compactla.calls.recording import repeats
from compactla.layout import Pack
from compactla.routine import Matrix, Routine, check_packs
from compactla.search import ITEM, REGISTERS, Choice, Search, items, registers, squares
from compactla.types import Array, Events


@repeats("A", "info")
def syev(
    A: Pack, uplo: str = "L", jobz: str = "V", *, info: Array = None, threads: int | None = None,
    wait_for: Events = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Eigenvalues and eigenvectors of symmetric or Hermitian matrices, in place.

    Parameters
    ----------
    A : Pack
        nm matrices of n x n. One triangle is read, and the real part of the diagonal; on return the columns are
        eigenvectors of length 1, orthogonal to each other, in the order of the eigenvalues. With `jobz` "N" A holds
        anything on return.
    uplo : {"L", "U"}
        Which triangle.
    jobz : {"V", "N"}
        Whether eigenvectors are computed.
    info : (nm,) ndarray of int64 or pyopencl.array.Array of int32, optional
        Where that result goes, where A lives: contiguous, on a device at the beginning of its buffer.
    threads : int, optional
        Maximum number of CPU threads, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        Events to wait for before starting (devices only), as for `compactla.gemm`.

    Returns
    -------
    w : (nm, n) ndarray or pyopencl.array.Array
        Eigenvalues, ascending, where A lives: real numbers of its precision.
    info : (nm,) ndarray of int64 or pyopencl.array.Array of int32
        `info`, or a new NumPy array. For each matrix 0; or n, where it holds NaN or infinities, or the iteration did
        not converge in 40 sweeps: its eigenvalues and eigenvectors are NaN. No other matrix is touched. For packs on a
        device this waits until the device is done, unless `info` is given: its ``events`` end with that of the
        computation.

    Raises
    ------
    TypeError, ValueError
        If A is not a pack of square matrices, or is read-only, `uplo` or `jobz` is unknown, `info` is no such array, or
        shares memory with A, or `threads` or `wait_for` is invalid, see `compactla.gemm`.

    See Also
    --------
    compactla.gesvd, compactla.linalg.eigh

    Notes
    -----
    LAPACK ``?syev`` and ``?heev``, by Jacobi's method, which finds small eigenvalues of positive definite matrices that
    are graded as precisely as large ones (Demmel and Veselic, 1992). Small matrices are turned from both sides. Larger
    ones, and all that a device has no kernel of their size for, are turned from one side: their Cholesky factors are,
    after a shift where they are not positive definite.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> A = cla.pack(np.array([[[2.0, 0.0], [1.0, 2.0]]]))
    >>> w, info = cla.syev(A)
    >>> w.round(12), info
    (array([[1., 3.]]), array([0]))
    >>> A.unpack()[0].round(3)
    array([[ 0.707,  0.707],
           [-0.707,  0.707]])
    """
    if type(A) is not Pack:
        check_packs(A=A)
    if A.m != A.n:
        raise ValueError(f"A is {A.m} x {A.n}, must be square")
    options = ROUTINE.chosen(uplo, jobz)
    return ROUTINE.returned(A, (A.view,), (), None, options, info, threads, wait_for)


def candidates(size, dtype, lanes) -> Iterator[Choice]:
    (n,) = size
    if n <= 8 and registers(n * (n + 1) // 2 + n * n, dtype) <= REGISTERS:
        yield from items("syev_item")


ROUTINE = Routine(
    "syev",
    operands=(Matrix("A", "nn", written=True), Matrix("w", "n1", written=True, kind="real", output=True, flat=True)),
    madds=lambda n: 9 * n**3,
    options={"uplo": "LU", "jobz": "VN"},
    compiled=("uplo", "jobz"),
    outputs=("info",),
    search=Search("syev", "syev.cl", {"syev_item": ITEM}, candidates, squares(1)),
    static=16,
    paired=range(5),
)
