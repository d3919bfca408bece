"""trsv: triangular solves for vectors."""

from compactla.layout import Pack
from compactla.routine import Matrix, Routine, check_packs
from compactla.search import ITEM, Search, items, squares
from compactla.types import Array, Events
from compactla.view import lower_left


def trsv(
    A: Array, x: Pack, uplo: str = "L", trans: str = "N", diag: str = "N", *, threads: int | None = None,
    wait_for: Events = None,
) -> Pack:  # fmt: skip
    """Triangular solves x <- inv(op(A)) x for vectors, in place.

    Parameters
    ----------
    A : Pack
        nm triangular matrices of n x n. The other triangle is not read.
    x : Pack
        nm right-hand sides of n x 1, with A's dtype, vector length and device.
    uplo : {"L", "U"}
        Whether A is lower or upper triangular.
    trans : {"N", "T", "C"}
        op(A) is A, its transpose, or its conjugate transpose.
    diag : {"N", "U"}
        "U": the diagonal is taken as ones and not read.
    threads : int, optional
        Maximum number of CPU threads, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        Events to wait for before starting (devices only), as for `compactla.gemm`.

    Returns
    -------
    Pack
        x. Division by an exactly zero pivot gives infinities or NaNs, in that matrix only.

    Raises
    ------
    TypeError, ValueError
        If the packs do not fit together, x is read-only or shares memory with A, an option is unknown, or `threads` or
        `wait_for` is invalid, see `compactla.gemm`.

    See Also
    --------
    compactla.trsm, compactla.gemv

    Notes
    -----
    BLAS ``?trsv``. Pivots are divided by through their reciprocals, as in `compactla.trsm`.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> a, b = np.tril(np.ones((100, 3, 3))), np.ones((100, 3, 1))
    >>> x = cla.trsv(cla.pack(a), cla.pack(b))
    >>> bool(np.allclose(a @ x.unpack(), b))
    True
    """
    if not type(A) is type(x) is Pack or A.kind != x.kind:
        check_packs(A=A, x=x)
    uplo, trans, diag = ROUTINE.chosen(uplo, trans, diag)
    if (A.m, A.n) != (x.m, x.m):
        raise ValueError(f"A is {A.m} x {A.n}, must be {x.m} x {x.m}: x is {x.m} x {x.n}")
    conj = (True, False) if trans == "C" and x.is_complex else None
    views = lower_left(A.view, x.view, "L", uplo, trans)
    ROUTINE.run(views, (), conj, (diag,), 0, None, threads, wait_for)
    return x


ROUTINE = Routine(
    "trsv",
    operands=(Matrix("A", "nn", half=True), Matrix("x", "n1", written=True)),
    madds=lambda n: n * n / 2,
    options={"uplo": "LU", "trans": "NTC", "diag": "NU"},
    compiled=("diag",),
    search=Search("trsv", "trsv.cl", {"trsv_item": ITEM}, lambda size, dtype, lanes: items("trsv_item"), squares(1)),
)
