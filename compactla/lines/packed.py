"""Arguments of lines that come packed: `compactla.BlockTridiag.from_packed`."""

from itertools import combinations

import numpy as np

from compactla.checks import as_integers, check_contiguous, check_kind, check_queue, check_size, check_whole
from compactla.overlap import share_memory
from compactla.view import COMPLEX


def check_packed_lines(blocks, offset, rows, nlines, queue) -> tuple[np.ndarray, np.ndarray]:
    """Refuse lines that do not fit together; return `offset` and `rows` as arrays of int64 that nobody else has.

    Parameters
    ----------
    blocks : dict
        The arrays `lower`, `diag` and `upper` by name.
    offset, rows, nlines, queue
        As for `compactla.BlockTridiag.from_packed`.
    """
    if queue is not None:
        check_queue(queue, "queue")
    for name, a in blocks.items():
        check_kind(a, queue, name)
    diag = blocks["diag"]
    nslot, b, *lanes = diag.shape if diag.ndim in (4, 5) else (0, 0, 1, 0)
    vlen = lanes[-1]
    if lanes[0] != b or lanes[1:-1] not in ([], [2]) or vlen < 1:
        what = "must be (slots, b, b, V) or (slots, b, b, 2, V), V of 1 and more"
        raise ValueError(f"diag has shape {diag.shape}, {what}")
    offset, rows = as_integers(offset, "offset"), as_integers(rows, "rows")
    if offset.ndim != 1 or len(offset) == 0:
        raise ValueError(f"offset has shape {offset.shape}, must be (packs + 1,)")
    npack = len(offset) - 1
    if offset[0] != 0 or offset[-1] != nslot or (offset[1:] <= offset[:-1]).any():
        raise ValueError(f"offset is {offset}, must rise from 0 to the {nslot} slots of diag")
    if rows.shape != (nslot, vlen):
        raise ValueError(f"rows has shape {rows.shape}, must be {(nslot, vlen)} as diag has slots and lanes")
    if rows.min(initial=0) < -1:
        raise ValueError(f"rows has the entry {rows.min()}, must have none below -1")
    used = np.sort(rows[rows >= 0])
    twice = used[1:][used[1:] == used[:-1]]
    if len(twice):
        raise ValueError(f"rows has the entry {twice[0]} more than once, must have each block row once")
    if -(-check_size(nlines, "nlines") // vlen) != npack:
        raise ValueError(f"nlines is {nlines}, must need exactly {npack} packs of {vlen} lines")
    if np.dtype(diag.dtype) not in COMPLEX:
        raise TypeError(f"diag: dtype is {diag.dtype}, must be float32 or float64")
    for name, a in blocks.items():
        if a.dtype != diag.dtype:
            raise TypeError(f"{name}: dtype is {a.dtype}, must be {diag.dtype} as diag's")
        shape = diag.shape if name == "diag" else (nslot - npack, *diag.shape[1:])
        if a.shape != shape:
            raise ValueError(f"{name} has shape {a.shape}, must be {shape}")
        check_contiguous(a, name)
        if queue is not None:
            check_whole(a, queue, name)
        if isinstance(a, np.ndarray) and not a.flags.writeable:
            raise ValueError(f"{name} is read-only, must be writeable: lines are factored in place")
    for (name, a), (other, c) in combinations(blocks.items(), 2):
        if share_memory(a, c):
            raise ValueError(f"{name} shares memory with {other}, must not: lines are factored in place")
    return offset, rows
