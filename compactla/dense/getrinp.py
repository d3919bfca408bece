"""getrinp: inverses, with the factors of getrfnp."""

from collections.abc import Iterator

from compactla.calls.recording import repeats
from compactla.layout import Pack
from compactla.routine import Matrix, Routine, check_packs
from compactla.search import ITEM, Choice, Search, items, registers, squares, team, teams
from compactla.types import Array, Events


@repeats("A", "info")
def getrinp(A: Pack, *, info: Array = None, threads: int | None = None, wait_for: Events = None) -> Array:
    """Inverses A <- inv(A) with the factors that `compactla.getrfnp` leaves, in place.

    Parameters
    ----------
    A : Pack
        nm matrices of n x n: U on and above the diagonal, and L, with a unit diagonal, below. On return it holds the
        inverses of L U.
    info : (nm,) ndarray of int64 or pyopencl.array.Array of int32, optional
        Where the result goes, where A lives: contiguous, on a device at the beginning of its buffer.
    threads : int, optional
        Maximum number of CPU threads, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        Events to wait for before starting (devices only), as for `compactla.gemm`.

    Returns
    -------
    (nm,) ndarray of int64 or pyopencl.array.Array of int32
        `info`, or a new NumPy array. For each matrix 0, or 1 + the index of the first exact zero on the diagonal of U:
        it has no inverse, and its contents are undefined. No other matrix is touched. For packs on a
        device this waits until the device is done, unless `info` is given: its ``events`` end with that of the
        inversion.

    Raises
    ------
    TypeError, ValueError
        If A is not a pack of square matrices, or is read-only, `info` is no such array, or shares memory with A, or
        `threads` or `wait_for` is invalid, see `compactla.gemm`.

    See Also
    --------
    compactla.getrfnp, compactla.getri

    Notes
    -----
    Intel MKL ``mkl_?getrinp_compact``, with an `info` for each matrix. Reciprocals of the diagonal overflow where it is
    subnormal: matrices of so small entries have to be scaled first.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> a = np.array([[[2.0, 1.0], [1.0, 1.0]]])
    >>> A = cla.pack(a)
    >>> cla.getrfnp(A), cla.getrinp(A)
    (array([0]), array([0]))
    >>> A.unpack()
    array([[[ 1., -1.],
            [-1.,  2.]]])
    """
    if type(A) is not Pack:
        check_packs(A=A)
    if A.m != A.n:
        raise ValueError(f"A is {A.m} x {A.n}, must be square")
    return ROUTINE.run((A.view,), (), None, (), A.nm, info, threads, wait_for)


def candidates(size, dtype, lanes) -> Iterator[Choice]:
    (n,) = size
    if registers(n * n, dtype) <= 164:
        yield from items("getrinp_item")
    if n <= 32:
        yield from teams("getrinp_team", n, n, dtype, lanes)


TEAM = team({}, lambda choice, size: size[0] ** 2 * choice["LANES"])

ROUTINE = Routine(
    "getrinp",
    operands=(Matrix("A", "nn", written=True),),
    madds=lambda n: 2 / 3 * n**3,
    outputs=("info",),
    search=Search("getrinp", "getrinp.cl", {"getrinp_item": ITEM, "getrinp_team": TEAM}, candidates, squares(1)),
)
