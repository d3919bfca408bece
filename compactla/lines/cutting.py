"""Choice of where lines are cut into parts, and into how many; `in_parts` factors and solves the parts."""

from typing import Any, NamedTuple

import numpy as np

from compactla.backends import backend
from compactla.checks import as_array, check_size
from compactla.dtypes import REAL
from compactla.layout import check_vlen
from compactla.types import Queue

# Lines are cut where a solve should get GAIN times as fast on a device, and CPU_GAIN times on the CPU: two lines of
# 8,000 blocks of 3 x 3, which should gain 2.1 there, gain 1.3, and factors take longer. It is COST times the work; and
# there are PACKS packs of parts for each thread, so that they are shared out evenly.
GAIN, CPU_GAIN, COST, PACKS = 1.5, 2.5, 1.8, 4
UNUSED = 1 << 20  # bytes of unused lanes that are put up with


class BlockFormat(NamedTuple):
    """Format of the blocks of lines, and their device."""

    b: int
    dtype: np.dtype
    vlen: int
    queue: Any  # None on the CPU

    @classmethod
    def of(cls, b: int, dtype: np.dtype, vlen: int | None, queue: Queue) -> "BlockFormat":
        """The format with a vector length that suits the blocks unless one is given, which is checked."""
        if vlen is None:
            vlen = backend(queue, "lines").vector_length(b, dtype, queue)
        return cls(b, dtype, check_vlen(vlen, dtype, queue), queue)

    def empty(self, slots, vlen=None):
        """Room for so many slots of packed blocks."""
        pair = [2] if self.dtype.kind == "c" else []
        shape = slots, self.b, self.b, *pair, self.vlen if vlen is None else vlen
        return backend(self.queue).empty(shape, REAL[self.dtype.char], self.queue)

    def upload(self, index):
        """Indices, where the blocks live."""
        return backend(self.queue).upload(np.ascontiguousarray(index, np.int64), self.queue)


class Cut(NamedTuple):
    """A cut of lines into parts. Positions count the block rows, one line after the other."""

    ring: np.ndarray  # (nlines,): whether a line closes to a ring
    first: np.ndarray  # (nlines,): position of the first block row of a line
    line: np.ndarray  # (nparts,): which line a part is of
    start: np.ndarray  # (nparts,): position of its first block row
    length: np.ndarray  # (nparts,)
    before: np.ndarray  # (nparts,): number of the separator before it, -1 where the line begins
    after: np.ndarray  # (nparts,): the same for the one behind it
    position: np.ndarray  # (nseparators,)
    previous: np.ndarray  # (nseparators,): number of the part before a separator
    following: np.ndarray  # (nseparators,): the same for the one behind it


def cut(length, ring, parts) -> Cut:
    """Cut line i, of ``length[i]`` block rows, which is a ring where ``ring[i]``, into ``parts[i]`` even parts.

    Examples
    --------
    A line of 8 block rows in 3 parts, and a ring of 5 in 2; ``|`` are the separators::

        position   0 1 | 3 4 | 6 7     8 9 | 11 |     (and on with 8)
        part         0     1     2      3     4
        separator      0     1            2      3

    >>> pieces = cut(np.array([8, 5]), np.array([False, True]), np.array([3, 2]))
    >>> pieces.start.tolist(), pieces.length.tolist()
    ([0, 3, 6, 8, 11], [2, 2, 2, 2, 1])
    >>> pieces.before.tolist(), pieces.after.tolist()
    ([-1, 0, 1, 3, 2], [0, 1, -1, 2, 3])
    >>> pieces.position.tolist(), pieces.previous.tolist(), pieces.following.tolist()
    ([2, 5, 10, 12], [0, 1, 3, 4], [1, 2, 4, 3])
    """
    first = np.cumsum(length) - length
    line = np.repeat(np.arange(len(length)), parts)
    first_part = (np.cumsum(parts) - parts)[line]
    place = np.arange(len(line), dtype=np.int64) - first_part  # of a part on its line
    # Block rows without the separators, of which a ring has one more: some parts have one more than the others.
    least, longer = (a[line] for a in np.divmod(length - parts + ~ring, parts))
    size = least + (place < longer)
    start = first[line] + place * (least + 1) + np.minimum(place, longer)
    is_last = place == parts[line] - 1
    separated = ring[line] | ~is_last  # from what comes behind
    after = np.where(separated, np.cumsum(separated, dtype=np.int64) - 1, -1)
    before = np.where(place > 0, np.roll(after, 1), after[first_part + parts[line] - 1])
    previous = np.flatnonzero(separated)
    following = np.where(is_last, first_part, np.arange(1, len(line) + 1, dtype=np.int64))[previous]
    return Cut(ring, first, line, start, size, before, after, (start + size)[previous], previous, following)


