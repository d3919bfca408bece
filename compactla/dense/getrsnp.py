"""getrsnp: solves with the factors of getrfnp."""

from collections.abc import Iterator

from compactla.layout import Pack
from compactla.routine import Matrix, Routine, check_packs
from compactla.search import ITEM, LARGEST_GRID, Choice, Search, grid, items, registers, solvers, squares, team
from compactla.types import Events


def getrsnp(A: Pack, B: Pack, trans: str = "N", *, threads: int | None = None, wait_for: Events = None) -> Pack:
    """Solves B <- inv(op(A)) B with the factors that `compactla.getrfnp` leaves, in place.

    Parameters
    ----------
    A : Pack
        nm matrices of n x n: U on and above the diagonal, and L, with a unit diagonal, below.
    B : Pack
        nm right-hand sides of n x r, with A's dtype, vector length and device.
    trans : {"N", "T", "C"}
        op(A) is L U, its transpose, or its conjugate transpose.
    threads : int, optional
        Maximum number of CPU threads, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        Events to wait for before starting (devices only), as for `compactla.gemm`.

    Returns
    -------
    Pack
        B. Division by an exactly zero pivot gives infinities or NaNs, in that matrix only.

    Raises
    ------
    TypeError, ValueError
        If the packs do not fit together, B is read-only or shares memory with A, `trans` is unknown, or `threads` or
        `wait_for` is invalid, see `compactla.gemm`.

    See Also
    --------
    compactla.getrfnp, compactla.trsm

    Notes
    -----
    LAPACK ``?getrs`` without row interchanges. Pivots are divided by through their reciprocals, as in `compactla.trsm`.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> a, b = np.tile([[4.0, 2.0], [1.0, 2.0]], (100, 1, 1)), np.ones((100, 2, 3))
    >>> A, X = cla.pack(a), cla.pack(b)
    >>> info = cla.getrfnp(A)
    >>> bool(np.allclose(a @ cla.getrsnp(A, X).unpack(), b))
    True
    """
    if not type(A) is type(B) is Pack or A.kind != B.kind:
        check_packs(A=A, B=B)
    if (A.m, A.n) != (B.m, B.m):
        raise ValueError(f"A is {A.m} x {A.n}, must be {B.m} x {B.m}: B is {B.m} x {B.n}")
    (trans,) = ROUTINE.chosen(trans)
    conj = (True, False) if trans == "C" and B.is_complex else None
    option = "N" if trans == "N" else "T"  # what is conjugated is a view
    ROUTINE.run((A.view, B.view), (), conj, (option,), 0, None, threads, wait_for)
    return B


def candidates(size, dtype, lanes) -> Iterator[Choice]:
    n, r = size
    if registers(n * n + n, dtype) <= 180 and n * r <= 144:
        yield from items("getrsnp_item")
    yield from solvers("getrsnp", n, r, dtype, lanes)


KERNELS = {
    "getrsnp_item": ITEM,
    "getrsnp_team": team({}, lambda choice, size: size[0] ** 2 * choice["LANES"]),
    "getrsnp_grid": grid("grid_getrs.cl", lambda n, r: n + r, lambda n, r: n),
}

ROUTINE = Routine(
    "getrsnp",
    operands=(Matrix("A", "nn"), Matrix("B", "nr", written=True)),
    madds=lambda n, r: n * n * r,
    options={"trans": "NTC"},
    compiled=("trans",),
    search=Search("getrsnp", "getrsnp.cl", KERNELS, candidates, squares(2), LARGEST_GRID),
)
