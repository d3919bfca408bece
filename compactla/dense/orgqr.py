"""orgqr: the Q of a QR factorization."""

from collections.abc import Iterator

from compactla.layout import Pack
from compactla.routine import Matrix, Routine, check_packs
from compactla.search import ITEM, REGISTERS, Choice, Search, items, registers, squares, team, teams
from compactla.types import Events


def orgqr(A: Pack, tau: Pack, *, threads: int | None = None, wait_for: Events = None) -> Pack:
    """The first columns of the Q that `compactla.geqrf` leaves, in place.

    Parameters
    ----------
    A : Pack
        nm matrices of m x n, m >= n, as `compactla.geqrf` leaves them. On return A holds the first n columns of Q,
        which are orthonormal.
    tau : Pack
        Scalars from `compactla.geqrf`: nm columns of n x 1, with A's dtype, vector length and device.
    threads : int, optional
        Maximum number of CPU threads, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        Events to wait for before starting (devices only), as for `compactla.gemm`.

    Returns
    -------
    Pack
        A.

    Raises
    ------
    TypeError, ValueError
        If the packs do not fit together, A has more columns than rows, is read-only or shares memory with tau, or
        `threads` or `wait_for` is invalid, see `compactla.gemm`.

    See Also
    --------
    compactla.geqrf, compactla.ormqr

    Notes
    -----
    LAPACK ``?orgqr`` and ``?ungqr``.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> a = np.random.default_rng(0).random((100, 5, 3))
    >>> A = cla.pack(a)
    >>> tau = cla.geqrf(A)
    >>> r = np.triu(A.unpack()[:, :3])
    >>> bool(np.allclose(cla.orgqr(A, tau).unpack() @ r, a))
    True
    """
    if not type(A) is type(tau) is Pack or A.kind != tau.kind:
        check_packs(tau=tau, A=A)
    if A.m < A.n:
        raise ValueError(f"A is {A.m} x {A.n}, must have no more columns than rows")
    if (tau.m, tau.n) != (A.n, 1):
        raise ValueError(f"tau is {tau.m} x {tau.n}, must be {A.n} x 1: A is {A.m} x {A.n}")
    ROUTINE.run((A.view, tau.view), threads=threads, wait_for=wait_for)
    return A


def candidates(size, dtype, lanes) -> Iterator[Choice]:
    n, m = size
    if registers(m * n, dtype) <= REGISTERS:
        yield from items("orgqr_item")
    yield from teams("orgqr_team", m, n, dtype, lanes)


def local(choice, size) -> int:
    n, m = size
    return (n * m - n * (n - 1) // 2) * choice["LANES"]


TEAM = team({}, local, columns=0)

ROUTINE = Routine(
    "orgqr",
    operands=(Matrix("A", "mn", written=True), Matrix("tau", "n1")),
    madds=lambda n, m: n * n * (m - n / 3),
    search=Search("orgqr", "orgqr.cl", {"orgqr_item": ITEM, "orgqr_team": TEAM}, candidates, squares(2)),
)
