"""Batch-level LAPACK."""

import numpy as np

from compactla.blas import check_output, check_packs
from compactla.checks import check_launch
from compactla.layout import Pack


def getrfnp(A, threads=None, wait_for=None) -> np.ndarray:
    """LU factorizations without pivoting, A <- L\\U, in place.

    Parameters
    ----------
    A : Pack
        nm matrices of m x n; on return U is on and above the diagonal, and L, with a unit diagonal, below.
    threads : int, optional
        At most how many threads work on packs on the CPU, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        What a device waits for first, as for `compactla.gemm`.

    Returns
    -------
    (nm,) ndarray of int64
        For each matrix 0, or 1 + the index of its first pivot that is exactly zero. The factorization goes on without
        scaling that column, as LAPACK's ``?getf2`` does; no other matrix is touched. For packs on a device this waits
        until the device is done.

    Raises
    ------
    TypeError, ValueError
        If A is not a pack, or is read-only, or `threads` or `wait_for` is not what `compactla.gemm` takes.

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
    if type(A) is not Pack:
        check_packs(A=A)
    check_output("A", A.view)
    return A.view.run.getrfnp(A.view, A.nm, check_launch(threads, wait_for, A.queue))