def check_periodic(periodic, nlines) -> np.ndarray:
    """Flags of the lines that are rings, (nlines,) of bool."""
    ring = as_array(periodic, "periodic")
    if ring.dtype != bool:
        raise TypeError(f"periodic is of {ring.dtype}, must be a bool, or an array with one for each line")
    if ring.shape not in ((), (nlines,)):
        raise ValueError(f"periodic has shape {ring.shape}, must be a bool, or an array of shape ({nlines},)")
    return np.broadcast_to(ring, nlines)


def count_parts(parts, length, ring, blocks: BlockFormat, whole="", narrow=True) -> np.ndarray:
    """Into how many parts each line is cut: `parts`, or what is chosen if that is None, but no more than fit it.

    `whole` names an option for which lines have to be left as they are.
    """
    if whole and ring.any():
        raise ValueError(f"{whole} is for lines that are no rings, periodic must be False with it")
    if whole and parts is None:
        chosen = np.ones(len(length), np.int64)
    elif whole and parts != 1:
        raise ValueError(f"parts is {parts}, must be 1 or None with {whole}, which is for whole lines")
    elif parts is None:
        chosen = choose_parts(length, blocks, narrow)
    elif check_size(parts, "parts") < 1:
        raise ValueError(f"parts is {parts}, must be at least 1")
    else:
        chosen = np.full(len(length), min(parts, length.max(initial=1)), np.int64)
    return np.minimum(chosen, np.maximum((length + ~ring) // 2, 1))


def choose_parts(length, blocks: BlockFormat, narrow=True) -> np.ndarray:
    """Into how many parts to cut lines of these lengths: one, where the device is not much faster with more.

    Times are in steps, of one block row in all lines of a pack. `narrow`: whole lines get no more lanes than they need.
    """
    b, dtype, vlen, queue = blocks
    whole, nrow = np.ones(len(length), np.int64), length.sum()
    if nrow == 0 or b == 0:
        return whole
    kernels = backend(queue, "lines")
    lanes, calls = kernels.concurrency(b, dtype, vlen, queue)
    packs = np.sort(length)[::-vlen].sum()
    before = max(length.max(), packs * vlen / lanes)
    if narrow and (few := enough_lanes(length, whole, blocks)) < vlen:
        before *= kernels.relative_step(b, dtype, few, vlen, 3 * b * b * dtype.itemsize * nrow)
    # Parts that keep the device busy, but no shorter than what makes them and two more levels of cuts equally long.
    wanted = length * min(PACKS * lanes / nrow, length.max() ** (-1 / 3))
    parts = np.where(wanted < vlen, np.maximum(wanted, 1), np.round(wanted / vlen) * vlen).astype(np.int64)
    after = COST * max(nrow / lanes, (length / parts).max()) + parts.max() + calls
    return parts if before > (CPU_GAIN if queue is None else GAIN) * after else whole


def enough_lanes(length, parts, blocks: BlockFormat) -> int:
    """Vector length for lines in so many parts: theirs, or less where that would leave much memory to unused lanes.

    Results are the same bit for bit. Short lines are left to the kernels that many lines have too.
    """
    b, dtype, vlen, _ = blocks
    count, longest = int(parts.sum()), (length / parts).max(initial=0)
    lanes = 1 << max(count - 1, 0).bit_length()
    unused = (vlen - count) * longest * 3 * b * b * dtype.itemsize
    return lanes if lanes < vlen and unused > UNUSED else vlen


def plan_cut(length, ring, parts, blocks: BlockFormat, options, vlen_given) -> tuple[Cut, BlockFormat]:
    """The cut of lines, with `parts` as for `BlockTridiag`, and the format that suits so many parts."""
    count = count_parts(parts, length, ring, blocks, options.whole, not vlen_given)
    if not vlen_given:
        blocks = blocks._replace(vlen=enough_lanes(length, count, blocks))
    return cut(length, ring, count), blocks
