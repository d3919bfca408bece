"""symm: products with symmetric matrices."""

from compactla.layout import Pack
from compactla.routine import Matrix, Routine, check_side, views
from compactla.scalars import scalar
from compactla.search import ITEM, Search, items, registers, squares, team, teams
from compactla.types import Array, Events


def symm(
    A: Array, B: Array, C: Array, side: str = "L", uplo: str = "L", alpha: Array = 1, beta: Array = 0, *,
    threads: int | None = None, wait_for: Events = None,
) -> Array:  # fmt: skip
    """Products with symmetric matrices C <- alpha A B + beta C, or C <- alpha B A + beta C, in place.

    Parameters
    ----------
    A : Pack, ndarray or pyopencl.array.Array
        nm symmetric matrices, of m x m for side "L", of n x n for side "R". One triangle is read.
    B, C : Pack, ndarray or pyopencl.array.Array
        nm matrices of m x n each, with A's dtype, vector length and device. Instead of A or B there may be a
        plain array, one matrix for the whole batch; or all are arrays (nm, m, n) of any strides, as for
        `compactla.gemm`.
    side : {"L", "R"}
        On which side of B A stands.
    uplo : {"L", "U"}
        Which triangle of A is read.
    alpha, beta : scalar
        Where `beta` is zero C is overwritten, whatever it held; where `alpha` is zero A and B are not read.
    threads : int, optional
        Maximum number of CPU threads, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        Events to wait for before starting (devices only), as for `compactla.gemm`.

    Returns
    -------
    Pack, ndarray or pyopencl.array.Array
        C.

    Raises
    ------
    TypeError, ValueError
        If the operands do not fit together, C is read-only or shares memory with A or B, an option is unknown, or
        `threads` or `wait_for` is invalid, see `compactla.gemm`.

    See Also
    --------
    compactla.hemm, compactla.gemm, compactla.syrk

    Notes
    -----
    BLAS ``?symm``: complex matrices are symmetric too, not Hermitian as those of `compactla.hemm`.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> a, b = np.tile([[2.0, np.nan], [1.0, 3.0]], (100, 1, 1)), np.ones((100, 2, 1))
    >>> C = cla.symm(cla.pack(a), cla.pack(b), cla.Pack.zeros(100, 2, 1))
    >>> C.unpack()[0]
    array([[3.],
           [4.]])
    """
    if type(A) is type(B) is type(C) is Pack and A.kind == B.kind == C.kind:
        a, b, c = A.view, B.view, C.view
    else:
        a, b, c = views(A=A, B=B, C=C)
    side, uplo = ROUTINE.chosen(side, uplo)
    check_sizes(a, b, c, side)
    scalars = scalar("alpha", alpha, c), scalar("beta", beta, c)
    a = a if uplo == "L" else a.T
    operands = (a, b, c) if side == "L" else (a, b.T, c.T)
    ROUTINE.run(operands, scalars, None, (), 0, None, threads, wait_for)
    return C


def check_sizes(A, B, C, side) -> None:
    """Refuse sizes that do not fit together."""
    if (B.m, B.n) != (C.m, C.n):
        raise ValueError(f"B is {B.m} x {B.n}, must be {C.m} x {C.n} as C")
    check_side(A, C, "C", side)


def row(name) -> Routine:
    """The row of symm, or of hemm."""

    def candidates(size, dtype, lanes):
        m, n = size
        if registers(m * (m + 1) // 2 + 2 * m, dtype) <= 160 and m * n <= 144:
            yield from items(f"{name}_item")
        yield from teams(f"{name}_team", m, n, dtype, lanes)

    shared = team({}, lambda choice, size: size[0] * (size[0] + 1) // 2 * choice["LANES"])
    return Routine(
        name,
        operands=(Matrix("A", "mm", half=True), Matrix("B", "mn"), Matrix("C", "mn", written=True, scaled_by="beta")),
        madds=lambda m, n: m * m * n,
        options={"side": "LR", "uplo": "LU"},
        scalars={"alpha": 1, "beta": 0},
        fixed=frozenset({(1, 0), (1, 1), (-1, 1)}),
        search=Search(name, f"{name}.cl", {f"{name}_item": ITEM, f"{name}_team": shared}, candidates, squares(2)),
    )


ROUTINE = row("symm")
