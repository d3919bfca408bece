"""What Krylov methods for one large system do with vectors on a device; arguments as for `compactla.cpu.krylov`."""

import numpy as np
from pyopencl.tools import ImmediateAllocator, MemoryPool

from compactla.gpu.arrays import download, empty, reused
from compactla.gpu.launch import launch
from compactla.gpu.program import kernel

GROUP = 128  # work-items of a work-group
EACH = 8  # numbers of a work-item, at least
GROUPS = 1024  # that keep a device busy


def room(shape, dtype, queue):
    """The sums are put where those before them were."""
    return empty(shape, dtype, queue, MemoryPool(ImmediateAllocator(queue)))


def dots(W, rows, others, scale=1.0, wait_for=()):
    n, count = W.shape[1], len(rows)
    if scale != 1:
        args = n * len(others), others.start * n, float(scale)
        start(W, wait_for, "scale_rows", pieces(args[0]), args, ())
    shape = pieces(n, count), len(others), count
    sums = empty(shape, W.dtype, W.queue, reused(W))
    args = n, rows.start, rows.step, count, others.start, len(others)
    start(W, wait_for, "dots", shape[0], args, (sums,), count)
    return total(sums)


def combine(W, row, scale, rows=range(0), factors=(), against=None, measured=True, wait_for=()):
    n = W.shape[1]
    h = np.array((scale, *factors), W.dtype)
    h = empty(h.shape, h.dtype, W.queue, reused(W), h)
    sums = empty((pieces(n), 2), W.dtype, W.queue, reused(W))
    args = n, rows.start, rows.step, len(rows), row, -1 if against is None else against
    start(W, wait_for, "combine", len(sums), args, (sums,), before=(h,))
    if not measured:
        return None
    squares, product = total(sums)
    return squares.real, product


def pieces(n, count=1):
    """How many work-groups share a row, of so many rows."""
    return min(-(-n // (GROUP * EACH)), -(-GROUPS // count))


def start(W, wait_for, name, groups, args, after, columns=1, before=()):
    """Launch a kernel for these numbers and W, with arrays before and after it."""
    arrays = *before, W, *after
    values = *args, *(a.data for a in arrays)
    run = kernel(W.queue, "krylov.cl", name, W.dtype, 1, values, GROUP=GROUP)
    launch(W.queue, wait_for, run, (groups * GROUP, columns), (GROUP, 1), arrays, values)


def total(sums):
    """The sums over all work-groups, in double precision."""
    wide = np.complex128 if sums.dtype.kind == "c" else np.float64
    return download(sums).sum(0, wide)
