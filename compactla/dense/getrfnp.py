"""getrfnp: LU factorizations without pivoting."""

import math
from collections.abc import Iterator

from compactla.calls.recording import repeats
from compactla.layout import Pack
from compactla.routine import Matrix, Routine, check_packs
from compactla.scalars import real_scalar
from compactla.search import ITEM, REGISTERS, Choice, Search, items, registers, squares, team
from compactla.types import Array, Events


@repeats("A", "info")
def getrfnp(
    A: Pack, tiny: float = 0.0, *, info: Array = None, threads: int | None = None, wait_for: Events = None
) -> Array:
    """LU factorizations without pivoting, A <- L\\U, in place.

    Parameters
    ----------
    A : Pack
        nm matrices of m x n; on return U is on and above the diagonal, and L, with a unit diagonal, below.
    tiny : real scalar
        Amount that every pivot moves away from zero by when elimination comes to it: it is subtracted from a pivot
        whose real part is negative, and added to all others. L U is then A with such a diagonal added.
    info : (nm,) ndarray of int64 or pyopencl.array.Array of int32, optional
        Where the result goes, where A lives: contiguous, on a device at the beginning of its buffer.
    threads : int, optional
        Maximum number of CPU threads, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        Events to wait for before starting (devices only), as for `compactla.gemm`.

    Returns
    -------
    (nm,) ndarray of int64 or pyopencl.array.Array of int32
        `info`, or a new NumPy array. For each matrix 0, or 1 + the index of its first pivot that is exactly zero. The
        factorization goes on without scaling that column, as LAPACK's ``?getf2`` does; no other matrix is touched. For
        packs on a device this waits until the device is done, unless `info` is given: its ``events`` end with that of
        the factorization.

    Raises
    ------
    TypeError, ValueError
        If A is not a pack, or is read-only, `tiny` is negative, not finite or not real, `info` is no such array, or
        shares memory with A, or `threads` or `wait_for` is invalid, see `compactla.gemm`.

    See Also
    --------
    compactla.getrsnp, compactla.getrinp, compactla.getrf

    Notes
    -----
    Intel MKL ``mkl_?getrfnp_compact``, with an `info` for each matrix, and the `tiny` of KokkosKernels' batched LU and
    ``AddRadial``: no pivot is zero then, and a solve with the factors is a preconditioner for A, or the first step of
    an iterative refinement. Columns are scaled by the reciprocal of their pivot, which overflows for subnormal pivots:
    matrices of so small entries have to be scaled first.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> A = cla.pack(np.array([[[2.0, 1.0], [1.0, 1.0]], [[0.0, 1.0], [1.0, 1.0]]]))
    >>> cla.getrfnp(A)
    array([0, 1])
    >>> A = cla.pack(np.array([[[0.0, 1.0], [1.0, 1.0]]]))
    >>> cla.getrfnp(A, tiny=0.5), A.unpack()
    (array([0]), array([[[ 0.5,  1. ],
            [ 2. , -1.5]]]))
    """
    if type(A) is not Pack:
        check_packs(A=A)
    if type(tiny) is not float or tiny != 0 or A.is_complex:
        tiny = real_scalar("tiny", tiny, A)
        if not 0 <= tiny.real < math.inf:
            raise ValueError(f"tiny is {tiny!r}, must be finite and not negative")
    return ROUTINE.run((A.view,), (tiny,), None, (), A.nm, info, threads, wait_for)


def candidates(size, dtype, lanes) -> Iterator[Choice]:
    m, n = size
    if registers(m * n, dtype) <= 164:
        yield from items("getrfnp_item")
    widths = {c for c in (1, 2, 3, 4) if c <= n and (c > 1 or registers(m, dtype) >= 64)}
    for columns in sorted(widths, key=lambda c: (c == 1, -(-n // c) * c - n)):
        if registers(columns * m, dtype) <= REGISTERS:
            for panel in (0,) if columns == 1 else (1, 0) if n > 24 else (0, 1):
                team = -(-n // columns)
                for some in sorted(lanes, key=lambda some: abs(math.log(some * team / 160))):
                    if 64 <= some * team <= 512:
                        yield {"kernel": "getrfnp_team", "LANES": some, "COLUMNS": columns, "TEAM": team,
                               "PANEL": panel}  # fmt: skip


def local(choice, size) -> int:
    columns = choice["COLUMNS"] if choice["PANEL"] else 1  # that go through local memory together
    return (2 * columns * size[0] + choice["TEAM"]) * choice["LANES"]


ROUTINE = Routine(
    "getrfnp",
    operands=(Matrix("A", "mn", written=True),),
    madds=lambda m, n: m * n * min(m, n) / 2 - min(m, n) ** 3 / 6,
    scalars={"tiny": 0},
    real_scalars=True,
    fixed=frozenset({(0,)}),
    free=True,
    outputs=("info",),
    search=Search(
        "getrfnp", "getrfnp.cl", {"getrfnp_item": ITEM, "getrfnp_team": team({"PANEL": range(2)}, local)}, candidates,
        squares(2),
    ),
)  # fmt: skip
