"""nrm2: norms of columns."""

from collections.abc import Iterator

from compactla.calls.recording import repeats
from compactla.layout import Pack
from compactla.routine import Matrix, Routine, check_packs
from compactla.search import ITEM, Choice, Search, items, squares
from compactla.types import Array, Events


@repeats()
def nrm2(X: Pack, *, threads: int | None = None, wait_for: Events = None) -> Array:
    """2-norms of the columns of X, where no square overflows or underflows.

    Parameters
    ----------
    X : Pack
        nm matrices of m x n.
    threads : int, optional
        Maximum number of CPU threads, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        Events to wait for before starting (devices only), as for `compactla.gemm`.

    Returns
    -------
    (nm, n) ndarray or pyopencl.array.Array
        For each matrix those of its columns, real numbers of X's precision, where X lives; on a device this does not
        wait for them.

    Raises
    ------
    TypeError, ValueError
        If X is not a pack, or `threads` or `wait_for` is invalid, see `compactla.gemm`.

    See Also
    --------
    compactla.dot, compactla.linalg.norm

    Notes
    -----
    BLAS ``?nrm2``.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> cla.nrm2(cla.pack(np.array([[[3e200], [4e200]], [[3e-200], [4e-200]]])))
    array([[5.e+200],
           [5.e-200]])
    """
    if type(X) is not Pack:
        check_packs(X=X)
    return ROUTINE.returned(X, (X.view,), threads=threads, wait_for=wait_for)


def candidates(size, dtype, lanes) -> Iterator[Choice]:
    if size[0] * size[1] <= 64:  # which are written out
        yield from items("nrm2_item")


ROUTINE = Routine(
    "nrm2",
    operands=(Matrix("X", "mn"), Matrix("r", "1n", kind="real", written=True, output=True, flat=True)),
    madds=lambda m, n: m * n,
    static=8,
    search=Search("nrm2", "nrm2.cl", {"nrm2_item": ITEM}, candidates, squares(2)),
)
