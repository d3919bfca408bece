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

from compactla.backends import backend
from compactla.buffers import Pool
from compactla.checks import on_host
from compactla.dense.gemm import gemm
from compactla.layout import Pack
from compactla.lines.cutting import BlockFormat, Cut, count_parts, cut, plan_cut
from compactla.lines.info import write
from compactla.lines.packed import PackedLines, couplings_of, sort_into_packs
from compactla.lines.sizes import PADDING
from compactla.pickling import Copied
from compactla.pivots import FACTOR, LARGEST, REPLACED, SMALLEST, WATCHED

KINDS = "lower", "diag", "upper"


class Wanted(NamedTuple):
    """Blocks of lines, packed: slot s and lane v of `blocks` are for that at ``place[s, v]`` of where it comes from."""

    kind: str  # "lower", "diag" or "upper"
    place: Any
    blocks: Any
    size: Any = None  # of each block, (slots, V), where some are padded

    @classmethod
    def of(cls, kind, place, format: BlockFormat):
        size, padded = None, place == PADDING
        if padded.any():
            place = np.where(padded, -1, place)
            size = format.upload(format.b - padded.sum((1, 2)))
        return cls(kind, format.upload(place), format.empty(len(place), place.shape[-1]), size)


def fill(wanted, sources, queue, launch) -> None:
    """Take blocks from `sources`, the arrays of `KINDS`."""
    run = backend(queue)
    for kind, place, blocks, size in wanted:
        source = sources[KINDS.index(kind)]
        gather = run.gather_blocks if source.ndim == 3 else run.gather_values
        gather(source, place, blocks, launch)
        if size is not None:
            backend(queue, "lines").pad_diagonals(blocks, size, launch)


class PartedLines(Copied):
    """Lines that are cut into parts, or not, as `pieces` says: filled with blocks, factored and solved.

    Parameters
    ----------
    pieces : Cut
        Where the lines are cut.
    rows : (nrow,) array of int
        Which block row of vectors each one of the lines is, line after line.
    find : callable
        ``find(kind, positions)``: places of the blocks that couple the block rows at these positions to themselves
        ("diag"), to the ones before them ("lower") or behind them ("upper"), counted as `gather_blocks` or
        `gather_values` of a backend do. The position -1 stands for a zero block, or the identity for "diag". Where the
        diagonal of a smaller block is padded there is `PADDING`.
    format : BlockFormat
        Format of the blocks.
    options : Options
        Options of the parts and the separators; `pivoting` and `refine` are for whole lines only.
    """

    broken = False  # what is factored can always be filled again

    is_plain = False

    def __init__(self, pieces: Cut, rows, find, format: BlockFormat, options):
        self._cut, self.nlines, self.nrows = pieces, len(pieces.first), int(rows.max(initial=-1)) + 1
        self.b, self.dtype, self.vlen, self.queue = format
        kept = np.delete(np.arange(len(rows), dtype=np.int64), pieces.position)
        slots = sort_into_packs(kept, pieces.length, format.vlen)
        following, leading = couplings_of(slots)
        self._order = slots.order
        positions = following, slots.rows, leading
        self._inner = [Wanted.of(kind, find(kind, a), format) for kind, a in zip(KINDS, positions, strict=True)]
        lower, diag, upper = (wanted.blocks for wanted in self._inner)
        where = slots.offset, entries(rows, slots.rows), len(pieces.length)
        self.parts = PackedLines(lower, diag, upper, *where, options, format.queue)
        self.separators = Separators(pieces, slots, rows, find, format, options) if len(pieces.position) else None

    def fill(self, sources, launch) -> None:
        """Take blocks from `sources`, those of each kind."""
        fill(self._inner, sources, self.queue, launch)
        if self.separators is not None:
            self.separators.fill(sources, launch)

    def factor(self, launch, out=None):
        """Factor what was filled; returns `info` of each line, which is written to `out` if that is given."""
        failed = on_host(self.parts.factor(launch))
        info = self._info(failed, None if self.separators is None else self.separators.factor(self.parts, launch))
        if out is not None:
            write(info, out)
        return info

    def solve(self, rhs, x, launch) -> None:
        """x <- the solutions for `rhs`, vectors (block rows, b, nrhs); `x` may be `rhs`."""
        self.parts.solve(rhs, x, launch)
        if self.separators is not None:
            self.separators.solve(rhs, x, launch)

    def _info(self, failed, separators=None):
        """`info` of each line from those of its parts, and of the separators of the lines that have some."""
        pieces, b, info = self._cut, self.b, np.zeros(self.nlines, np.int64)
        if separators is not None and separators.any():
            lines = self.separators.cut_lines[separators > 0]
            number, i = np.divmod(separators[separators > 0] - 1, b)
            number += np.searchsorted(pieces.position, pieces.first[lines])
            info[lines] = (pieces.position[number] - pieces.first[lines]) * b + i + 1
        if failed.any():
            of_part = np.empty_like(failed)
            of_part[self._order] = failed
            bad = np.flatnonzero(of_part)[::-1]  # so that the first of a line is written last
            line = pieces.line[bad]
            info[line] = (pieces.start[bad] - pieces.first[line]) * b + of_part[bad]
        return info

    @property
    def too_large(self) -> np.ndarray:
        """For each line, the largest factor if it is too large to store, else 0; as in `PackedLines`."""
        found = np.zeros(self.nlines)
        for line, lines in self._several():
            np.maximum.at(found, line, lines.too_large)
        return found

    @property
    def watched(self):
        """The records of watched pivots, as in `PackedLines`."""
        if self.parts.watched is None:
            return None
        found = np.zeros((WATCHED, self.nlines))
        found[SMALLEST] = np.inf
        for line, lines in self._several():
            watched = lines.watched
            np.minimum.at(found[SMALLEST], line, watched[SMALLEST])
            np.add.at(found[REPLACED], line, watched[REPLACED])
            for kept in (LARGEST, FACTOR):
                np.maximum.at(found[kept], line, watched[kept])
        return found

    def _several(self):
        """The parts and the separators, each with the numbers of the lines that they are of."""
        yield self._cut.line[self._order], self.parts
        if self.separators is not None:
            yield self.separators.cut_lines, self.separators.lines


