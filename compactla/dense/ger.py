"""ger: updates by products of vectors."""

from compactla.layout import Pack
from compactla.routine import Matrix, Routine, plain_views
from compactla.scalars import scalar
from compactla.search import ITEM, Search, items, squares
from compactla.types import Array, Events


def ger(
    x: Array, y: Array, A: Array, alpha: Array = 1, conj: bool = False, *, threads: int | None = None,
    wait_for: Events = None,
) -> Array:  # fmt: skip
    """Rank-one updates A <- alpha x y^T + A, in place.

    Parameters
    ----------
    x, y, A : Pack, ndarray or pyopencl.array.Array
        nm vectors each, x of m x 1 and y of n x 1, and matrices of m x n, with the same dtype, vector length and
        device. All may be arrays (nm, m, 1), (nm, n, 1) and (nm, m, n) of any strides, as for `compactla.gemm`.
    alpha : scalar
        Where it is zero nothing is read, and A stays as it is.
    conj : bool
        Whether y is conjugated: y^H instead of y^T.
    threads : int, optional
        Maximum number of CPU threads, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        Events to wait for before starting (devices only), as for `compactla.gemm`.

    Returns
    -------
    Pack, ndarray or pyopencl.array.Array
        A. On a device this does not wait until the work is done: ``A.data.events`` ends with its event.

    Raises
    ------
    TypeError, ValueError
        If the operands do not fit together, A is read-only or shares memory with x or y, `conj` is not a bool, or
        `threads` or `wait_for` is invalid, see `compactla.gemm`.

    See Also
    --------
    compactla.gemv, compactla.axpy

    Notes
    -----
    BLAS ``?ger``, ``?geru`` and ``?gerc``.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> x, y = np.ones((100, 3, 1)), np.full((100, 2, 1), 2.0)
    >>> A = cla.ger(cla.pack(x), cla.pack(y), cla.Pack.zeros(100, 3, 2))
    >>> bool((A.unpack() == 2).all())
    True
    """
    if type(x) is type(y) is type(A) is Pack and x.kind == y.kind == A.kind:
        u, v, a = x.view, y.view, A.view
    else:
        u, v, a = plain_views(x=x, y=y, A=A)
    (conj,) = ROUTINE.chosen(conj)
    flags = (False, True, False) if conj and a.dtype.kind == "c" else None
    alpha = scalar("alpha", alpha, a)
    ROUTINE.run((u, v, a), (alpha,), flags, (), 0, None, threads, wait_for)
    return A


ROUTINE = Routine(
    "ger",
    operands=(Matrix("x", "m1"), Matrix("y", "n1"), Matrix("A", "mn", written=True)),
    madds=lambda m, n: m * n,
    options={"conj": (False, True)},
    scalars={"alpha": 1},
    fixed=frozenset({(1,), (-1,)}),
    search=Search("ger", "ger.cl", {"ger_item": ITEM}, lambda size, dtype, lanes: items("ger_item"), squares(2)),
)
