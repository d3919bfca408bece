"""Operations of Krylov methods for one large system on vectors on a device; arguments as for `compactla.cpu.krylov`."""

from typing import Any

import numpy as np

from compactla.calls.launch import NOW, Launch
from compactla.gpu.arrays import download, empty, new, pool, reused
from compactla.gpu.launch import enqueue
from compactla.gpu.program import kernel
from compactla.types import Array, Queue

GROUP = 128  # work-items of a work-group
EACH = 8  # numbers of a work-item, at least
GROUPS = 1024  # that keep a device busy


class Rows:
    """So many vectors of n numbers, unset; ``rows[k]`` is one of them.

    The sums are put where those before them were. In `blocks` whoever reads vectors in another shape keeps them.
    """

    def __init__(self, count: int, n: int, dtype: np.dtype, queue: Queue, launch: Launch = NOW) -> None:
        self.W = empty((count, n), dtype, queue, pool(queue))
        self.vectors = [self.W[k] for k in range(count)]
        self.n, self.launch = n, launch
        self.blocks: dict = {}

    def __getitem__(self, k: int) -> Array:
        return self.vectors[k]

    def dots(self, rows: range, others: range, scale: float = 1.0) -> Any:
        W, n, count = self.W, self.n, len(rows)
        if scale != 1:
            scaled = n * len(others), others.start * n, float(scale)
            start(W, self.launch, "scale_rows", pieces(scaled[0]), scaled, ())
        shape = pieces(n, count), len(others), count
        sums = empty(shape, W.dtype, W.queue, reused(W))
        args = n, rows.start, rows.step, count, others.start, len(others)
        start(W, self.launch, "dots", shape[0], args, (sums,), count)
        return total(sums)

    def combine(self, *made: Any, against: int | None = None, measured: bool = True) -> Any:
        W, n = self.W, self.n
        sums = empty((pieces(n), 2), W.dtype, W.queue, reused(W))
        for row, scale, rows, factors in made:
            h = np.array((scale, *factors), W.dtype)
            h = new(h.shape, h.dtype, W.queue, reused(W), h)
            args = n, rows.start, rows.step, len(rows), row, -1 if against is None else against
            start(W, self.launch, "combine", len(sums), args, (sums,), before=(h,))
        if not measured:
            return None
        squares, product = total(sums)
        return squares.real, product


def pieces(n, count=1):
    """How many work-groups share a row, of so many rows."""
    return min(-(-n // (GROUP * EACH)), -(-GROUPS // count))


def start(W, launch, name, groups, args, after, columns=1, before=()):
    """Launch a kernel for these numbers and W, with arrays before and after it."""
    arrays = *before, W, *after
    values = *args, *(a.data for a in arrays)
    run = kernel(W.queue, "krylov.cl", name, W.dtype, 1, values, GROUP=GROUP)
    enqueue(W.queue, launch, run, (groups * GROUP, columns), (GROUP, 1), arrays, values)


def total(sums):
    """The sums over all work-groups, in double precision."""
    wide = np.complex128 if sums.dtype.kind == "c" else np.float64
    return download(sums).sum(0, wide)
