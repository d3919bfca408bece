"""Lines of blocks in packs, of any lengths: what is factored and solved, whatever it was made from."""

from itertools import combinations
from typing import NamedTuple

import numpy as np

from compactla.backends import backend, device_module
from compactla.buffers import Buffer, Pool
from compactla.checks import as_integers, check_contiguous, check_kind, check_queue, check_size, check_whole, stays
from compactla.dtypes import COMPLEX, REAL, packed_dtype
from compactla.lines.options import Options
from compactla.lines.storage import StoredFactors
from compactla.overlap import share_memory
from compactla.pickling import Copied
from compactla.pivots import SMALLEST, WATCHED


class Slots(NamedTuple):
    """Lines sorted into packs: lane v of slot s holds block row ``rows[s, v]``.

    Longer lines come first, so that the lanes of a pack hold lines of similar length; the slots of pack p are
    ``offset[p] : offset[p + 1]``, as many as its longest line has rows.
    """

    order: np.ndarray  # (nlines,): the number of the line at each place, lane after lane
    offset: np.ndarray  # (npack + 1,)
    rows: np.ndarray  # (nslot, V), -1 where a lane's line has ended or there is none


def sort_into_packs(rows, length, vlen: int) -> Slots:
    """Slots of lines of these lengths, whose block rows are in `rows`, one line after the other."""
    nlines = len(length)
    line = np.repeat(np.arange(nlines), length)
    order = np.argsort(-length, kind="stable")
    offset = np.concatenate([[0], np.cumsum(length[order[::vlen]])])
    place = np.empty(nlines, np.int64)
    place[order] = np.arange(nlines)
    pack, lane = np.divmod(place, vlen)
    first_slot = offset[pack] - (np.cumsum(length) - length)
    packed = np.full((offset[-1], vlen), -1, np.int64)
    packed[np.arange(len(rows)) + first_slot[line], lane[line]] = rows
    return Slots(order, offset, packed)


def couplings_of(slots: Slots) -> tuple[np.ndarray, np.ndarray]:
    """The block rows whose `lower` and `upper` blocks the slots of couplings hold, -1 for none."""
    coupled = np.delete(np.arange(len(slots.rows)), slots.offset[1:] - 1)
    following = slots.rows[coupled + 1]
    return following, np.where(following < 0, -1, slots.rows[coupled])


def one_lane(blocks):
    """Ordinary blocks, (n, b, b), as packs of one lane."""
    pair = [2] if blocks.dtype.kind == "c" else []
    return blocks.view(REAL[np.dtype(blocks.dtype).char]).reshape(*blocks.shape, *pair, 1)


