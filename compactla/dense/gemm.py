"""gemm: products of matrices."""

import math
from collections.abc import Iterator

from compactla.dense import _ordinary_gemm
from compactla.layout import Pack
from compactla.routine import Matrix, Routine, views
from compactla.scalars import scalar
from compactla.search import ITEM, LANES, Choice, Kernel, Search, items, registers, squares
from compactla.types import Array, Events


def gemm(
    A: Array, B: Array, C: Array, alpha: Array = 1, beta: Array = 0, transa: str = "N", transb: str = "N", *,
    threads: int | None = None, wait_for: Events = None,
) -> Array:  # fmt: skip
    """Matrix products C <- alpha op(A) op(B) + beta C, in place.

    Parameters
    ----------
    A, B, C : Pack, ndarray, pyopencl.array.Array, or sequence of arrays
        nm matrices each, op(A) of m x k, op(B) of k x n, C of m x n, with the same dtype, and vector length and device.
        They are packs; or arrays (nm, m, n), of any strides; or lists or tuples of arrays (m, n), of which each product
        may have sizes of its own. Instead of A or B, or of both, there may be an array of two axes, one matrix for the
        whole batch. Arrays are NumPy's, or on a device pyopencl's.
    alpha, beta : scalar
        Where `beta` is zero C is overwritten, whatever it held; where `alpha` is zero A and B are not read.
    transa, transb : {"N", "T", "C"}
        op(X) is X, its transpose, or its conjugate transpose.
    threads : int, optional
        Maximum number of CPU threads, including the calling one. Default, and limit: the environment
        variable NUMBA_NUM_THREADS, or the number of processors. Small batches are not shared out.
    wait_for : list of pyopencl.Event, optional
        Events to wait for before starting, beside those of the arrays (devices only).

    Returns
    -------
    Pack, ndarray, pyopencl.array.Array, or sequence of arrays
        C. On a device this does not wait until the work is done: ``C.data.events``, or ``C.events`` of an array, ends
        with its event.

    Raises
    ------
    TypeError, ValueError
        If the operands do not fit together, C is read-only, has several elements in one place, or shares memory with A
        or B, an option is unknown, `threads` is not a positive integer, or given for packs on a device, or `wait_for`
        for operands on the CPU. Nothing was written then, to none of the arrays of a sequence.

    See Also
    --------
    compactla.gemv, compactla.symm, compactla.syrk, compactla.trmm, compactla.kron_apply, compactla.linalg.matmul

    Notes
    -----
    BLAS ``?gemm``, Intel MKL ``mkl_?gemm_compact``; on arrays the interface of Jhurani and Mullowney [1]_. Arrays are
    not packed: rows of C, or columns, are computed as vectors. Matrices with an extent above 64 are left to NumPy, and
    the threads of its BLAS. Sequences cost some 3 to 5 us for each product, since every array is looked at. On a device
    they are one launch for each size, strides, and memory: those of arrays that are parts of one allocation, such as
    slices, are multiplied together, and matrices in buffers of their own one after the other.

    .. [1] C. Jhurani and P. Mullowney, "A GEMM interface and implementation on NVIDIA GPUs for multiple small
       matrices", J. Parallel Distrib. Comput. 75, 2015.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> a, b = np.ones((100, 3, 4)), np.ones((100, 4, 2))
    >>> C = cla.gemm(cla.pack(a), cla.pack(b), cla.Pack.zeros(100, 3, 2))
    >>> bool((C.unpack() == a @ b).all())
    True
    >>> c = cla.gemm(a, b, np.ones((100, 3, 2)), alpha=-1, beta=4)  # nothing is packed
    >>> float(c.max())
    0.0
    """
    if type(A) is type(B) is type(C) is Pack and A.kind == B.kind == C.kind:
        a, b, c = A.view, B.view, C.view
    elif _ordinary_gemm.is_ordinary(C) and type(A) is not Pack and type(B) is not Pack:
        if transa != "N" or transb != "N":
            transa, transb = ROUTINE.chosen(transa, transb)
        return _ordinary_gemm.gemm(ROUTINE, A, B, C, alpha, beta, transa, transb, threads, wait_for)
    else:
        a, b, c = views(A=A, B=B, C=C)
    conj = None
    if transa != "N" or transb != "N":
        transa, transb = ROUTINE.chosen(transa, transb)
        a, b = a if transa == "N" else a.T, b if transb == "N" else b.T
        conj = (transa == "C", transb == "C", False) if C.is_complex else None
    alpha, beta = scalar("alpha", alpha, C), scalar("beta", beta, C)
    if a.n == 0:  # an empty sum is zero, whatever multiplies it
        alpha = type(alpha)(0)
    ROUTINE.run((a, b, c), (alpha, beta), conj, (), 0, None, threads, wait_for)
    return C


