"""geqp3: QR factorizations with column pivoting."""

from collections.abc import Iterator

from compactla.calls.recording import repeats
from compactla.integers import Integers
from compactla.layout import Pack
from compactla.routine import Matrix, Routine, check_packs
from compactla.search import (
    ITEM,
    Choice,
    Search,
    columns,
    each_column,
    grid,
    items,
    registers,
    squares,
    strips,
)
from compactla.types import Events


@repeats("A", "info")
def geqp3(A: Pack, *, threads: int | None = None, wait_for: Events = None) -> tuple[Integers, Pack]:
    """QR factorizations with column pivoting, A P = Q R, in place.

    Parameters
    ----------
    A : Pack
        nm matrices of m x n. On return the upper trapezoid holds R, whose diagonal is real and decreases in modulus,
        and below it are the reflectors of which Q is the product, as `compactla.geqrf` leaves them.
    threads : int, optional
        Maximum number of CPU threads, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        Events to wait for before starting (devices only), as for `compactla.gemm`.

    Returns
    -------
    jpvt : Integers
        ``np.asarray(jpvt)`` is (nm, n), from 0: column ``jpvt[q, j]`` of matrix q became column j.
    tau : Pack
        min(m, n) x 1: the factors of the reflectors, as of `compactla.geqrf`.

    Raises
    ------
    TypeError, ValueError
        If A is not a pack, or is read-only, or `threads` or `wait_for` is invalid, see `compactla.gemm`.

    See Also
    --------
    compactla.geqrf, compactla.gelsy

    Notes
    -----
    LAPACK ``?geqp3``, without columns that stay in front: in every step the column with the largest remaining
    norm comes first, of several the first. Norms are not updated, but computed anew, which costs no pass over the
    matrix. Each matrix is pivoted by itself.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> A = cla.pack(np.array([[[0.0, 1.0, 3.0], [0.0, 0.0, 4.0]]]))
    >>> jpvt, tau = cla.geqp3(A)
    >>> np.asarray(jpvt)
    array([[2, 1, 0]])
    >>> np.abs(np.triu(A.unpack()[0])).round(3)
    array([[5. , 0.6, 0. ],
           [0. , 0.8, 0. ]])
    """
    if type(A) is not Pack:
        check_packs(A=A)
    return ROUTINE.returned(A, (A.view,), threads=threads, wait_for=wait_for)


def candidates(size, dtype, lanes) -> Iterator[Choice]:
    m, n = size
    if registers(m * n, dtype) <= 128:  # compilers take seconds for more
        yield from items("geqp3_item")
    yield from strips("geqp3_strips", m, n, dtype, lanes)
    yield from each_column("geqp3_column", m, n, dtype, lanes)


def room(m, n, choice):
    """Elements in local memory of a team: two numbers of each step, lengths, places, and rows on their way out."""
    return 2 * min(m, n) + 5 * n + 2 * choice["Q"]


KERNELS = {
    "geqp3_item": ITEM,
    "geqp3_strips": grid("strip_geqp3.cl", lambda m, n: m, lambda m, n: n, room),
    "geqp3_column": columns("column_geqrf.cl", lambda m, n: n, lambda size: 2 * (size[0] + 5) + 5 * size[1]),
}


def madds(m, n):
    """Multiply-adds of the reflectors, as in geqrf, and of the norms."""
    k = min(m, n)
    return k * (3 * m * n - (m + n) * k * 3 / 2 + k * k)


ROUTINE = Routine(
    "geqp3",
    operands=(
        Matrix("A", "mn", written=True),
        Matrix("jpvt", "n1", written=True, kind="integer", output=True),
        Matrix("tau", "k1", written=True, output=True),
    ),
    madds=madds,
    implied={"k": lambda m, n: min(m, n)},
    search=Search("geqp3", "geqp3.cl", KERNELS, candidates, squares(2)),
)
