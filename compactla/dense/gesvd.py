"""gesvd: singular value decompositions."""

from collections.abc import Iterator

from compactla.calls.recording import repeats
from compactla.layout import Pack
from compactla.routine import Matrix, Routine, check_packs
from compactla.search import ITEM, REGISTERS, Choice, Search, items, registers
from compactla.types import Array, Events


@repeats("A", "info")
def gesvd(
    A: Pack, compute_uv: bool = True, *, info: Array = None, threads: int | None = None, wait_for: Events = None
) -> tuple[Pack | None, Array, Pack | None, Array]:
    """Singular value decompositions A = U diag(s) Vh, of which U and Vh have min(m, n) columns and rows.

    Parameters
    ----------
    A : Pack
        nm matrices of m x n; on return they hold anything.
    compute_uv : bool
        Whether U and Vh are wanted, or s alone.
    info : (nm,) ndarray of int64 or pyopencl.array.Array of int32, optional
        Where the last result goes, where A lives: contiguous, on a device at the beginning of its buffer.
    threads : int, optional
        Maximum number of CPU threads, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        Events to wait for before starting (devices only), as for `compactla.gemm`.

    Returns
    -------
    U : Pack or None
        Left singular vectors, m x k, where k is min(m, n); None without `compute_uv`.
    s : (nm, k) ndarray or pyopencl.array.Array
        Singular values in descending order, real, where A lives.
    Vh : Pack or None
        The conjugates of right singular vectors as rows, k x n.
    info : (nm,) ndarray of int64 or pyopencl.array.Array of int32
        `info`, or a new NumPy array. For each matrix 0, or the number of sweeps, 40, if these did not suffice, which
        takes a matrix with NaN or infinity in it: its singular values are NaN. No other matrix is touched. For packs on
        a device this waits until the device is done, unless `info` is given: its ``events`` end with that of the
        decomposition.

    Raises
    ------
    TypeError, ValueError
        If A is not a pack, or is read-only, `compute_uv` is not a bool, `info` is no such array, or shares memory with
        A, or `threads` or `wait_for` is invalid, see `compactla.gemm`.

    See Also
    --------
    compactla.syev, compactla.gelsy, compactla.linalg.svd

    Notes
    -----
    QR with column pivoting, then one-sided Jacobi on R. Singular vectors are orthonormal to rounding for matrices of
    any rank. Singular values that are small since columns of A are (rows, if there are more columns) have as many right
    digits as large ones; those below about 1e-25 in single precision and 1e-180 in double, relative to the largest
    element, are zeros. Elements may be subnormal, or as large as there are.

    References
    ----------
    .. [1] Drmac and Veselic, "New fast and accurate Jacobi SVD algorithm", SIAM J. Matrix Anal. Appl. 29 (2008).

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> A = cla.pack(np.array([[[0.0, 2.0], [-3.0, 0.0], [0.0, 0.0]]]))
    >>> U, s, Vh, info = cla.gesvd(A)
    >>> s
    array([[3., 2.]])
    >>> bool(np.allclose((U.unpack() * s[:, None]) @ Vh.unpack(), [[0, 2], [-3, 0], [0, 0]]))
    True
    """
    if type(A) is not Pack:
        check_packs(A=A)
    chosen = ROUTINE.chosen(compute_uv)
    given, conj = A.view, None
    if A.m < A.n:  # A^H = V diag(s) U^H
        given, conj = given.T, (A.is_complex, A.is_complex, False, A.is_complex)
    U, s, Vh, info = ROUTINE.returned(A, (given,), (), conj, chosen, info, threads, wait_for)
    if A.m < A.n:
        U, Vh = Vh.T, U.T
    return (U, s, Vh, info) if compute_uv else (None, s, None, info)


def candidates(size, dtype, lanes) -> Iterator[Choice]:
    m, n = size
    if registers(2 * m * n + n * n, dtype) <= REGISTERS:
        yield from items("gesvd_item")


ROUTINE = Routine(
    "gesvd",
    operands=(
        Matrix("A", "mn", written=True),
        Matrix("U", "mk", written=True, output=True, turned=True),
        Matrix("s", "k1", written=True, output=True, kind="real", flat=True),
        Matrix("Vh", "kn", written=True, output=True),
    ),
    madds=lambda m, n: 2 * max(m, n) * min(m, n) ** 2 + 20 * min(m, n) ** 3,
    options={"compute_uv": (True, False)},
    compiled=("compute_uv",),
    outputs=("info",),
    implied={"k": lambda m, n: min(m, n)},
    static=4,
    search=Search("gesvd", "gesvd.cl", {"gesvd_item": ITEM}, candidates, ((2, 2), (3, 3), (4, 4)), largest=8),
)
