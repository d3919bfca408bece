"""geev: eigenvalues and right eigenvectors of general matrices."""

from compactla.layout import Pack
from compactla.routine import Matrix, Routine, check_packs
from compactla.search import Search, squares
from compactla.types import Array, Events


def geev(
    A: Pack, compute_v: bool = True, *, info: Array = None, threads: int | None = None, wait_for: Events = None
) -> tuple[Array, Pack | None, Array]:
    """Eigenvalues and right eigenvectors A V = V diag(w) of general matrices.

    Parameters
    ----------
    A : Pack
        nm matrices of n x n; on return they hold anything.
    compute_v : bool
        Whether V is wanted, or w alone.
    info : (nm,) ndarray of int64 or pyopencl.array.Array of int32, optional
        Where the last result goes, where A lives: contiguous, on a device at the beginning of its buffer.
    threads : int, optional
        Maximum number of CPU threads, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        Events to wait for before starting (devices only), as for `compactla.gemm`.

    Returns
    -------
    w : (nm, n) ndarray or pyopencl.array.Array
        Eigenvalues, in no order, complex numbers of the precision of A. Of a pair of conjugate ones that with the
        positive imaginary part comes first.
    V : Pack or None
        Eigenvectors as columns of length 1, complex; None without `compute_v`. The largest number of one for a complex
        eigenvalue is real.
    info : (nm,) ndarray of int64 or pyopencl.array.Array of int32
        `info`, or a new NumPy array. For each matrix 0; or n, where it holds NaN or infinities, or the iteration did
        not converge in 30 sweeps for each eigenvalue: its results are NaN. No other matrix is touched. For packs on a
        device this waits until the device is done, unless `info` is given: its ``events`` end with that of the
        computation.

    Raises
    ------
    TypeError, ValueError
        If A is not a pack of square matrices, or is read-only, `compute_v` is not a bool, `info` is no such array, or
        shares memory with A, or `threads` or `wait_for` is invalid, see `compactla.gemm`.

    See Also
    --------
    compactla.syev, compactla.linalg.eig

    Notes
    -----
    LAPACK ``?geev``: matrices are permuted and scaled, brought to Hessenberg form by reflections, and to Schur form by
    Francis' QR algorithm, with two shifts at a time for real matrices and one for complex ones. Eigenvectors are found
    by substitution. Every matrix has its own shifts and deflations.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> A = cla.pack(np.array([[[0.0, 4.0], [-1.0, 0.0]]]))
    >>> w, V, info = cla.geev(A)
    >>> w.round(12), info
    (array([[0.+2.j, 0.-2.j]]), array([0]))
    """
    if type(A) is not Pack:
        check_packs(A=A)
    if A.m != A.n:
        raise ValueError(f"A is {A.m} x {A.n}, must be square")
    chosen = ROUTINE.chosen(compute_v)
    w, V, info = ROUTINE.returned(A, (A.view,), (), None, chosen, info, threads, wait_for)
    return w, V if compute_v else None, info


ROUTINE = Routine(
    "geev",
    operands=(
        Matrix("A", "nn", written=True),
        Matrix("w", "n1", written=True, output=True, kind="complex", flat=True),
        Matrix("V", "nn", written=True, output=True, kind="complex"),
        Matrix("Z", "nn", written=True, output=True, room=True),
    ),
    madds=lambda n: 15 * n**3,
    options={"compute_v": (True, False)},
    compiled=("compute_v",),
    outputs=("info",),
    search=Search("geev", "geev.cl", {}, lambda size, dtype, lanes: iter(()), squares(1)),
)
