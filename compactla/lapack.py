"""Batch-level LAPACK."""

import numpy as np

from compactla.blas import check_output, check_packs
from compactla.pack import backend


def getrfnp(A) -> np.ndarray:
    """LU factorizations without pivoting, A <- L\\U, in place.

    Parameters
    ----------
    A : Pack
        nm matrices of m x n; on return U is on and above the diagonal, and L, with a unit diagonal, below.

    Returns
    -------
    (nm,) ndarray of int64
        For each matrix 0, or 1 + the index of its first pivot that is exactly zero. The factorization goes on without
        scaling that column, as LAPACK's ``?getf2`` does; no other matrix is touched. For packs on a device this waits
        until the device is done.

    Raises
    ------
    TypeError, ValueError
        If A is not a pack, or is read-only.

    Notes
    -----
    Intel MKL ``mkl_?getrfnp_compact``, with an `info` for each matrix. Columns are scaled by the reciprocal of their
    pivot, which overflows for subnormal pivots: matrices of so small entries have to be scaled first.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> A = cla.pack(np.array([[[2.0, 1.0], [1.0, 1.0]], [[0.0, 1.0], [1.0, 1.0]]]))
    >>> cla.getrfnp(A)
    array([0, 1])
    """
    check_packs(A=A)
    check_output("A", A)
    return backend(A.queue).getrfnp(A.view, A.nm)
