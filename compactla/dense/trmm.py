"""trmm: products with triangular matrices, in place."""

from collections.abc import Iterator

from compactla.layout import Pack
from compactla.routine import Matrix, Routine, check_side, views
from compactla.scalars import scalar
from compactla.search import ITEM, Choice, Search, items, registers, squares, team, teams
from compactla.types import Array, Events
from compactla.view import lower_left


def trmm(
    A: Array, B: Array, side: str = "L", uplo: str = "L", trans: str = "N", diag: str = "N", alpha: Array = 1, *,
    threads: int | None = None, wait_for: Events = None,
) -> Array:  # fmt: skip
    """Products with triangular matrices B <- alpha op(A) B, or B <- alpha B op(A), in place.

    Parameters
    ----------
    A : Pack, ndarray or pyopencl.array.Array
        nm triangular matrices, of m x m for side "L", of n x n for side "R". The other triangle is not read.
        Or a plain array, one matrix for the whole batch, as for `compactla.gemm`.
    B : Pack, ndarray or pyopencl.array.Array
        nm matrices of m x n, with A's dtype, vector length and device. Both may be arrays (nm, m, n) of any strides, as
        for `compactla.gemm`.
    side : {"L", "R"}
        On which side of B op(A) stands.
    uplo : {"L", "U"}
        Whether A is lower or upper triangular.
    trans : {"N", "T", "C"}
        op(A) is A, its transpose, or its conjugate transpose.
    diag : {"N", "U"}
        "U": the diagonal is taken as ones and not read.
    alpha : scalar
        Where it is zero, B becomes zero, and neither is read.
    threads : int, optional
        Maximum number of CPU threads, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        Events to wait for before starting (devices only), as for `compactla.gemm`.

    Returns
    -------
    Pack, ndarray or pyopencl.array.Array
        B.

    Raises
    ------
    TypeError, ValueError
        If the operands do not fit together, B is read-only or shares memory with A, an option is unknown, or
        `threads` or `wait_for` is invalid, see `compactla.gemm`.

    See Also
    --------
    compactla.trsm, compactla.trtri, compactla.gemm

    Notes
    -----
    BLAS ``?trmm``.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> a, b = np.tril(np.ones((100, 3, 3))), np.ones((100, 3, 2))
    >>> B = cla.trmm(cla.pack(a), cla.pack(b))
    >>> bool((B.unpack() == a @ b).all())
    True
    """
    if type(A) is type(B) is Pack and A.kind == B.kind:
        a, b = A.view, B.view
    else:
        a, b = views(A=A, B=B)
    side, uplo, trans, diag = ROUTINE.chosen(side, uplo, trans, diag)
    check_side(a, b, "B", side)
    alpha = scalar("alpha", alpha, b)
    conj = (True, False) if trans == "C" and b.dtype.kind == "c" else None
    ROUTINE.run(lower_left(a, b, side, uplo, trans), (alpha,), conj, (diag,), 0, None, threads, wait_for)
    return B


def candidates(size, dtype, lanes) -> Iterator[Choice]:
    n, r = size
    if registers(n * (n + 1) // 2 + n, dtype) <= 160 and n * r <= 144:
        yield from items("trmm_item")
    yield from teams("trmm_team", n, r, dtype, lanes)


TEAM = team({}, lambda choice, size: size[0] * (size[0] + 1) // 2 * choice["LANES"])

ROUTINE = Routine(
    "trmm",
    operands=(Matrix("A", "mm", half=True), Matrix("B", "mn", written=True)),
    madds=lambda m, n: m * m * n / 2,
    options={"side": "LR", "uplo": "LU", "trans": "NTC", "diag": "NU"},
    compiled=("diag",),
    scalars={"alpha": 1},
    fixed=frozenset({(1,)}),
    free=True,
    search=Search("trmm", "trmm.cl", {"trmm_item": ITEM, "trmm_team": TEAM}, candidates, squares(2)),
)