class PackedLines(Copied):
    """Lines that are packed, factored in place, and solved; nothing is checked.

    Parameters
    ----------
    lower, diag, upper, offset, rows, nlines, queue
        As for `compactla.BlockTridiag.from_packed`.
    options : Options
        Policy for pivots, and storage of factors.

    Attributes
    ----------
    too_large : (nlines,) ndarray of float64
        The largest factor of each line where it overflows in `storage`, otherwise 0.
    watched : (WATCHED, nlines) ndarray, or None where nobody asked
        Numbers that kernels kept of the pivots of each line.
    broken : bool
        Whether a factorization was broken off, and what is there is neither blocks nor factors.
    """

    _not_copied = ("view", "_kernels", "_spare", "_pool")

    def __init__(self, lower, diag, upper, offset, rows, nlines, options: Options, queue):
        run = backend(queue)
        self.lower, self.diag, self.upper = lower, diag, upper
        self.nlines, self.b, self.vlen, self.queue = nlines, diag.shape[1], diag.shape[-1], queue
        self.dtype, self.options = packed_dtype(diag), options
        offset, rows = (np.ascontiguousarray(a, np.int64) for a in (offset, rows))
        self.npack, self.nrows = len(offset) - 1, int(rows.max(initial=-1)) + 1
        self._offset, self._rows = run.upload(offset, queue), run.upload(rows, queue)
        self._swaps = backend(queue, "lines").swaps_like(diag, queue) if options.pivoting else None
        self._given = [run.empty(a.shape, a.dtype, queue) for a in self.blocks] if options.refine else []
        self.stored = StoredFactors(self.blocks, offset, options.storage, queue) if options.storage else None
        self.too_large, self.watched, self.broken = np.zeros(nlines), None, False
        self._prepare()

    def _prepare(self):
        self._kernels = backend(self.queue, "lines")
        self.view = self._kernels.LinesView(
            *self.blocks, self._offset, self._rows, self.options.policy, self._swaps, self.stored,
            self.options.tiny,
        )  # fmt: skip
        view, dtype, queue, vectors = self.view, self.dtype, self.queue, 2 * bool(self._given)
        make = backend(queue, "lines").LineScratch
        # Where memory is freed some drivers wait for what was launched.
        self._pool = backend(queue).pool(queue)
        self._spare = Pool(queue, lambda: (make(view), [Buffer(dtype, queue) for _ in range(vectors)]))

    @property
    def blocks(self):
        return self.lower, self.diag, self.upper

    def factor(self, launch, out=None):
        """Factor the blocks in place; returns `info` of each line, on the device where nothing waits for it.

        It is copied to `out`, if that is given, for which nothing waits.
        """
        run, kernels, lanes = backend(self.queue), self._kernels, self.npack * self.vlen
        info, watched = kernels.new_info(lanes, self.queue, self._pool), None
        if self.options.policy:
            start = np.zeros((self.npack, WATCHED, *self.diag.shape[3:]), self.diag.dtype)
            start[:, SMALLEST] = np.inf
            watched = run.upload(start, self.queue)
        overflow = self.stored and self.stored.no_overflow()
        self.broken = True  # unless all of what follows succeeds
        for block, copy in zip(self.blocks, self._given, strict=False):
            kernels.copy(block, copy, launch)
        kernels.factor_lines(self.view, info, launch, watched)
        found = info[: self.nlines]
        if out is not None:
            kernels.copy(found, out)
        if watched is None and not self.stored and (out is not None or stays(info)):
            self.broken = False
            return found
        info = run.download(info)[: self.nlines].astype(np.int64, copy=False)
        if watched is not None:
            kept = run.download(watched).reshape(self.npack, WATCHED, self.diag.ndim - 3, self.vlen)[:, :, 0]
            self.watched = kept.swapaxes(0, 1).reshape(WATCHED, lanes)[:, : self.nlines]
        if self.stored:
            self.too_large = self.stored.fill(self.blocks, info, overflow, launch)
        self.broken = False
        return info

    @property
    def is_plain(self) -> bool:
        """Whether all of a factorization is one launch."""
        return not (self.options.policy or self.stored or self._given)

    def record(self, launch, out=None):
        """Have a plain factorization recorded; returns the `info` that all calls write to, as `factor` does."""
        kernels, info = self._kernels, self._kernels.new_info(self.npack * self.vlen, self.queue)
        found = info[: self.nlines]
        launch.run(self._begin, info)
        kernels.factor_lines(self.view, info, launch)
        if out is not None:
            launch.do(kernels.copy, found, out)
        elif self.queue is not None and not stays(info):
            host = np.empty(self.nlines, np.int64)
            launch.run(device_module().bring, found, host)
            found = host
        launch.run(setattr, self, "broken", False)
        return found

    def _begin(self, info):
        self.broken = True
        if self.queue is None:  # others write all of it
            info.fill(0)

    def solve(self, rhs, x, launch) -> None:
        """x <- the solutions for `rhs`, vectors (block rows, b, nrhs); `x` may be `rhs`."""
        if self._given and launch.later(self.solve, rhs, x):
            return
        kernels = self._kernels
        work, rooms = self._spare.take()
        work.fit(rhs.shape[2])
        if rooms:
            self._solve_refined(rhs, x, work, [room.array(x.shape) for room in rooms], launch)
        else:
            kernels.solve_lines(self.view, rhs, x, work, launch)
        if launch.recorded:
            launch.keep(work, rhs, x)
            launch.alone()
        else:
            self._spare.give((work, rooms))

    def _solve_refined(self, rhs, x, work, vectors, launch):
        """Solve, and then for the residual, `refine` times; there is room for two vectors."""
        kernels, (r, b) = self._kernels, vectors
        kernels.copy(rhs, b, launch)
        r.fill(0)
        kernels.solve_lines(self.view, b, x, work, launch)
        for _ in range(self.options.refine):
            kernels.residual_lines(self.view, self._given, b, x, r, work, launch)
            kernels.solve_lines(self.view, r, r, work, launch)
            x += r


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
    # diag tells the numbers of slots and lanes
    diag = blocks["diag"]
    nslot, b, *lanes = diag.shape if diag.ndim in (4, 5) else (0, 0, 1, 0)
    vlen = lanes[-1]
    if lanes[0] != b or lanes[1:-1] not in ([], [2]) or vlen < 1:
        what = "must be (slots, b, b, V) or (slots, b, b, 2, V), V of 1 and more"
        raise ValueError(f"diag has shape {diag.shape}, {what}")
    offset, rows = as_integers(offset, "offset"), as_integers(rows, "rows")
    # offset and rows: packs of slots, and each block row once
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
    # blocks: of one type, contiguous, apart from each other
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
