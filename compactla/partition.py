"""Lines that are cut into parts: few long lines, which would leave a device idle, and lines that close to rings.

Single block rows, the separators, cut a line into parts, which are lines in their own right: shorter, more, and
independent. With E and F for the couplings of a part to the separators before and after it, its unknowns are

    x = y - (inv(T) E) x_before - (inv(T) F) x_after,    T y = rhs,

and the separators' own rows, with this put in, are lines again, cut in their turn where they are long. A ring has as
many separators as parts, and so have its separators, until a single one is left, which couples to itself.
"""

from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np

from compactla.blas import gemm
from compactla.blocktridiag import BlockTridiag
from compactla.checks import check_size, is_device_array
from compactla.lines import sort_into_packs
from compactla.pack import Pack
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


class Couplings:
    """Block rows that are coupled to two others each: x <- source - lower x_before - upper x_after.

    The arrays are as for `BlockTridiag.from_packed`, but `lower` has a slot for every one of `diag`. `before` and
    `after`, (npack, V), are the block rows of x that all those of a lane are coupled to, -1 for none.
    """

    def __init__(self, lower, upper, offset, rows, before, after, queue):
        run = backend(queue)
        indices = [run.upload(np.ascontiguousarray(a, np.int64), queue) for a in (offset, rows, before, after)]
        self.longest = int(np.diff(offset).max(initial=0))
        self.arrays, self.queue = (lower, upper, *indices), queue
        self._prepare()

    def _prepare(self):
        """Set what is not copied along."""
        self._work = defaultdict(list)
        self._rows = backend(self.queue).Couplings(*self.arrays, self.longest)

    def __getstate__(self):
        return {name: self.__dict__[name] for name in ("longest", "arrays", "queue")}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._prepare()

    def apply(self, source, x, threads=None):
        """x <- source - lower x_before - upper x_after; `source` may be x."""
        run, nrhs = backend(self.queue), x.shape[2]
        spare = self._work[nrhs]
        try:
            work = spare.pop()
        except IndexError:
            work = run.Work(self._rows, nrhs)
        run.couple_rows(self._rows, source, x, work, threads)
        spare.append(work)


class Wanted(NamedTuple):
    """Blocks of lines, packed: slot s and lane v of `blocks` is for the one at ``place[s, v]`` of where they come from."""

    kind: str  # "lower", "diag" or "upper"
    place: Any
    blocks: Any


class Side(NamedTuple):
    """What couples parts to the separators on one side of them."""

    kind: str  # "lower" for the separators before them
    place: Any  # of the coupling of each position, in what blocks come from
    far: tuple  # for each separator: its couplings to the parts on its other side, and in these the position next to it
    near: tuple  # the same for the parts on this side
    fold: Any  # the positions of `far` where the separator behind that part is this one, the only one of a ring


