"""scal: multiples."""

from collections.abc import Iterator

from compactla.layout import Pack
from compactla.routine import Matrix, Routine, check_packs
from compactla.scalars import factors
from compactla.search import ITEM, Choice, Search, items, squares
from compactla.types import Array, Events


def scal(alpha: Array, X: Pack, *, threads: int | None = None, wait_for: Events = None) -> Pack:
    """Multiples X <- alpha X, in place.

    Parameters
    ----------
    alpha : scalar, or (nm,) array_like or pyopencl.array.Array, or Pack
        One for all matrices, or one for each: an array, where the packs live, or a pack of 1 x 1. As in
        BLAS, zero times infinity or NaN is NaN.
    X : Pack
        nm matrices of m x n.
    threads : int, optional
        Maximum number of CPU threads, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        Events to wait for before starting (devices only), as for `compactla.gemm`.

    Returns
    -------
    Pack
        X. On a device this does not wait until the work is done: ``X.data.events`` ends with its event.

    Raises
    ------
    TypeError, ValueError
        If X is not a pack, or is read-only, `alpha` has another length, is complex for real packs or out of the range
        of their dtype, or `threads` or `wait_for` is invalid, see `compactla.gemm`.

    See Also
    --------
    compactla.axpy

    Notes
    -----
    BLAS ``?scal``.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> X = cla.pack(np.ones((2, 3, 1)))
    >>> cla.scal([2, -1], X).unpack()[:, :, 0]
    array([[ 2.,  2.,  2.],
           [-1., -1., -1.]])
    """
    if type(X) is not Pack:
        check_packs(X=X)
    ROUTINE.run((factors("alpha", alpha, X), X.view), (), None, (), 0, None, threads, wait_for)
    return X


def candidates(size, dtype, lanes) -> Iterator[Choice]:
    if size[0] * size[1] <= 64:  # which are written out
        yield from items("scal_item")


ROUTINE = Routine(
    "scal",
    operands=(Matrix("alpha", "11"), Matrix("X", "mn", written=True)),
    madds=lambda m, n: m * n,
    static=8,
    search=Search("scal", "scal.cl", {"scal_item": ITEM}, candidates, squares(2)),
)
