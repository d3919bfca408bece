"""Lines that are given as three arrays of blocks: checked, and packed or cut into parts; see `BlockTridiag`."""

from typing import Any

import numpy as np

from compactla.backends import backend
from compactla.checks import as_array, as_integers, check_contiguous, check_device_array, check_dtype, is_device_array
from compactla.layout import packed
from compactla.lines.cutting import BlockFormat, check_periodic, plan_cut
from compactla.lines.in_parts import KINDS, PartedLines
from compactla.lines.options import Options
from compactla.lines.packed import PackedLines, one_lane
from compactla.lines.sizes import PADDING


def lines_of(
    lower, diag, upper, vlen, queue, parts, periodic, sizes: np.ndarray | None, options: dict
) -> tuple[list, Any, Options]:
    """The arrays that lines are factored from, the lines, and their `Options`, from the arguments of `BlockTridiag`.

    `sizes`, (nlines, K), are those of block rows of which some are padded.
    """
    blocks, ring = check_lines(lower, diag, upper, periodic, queue)
    (nlines, K, b, _), dtype = blocks[1].shape, blocks[1].dtype
    chosen = Options(dtype, **options)
    format = BlockFormat.of(b, dtype, vlen, queue)
    pieces, format = plan_cut(np.full(nlines, K, np.int64), ring, parts, format, chosen, vlen is not None)
    if b and (len(pieces.position) or sizes is not None):
        return *part(blocks, pieces, sizes, format, chosen), chosen
    lines = pack(blocks, format, chosen)
    return lines.blocks, lines, chosen


def check_line_sizes(sizes: Any, shape: tuple[int, ...]) -> np.ndarray | None:
    """The sizes of block rows as an array (nlines, K); None where all are whole. `shape` is that of `diag`."""
    if sizes is None:
        return None
    nlines, K, b = shape[:3]
    size = as_integers(sizes, "sizes")
    if size.shape not in ((K,), (nlines, K)):
        raise ValueError(f"sizes has shape {size.shape}, must be ({K},) or ({nlines}, {K}) to fit diag")
    wrong = size[(size < 1) | (size > b)]
    if len(wrong):
        raise ValueError(f"sizes holds {wrong[0]}, must hold numbers from 1 to {b}, the size of blocks")
    return np.broadcast_to(size, (nlines, K)) if (size < b).any() else None


def check_blocks(a, name, diag, queue):
    """Blocks as an array, on the device of the queue if `diag` is on one."""
    on_device = is_device_array(diag)
    if is_device_array(a) != on_device:
        raise TypeError(f"{name} is a {type(a).__name__}, must be an array of the kind of diag")
    if on_device:
        check_device_array(a, queue, name)
        check_contiguous(a, name)
    a = a if on_device else as_array(a, name)
    check_dtype(a.dtype, name)
    if a.ndim != 4 or a.shape[2] != a.shape[3]:
        raise ValueError(f"{name} has shape {a.shape}, must be (lines, blocks, b, b)")
    return a


def check_lines(lower, diag, upper, periodic, queue) -> tuple[list, np.ndarray]:
    """The three arrays, and which lines are rings: none of those of one block, to which its couplings are added."""
    blocks = [check_blocks(a, name, diag, queue) for name, a in zip(KINDS, (lower, diag, upper), strict=True)]
    (nlines, K, b, _), dtype = blocks[1].shape, blocks[1].dtype
    if K < 1:
        raise ValueError(f"diag has shape {blocks[1].shape}, must have at least one block a line")
    ring, closed = check_periodic(periodic, nlines), bool(np.any(periodic))
    must = nlines, K - 1 + closed, b, b
    for name, a in (("lower", blocks[0]), ("upper", blocks[2])):
        if a.shape != must:
            raise ValueError(f"{name} has shape {a.shape}, must be {must} to fit diag and periodic")
        if a.dtype != dtype:
            raise TypeError(f"{name}: dtype is {a.dtype}, must be {dtype} as diag")
    if not closed or (K > 1 and nlines * b):
        return blocks, ring
    none = np.empty((nlines, K - 1, b, b), dtype)
    diag = fold(blocks[0], blocks[1], blocks[2], ring, queue) if K == 1 else blocks[1]
    return [none, diag, none], np.zeros_like(ring)


