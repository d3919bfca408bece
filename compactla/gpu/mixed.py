"""Mixed precision on a device: the names and arguments are those of `compactla.cpu.mixed`."""

import pyopencl as cl

from compactla.gpu.launch import RUN, launch_lanes, ordinary
from compactla.view import packed_dtype

CHUNKS = 64  # work-items that compute the residual of a line


def residual_lines(lines, blocks, rhs, x, r, work, wait_for=()):
    """r <- rhs - A x for the blocks of the lines before they were factored."""
    queue, b, nrhs = x.queue, x.shape[1], x.shape[2]
    dtype, vlen = packed_dtype(lines.diag), lines.diag.shape[-1]
    lanes = (lines.offset.size - 1) * vlen
    if x.size:
        args = lanes, b, nrhs, *blocks, lines.offset, lines.rows, ordinary(rhs), ordinary(x), ordinary(r)
        launch_lanes(queue, wait_for, "blocktridiag.cl", "residual_lines", dtype, vlen, (lanes, RUN * CHUNKS), *args,
                     RESIDUAL_LINES=1)  # fmt: skip


def check_storage(storage, queue):
    """Every device loads and stores all types of `compactla.lines.storage`."""


def round_blocks(source, target, storage, limit, overflow, wait_for=()):
    """Round numbers to a smaller type; ``overflow[0]`` <- 1 if one is larger than `limit`."""
    args = source.size, source, target, float(limit), overflow
    launch_lanes(source.queue, wait_for, "stored.h", "round_blocks", source.dtype, 1, (source.size, 1), *args,
                 ROUND_BLOCKS=1, CLA_STORED=f"CLA_STORED_{storage.upper()}")  # fmt: skip


def copy(source, target, wait_for=()):
    """target <- source, C-contiguous arrays of one size."""
    if source.nbytes:
        event = cl.enqueue_copy(
            source.queue, target.base_data, source.base_data, byte_count=source.nbytes, src_offset=source.offset,
            dst_offset=target.offset, wait_for=[*wait_for, *source.events, *target.events],
        )  # fmt: skip
        source.events[:], target.events[:] = (event,), (event,)
