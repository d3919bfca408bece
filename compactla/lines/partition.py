"""Lines that are cut into parts: few long lines, which would leave a device idle, and lines that close to rings.

Single block rows, the separators, cut a line into parts, which are lines in their own right: shorter, more, and
independent. With E and F for what couples a part T to the separators before and behind it, its unknowns are

    x = y - (inv(T) E) x_before - (inv(T) F) x_after,    T y = rhs,

and the block rows of the separators, with this put in, are lines again, cut in their turn where they are long. A ring
has as many separators as parts, and so have its separators, until a single one is left, which is coupled to itself.

inv(T) E and inv(T) F, the spikes, are stored. A solve passes over the parts with their factors, then with the spikes,
and reads 5 b^2 numbers a block row where it reads 3 b^2 of whole lines: 1.7 times as many, and it takes 1.6 times as
long where all lanes and threads are busy either way. So one line on 4 lanes should be solved 2.4 times as fast in one
thread and 4.8 times in two; it is 2.4 to 2.7 and 3.2 to 4.7 times, for 100,000 blocks of 3 to 10. A factorization has
8 b^3 operations more than 4.7 b^3: with values taken from a matrix it is 1.5 to 1.9 times as fast in one thread. On a
GPU a solve is three launches for each level of cuts, and one more: 7 or 10 for such a line.
"""

from typing import Any, NamedTuple

import numpy as np

from compactla.checks import as_array, check_launch, check_size, is_device_array
from compactla.copies import Copied
from compactla.dense.gemm import gemm
from compactla.layout import Pack
from compactla.lines.blocktridiag import BlockTridiag
from compactla.lines.extraction import sort_into_packs
from compactla.lines.pivots import FACTOR, LARGEST, REPLACED, SMALLEST, WATCHED
from compactla.view import REAL, backend


class Cut(NamedTuple):
    """Where lines are cut. Positions count their block rows, one line after the other."""

    line: np.ndarray  # (nparts,): which line a part is of
    start: np.ndarray  # (nparts,): position of its first block row
    length: np.ndarray  # (nparts,)
    before: np.ndarray  # (nparts,): number of the separator before it, -1 where the line begins
    after: np.ndarray  # (nparts,): the same for the one behind it
    position: np.ndarray  # (nseparators,)
    previous: np.ndarray  # (nseparators,): number of the part before a separator
    following: np.ndarray  # (nseparators,): the same for the one behind it


def cut(length, ring, parts) -> Cut:
    """Cut line i, of ``length[i]`` block rows, which is a ring where ``ring[i]``, into ``parts[i]`` even parts."""
    nparts = int(parts.sum())
    line = np.repeat(np.arange(len(length)), parts)
    first = (np.cumsum(parts) - parts)[line]
    place = np.arange(nparts) - first
    least, longer = np.divmod(length - parts + ~ring, parts)
    size = least[line] + (place < longer[line])
    start = (np.cumsum(length) - length)[line] + place * (least[line] + 1) + np.minimum(place, longer[line])
    last = place == parts[line] - 1
    separated = ring[line] | ~last
    number = np.cumsum(separated) - 1
    after = np.where(separated, number, -1)
    before = np.where(place > 0, np.roll(after, 1), after[first + parts[line] - 1])
    previous = np.flatnonzero(separated)
    following = np.where(last, first, np.arange(1, nparts + 1))[previous]
    return Cut(line, start, size, before, after, (start + size)[previous], previous, following)


class Couplings(Copied):
    """Block rows that are coupled to two others each: x <- source - lower x_before - upper x_after.

    The arrays are as for `BlockTridiag.from_packed`, but `lower` has a slot for every one of `diag`. `before` and
    `after`, (npack, V), are the block rows of x that all those of a lane are coupled to, -1 for none.
    """

    _not_copied = ("_work", "_rows")

    def __init__(self, lower, upper, offset, rows, before, after, queue):
        run = backend(queue)
        indices = [run.upload(np.ascontiguousarray(a, np.int64), queue) for a in (offset, rows, before, after)]
        self.longest = int(np.diff(offset).max(initial=0))
        self.arrays, self.queue = (lower, upper, *indices), queue
        self._prepare()

    def _prepare(self):
        self._work = []
        self._rows = backend(self.queue, "lines").Couplings(*self.arrays, self.longest)

    def apply(self, source, x, launch):
        """x <- source - lower x_before - upper x_after; `source` may be x."""
        lines = backend(self.queue, "lines")
        try:
            work = self._work.pop()
        except IndexError:
            work = lines.Work(self._rows)
        work.fit(x.shape[2])
        lines.couple_rows(self._rows, source, x, work, launch)
        self._work.append(work)


