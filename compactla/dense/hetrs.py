"""hetrs: solves with the factors of hetrf."""

from typing import Any

from compactla.dense.sytrs import row, solve
from compactla.layout import Pack
from compactla.types import Events


def hetrs(A: Pack, ipiv: Any, B: Pack, uplo: str = "L", *, threads: int | None = None, wait_for: Events = None) -> Pack:
    """Solves B <- inv(A) B with the factors and the swaps that `compactla.hetrf` leaves, in place.

    Parameters
    ----------
    A : Pack
        nm matrices of n x n, of which one triangle is read.
    ipiv : Integers, or (nm, n) array_like of int
        Pivots from `compactla.hetrf`, or integers that mean the same.
    B : Pack
        nm right-hand sides of n x r, with A's dtype, vector length and device.
    uplo : {"L", "U"}
        Which triangle it is, as for `compactla.hetrf`.
    threads : int, optional
        Maximum number of CPU threads, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        Events to wait for before starting (devices only), as for `compactla.gemm`.

    Returns
    -------
    Pack
        B. Division by an exactly zero block of D gives infinities or NaNs, in that matrix only.

    Raises
    ------
    TypeError, ValueError
        If the packs do not fit together, `ipiv` is no such array or has entries that are no rows, B is read-only or
        shares memory with A, `uplo` is unknown, or `threads` or `wait_for` is invalid, see `compactla.gemm`.

    See Also
    --------
    compactla.hetrf, compactla.hesv

    Notes
    -----
    LAPACK ``?hetrs``.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> a, b = np.tile([[0.0, 2.0], [2.0, 1.0]], (100, 1, 1)), np.ones((100, 2, 3))
    >>> A, X = cla.pack(a), cla.pack(b)
    >>> ipiv, info = cla.hetrf(A)
    >>> bool(np.allclose(a @ cla.hetrs(A, ipiv, X).unpack(), b))
    True
    """
    return solve(ROUTINE, A, ipiv, B, uplo, threads, wait_for)


ROUTINE = row("hetrs")
