"""How a device runs a routine: one launch of one kernel, a work-item for each lane.

The names and arguments are those of `compactla.cpu.run`, but `threads` means nothing here; every array is a pyopencl
Array, index arrays and `info` of lines too. Launches wait for the events of their arrays and leave their own there, so
queues may run out of order. Nothing waits for a launch but `getrfnp` and `download`, which return NumPy arrays.
"""

from typing import NamedTuple

import numpy as np
import pyopencl as cl
import pyopencl.array as cla

from compactla.gpu.program import kernel
from compactla.pack import REAL, View, packed_dtype

GROUP = 32  # work-items of a work-group: few lines still reach every compute unit
RUN = 16  # elements of a matrix that a work-item moves, more where the device has no place for so many
PLACES = 32768  # work-items along the elements of a matrix; some devices take no more than 65535
TILE_ROWS, TILE_BYTES = 8, 512  # the largest block that is a register tile
TILES = {"f": (4, 5), "c": (2, 3)}  # rows of the tiles of larger blocks; the one that makes fewer is taken
COLUMNS = 4  # right-hand sides that a solve of several carries through a line together


def default_vlen(dtype, queue) -> int:
    """Vector length that suits the device: a warp of a GPU, two 64-byte registers of a CPU."""
    if queue.device.type & cl.device_type.CPU:
        return 128 // REAL[dtype.char].itemsize
    return 32


def empty(shape, dtype, queue):
    return cla.empty(queue, shape, dtype)


def upload(a, queue):
    """A C-contiguous copy of a NumPy array on the device."""
    return cla.to_device(queue, np.ascontiguousarray(a))


def download(a) -> np.ndarray:
    """A NumPy copy of a device array, which may have any strides but negative ones; waits for it."""
    if a.size == 0:
        return np.empty(a.shape, a.dtype)
    extent = a.dtype.itemsize + sum((n - 1) * stride for n, stride in zip(a.shape, a.strides, strict=True))
    memory = np.empty(extent, np.uint8)
    cl.enqueue_copy(a.queue, memory, a.base_data, src_offset=a.offset, wait_for=a.events)
    return np.ndarray(a.shape, a.dtype, memory, strides=a.strides)


def broadcast(matrix, nm, queue):
    """`nm` times the same matrix, as a device array with stride 0."""
    a = upload(matrix, queue)
    return cla.Array(
        queue, (nm, *a.shape), a.dtype, strides=(0, *a.strides), data=a.base_data, events=a.events
    )


