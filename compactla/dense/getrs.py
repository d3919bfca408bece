"""getrs: solves with the factors of getrf."""

from typing import Any

from compactla.dense import getrsnp
from compactla.integers import Integers
from compactla.layout import Pack
from compactla.routine import Matrix, Routine, check_packs
from compactla.search import ITEM, LARGEST_GRID, Search, grid, squares, team
from compactla.types import Events


def getrs(
    A: Pack, ipiv: Any, B: Pack, trans: str = "N", *, threads: int | None = None, wait_for: Events = None
) -> Pack:
    """Solves B <- inv(op(A)) B with the factors and the swaps that `compactla.getrf` leaves, in place.

    Parameters
    ----------
    A : Pack
        nm matrices of n x n: U on and above the diagonal, and L, with a unit diagonal, below.
    ipiv : Integers, or (nm, n) array_like of int
        Pivots from `compactla.getrf`, or integers from 0 to n - 1: row i was swapped with row ipiv[i].
    B : Pack
        nm right-hand sides of n x r, with A's dtype, vector length and device.
    trans : {"N", "T", "C"}
        op(A) is the matrix that was factored, its transpose, or its conjugate transpose.
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
        If the packs do not fit together, `ipiv` is no such array or has entries that are no rows, B is read-only or
        shares memory with A, `trans` is unknown, or `threads` or `wait_for` is invalid, see `compactla.gemm`.

    See Also
    --------
    compactla.getrf, compactla.gesv, compactla.trsm, compactla.linalg.lu_solve

    Notes
    -----
    LAPACK ``?getrs``. Pivots are divided by through their reciprocals, as in `compactla.trsm`.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> a, b = np.tile([[1.0, 2.0], [4.0, 2.0]], (100, 1, 1)), np.ones((100, 2, 3))
    >>> A, X = cla.pack(a), cla.pack(b)
    >>> ipiv, info = cla.getrf(A)
    >>> bool(np.allclose(a @ cla.getrs(A, ipiv, X).unpack(), b))
    True
    """
    if not type(A) is type(B) is Pack or A.kind != B.kind:
        check_packs(A=A, B=B)
    if (A.m, A.n) != (B.m, B.m):
        raise ValueError(f"A is {A.m} x {A.n}, must be {B.m} x {B.m}: B is {B.m} x {B.n}")
    (trans,) = ROUTINE.chosen(trans)
    swaps = Integers.given(ipiv, A, A.n, "ipiv")
    conj = (True, False, False) if trans == "C" and B.is_complex else None
    option = "N" if trans == "N" else "T"  # what is conjugated is a view
    ROUTINE.run((A.view, swaps.view, B.view), (), conj, (option,), 0, None, threads, wait_for)
    return B


def candidates(size, dtype, lanes):
    for choice in getrsnp.candidates(size, dtype, lanes):
        yield choice | {"kernel": choice["kernel"].replace("getrsnp", "getrs")}


KERNELS = {
    "getrs_item": ITEM,
    "getrs_team": team({}, lambda choice, size: size[0] * (size[0] + 1) * choice["LANES"]),
    "getrs_grid": grid("grid_getrs.cl", lambda n, r: n + r, lambda n, r: n, lambda m, n, choice: n),
}

ROUTINE = Routine(
    "getrs",
    operands=(Matrix("A", "nn"), Matrix("ipiv", "n1", kind="integer"), Matrix("B", "nr", written=True)),
    madds=lambda n, r: n * n * r,
    options={"trans": "NTC"},
    compiled=("trans",),
    search=Search("getrs", "getrs.cl", KERNELS, candidates, squares(2), LARGEST_GRID),
)
