"""sytrs: solves with the factors of sytrf."""

from typing import Any

from compactla.integers import Integers
from compactla.layout import Pack
from compactla.routine import Matrix, Routine, check_packs
from compactla.search import Search, squares
from compactla.types import Events


def sytrs(A: Pack, ipiv: Any, B: Pack, uplo: str = "L", *, threads: int | None = None, wait_for: Events = None) -> Pack:
    """Solves B <- inv(A) B with the factors and the swaps that `compactla.sytrf` leaves, in place.

    Parameters
    ----------
    A : Pack
        nm matrices of n x n, of which one triangle is read.
    ipiv : Integers, or (nm, n) array_like of int
        Pivots from `compactla.sytrf`, or integers that mean the same.
    B : Pack
        nm right-hand sides of n x r, with A's dtype, vector length and device.
    uplo : {"L", "U"}
        Which triangle it is, as for `compactla.sytrf`.
    threads : int, optional
        Maximum number of CPU threads, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        Events to wait for before starting (devices only), as for `compactla.gemm`.

    Returns
    -------
    Pack
        B. Division by an exactly zero block of D gives infinities or NaNs, in that matrix only.

    Raises
    ------
    TypeError, ValueError
        If the packs do not fit together, `ipiv` is no such array or has entries that are no rows, B is read-only or
        shares memory with A, `uplo` is unknown, or `threads` or `wait_for` is invalid, see `compactla.gemm`.

    See Also
    --------
    compactla.sytrf, compactla.sysv

    Notes
    -----
    LAPACK ``?sytrs``.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> a, b = np.tile([[0.0, 2.0], [2.0, 1.0]], (100, 1, 1)), np.ones((100, 2, 3))
    >>> A, X = cla.pack(a), cla.pack(b)
    >>> ipiv, info = cla.sytrf(A)
    >>> bool(np.allclose(a @ cla.sytrs(A, ipiv, X).unpack(), b))
    True
    """
    return solve(ROUTINE, A, ipiv, B, uplo, threads, wait_for)


def row(name) -> Routine:
    """The row of sytrs, or of hetrs."""
    return Routine(
        name,
        operands=(Matrix("A", "nn", half=True), Matrix("ipiv", "n1", kind="integer"), Matrix("B", "nr", written=True)),
        madds=lambda n, r: n * n * r,
        options={"uplo": "LU"},
        compiled=("uplo",),
        search=Search(name, f"{name}.cl", {}, lambda size, dtype, lanes: iter(()), squares(2)),
    )


def solve(routine: Routine, A: Pack, ipiv: Any, B: Pack, uplo: str, threads: int | None, wait_for: Events) -> Pack:
    """The solutions of `routine`, with its checks."""
    if not type(A) is type(B) is Pack or A.kind != B.kind:
        check_packs(A=A, B=B)
    if (A.m, A.n) != (B.m, B.m):
        raise ValueError(f"A is {A.m} x {A.n}, must be {B.m} x {B.m}: B is {B.m} x {B.n}")
    options = routine.chosen(uplo)
    swaps = Integers.given(ipiv, A, A.n, "ipiv", least=-A.n)
    routine.run((A.view, swaps.view, B.view), (), None, options, 0, None, threads, wait_for)
    return B


ROUTINE = row("sytrs")