def ordinary(a) -> View:
    """An ordinary array of three axes as packs of one lane."""
    item = REAL[a.dtype.char].itemsize
    nm, m, n = a.shape
    ps, rs, cs = (stride // item for stride in a.strides)
    return View(a, a.offset // item, nm, m, n, ps, rs, cs, 1, a.dtype, a.queue)


def launch(queue, file, name, dtype, vlen, size, *args, **defines):
    """Run a kernel on `size` = (lanes, elements of each) work-items; a View is a buffer and four numbers."""
    lanes, elements = size
    if lanes * elements == 0:
        return
    arrays, values = [], []
    for arg in args:
        if isinstance(arg, View):
            arrays.append(arg.buffer)
            values += arg.buffer.base_data, *arg.place
        elif isinstance(arg, cla.Array):
            arrays.append(arg)
            values.append(arg.data)
        else:
            values.append(arg)
    run = kernel(queue.context, file, name, dtype, vlen, values, **defines)
    work_items = -(-lanes // GROUP) * GROUP, min(-(-elements // RUN), PLACES)
    events = [event for array in arrays for event in tuple(array.events)]
    event = run(queue, work_items, (GROUP, 1), *values, wait_for=events)
    for array in {id(array.events): array for array in arrays}.values():
        array.add_event(event)


def parts(scalar):
    return float(scalar.real), float(scalar.imag)


def pack(source, A: View, nm, period, unit, threads=None):
    lanes, size = A.npack * A.vlen, A.m * A.n
    args = lanes, nm, A.m, A.n, period, float(unit), ordinary(source), A
    launch(A.queue, "pack.cl", "pack", A.dtype, A.vlen, (lanes, size), *args)


def unpack(A: View, nm, target, threads=None):
    launch(A.queue, "pack.cl", "unpack", A.dtype, A.vlen, (nm, A.m * A.n), nm, A.m, A.n, A, ordinary(target))


def gemm(A: View, B: View, C: View, alpha, beta, conja, conjb, threads=None):
    lanes = C.npack * C.vlen
    args = lanes, C.m, C.n, A.n, *parts(alpha), A, int(conja), B, int(conjb), *parts(beta), C
    launch(C.queue, "gemm.cl", "gemm_batch", C.dtype, C.vlen, (lanes, 1), *args, GEMM_BATCH=1)


def trsm(A: View, B: View, alpha, conj, unit, threads=None):
    lanes = B.npack * B.vlen
    args = lanes, B.m, B.n, int(unit), *parts(alpha), A, int(conj), B
    launch(B.queue, "trsm.cl", "trsm_batch", B.dtype, B.vlen, (lanes, 1), *args, TRSM_BATCH=1)


def getrfnp(A: View, nm, threads=None) -> np.ndarray:
    """Factor in place; waits for the result, to return `info`."""
    lanes = A.npack * A.vlen
    info = empty((nm,), np.int64, A.queue)
    args = lanes, nm, A.m, A.n, A, info
    launch(A.queue, "getrf.cl", "getrfnp_batch", A.dtype, A.vlen, (lanes, 1), *args, GETRF_BATCH=1)
    return download(info)


def specialisation(b, dtype):
    """Macros of the kernels for lines of b x b blocks: a block that fits is one tile of constant size."""
    if 0 < b <= TILE_ROWS and b * b * dtype.itemsize <= TILE_BYTES:
        return {"BLOCK": b, "TILE": b}
    return {"TILE": min(TILES[dtype.kind], key=lambda tile: -(-b // tile))}


class Lines(NamedTuple):
    """Lines of blocks; the arrays are those of `BlockTridiag`."""

    lower: cla.Array
    diag: cla.Array
    upper: cla.Array
    offset: cla.Array
    rows: cla.Array


def factor_lines(lines, info, threads=None):
    lower, diag, upper, offset, _ = lines
    b, lanes = diag.shape[1], info.size
    dtype, vlen = packed_dtype(diag), diag.shape[-1]
    macros = {"FACTOR_LINES": 1, **specialisation(b, dtype)}
    args = lanes, b, lower, diag, upper, offset, info
    launch(diag.queue, "blocktridiag.cl", "factor_lines", dtype, vlen, (lanes, 1), *args, **macros)


def solve_lines(lines, rhs, x, work, threads=None):
    lower, diag, upper, offset, rows = lines
    _, b, nrhs = x.shape
    dtype, vlen = packed_dtype(diag), diag.shape[-1]
    lanes = (offset.size - 1) * vlen
    macros = {"SOLVE_LINES": 1, "COLS": 1 if nrhs == 1 else COLUMNS, **specialisation(b, dtype)}
    args = lanes, b, nrhs, lower, diag, upper, offset, rows, ordinary(rhs), ordinary(x)
    launch(x.queue, "blocktridiag.cl", "solve_lines", dtype, vlen, (lanes, 1), *args, **macros)


def Work(lines, nrhs) -> None:
    """A solve needs no memory but x."""


def gather_blocks(source, index, target, threads=None):
    _gather("gather_blocks", source, index, target)


def gather_values(source, index, target, threads=None):
    _gather("gather_values", source, index, target)


def _gather(name, source, index, target):
    slots, b, vlen = target.shape[0], target.shape[1], target.shape[-1]
    lanes = slots * vlen
    launch(target.queue, "pack.cl", name, source.dtype, vlen, (lanes, b * b), lanes, b, source, index, target)