def part_matrix(pattern, paths, rows, parts, format: BlockFormat, options, vlen_given) -> PartedLines:
    """The lines along `paths` in a sparse matrix, of which `pattern` knows where its blocks are.

    `rows` are the block rows of vectors that those of the paths are; `parts` is as for `BlockTridiag`.
    """
    step = {"lower": -1, "upper": 1}
    line, first = (paths.line, np.cumsum(paths.length) - paths.length) if paths.ring.any() else (None, None)

    def find(kind, position):
        row = entries(paths.rows, position)
        if kind == "diag":
            return pattern.find(row, row, -2)
        to = position + step[kind]
        if line is not None:  # from the last block row of a ring to the first, and back
            begin = first[line[position]]
            to = begin + (to - begin) % paths.length[line[position]]
        return pattern.find(row, entries(paths.rows, np.where(position < 0, -1, to)), -1)

    pieces, format = plan_cut(paths.length, paths.ring, parts, format, options, vlen_given)
    return PartedLines(pieces, rows, find, format, options)


class Separators(Copied):
    """The block rows between the parts of lines: coupled to what is beside them, and lines once parts are eliminated.

    Parameters
    ----------
    pieces, rows, find, format, options
        As for `PartedLines`.
    slots : Slots
        How the parts are packed.

    Attributes
    ----------
    lines : PartedLines
        What is left when the parts are eliminated: the Schur complement.
    cut_lines : ndarray of int
        Numbers of the lines that have separators.
    """

    def __init__(self, pieces: Cut, slots, rows, find, format: BlockFormat, options):
        self.queue = format.queue
        end = pieces.start + pieces.length - 1
        self._set_up_rows(pieces, end, rows, find, format)
        self._set_up_spikes(pieces, end, slots, rows, find, format)
        self._set_up_neighbours(pieces, slots, format)
        count = np.bincount(pieces.line[pieces.previous], minlength=len(pieces.first))
        self.cut_lines = np.flatnonzero(count)
        shorter = count[self.cut_lines]
        closed = pieces.ring[self.cut_lines] & (shorter > 1)
        again = cut(shorter, closed, count_parts(None, shorter, closed, format))
        self.lines = PartedLines(again, rows[pieces.position], in_order, format, options)

    def _set_up_rows(self, pieces, end, rows, find, format):
        """Make block rows of separators, coupled to the ends of parts, and room for the Schur complement."""
        count, vlen = len(pieces.position), format.vlen
        neighbours = pieces.position, end[pieces.previous], pieces.start[pieces.following]
        own, before, after = (by_lanes(a, vlen) for a in neighbours)
        self._rows = [Wanted.of(kind, find(kind, own), format) for kind in KINDS]
        lower, diag, upper = (Pack(wanted.blocks, count) for wanted in self._rows)
        self._beside = lower, upper
        self._block, *others = (Pack(format.empty(len(own)), count) for _ in range(3))
        self._schur = others[0], diag, others[1]
        run, shape = backend(format.queue), (count, format.b, format.b)
        self._unpacked = [run.empty(shape, format.dtype, format.queue) for _ in KINDS]
        where = (entries(rows, a) for a in (own, before, after))
        self._enter = Couplings(lower.data, upper.data, np.arange(len(own) + 1), *where, format.queue)

    def _set_up_spikes(self, pieces, end, slots, rows, find, format):
        """Couplings of parts to the separators before and behind them, a block each, and the spikes that come of it."""
        lane = by_lanes(slots.order, format.vlen)
        edges = np.where(pieces.before < 0, -1, pieces.start), np.where(pieces.after < 0, -1, end)
        self._edges = [
            Wanted.of(kind, find(kind, entries(edge, lane)), format)
            for kind, edge in zip(("lower", "upper"), edges, strict=True)
        ]
        self._spikes = [format.empty(len(slots.rows)) for _ in edges]
        first, last = slots.offset[:-1, None], slots.offset[1:, None] - 1
        self._ends = format.upload(np.where(lane < 0, last, first + pieces.length[lane] - 1))
        separators = (entries(rows[pieces.position], entries(a, lane)) for a in (pieces.before, pieces.after))
        self._leave = Couplings(*self._spikes, slots.offset, entries(rows, slots.rows), *separators, format.queue)

    def _set_up_neighbours(self, pieces, slots, format):
        """Find the blocks beside each separator in the spikes: the last ones of parts, and the first ones."""
        place = np.argsort(slots.order)  # of each part
        slot, lane = slots.offset[place // format.vlen], place % format.vlen
        ends = (slot + pieces.length - 1)[pieces.previous], lane[pieces.previous]
        starts = slot[pieces.following], lane[pieces.following]
        near = [places_in_spike(*where, format) for where in (ends, starts)]
        self._near = [format.upload(a) for a in near]
        # The single separator of a ring is coupled to itself by spikes of both kinds.
        line = pieces.line[pieces.previous]
        single = pieces.ring[line] & (np.bincount(line)[line] == 1)
        self._near_single = []
        if single.any():
            only = places_in_spike(np.where(single, 0, -1), np.zeros(len(single), np.int64), format) >= 0
            self._near_single = [format.upload(np.where(only, a, -1)) for a in near]

    def fill(self, sources, launch) -> None:
        """Take blocks from `sources`, those of each kind."""
        fill(self._edges, sources, self.queue, launch)
        fill(self._rows, sources, self.queue, launch)

    def factor(self, parts: PackedLines, launch) -> np.ndarray:
        """Eliminate the factored parts, and factor what is left; returns its `info`, line by line of `cut_lines`."""
        edges = [edge.blocks for edge in self._edges]
        backend(self.queue, "lines").spread_lines(parts.view, self._ends, edges, self._spikes, launch)
        lower, diag, upper = self._schur
        # What is coupled to a separator through the part before it (near[0]), and through the one behind it (near[1]):
        # by the first kind of spike the separator before that part, by the second the one behind it.
        for spike, targets in zip(self._spikes, ((lower, diag), (diag, upper)), strict=True):
            for coupling, near, target in zip(self._beside, self._near, targets, strict=True):
                self._subtract(coupling, spike, near, target, launch)
        for coupling, spike, near in zip(self._beside, self._spikes, self._near_single, strict=False):
            self._subtract(coupling, spike, near, diag, launch)
        for packed, block in zip(self._schur, self._unpacked, strict=True):
            packed.unpack(out=block, threads=launch.threads)
        self.lines.fill(self._unpacked, launch)
        return on_host(self.lines.factor(launch))

    def _subtract(self, coupling, spike, near, target, launch):
        """Take a coupling of separators times the blocks of a spike beside them from their Schur complement."""
        numbers = self._block.data.reshape(-1, 1, 1, self._block.vlen)
        backend(self.queue).gather_values(spike.reshape(-1), near, numbers, launch)
        beta = int(target is self._schur[1])  # the others begin with nothing
        gemm(coupling, self._block, target, -1, beta, threads=launch.threads)

    def solve(self, rhs, x, launch) -> None:
        """Solve for the separators with the solutions of the parts in `x`, and take what that changes from them."""
        self._enter.apply(rhs, x, launch)
        self.lines.solve(x, x, launch)
        self._leave.apply(x, x, launch)


class Couplings(Copied):
    """Block rows that are coupled to two others each: x <- source - lower x_before - upper x_after.

    The arrays are as for `BlockTridiag.from_packed`, but `lower` has a slot for every one of `diag`. `before` and
    `after`, (npack, V), are the block rows of x that all those of a lane are coupled to, -1 for none.
    """

    _not_copied = ("_view", "_spare")

    def __init__(self, lower, upper, offset, rows, before, after, queue):
        run = backend(queue)
        indices = [run.upload(np.ascontiguousarray(a, np.int64), queue) for a in (offset, rows, before, after)]
        self.longest = int(np.diff(offset).max(initial=0))
        self.arrays, self.queue = (lower, upper, *indices), queue
        self._prepare()

    def _prepare(self):
        self._view = backend(self.queue, "lines").CouplingsView(*self.arrays, self.longest)
        view, make = self._view, backend(self.queue, "lines").LineScratch
        self._spare = Pool(self.queue, lambda: make(view))

    def apply(self, source, x, launch):
        """x <- source - lower x_before - upper x_after; `source` may be x."""
        kernels = backend(self.queue, "lines")
        work = self._spare.take()
        work.fit(x.shape[2])
        kernels.couple_rows(self._view, source, x, work, launch)
        if launch.recorded:
            launch.keep(work)
            launch.alone()
        else:
            self._spare.give(work)


def places_in_spike(slot, lane, format: BlockFormat):
    """Places of the real numbers of a block for each separator, among those of a spike: (.., vlen)."""
    size, vlen = format.b**2 * (2 if format.dtype.kind == "c" else 1), format.vlen
    slot, lane = by_lanes(slot, vlen)[:, None], by_lanes(lane, vlen)[:, None]
    element = np.arange(size)[:, None]
    return np.where(slot < 0, -1, (slot * size + element) * vlen + lane).reshape(-1, vlen)


def in_order(kind, position):
    """`find` for blocks that lie in the order of the positions, those of each kind in an array of their own."""
    return np.where(position < 0, -2 if kind == "diag" else -1, position)


def by_lanes(a, vlen):
    """The entries of `a`, one a lane, with -1 in unused lanes: (npack, vlen)."""
    lanes = np.full(-(-len(a) // vlen) * vlen, -1, np.int64)
    lanes[: len(a)] = a
    return lanes.reshape(-1, vlen)


def entries(a, index):
    """``a[index]``, or -1 where the index is that."""
    return np.append(a, -1)[index]
