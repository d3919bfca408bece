"""her: updates of Hermitian matrices by products of vectors."""

from compactla.dense.syr import row
from compactla.layout import Pack
from compactla.routine import check_packs
from compactla.scalars import real_factors
from compactla.types import Array, Events


def her(
    alpha: Array, x: Pack, A: Pack, uplo: str = "L", *, threads: int | None = None, wait_for: Events = None
) -> Pack:
    """Rank-one updates of Hermitian matrices A <- alpha x x^H + A, in place.

    Parameters
    ----------
    alpha : real scalar, or (nm,) array_like or pyopencl.array.Array of real numbers, or Pack
        One for all matrices, or one for each: an array, where the packs live, or a pack of 1 x 1, of A's dtype, of
        which imaginary parts are not read. Where it is zero, x is not used, and A stays as it is.
    x : Pack
        nm vectors of n x 1.
    A : Pack
        nm Hermitian matrices of n x n, with x's dtype, vector length and device. One triangle is read and written,
        the other is not touched; imaginary parts on the diagonal are taken as 0 and become 0.
    uplo : {"L", "U"}
        Which triangle.
    threads : int, optional
        Maximum number of CPU threads, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        Events to wait for before starting (devices only), as for `compactla.gemm`.

    Returns
    -------
    Pack
        A. On a device this does not wait until the work is done: ``A.data.events`` ends with its event.

    Raises
    ------
    TypeError, ValueError
        If the packs do not fit together, A is read-only or shares memory with x, `alpha` has another length, is not
        real or out of the range of A's dtype, `uplo` is unknown, or `threads` or `wait_for` is invalid, see
        `compactla.gemm`.

    See Also
    --------
    compactla.syr, compactla.herk, compactla.ger

    Notes
    -----
    BLAS ``?her``; for real matrices it is `compactla.syr`.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> x = np.tile([[1], [2j]], (100, 1, 1))
    >>> A = cla.her(3, cla.pack(x), cla.Pack.zeros(100, 2, 2, complex))
    >>> A.unpack()[0]
    array([[ 3.+0.j,  0.+0.j],
           [ 0.+6.j, 12.+0.j]])
    """
    if not type(x) is type(A) is Pack or x.kind != A.kind:
        check_packs(x=x, A=A)
    (uplo,) = ROUTINE.chosen(uplo)
    conj = (False, True, False) if uplo == "U" and A.is_complex else None  # A^T is the matrix of conjugates
    views = real_factors("alpha", alpha, A), x.view, A.view if uplo == "L" else A.view.T
    ROUTINE.run(views, (), conj, (), 0, None, threads, wait_for)
    return A


ROUTINE = row("her")
