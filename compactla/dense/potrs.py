"""potrs: solves with Cholesky factors."""

from collections.abc import Iterator

from compactla.layout import Pack
from compactla.routine import Matrix, Routine, check_packs
from compactla.search import ITEM, LARGEST_GRID, Choice, Search, grid, items, registers, solvers, squares, team
from compactla.types import Events


def potrs(A: Pack, B: Pack, uplo: str = "L", *, threads: int | None = None, wait_for: Events = None) -> Pack:
    """Solves B <- inv(A) B with the factors that `compactla.potrf` leaves, in place.

    Parameters
    ----------
    A : Pack
        nm triangular factors of n x n, with a real diagonal: L of L L^H, or U of U^H U. The other triangle is not
        read.
    B : Pack
        nm right-hand sides of n x r, with A's dtype, vector length and device.
    uplo : {"L", "U"}
        Which of the two factors A holds.
    threads : int, optional
        Maximum number of CPU threads, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        Events to wait for before starting (devices only), as for `compactla.gemm`.

    Returns
    -------
    Pack
        B. A factor with an exact zero on its diagonal gives infinities or NaNs, in that matrix only.

    Raises
    ------
    TypeError, ValueError
        If the packs do not fit together, B is read-only or shares memory with A, `uplo` is unknown, or `threads` or
        `wait_for` is invalid, see `compactla.gemm`.

    See Also
    --------
    compactla.potrf, compactla.posv, compactla.linalg.cho_solve

    Notes
    -----
    LAPACK ``?potrs``.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> a, b = np.tile([[4.0, 2.0], [2.0, 2.0]], (100, 1, 1)), np.ones((100, 2, 3))
    >>> A, X = cla.pack(a), cla.pack(b)
    >>> info = cla.potrf(A)
    >>> bool(np.allclose(a @ cla.potrs(A, X).unpack(), b))
    True
    """
    if not type(A) is type(B) is Pack or A.kind != B.kind:
        check_packs(A=A, B=B)
    if (A.m, A.n) != (B.m, B.m):
        raise ValueError(f"A is {A.m} x {A.n}, must be {B.m} x {B.m}: B is {B.m} x {B.n}")
    a, conj = A.view, None
    if ROUTINE.chosen(uplo) == ("U",):  # U^H = L
        a, conj = a.T, (A.is_complex, False)
    ROUTINE.run((a, B.view), (), conj, (), 0, None, threads, wait_for)
    return B


def candidates(size, dtype, lanes) -> Iterator[Choice]:
    n, r = size
    if registers(n * (n + 1) // 2 + n, dtype) <= 160 and n * r <= 144:
        yield from items("potrs_item")
    yield from solvers("potrs", n, r, dtype, lanes)


KERNELS = {
    "potrs_item": ITEM,
    "potrs_team": team({}, lambda choice, size: (size[0] * (size[0] + 1) // 2 + 1) * choice["LANES"]),
    "potrs_grid": grid("grid_potrf.cl", lambda n, r: n + r, lambda n, r: n),
}

ROUTINE = Routine(
    "potrs",
    operands=(Matrix("A", "nn", half=True), Matrix("B", "nr", written=True)),
    madds=lambda n, r: n * n * r,
    options={"uplo": "LU"},
    search=Search("potrs", "potrs.cl", KERNELS, candidates, squares(2), LARGEST_GRID),
)