# Lines are cut where that makes a solve GAIN times as fast; it is COST times the work; and there are PACKS packs of
# parts for each thread, so that they are shared out evenly.
GAIN, COST, PACKS = 1.5, 1.8, 4
UNUSED = 1 << 20  # bytes of unused lanes that are put up with
KINDS = "lower", "diag", "upper"


class Wanted(NamedTuple):
    """Blocks of lines, packed: slot s and lane v of `blocks` are for that at ``place[s, v]`` of where it comes from."""

    kind: str  # "lower", "diag" or "upper"
    place: Any
    blocks: Any


class PartedLines(Copied):
    """Lines that are cut into parts, factored and solved.

    Parameters
    ----------
    length : (nlines,) array of int
        Block rows of each line.
    ring : (nlines,) array of bool
        Which lines close to rings; these have two block rows at least.
    parts : (nlines,) array of int
        Into how many parts each line is cut.
    rows : (sum(length),) array of int
        Which block row of vectors each one of the lines is, line after line.
    find : callable
        ``find(kind, positions)``: places of the blocks that couple the block rows at these positions to themselves
        ("diag"), to the ones before them ("lower") or behind them ("upper"), counted as `gather_blocks` or
        `gather_values` of a backend do. The position -1 stands for a zero block, or the identity for "diag".
    b, dtype, vlen, queue
        Of the blocks, and where they live.
    within : dict, optional
        Options of `BlockTridiag.from_packed` for the parts and the separators.
    """

    def __init__(self, length, ring, parts, rows, find, b, dtype, vlen, queue, within=None):
        self.b, self.dtype, self.vlen, self.queue = b, dtype, vlen, queue
        self._within = within or {}
        self._cut = pieces = cut(length, ring, parts)
        self._first, self._nrows = np.cumsum(length) - length, int(rows.max(initial=-1)) + 1
        slots = sort_into_packs(np.delete(np.arange(len(rows)), pieces.position), pieces.length, vlen)
        coupled = np.delete(np.arange(len(slots.rows)), slots.offset[1:] - 1)
        following = slots.rows[coupled + 1]
        leading = np.where(following < 0, -1, slots.rows[coupled])
        self._order = slots.order
        self._inner = [
            self._want(kind, find(kind, position))
            for kind, position in zip(KINDS, (following, slots.rows, leading), strict=True)
        ]
        packed = (wanted.blocks for wanted in self._inner)
        slot_rows = entries(rows, slots.rows)
        where = slots.offset, slot_rows, len(pieces.length), queue
        self.parts = BlockTridiag.from_packed(*packed, *where, **self._within)
        self.separators = None
        if len(pieces.position):
            self._separate(length, ring, rows, find, slots)

    def _want(self, kind, place):
        return Wanted(kind, self._upload(place), self._blocks(place.shape[0], place.shape[-1]))

    def _upload(self, index):
        return backend(self.queue).upload(np.ascontiguousarray(index, np.int64), self.queue)

    def _shape(self, slots, lanes):
        return slots, self.b, self.b, *([2] if self.dtype.kind == "c" else []), lanes

    def _blocks(self, slots, lanes):
        return backend(self.queue).empty(self._shape(slots, lanes), REAL[self.dtype.char], self.queue)

    def _separate(self, length, ring, rows, find, slots):
        """Set up what separators need."""
        pieces, V = self._cut, self.vlen
        line = pieces.line[pieces.previous]
        count = np.bincount(line, minlength=len(length))
        end = pieces.start + pieces.length - 1
        beside = pieces.position, end[pieces.previous], pieces.start[pieces.following]
        self._set_up_rows(rows, find, *(by_lanes(a, V) for a in beside))
        self._set_up_spikes(rows, find, slots, end, (ring & (count == 1))[line])
        self._cut_lines = np.flatnonzero(count)
        shorter = count[self._cut_lines]
        closed = ring[self._cut_lines] & (shorter > 1)
        parts = count_parts(None, shorter, closed, self.b, self.dtype, V, self.queue)
        where = self.b, self.dtype, V, self.queue, self._within
        self.separators = PartedLines(shorter, closed, parts, rows[pieces.position], in_order, *where)

    def _set_up_rows(self, rows, find, own, before, after):
        """The block rows of separators, those they are coupled to, and room for their Schur complement."""
        count, run = len(self._cut.position), backend(self.queue)
        self._rows = [self._want(kind, find(kind, own)) for kind in KINDS]
        lower, diag, upper = (Pack(row.blocks, count) for row in self._rows)
        self._beside = lower, upper
        self._block, *others = (Pack(self._blocks(len(own), self.vlen), count) for _ in range(3))
        self._schur = others[0], diag, others[1]
        self._unpacked = [run.empty((count, self.b, self.b), self.dtype, self.queue) for _ in KINDS]
        packs, neighbours = np.arange(len(own) + 1), (entries(rows, a) for a in (own, before, after))
        self._enter = Couplings(lower.data, upper.data, packs, *neighbours, self.queue)

    def _set_up_spikes(self, rows, find, slots, end, single):
        """What couples parts to the separators before and behind them, a block each, and the spikes that come of it."""
        pieces, V = self._cut, self.vlen
        lane = by_lanes(slots.order, V)
        edges = np.where(pieces.before < 0, -1, pieces.start), np.where(pieces.after < 0, -1, end)
        self._edges = [
            self._want(kind, find(kind, entries(edge, lane)))
            for kind, edge in zip(("lower", "upper"), edges, strict=True)
        ]
        self._spikes = [self._blocks(len(slots.rows), V) for _ in edges]
        first, last = slots.offset[:-1, None], slots.offset[1:, None] - 1
        self._ends = self._upload(np.where(lane < 0, last, first + pieces.length[lane] - 1))
        separators = (entries(rows[pieces.position], entries(a, lane)) for a in (pieces.before, pieces.after))
        self._leave = Couplings(*self._spikes, slots.offset, entries(rows, slots.rows), *separators, self.queue)
        # Where in the spikes the blocks beside each separator are: the last ones of parts, and the first ones.
        place = np.argsort(slots.order)
        slot, lane = slots.offset[place // V], place % V
        near = (
            self._in_spikes((slot + pieces.length - 1)[pieces.previous], lane[pieces.previous]),
            self._in_spikes(slot[pieces.following], lane[pieces.following]),
        )
        self._near = [self._upload(a) for a in near]
        # The single separator of a ring is coupled to itself by spikes of both kinds.
        self._near_single = []
        if single.any():
            only = self._in_spikes(np.where(single, 0, -1), np.zeros(len(single), np.int64)) >= 0
            self._near_single = [self._upload(np.where(only, a, -1)) for a in near]

    def _in_spikes(self, slot, lane):
        """Places of the real numbers of a block for each separator, among those of a spike: (.., vlen)."""
        size = self.b**2 * (2 if self.dtype.kind == "c" else 1)
        slot, lane = by_lanes(slot, self.vlen)[:, None], by_lanes(lane, self.vlen)[:, None]
        element = np.arange(size)[:, None]
        return np.where(slot < 0, -1, (slot * size + element) * self.vlen + lane).reshape(-1, self.vlen)

    def refactor(self, sources, threads=None, wait_for=None) -> np.ndarray:
        """Factor lines with blocks from `sources`, those of each kind; returns their `info`."""
        sources = dict(zip(KINDS, sources, strict=True))
        launch = check_launch(threads, wait_for, self.queue)
        self._fill(self._inner, sources, launch)
        failed = self.parts.refactor_anyway(threads, wait_for)
        if self.separators is None:
            return self._info(failed)
        self._fill(self._edges, sources, launch)
        self._fill(self._rows, sources, launch)
        edges = [edge.blocks for edge in self._edges]
        backend(self.queue, "lines").spread_lines(self.parts._lines, self._ends, edges, self._spikes, launch)
        lower, diag, upper = self._schur
        for spike, targets in zip(self._spikes, ((lower, diag), (diag, upper)), strict=True):
            for coupling, near, target in zip(self._beside, self._near, targets, strict=True):
                self._subtract(coupling, spike, near, target, threads, launch)
        for coupling, spike, near in zip(self._beside, self._spikes, self._near_single, strict=False):
            self._subtract(coupling, spike, near, diag, threads, launch)
        for packed, block in zip(self._schur, self._unpacked, strict=True):
            packed.unpack(out=block, threads=threads)
        return self._info(failed, self.separators.refactor(self._unpacked, threads))

    @property
    def too_large(self) -> np.ndarray:
        """As that of `BlockTridiag`."""
        found = np.zeros(len(self._first))
        np.maximum.at(found, self._cut.line[self._order], self.parts.too_large)
        if self.separators is not None:
            np.maximum.at(found, self._cut_lines, self.separators.too_large)
        return found

    @property
    def watched(self):
        """What kernels kept of the pivots of each line, (WATCHED, nlines), or None if nobody asked."""
        if self.parts.watched is None:
            return None
        found = np.zeros((WATCHED, len(self._first)))
        found[SMALLEST] = np.inf
        several = [(self._cut.line[self._order], self.parts.watched)]
        if self.separators is not None:
            several.append((self._cut_lines, self.separators.watched))
        for line, watched in several:
            np.minimum.at(found[SMALLEST], line, watched[SMALLEST])
            np.add.at(found[REPLACED], line, watched[REPLACED])
            for kept in (LARGEST, FACTOR):
                np.maximum.at(found[kept], line, watched[kept])
        return found

    def _subtract(self, coupling, spike, near, target, threads, launch):
        """Take a coupling of separators times the blocks of a spike beside them from their Schur complement."""
        numbers = self._block.data.reshape(-1, 1, 1, self.vlen)
        backend(self.queue).gather_values(spike.reshape(-1), near, numbers, launch)
        gemm(coupling, self._block, target, -1, int(target is self._schur[1]), threads=threads)

    def _fill(self, wanted, sources, launch):
        run = backend(self.queue)
        for kind, place, blocks in wanted:
            gather = run.gather_blocks if sources[kind].ndim == 3 else run.gather_values
            gather(sources[kind], place, blocks, launch)

    def _info(self, failed, separators=None):
        """`info` of each line from those of its parts, and of the separators of the lines that have some."""
        pieces, info = self._cut, np.zeros(len(self._first), np.int64)
        if separators is not None and separators.any():
            lines = self._cut_lines[separators > 0]
            number, i = np.divmod(separators[separators > 0] - 1, self.b)
            number += np.searchsorted(pieces.position, self._first[lines])
            info[lines] = (pieces.position[number] - self._first[lines]) * self.b + i + 1
        if failed.any():
            of_part = np.empty_like(failed)
            of_part[self._order] = failed
            bad = np.flatnonzero(of_part)[::-1]  # so that the first of a line is written last
            line = pieces.line[bad]
            info[line] = (pieces.start[bad] - self._first[line]) * self.b + of_part[bad]
        return info

    def solve_rows(self, rhs, x, threads=None, wait_for=None):
        """As `BlockTridiag.solve_rows`."""
        self.parts.check_vectors(rhs, x, self._nrows)
        self.solve_anyway(rhs, x, check_launch(threads, wait_for, self.queue))

    def solve_anyway(self, rhs, x, launch):
        """As `BlockTridiag.solve_anyway`."""
        self.parts.solve_anyway(rhs, x, launch)
        if self.separators is not None:
            self._enter.apply(rhs, x, launch)
            self.separators.solve_anyway(x, x, launch)
            self._leave.apply(x, x, launch)


def part(lower, diag, upper, ring, parts, vlen, queue, within):
    """`PartedLines` of the arrays that `BlockTridiag` is given, and copies of these, which it is factored from."""
    run = backend(queue)
    nlines, K, b, _ = diag.shape
    lower, diag, upper = (
        a.copy() if is_device_array(a) else run.upload(np.array(a, order="C"), queue) for a in (lower, diag, upper)
    )
    couplings = lower.shape[1]

    def find(kind, position):
        line, k = np.divmod(position, K)
        if kind == "diag":
            return np.where(position < 0, -2, position)
        return np.where(position < 0, -1, line * couplings + (k if kind == "upper" else (k - 1) % K))

    where = b, diag.dtype, vlen, queue, within
    lines = PartedLines(np.full(nlines, K), ring, parts, np.arange(nlines * K), find, *where)
    return lower, diag, upper, lines


def part_matrix(extraction, slots, ring, parts, dtype, vlen, queue, within) -> PartedLines:
    """`PartedLines` of a sparse matrix, of which `extraction` knows where its blocks are."""
    line = np.repeat(np.arange(slots.nlines), slots.length)
    first = (np.cumsum(slots.length) - slots.length)[line]
    step = {"lower": -1, "diag": 0, "upper": 1}

    def find(kind, position):
        there = position >= 0
        to = first[position] + (position - first[position] + step[kind]) % slots.length[line[position]]
        row, column = (np.where(there, slots.flat[k], -1) for k in (position, to))
        return extraction.find(row, column, -2 if kind == "diag" else -1)

    rows, b = slots.flat, extraction.block_size
    return PartedLines(slots.length, ring, parts, rows, find, b, dtype, vlen, queue, within)


def fold(lower, diag, upper, ring, queue):
    """`diag` of lines of one block plus, for rings, the couplings of that block to itself; such lines are no rings."""
    run = backend(queue)
    nlines, _, b, _ = diag.shape
    own, sums = np.where(ring, np.arange(nlines), -1)[:, None], diag
    for a in (lower, upper):
        taken = run.empty((nlines, b, b), diag.dtype, queue)
        pairs = [2] if diag.dtype.kind == "c" else []
        lanes = taken.view(REAL[diag.dtype.char]).reshape(nlines, b, b, *pairs, 1)
        source = a.copy() if is_device_array(a) else run.upload(np.ascontiguousarray(a), queue)
        run.gather_blocks(source.reshape(nlines, b, b), run.upload(own, queue), lanes)
        sums = sums + (taken if is_device_array(diag) else run.download(taken)).reshape(diag.shape)
    return sums


def check_periodic(periodic, nlines) -> np.ndarray:
    """Which lines are rings, (nlines,) of bool."""
    ring = as_array(periodic, "periodic")
    if ring.dtype != bool:
        raise TypeError(f"periodic is of {ring.dtype}, must be a bool, or an array with one for each line")
    if ring.shape not in ((), (nlines,)):
        raise ValueError(f"periodic has shape {ring.shape}, must be a bool, or an array of shape ({nlines},)")
    return np.broadcast_to(ring, nlines)


def count_parts(parts, length, ring, b, dtype, vlen, queue, whole="") -> np.ndarray:
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
        chosen = choose_parts(length, b, dtype, vlen, queue)
    elif check_size(parts, "parts") < 1:
        raise ValueError(f"parts is {parts}, must be at least 1")
    else:
        chosen = np.full(len(length), min(parts, length.max(initial=1)))
    return np.minimum(chosen, np.maximum((length + ~ring) // 2, 1))


def choose_parts(length, b, dtype, vlen, queue) -> np.ndarray:
    """Into how many parts to cut lines of these lengths: one, where the device is not much faster with more.

    Times are in steps, of one block row in all lines of a pack.
    """
    whole, nrow = np.ones(len(length), np.int64), length.sum()
    if nrow == 0 or b == 0:
        return whole
    lanes, calls = backend(queue, "lines").concurrency(b, dtype, vlen, queue)
    packs = np.sort(length)[::-vlen].sum()
    before = max(length.max(), packs * vlen / lanes)
    # Parts that keep the device busy, but no shorter than what makes them and two more levels of cuts equally long.
    wanted = length * min(PACKS * lanes / nrow, length.max() ** (-1 / 3))
    parts = np.where(wanted < vlen, np.maximum(wanted, 1), np.round(wanted / vlen) * vlen).astype(np.int64)
    after = COST * max(nrow / lanes, (length / parts).max()) + parts.max() + calls
    return parts if before > GAIN * after else whole


def enough_lanes(vlen, length, parts, b, dtype) -> int:
    """Vector length for lines in so many parts: `vlen`, or less where that would leave much memory to unused lanes.

    Results are the same bit for bit. Short lines are left to the kernels that many lines have too.
    """
    count, longest = int(parts.sum()), (length / parts).max(initial=0)
    lanes = 1 << max(count - 1, 0).bit_length()
    unused = (vlen - count) * longest * 3 * b * b * dtype.itemsize
    return lanes if lanes < vlen and unused > UNUSED else vlen


def in_order(kind, position):
    """`find` for blocks that lie in the order of the positions, those of each kind in an array of their own."""
    return np.where(position < 0, -2 if kind == "diag" else -1, position)


def by_lanes(a, vlen):
    """The entries of `a`, one a lane, with -1 in unused lanes: (npack, vlen)."""
    lanes = np.full(-(-len(a) // vlen) * vlen, -1)
    lanes[: len(a)] = a
    return lanes.reshape(-1, vlen)


def entries(a, index):
    """``a[index]``, or -1 where the index is negative."""
    return np.where(index < 0, -1, a[index])
