"""chud: updates and downdates of Cholesky factors."""

from collections.abc import Iterator

from compactla.calls.recording import repeats
from compactla.layout import Pack
from compactla.routine import Matrix, Routine, check_packs
from compactla.search import ITEM, REGISTERS, Choice, Search, items, registers
from compactla.types import Array, Events


@repeats("A", "X", "info")
def chud(
    A: Pack, X: Pack, uplo: str = "L", downdate: bool = False, *, info: Array = None, threads: int | None = None,
    wait_for: Events = None,
) -> Array:  # fmt: skip
    """Updates of Cholesky factors: those of L L^H + X X^H, or L L^H - X X^H, from L, in place.

    Parameters
    ----------
    A : Pack
        nm matrices of n x n. One triangle is read, and the real part of the diagonal: L, or U = L^H, of
        `compactla.potrf`; on return it holds the new factor. The other triangle is not touched.
    X : Pack
        nm matrices of n x r, with A's dtype, vector length and device; they are overwritten.
    uplo : {"L", "U"}
        Which triangle, and which of the two factors.
    downdate : bool
        Whether X X^H is subtracted.
    info : (nm,) ndarray of int64 or pyopencl.array.Array of int32, optional
        Where the result goes, where A lives: contiguous, on a device at the beginning of its buffer.
    threads : int, optional
        Maximum number of CPU threads, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        Events to wait for before starting (devices only), as for `compactla.gemm`.

    Returns
    -------
    (nm,) ndarray of int64 or pyopencl.array.Array of int32
        `info`, or a new NumPy array. For each matrix 0, or k where pivot k is the first that is NaN, or, in a downdate,
        not positive: L L^H - X X^H is not positive definite then, and the contents of its triangle are undefined. No
        other matrix is touched. For packs on a device this waits until the device is done, unless `info` is given: its
        ``events`` end with that of the update.

    Raises
    ------
    TypeError, ValueError
        If the packs do not fit together, one is read-only or shares memory with the other, an option is unknown, `info`
        is no such array, or shares memory with a pack, or `threads` or `wait_for` is invalid, see `compactla.gemm`.

    See Also
    --------
    compactla.potrf, compactla.linalg.cholesky_update

    Notes
    -----
    LINPACK ``?chud`` and ``?chdd``, with r vectors at once and an `info` for each matrix. Updates are Givens rotations,
    downdates hyperbolic rotations in mixed form [1]_, as stable as LINPACK's. A vector takes 2 n^2 multiply-adds.

    References
    ----------
    .. [1] A. W. Bojanczyk, R. P. Brent, P. van Dooren and F. R. de Hoog, "A Note on Downdating the Cholesky
       Factorization", SIAM J. Sci. Stat. Comput. 8(3):210-221, 1987, https://doi.org/10.1137/0908031

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> A, x = cla.pack(np.full((1, 1, 1), 5.0)), np.full((1, 1, 1), 3.0)
    >>> cla.chud(A, cla.pack(x), downdate=True)
    array([0])
    >>> A.unpack()
    array([[[4.]]])
    """
    if not type(A) is type(X) is Pack or A.kind != X.kind:
        check_packs(A=A, X=X)
    if (A.m, A.n) != (X.m, X.m):
        raise ValueError(f"A is {A.m} x {A.n}, must be {X.m} x {X.m}: X is {X.m} x {X.n}")
    a, conj = A.view, None
    uplo, downdate = ROUTINE.chosen(uplo, downdate)
    if uplo == "U":  # U^H = L
        a, conj = a.T, (A.is_complex, False)
    return ROUTINE.run((a, X.view), (), conj, (downdate,), A.nm, info, threads, wait_for)


def candidates(size, dtype, lanes) -> Iterator[Choice]:
    n, r = size
    if registers(n * r, dtype) <= REGISTERS // 2:
        yield from items("chud_item")


ROUTINE = Routine(
    "chud",
    operands=(Matrix("A", "nn", written=True, half=True), Matrix("X", "nr", written=True)),
    madds=lambda n, r: 2 * n * n * r,
    options={"uplo": "LU", "downdate": (False, True)},
    compiled=("downdate",),
    outputs=("info",),
    search=Search("chud", "chud.cl", {"chud_item": ITEM}, candidates, tuple((n, 1) for n in (2, 3, 4, 6, 8, 12, 16))),
)
