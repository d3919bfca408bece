"""axpy: sums with multiples."""

from collections.abc import Iterator

from compactla.layout import Pack
from compactla.routine import Matrix, Routine, check_packs
from compactla.scalars import factors
from compactla.search import ITEM, Choice, Search, items, squares
from compactla.types import Array, Events


def axpy(alpha: Array, X: Pack, Y: Pack, *, threads: int | None = None, wait_for: Events = None) -> Pack:
    """Sums with multiples, Y <- alpha X + Y, in place.

    Parameters
    ----------
    alpha : scalar, or (nm,) array_like or pyopencl.array.Array, or Pack
        One for all matrices, or one for each: an array, where the packs live, or a pack of 1 x 1. Where
        it is zero, X is not used, and Y stays as it is.
    X, Y : Pack
        nm matrices each of m x n, with the same dtype, vector length and device.
    threads : int, optional
        Maximum number of CPU threads, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        Events to wait for before starting (devices only), as for `compactla.gemm`.

    Returns
    -------
    Pack
        Y. On a device this does not wait until the work is done: ``Y.data.events`` ends with its event.

    Raises
    ------
    TypeError, ValueError
        If the packs do not fit together, Y is read-only or shares memory with X, `alpha` has another length, is complex
        for real packs or out of the range of their dtype, or `threads` or `wait_for` is invalid, see `compactla.gemm`.

    See Also
    --------
    compactla.scal, compactla.ger, compactla.gemm

    Notes
    -----
    BLAS ``?axpy``.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> X, Y = cla.pack(np.ones((2, 3, 1))), cla.pack(np.ones((2, 3, 1)))
    >>> cla.axpy([2, -1], X, Y).unpack()[:, :, 0]
    array([[3., 3., 3.],
           [0., 0., 0.]])
    """
    if not type(X) is type(Y) is Pack or X.kind != Y.kind:
        check_packs(X=X, Y=Y)
    views = factors("alpha", alpha, Y), X.view, Y.view
    ROUTINE.run(views, (), None, (), 0, None, threads, wait_for)
    return Y


def candidates(size, dtype, lanes) -> Iterator[Choice]:
    if size[0] * size[1] <= 64:  # which are written out
        yield from items("axpy_item")


ROUTINE = Routine(
    "axpy",
    operands=(Matrix("alpha", "11"), Matrix("X", "mn"), Matrix("Y", "mn", written=True)),
    madds=lambda m, n: m * n,
    static=8,
    search=Search("axpy", "axpy.cl", {"axpy_item": ITEM}, candidates, squares(2)),
)