def candidates(size, dtype, lanes) -> Iterator[Choice]:
    m, n, k = size
    if registers(k * n + n + k, dtype) <= 100:
        yield from items("gemm_item")
    for number, tile in enumerate(tiles(m, n, dtype)):
        if number == 1 and dtype.char in "dD" and min(size) > 12:
            yield from units(size, lanes)
        team = -(-m // tile[0]) * -(-n // tile[1])
        for depth in depths(k):
            for some in sorted(lanes, key=lambda some: abs(math.log(some * team / 200))):
                for ahead, rounds in ((2, 1), (0, 1), (3, 1), (1, 8), (3, 8)):
                    if 64 <= some * team <= 256 or some == lanes[0]:
                        yield {"kernel": "gemm_team", "LANES": some, "TI": tile[0], "TJ": tile[1], "DEPTH": depth,
                               "AHEAD": ahead, "ROUNDS": rounds}  # fmt: skip


def units(size, lanes) -> Iterator[Choice]:
    """Choices of the kernel for NVIDIA's matrix units."""
    warps, steps = 1 if max(size) <= 32 else 2, -(-size[2] // 4)
    for some, depth, tall in ((8, 8, 0), (16, 4, 1), (16, 4, 0)):
        if some in lanes and steps % (depth // 4) == 0:
            for ahead, rounds in ((2, 1), (0, 1), (0, 2)):
                yield {"kernel": "gemm_mma", "LANES": some, "DEPTH": depth, "WARPS": warps, "AHEAD": ahead,
                       "ROUNDS": rounds, "TALL": tall}  # fmt: skip


def tiles(m, n, dtype):
    """Rows and columns of tiles for an m x n matrix: those that fit without a rest and are of a good size first."""
    limit = 512 // dtype.itemsize  # lanes of a tile: half of the registers
    pairs = [(i, j) for i in range(1, min(m, 16) + 1) for j in range(1, min(n, 8) + 1) if i * j <= limit]
    rows, columns = (5, 4) if max(m, n) < 20 else (8, 8 if dtype.char == "f" else 4)

    def cost(tile):
        waste = -(-m // tile[0]) * tile[0] * -(-n // tile[1]) * tile[1] / (m * n)
        return waste**6 * (1 + abs(math.log(tile[0] / rows)) + abs(math.log(tile[1] / columns)))

    return sorted((pair for pair in pairs if pair[0] >= pair[1] or pair[0] == m), key=cost)[:5]


def depths(k):
    """Depths of the part of A in local memory, divisors of k near 8 first."""
    whole = [depth for depth in range(2, min(k, 16) + 1) if k % depth == 0] or [min(k, 8)]
    return sorted(whole, key=lambda depth: abs(depth - (4 if k > 20 else 7)))[:3]


TEAM = Kernel(
    {"LANES": LANES, "TI": range(1, 17), "TJ": range(1, 9), "DEPTH": range(1, 17), "AHEAD": range(4),
     "ROUNDS": range(1, 65)},
    group=lambda choice, size: choice["LANES"] * -(-size[0] // choice["TI"]) * -(-size[1] // choice["TJ"]),
    local=lambda choice, size: (3 if choice["AHEAD"] == 3 else 1) * sum(size[:2]) * choice["DEPTH"] * choice["LANES"],
)  # fmt: skip

UNITS = Kernel(
    {
        "LANES": LANES,
        "DEPTH": range(4, 33, 4),
        "WARPS": range(1, 5),
        "AHEAD": range(3),
        "ROUNDS": range(1, 65),
        "TALL": range(2),
    },
    group=lambda choice, size: 32 * choice["LANES"] * choice["WARPS"],
    local=lambda choice, size: choice["LANES"] * (32 * halves(choice, size) + max(1, 16 // choice["LANES"])),
)


def halves(choice, size) -> int:
    """Halves of blocks of 8 x 8 elements that are in local memory of each matrix: of A and B, then of C."""
    rows, columns = -(-size[0] // 8), -(-size[1] // 8)
    of_factors = choice["DEPTH"] // 4 * (rows + columns)
    return max(of_factors, 2 * rows)


ROUTINE = Routine(
    "gemm",
    operands=(Matrix("A", "mk"), Matrix("B", "kn"), Matrix("C", "mn", written=True, scaled_by="beta")),
    madds=lambda m, n, k: m * n * max(k, 1),
    options={"transa": "NTC", "transb": "NTC"},
    scalars={"alpha": 1, "beta": 0},
    fixed=frozenset({(1, 0), (1, 1), (-1, 1)}),
    search=Search("gemm", "gemm.cl", {"gemm_item": ITEM, "gemm_team": TEAM, "gemm_mma": UNITS}, candidates, squares(3)),
)
