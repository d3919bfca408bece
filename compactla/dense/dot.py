"""dot: inner products of columns."""

from collections.abc import Iterator

from compactla.calls.recording import repeats
from compactla.layout import Pack
from compactla.routine import Matrix, Routine, check_packs
from compactla.search import ITEM, Choice, Search, items, squares
from compactla.types import Array, Events


@repeats()
def dot(X: Pack, Y: Pack, conj: bool = False, *, threads: int | None = None, wait_for: Events = None) -> Array:
    """Inner products of the columns of X and Y.

    Parameters
    ----------
    X, Y : Pack
        nm matrices each of m x n, with the same dtype, vector length and device.
    conj : bool
        Whether X is conjugated.
    threads : int, optional
        Maximum number of CPU threads, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        Events to wait for before starting (devices only), as for `compactla.gemm`.

    Returns
    -------
    (nm, n) ndarray or pyopencl.array.Array
        For each matrix those of column 0 with column 0, of column 1 with column 1, and so on, where the packs live; on
        a device this does not wait for them.

    Raises
    ------
    TypeError, ValueError
        If the packs do not fit together, `conj` is not a bool, or `threads` or `wait_for` is invalid, see
        `compactla.gemm`.

    See Also
    --------
    compactla.nrm2, compactla.gemv

    Notes
    -----
    BLAS ``?dot``, ``?dotu`` and ``?dotc``.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> x = np.arange(6.0).reshape(2, 3, 1)
    >>> cla.dot(cla.pack(x), cla.pack(x))
    array([[ 5.],
           [50.]])
    """
    if not type(X) is type(Y) is Pack or X.kind != Y.kind:
        check_packs(X=X, Y=Y)
    (conj,) = ROUTINE.chosen(conj)
    flags = (True, False, False) if conj and Y.is_complex else None
    return ROUTINE.returned(Y, (X.view, Y.view), (), flags, (), None, threads, wait_for)


def candidates(size, dtype, lanes) -> Iterator[Choice]:
    if size[0] * size[1] <= 64:  # which are written out
        yield from items("dot_item")


ROUTINE = Routine(
    "dot",
    operands=(Matrix("X", "mn"), Matrix("Y", "mn"), Matrix("d", "1n", written=True, output=True, flat=True)),
    madds=lambda m, n: m * n,
    options={"conj": (False, True)},
    static=8,
    search=Search("dot", "dot.cl", {"dot_item": ITEM}, candidates, squares(2)),
)