def pack(blocks, format: BlockFormat, options) -> PackedLines:
    """Lines that are not cut, of the arrays that `BlockTridiag` is given."""
    (nlines, K, b, _), vlen = blocks[1].shape, format.vlen
    arrays = []
    for name, a in zip(KINDS, blocks, strict=True):
        A = packed(a.reshape(nlines, a.shape[1] * b, b), vlen, format.queue, max(b, 1), int(name == "diag"))
        arrays.append(A.data.reshape(A.data.shape[0] * a.shape[1], b, *A.data.shape[2:]))
    npack = -(-nlines // vlen)
    line = np.arange(npack * vlen, dtype=np.int64).reshape(npack, 1, vlen)
    rows = np.where(line < nlines, line * K + np.arange(K).reshape(1, K, 1), -1).reshape(npack * K, vlen)
    lower, diag, upper = arrays
    offset = np.arange(npack + 1, dtype=np.int64) * K
    return PackedLines(lower, diag, upper, offset, rows, nlines, options, format.queue)


def part(blocks, pieces, sizes, format: BlockFormat, options) -> tuple[list, PartedLines]:
    """Copies of the arrays that `BlockTridiag` is given, and the lines that are factored from these in parts."""
    run = backend(format.queue)
    copies = [a.copy() if is_device_array(a) else run.upload(np.array(a, order="C"), format.queue) for a in blocks]
    nlines, K, *_ = blocks[1].shape
    couplings = blocks[0].shape[1]

    step = {"lower": -1, "diag": 0, "upper": 1}

    def find(kind, position):
        line, k = np.divmod(position, K)
        block, there = line * couplings + (k if kind == "upper" else (k - 1) % K), position >= 0
        if kind == "diag":
            block = position
        if sizes is None:
            return np.where(there, block, -2 if kind == "diag" else -1)
        own = np.where(there, sizes[line, k], 0), np.where(there, sizes[line, (k + step[kind]) % K], 0)
        place = places_in_blocks(block, *own, format.b)
        if kind == "diag":
            diagonal = place[:, range(format.b), range(format.b)]
            place[:, range(format.b), range(format.b)] = np.where(
                diagonal >= 0, diagonal, np.where(there, PADDING, -2)[:, None]
            )
        return place

    return copies, PartedLines(pieces, np.arange(nlines * K, dtype=np.int64), find, format, options)


def places_in_blocks(block, rows, columns, b) -> np.ndarray:
    """Places of the first rows and columns of these blocks, (n, V), among the numbers of all: (n, b, b, V), -1 past."""
    i, j = np.arange(b)[:, None, None], np.arange(b)[:, None]
    block, rows, columns = (a[:, None, None, :] for a in (block, rows, columns))
    return np.where((i < rows) & (j < columns), (block * b + i) * b + j, -1)


def fold(lower, diag, upper, ring, queue):
    """`diag` of lines of one block plus, for rings, the couplings of that block to itself; such lines are no rings."""
    run = backend(queue)
    nlines, _, b, _ = diag.shape
    own, sums = np.where(ring, np.arange(nlines, dtype=np.int64), -1)[:, None], diag
    for a in (lower, upper):
        taken = run.empty((nlines, b, b), diag.dtype, queue)
        source = a.copy() if is_device_array(a) else run.upload(np.ascontiguousarray(a), queue)
        run.gather_blocks(source.reshape(nlines, b, b), run.upload(own, queue), one_lane(taken))
        sums = sums + (taken if is_device_array(diag) else run.download(taken)).reshape(diag.shape)
    return sums