class PartedLines:
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
    """

    def __init__(self, length, ring, parts, rows, find, b, dtype, vlen, queue):
        self.b, self.dtype, self.vlen, self.queue = b, dtype, vlen, queue
        self._cut = pieces = cut(length, ring, parts)
        self._first = np.cumsum(length) - length
        slots = sort_into_packs(np.delete(np.arange(len(rows)), pieces.position), pieces.length, vlen)
        coupled = np.delete(np.arange(len(slots.rows)), slots.offset[1:] - 1)
        following = slots.rows[coupled + 1]
        leading = np.where(following < 0, -1, slots.rows[coupled])
        self._order = slots.order
        self._inner = [
            self._want(kind, find(kind, position))
            for kind, position in (("lower", following), ("diag", slots.rows), ("upper", leading))
        ]
        packed = *(wanted.blocks for wanted in self._inner), slots.offset
        self.parts = BlockTridiag.from_packed(*packed, entries(rows, slots.rows), len(pieces.length), queue)
        self.separators = None
        if len(pieces.position):
            # The same lines, on vectors that have their block rows in order.
            self._numbered = BlockTridiag.from_packed(*packed, slots.rows, len(pieces.length), queue)
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
        """Set up the separators."""
        run, pieces, V = backend(self.queue), self._cut, self.vlen
        count, end = len(pieces.position), pieces.start + pieces.length - 1
        position = by_lanes(pieces.position, V)
        neighbours = by_lanes(end[pieces.previous], V), by_lanes(pieces.start[pieces.following], V)
        # The rows of the separators, and their Schur complement, packed and not.
        self._rows = [self._want(kind, find(kind, position)) for kind in ("lower", "diag", "upper")]
        lower, diag, upper = (wanted.blocks for wanted in self._rows)
        self._schur = [Pack(a, count) for a in (self._blocks(len(position), V), diag, self._blocks(len(position), V))]
        self._unpacked = [run.empty((count, self.b, self.b), self.dtype, self.queue) for _ in range(3)]
        # The couplings of the parts to the separators, in what one pack of blocks for each separator has to do with
        # them, and times the inverses of the parts: as packs, and all of one side as a column of blocks.
        self._block = Pack(self._blocks(len(position), V), count)
        self._column = run.empty((len(rows), self.b, self.b), self.dtype, self.queue)
        self._spread = self._upload(slots.rows)
        nseparators = np.bincount(np.searchsorted(self._first, pieces.position, "right") - 1, minlength=len(length))
        single = by_lanes((ring & (nseparators == 1))[pieces.line[pieces.previous]].astype(int), V) == 1
        ways = [(Pack(a, count), self._upload(near)) for a, near in zip((lower, upper), neighbours, strict=True)]
        self._sides, self._spikes = [], []
        for i, (kind, edge, separator) in enumerate(
            (("lower", pieces.start, pieces.before), ("upper", end, pieces.after))
        ):
            where = np.full((len(rows), 1), -1)
            where[edge[separator >= 0], 0] = edge[separator >= 0]
            fold = self._upload(np.where(single, neighbours[i], -1)) if single.any() else None
            self._sides.append(Side(kind, self._upload(find(kind, where)), ways[i], ways[1 - i], fold))
            self._spikes.append(self._blocks(len(slots.rows), V))
        lane = by_lanes(slots.order, V)
        beside = (entries(rows[pieces.position], entries(a, lane)) for a in (pieces.before, pieces.after))
        outer = (entries(rows, a) for a in (position, *neighbours))
        self._enter = Couplings(lower, upper, np.arange(len(position) + 1), *outer, self.queue)
        self._leave = Couplings(*self._spikes, slots.offset, entries(rows, slots.rows), *beside, self.queue)
        self._cut_lines = np.flatnonzero(nseparators)
        reduced = nseparators[self._cut_lines]
        closed = ring[self._cut_lines] & (reduced > 1)
        parts = choose_parts(reduced, self.b, self.dtype, V, self.queue)
        self.separators = PartedLines(reduced, closed, parts, rows[pieces.position], in_order, self.b, self.dtype, V,
                                      self.queue)  # fmt: skip

    def refactor(self, sources, threads=None) -> np.ndarray:
        """Factor lines with blocks from `sources`, those of `lower`, `diag` and `upper`; returns their `info`."""
        sources = dict(zip(("lower", "diag", "upper"), sources, strict=True))
        for wanted in self._inner:
            self._gather(sources[wanted.kind], wanted.place, wanted.blocks, threads)
        if self.separators is None:
            return self._info(self.parts.refactor(threads))
        failed = self._numbered.refactor(threads)
        self.parts.info = failed
        for wanted in self._rows:
            self._gather(sources[wanted.kind], wanted.place, wanted.blocks, threads)
        for side, spike, schur in zip(self._sides, self._spikes, self._schur[::2], strict=True):
            self._take_side(sources[side.kind], side, spike, schur, threads)
        for packed, block in zip(self._schur, self._unpacked, strict=True):
            packed.unpack(out=block, threads=threads)
        return self._info(failed, self.separators.refactor(self._unpacked, threads))

    def _take_side(self, source, side, spike, schur, threads):
        """Eliminate what couples the parts to the separators on one side."""
        column, diag, block = self._column, self._schur[1], self._block
        one_lane = column.view(REAL[self.dtype.char]).reshape(self._shape(len(column), 1))
        self._gather(source, side.place, one_lane, threads)
        self._numbered.solve_rows(column, column, threads)
        self._gather(column, self._spread, spike, threads)
        for (coupling, place), target, beta in ((side.far, schur, 0), (side.near, diag, 1)):
            self._gather(column, place, block.data, threads)
            gemm(coupling, block, target, -1, beta, threads=threads)
        if side.fold is not None:
            self._gather(column, side.fold, block.data, threads)
            gemm(side.far[0], block, diag, -1, 1, threads=threads)

    def _gather(self, source, place, blocks, threads):
        run = backend(self.queue)
        (run.gather_blocks if source.ndim == 3 else run.gather_values)(source, place, blocks, threads)

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

    def solve_rows(self, rhs, x, threads=None):
        """As `BlockTridiag.solve_rows`; arguments are not checked beyond what that does."""
        self.parts.solve_rows(rhs, x, threads)
        if self.separators is not None:
            self._enter.apply(rhs, x, threads)
            self.separators.solve_rows(x, x, threads)
            self._leave.apply(x, x, threads)


def part(lower, diag, upper, ring, parts, vlen, queue):
    """`PartedLines` of the arrays that `BlockTridiag` is given, and copies of these, which it is factored from."""
    run = backend(queue)
    nlines, K, b, _ = diag.shape
    lower, diag, upper = (a.copy() if is_device_array(a) else run.upload(np.array(a, order="C"), queue)
                          for a in (lower, diag, upper))  # fmt: skip
    couplings = lower.shape[1]

    def find(kind, position):
        line, k = np.divmod(position, K)
        if kind == "diag":
            return np.where(position < 0, -2, position)
        return np.where(position < 0, -1, line * couplings + (k if kind == "upper" else (k - 1) % K))

    lines = PartedLines(np.full(nlines, K), ring, parts, np.arange(nlines * K), find, b, diag.dtype, vlen, queue)
    return lower, diag, upper, lines


def check_periodic(periodic, nlines) -> np.ndarray:
    """Which lines are rings, (nlines,) of bool."""
    ring = np.asarray(periodic)
    if ring.dtype != bool:
        raise TypeError(f"periodic is of {ring.dtype}, must be a bool, or an array with one for each line")
    if ring.shape not in ((), (nlines,)):
        raise ValueError(f"periodic has shape {ring.shape}, must be a bool, or an array of shape ({nlines},)")
    return np.broadcast_to(ring, nlines)


def count_parts(parts, length, ring, b, dtype, vlen, queue) -> np.ndarray:
    """Into how many parts each line is cut: `parts`, or what is chosen if that is None, but no more than it allows."""
    if parts is None:
        chosen = choose_parts(length, b, dtype, vlen, queue)
    elif check_size(parts, "parts") < 1:
        raise ValueError(f"parts is {parts}, must be at least 1")
    else:
        chosen = np.full(len(length), parts)
    return np.minimum(chosen, np.maximum((length + ~ring) // 2, 1))


def choose_parts(length, b, dtype, vlen, queue):
    """Into how many parts to cut lines of these lengths."""
    return np.ones(len(length), np.int64)


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
