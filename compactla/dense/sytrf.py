"""sytrf: factors of symmetric matrices that may be indefinite."""

from compactla.calls.recording import repeats
from compactla.integers import Integers
from compactla.layout import Pack
from compactla.routine import Matrix, Routine, check_packs
from compactla.search import Search, squares
from compactla.types import Array, Events


@repeats("A", "info")
def sytrf(
    A: Pack, uplo: str = "L", *, info: Array = None, threads: int | None = None, wait_for: Events = None
) -> tuple[Integers, Array]:
    """Factorizations A = L D L^T, or U D U^T, of symmetric matrices that may be indefinite, in place.

    Parameters
    ----------
    A : Pack
        nm matrices of n x n. One triangle is read; on return it holds D, with blocks of one
        and of two rows, and the factors that make up L or U, as LAPACK leaves them. The other triangle is not touched.
    uplo : {"L", "U"}
        Which triangle, and which of the two.
    info : (nm,) ndarray of int64 or pyopencl.array.Array of int32, optional
        Where that result goes, where A lives: contiguous, on a device at the beginning of its buffer.
    threads : int, optional
        Maximum number of CPU threads, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        Events to wait for before starting (devices only), as for `compactla.gemm`.

    Returns
    -------
    ipiv : Integers
        Where A lives; ``np.asarray(ipiv)`` is (nm, n). Where element k is p >= 0, D has a block of one row there, and
        rows and columns k and p were swapped. Elements k and k + 1 that are both ``~p``, which is -1 - p, stand for a
        block of two rows: row k + 1 was swapped with row p, or for `uplo` "U" row k. Rows count from 0.
    info : (nm,) ndarray of int64 or pyopencl.array.Array of int32
        `info`, or a new NumPy array. For each matrix 0, or 1 + the index of the first block of D that is exactly zero,
        or NaN; for `uplo` "U" the last row is the first. The factorization goes on, as LAPACK's does; no other matrix
        is touched. For packs on a device this waits until the device is done, unless `info` is given: its ``events``
        end with that of the factorization.

    Raises
    ------
    TypeError, ValueError
        If A is not a pack of square matrices, or is read-only, `uplo` is unknown, `info` is no such array, or shares
        memory with A, or `threads` or `wait_for` is invalid, see `compactla.gemm`.

    See Also
    --------
    compactla.sytrs, compactla.sysv, compactla.hetrf, compactla.potrf, compactla.linalg.ldl

    Notes
    -----
    LAPACK ``?sytrf``, by Bunch and Kaufman's pivoting (1977), with the choices of ``?sytf2`` in each matrix. In
    LAPACK rows count from 1: ``~p`` is its negative number, and p >= 0 its positive one less 1. Complex matrices are
    symmetric too, not Hermitian as those of `compactla.hetrf`. Columns are divided through reciprocals of pivots, which
    overflow for subnormal ones.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> A = cla.pack(np.array([[[0.0, 0.0], [1.0, 0.0]], [[4.0, 0.0], [2.0, 1.0]]]))
    >>> ipiv, info = cla.sytrf(A)
    >>> np.asarray(ipiv), info  # a block of two rows, and two of one, of which the second is zero
    (array([[-2, -2],
           [ 0,  1]]), array([0, 2]))
    """
    return factor(ROUTINE, A, uplo, info, threads, wait_for)


def row(name) -> Routine:
    """The row of sytrf, or of hetrf."""
    return Routine(
        name,
        operands=(
            Matrix("A", "nn", written=True, half=True),
            Matrix("ipiv", "n1", written=True, kind="integer", output=True),
        ),
        madds=lambda n: n**3 / 6,
        options={"uplo": "LU"},
        compiled=("uplo",),
        outputs=("info",),
        search=Search(name, f"{name}.cl", {}, lambda size, dtype, lanes: iter(()), squares(1)),
    )


def factor(routine: Routine, A: Pack, uplo: str, info: Array, threads: int | None, wait_for: Events):
    """The factors of `routine`, with its checks."""
    if type(A) is not Pack:
        check_packs(A=A)
    if A.m != A.n:
        raise ValueError(f"A is {A.m} x {A.n}, must be square")
    options = routine.chosen(uplo)
    return routine.returned(A, (A.view,), (), None, options, info, threads, wait_for)


ROUTINE = row("sytrf")
