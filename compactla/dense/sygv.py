"""sygv: eigenvalues and eigenvectors of pairs of symmetric or Hermitian matrices."""

from compactla.calls.recording import repeats
from compactla.layout import Pack
from compactla.routine import Matrix, Routine, check_packs
from compactla.search import Search, squares
from compactla.types import Array, Events


@repeats("A", "B", "info")
def sygv(
    A: Pack, B: Pack, uplo: str = "L", jobz: str = "V", *, info: Array = None, threads: int | None = None,
    wait_for: Events = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Eigenvalues and eigenvectors of A v = w B v, with symmetric or Hermitian matrices, B positive definite, in place.

    Parameters
    ----------
    A : Pack
        nm matrices of n x n. One triangle is read, and the real part of the diagonal; on return the columns of V are
        eigenvectors with V^H B V = I, in the order of the eigenvalues. With `jobz` "N" A holds anything on return.
    B : Pack
        nm positive definite matrices of n x n, with A's dtype, vector length and device, of which the same triangle is
        read; on return it holds the Cholesky factor, as `compactla.potrf` leaves it. The other one is not touched.
    uplo : {"L", "U"}
        Which triangle of both.
    jobz : {"V", "N"}
        Whether eigenvectors are computed.
    info : (nm,) ndarray of int64 or pyopencl.array.Array of int32, optional
        Where that result goes, where the packs live: contiguous, on a device at the beginning of its buffer.
    threads : int, optional
        Maximum number of CPU threads, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        Events to wait for before starting (devices only), as for `compactla.gemm`.

    Returns
    -------
    w : (nm, n) ndarray or pyopencl.array.Array
        Eigenvalues, ascending, where A lives: real numbers of its precision.
    info : (nm,) ndarray of int64 or pyopencl.array.Array of int32
        `info`, or a new NumPy array. For each matrix 0; or n + k where the leading minor of order k of B is the first
        that is not positive, or NaN; or n, where A holds NaN, or A or B infinities, or the iteration did not converge.
        Its eigenvalues and eigenvectors are NaN. No other matrix is touched. For packs on a device this waits until the
        device is done, unless `info` is given: its ``events`` end with that of the computation.

    Raises
    ------
    TypeError, ValueError
        If the packs do not fit together, are not square, are read-only or share memory, `uplo` or `jobz` is unknown,
        `info` is no such array, or shares memory with a pack, or `threads` or `wait_for` is invalid, see
        `compactla.gemm`.

    See Also
    --------
    compactla.syev, compactla.potrf, compactla.linalg.eigh

    Notes
    -----
    LAPACK ``?sygv`` and ``?hegv`` with ``itype`` 1: B = L L^H, and the eigenvalues of L^-1 A L^-H as `compactla.syev`
    finds them. Errors grow with the condition of B.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> A, B = cla.pack(np.array([[[2.0, 0.0], [1.0, 2.0]]])), cla.pack(np.array([[[1.0, 0.0], [0.0, 4.0]]]))
    >>> w, info = cla.sygv(A, B)
    >>> w.round(3), info
    (array([[0.349, 2.151]]), array([0]))
    >>> B.unpack()[0]
    array([[1., 0.],
           [0., 2.]])
    """
    if not type(A) is type(B) is Pack or A.kind != B.kind:
        check_packs(B=B, A=A)
    if A.m != A.n:
        raise ValueError(f"A is {A.m} x {A.n}, must be square")
    if (B.m, B.n) != (A.m, A.m):
        raise ValueError(f"B is {B.m} x {B.n}, must be {A.m} x {A.m} as A")
    options = ROUTINE.chosen(uplo, jobz)
    return ROUTINE.returned(A, (A.view, B.view), (), None, options, info, threads, wait_for)


ROUTINE = Routine(
    "sygv",
    operands=(
        Matrix("A", "nn", written=True),
        Matrix("B", "nn", written=True, half=True),
        Matrix("w", "n1", written=True, kind="real", output=True, flat=True),
    ),
    madds=lambda n: 11 * n**3,
    options={"uplo": "LU", "jobz": "VN"},
    compiled=("uplo", "jobz"),
    outputs=("info",),
    search=Search("sygv", "sygv.cl", {}, lambda size, dtype, lanes: iter(()), squares(1)),
    static=16,
    paired=range(5),
)
