"""ormqr: products with the Q of a QR factorization."""

from collections.abc import Iterator

from compactla.layout import Pack
from compactla.routine import Matrix, Routine, check_packs
from compactla.search import ITEM, REGISTERS, Choice, Search, items, registers, squares, team, teams
from compactla.types import Events


def ormqr(
    A: Pack, tau: Pack, C: Pack, side: str = "L", trans: str = "N", *, threads: int | None = None,
    wait_for: Events = None,
) -> Pack:  # fmt: skip
    """Products C <- op(Q) C, or C <- C op(Q), with the Q that `compactla.geqrf` leaves, in place.

    Parameters
    ----------
    A, tau : Pack
        Results of `compactla.geqrf`: vectors of reflectors below the diagonal of nm matrices of q x r, and
        k = min(q, r) scalars, k x 1. Q is q x q, the product of k reflectors. R is not read.
    C : Pack
        nm matrices, of q rows for side "L", of q columns for side "R", with A's dtype, vector length and device.
    side : {"L", "R"}
        On which side of C op(Q) stands.
    trans : {"N", "C", "T"}
        op(Q) is Q, its conjugate transpose, or, of real matrices only, its transpose.
    threads : int, optional
        Maximum number of CPU threads, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        Events to wait for before starting (devices only), as for `compactla.gemm`.

    Returns
    -------
    Pack
        C.

    Raises
    ------
    TypeError, ValueError
        If the packs do not fit together, C is read-only or shares memory with A or tau, an option is unknown, `trans`
        is "T" for complex matrices, or `threads` or `wait_for` is invalid, see `compactla.gemm`.

    See Also
    --------
    compactla.geqrf, compactla.orgqr

    Notes
    -----
    LAPACK ``?ormqr`` and ``?unmqr``.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> a = np.random.default_rng(0).random((100, 5, 3))
    >>> A, C = cla.pack(a), cla.pack(a)
    >>> tau = cla.geqrf(A)
    >>> bool(np.allclose(cla.ormqr(A, tau, C, trans="C").unpack()[:, :3], np.triu(A.unpack()[:, :3])))
    True
    """
    if not type(A) is type(tau) is type(C) is Pack or not A.kind == tau.kind == C.kind:
        check_packs(A=A, tau=tau, C=C)
    if isinstance(trans, str) and trans.upper() == "T":
        if C.is_complex:
            raise ValueError(f"trans is {trans!r}, must be 'N' or 'C' for packs of {C.dtype}")
        trans = "C"
    side, trans = ROUTINE.chosen(side, trans)
    order, k = C.m if side == "L" else C.n, min(A.m, A.n)
    if A.m != order:
        raise ValueError(f"A is {A.m} x {A.n}, must have {order} rows: C is {C.m} x {C.n} and side is {side!r}")
    if (tau.m, tau.n) != (k, 1):
        raise ValueError(f"tau is {tau.m} x {tau.n}, must be {k} x 1: A is {A.m} x {A.n}")
    v, c, conj = (A if A.n == k else A[:, :k]).view, C.view, None
    if side == "R":  # (C Q)^T = Q^T C^T, and Q^T is the conjugate of Q^H
        c, trans = c.T, "C" if trans == "N" else "N"
        conj = (True, True, False) if C.is_complex else None
    ROUTINE.run((v, tau.view, c), (), conj, (trans,), threads=threads, wait_for=wait_for)
    return C


def candidates(size, dtype, lanes) -> Iterator[Choice]:
    m, n, k = size
    if registers(m * k, dtype) <= REGISTERS:
        yield from items("ormqr_item")
    yield from teams("ormqr_team", m, n, dtype, lanes)


def local(choice, size) -> int:
    m, _, k = size
    return (k * m - k * (k - 1) // 2) * choice["LANES"]


TEAM = team({}, local, columns=1)

ROUTINE = Routine(
    "ormqr",
    operands=(Matrix("A", "mk"), Matrix("tau", "k1"), Matrix("C", "mn", written=True)),
    madds=lambda m, n, k: n * k * (2 * m - k),
    options={"side": "LR", "trans": "NC"},
    compiled=("trans",),
    search=Search("ormqr", "ormqr.cl", {"ormqr_item": ITEM, "ormqr_team": TEAM}, candidates, squares(3)),
)
