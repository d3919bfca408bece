"""gemv: products of matrices and vectors."""

from compactla.layout import Pack
from compactla.routine import Matrix, Routine, plain_views
from compactla.scalars import scalar
from compactla.search import ITEM, Search, items, squares
from compactla.types import Array, Events


def gemv(
    A: Array, x: Array, y: Array, alpha: Array = 1, beta: Array = 0, trans: str = "N", *, threads: int | None = None,
    wait_for: Events = None,
) -> Array:  # fmt: skip
    """Matrix-vector products y <- alpha op(A) x + beta y, in place.

    Parameters
    ----------
    A, x, y : Pack, ndarray or pyopencl.array.Array
        nm matrices op(A) of m x n, and vectors, x of n x 1 and y of m x 1, with the same dtype, vector length and
        device. All may be arrays (nm, m, n), (nm, n, 1) and (nm, m, 1) of any strides, as for `compactla.gemm`.
    alpha, beta : scalar
        Where `beta` is zero y is overwritten, whatever it held; where `alpha` is zero A and x are not read.
    trans : {"N", "T", "C"}
        op(A) is A, its transpose, or its conjugate transpose.
    threads : int, optional
        Maximum number of CPU threads, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        Events to wait for before starting (devices only), as for `compactla.gemm`.

    Returns
    -------
    Pack, ndarray or pyopencl.array.Array
        y. On a device this does not wait until the work is done: ``y.data.events`` ends with its event.

    Raises
    ------
    TypeError, ValueError
        If the operands do not fit together, y is read-only or shares memory with A or x, `trans` is unknown, or
        `threads` or `wait_for` is invalid, see `compactla.gemm`.

    See Also
    --------
    compactla.gemm, compactla.ger, compactla.trsv

    Notes
    -----
    BLAS ``?gemv``.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> a, x = np.ones((100, 3, 4)), np.ones((100, 4, 1))
    >>> y = cla.gemv(cla.pack(a), cla.pack(x), cla.Pack.zeros(100, 3, 1))
    >>> bool((y.unpack() == a @ x).all())
    True
    """
    if type(A) is type(x) is type(y) is Pack and A.kind == x.kind == y.kind:
        a, u, v = A.view, x.view, y.view
    else:
        a, u, v = plain_views(A=A, x=x, y=y)
    conj = None
    if trans != "N":
        (trans,) = ROUTINE.chosen(trans)
        a = a if trans == "N" else a.T
        conj = (True, False, False) if trans == "C" and v.dtype.kind == "c" else None
    alpha, beta = scalar("alpha", alpha, v), scalar("beta", beta, v)
    if a.n == 0:  # an empty sum is zero, whatever multiplies it
        alpha = type(alpha)(0)
    ROUTINE.run((a, u, v), (alpha, beta), conj, (), 0, None, threads, wait_for)
    return y


ROUTINE = Routine(
    "gemv",
    operands=(Matrix("A", "mn"), Matrix("x", "n1"), Matrix("y", "m1", written=True, scaled_by="beta")),
    madds=lambda m, n: m * max(n, 1),
    options={"trans": "NTC"},
    scalars={"alpha": 1, "beta": 0},
    fixed=frozenset({(1, 0), (1, 1), (-1, 1)}),
    search=Search("gemv", "gemv.cl", {"gemv_item": ITEM}, lambda size, dtype, lanes: items("gemv_item"), squares(2)),
)
