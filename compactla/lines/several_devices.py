"""Lines that several devices share: each has some of them, for vectors of the host.

Each device has a thread of its own, which copies its part of a vector there, solves, and copies what it found back:
copies of ordinary memory keep the thread busy that asks for them, and those of several devices go on at the same time.
"""

import os
from concurrent.futures import ThreadPoolExecutor, wait

import numpy as np

from compactla.backends import backend
from compactla.buffers import Buffer
from compactla.calls.launch import NOW
from compactla.checks import check_queue, on_host
from compactla.foreign import inner_calls
from compactla.lines.cutting import BlockFormat
from compactla.lines.host_copies import WORD, Runs, Transfers
from compactla.lines.in_parts import part_matrix
from compactla.pickling import Copied
from compactla.pivots import WATCHED


class Queues(list):
    """Several queues."""


def check_queues(queue):
    """Check `queue`: None, a queue, or a list. A list of several queues becomes `Queues`, a list of one that queue."""
    if not isinstance(queue, list | tuple):
        return queue
    if not queue:
        raise ValueError("queue is empty, must hold at least one queue")
    for i, one in enumerate(queue):
        check_queue(one, f"queue[{i}]")
    return queue[0] if len(queue) == 1 else Queues(queue)


class SharedLines(Copied):
    """Lines in a sparse matrix that are shared out over devices, as `compactla.lines.in_parts.PartedLines` are on one.

    Parameters
    ----------
    pattern : Extraction
        Where the blocks of the matrix are in its values.
    paths : Paths
        The lines. Those that begin in neighbouring block rows are given to one device, as many block rows to each.
    parts, vlen
        As for `compactla.LinePreconditioner`.
    options : Options
        Options of all lines.
    queues : Queues
        Queues of the devices.
    """

    def __init__(self, pattern, paths, parts, vlen, options, queues: Queues):
        self.nlines, place = len(paths.length), share_out(paths, len(queues))
        mine = [np.flatnonzero(place == i) for i in range(len(queues))]
        some = [(lines, queue) for lines, queue in zip(mine, queues, strict=True) if len(lines)]
        some = some or [(mine[0], queues[0])]  # of a matrix without rows
        others = pattern, paths, parts, vlen, options
        with ThreadPoolExecutor(len(some)) as pool:
            made = [pool.submit(at_work, Share, lines, *others, queue) for lines, queue in some]
        self._shares, self._process = [share.result() for share in made], os.getpid()
        self.vlen = max(share.lines.vlen for share in self._shares)

    def fill(self, sources, _) -> None:
        """Take blocks from the values of a matrix, which are the same for all kinds."""
        self._at_once(Share.fill, sources[0])

    def factor(self, _) -> np.ndarray:
        """Factor what was filled; returns `info` of each line."""
        return self._joined((), self._at_once(Share.factor), np.int64)

    def solve(self, rhs, x, launch) -> None:
        """x <- the solutions for `rhs`, vectors (block rows, b, nrhs) of the host; `x` may be `rhs`."""
        if rhs.size and not launch.later(self.solve, rhs, x):
            self._at_once(Share.solve, rhs, x)

    @property
    def too_large(self) -> np.ndarray:
        """For each line, the largest factor if it is too large to store, else 0; as in `PackedLines`."""
        return self._joined((), [share.lines.too_large for share in self._shares])

    @property
    def watched(self):
        """The records of watched pivots, as in `PackedLines`."""
        found = [share.lines.watched for share in self._shares]
        return None if found[0] is None else self._joined((WATCHED,), found)

    def _at_once(self, work, *args) -> list:
        """Let all shares work at the same time, and return their results."""
        if os.getpid() != self._process:
            raise RuntimeError("a forked process has no threads for several devices, must make P itself")
        calls = []
        try:
            for share in self._shares:
                calls.append(share.worker.submit(at_work, work, share, *args))
            wait(calls)
        except BaseException:  # an interrupt, after which nothing may write to the vectors of the caller
            wait(calls)
            raise
        return [call.result() for call in calls]

    def _joined(self, shape, numbers, dtype=np.float64):
        """Numbers of all lines, of those of each share."""
        found = np.empty((*shape, self.nlines), dtype)
        for share, own in zip(self._shares, numbers, strict=True):
            found[..., share.numbers] = own
        return found


class Share(Copied):
    """The lines of one device, and the thread that works with it.

    Attributes
    ----------
    numbers : ndarray of int
        Numbers of the lines.
    lines : PartedLines
        The lines, which count the block rows of this share alone.
    worker : concurrent.futures.Executor
        The thread.
    """

    _not_copied = "worker", "_staged"

    def __init__(self, numbers, pattern, paths, parts, vlen, options, queue):
        self.numbers, self._queue = numbers, queue
        which = np.zeros(len(paths.length), bool)
        which[numbers] = True
        paths = paths.some(which)
        own = Runs.of(np.sort(paths.rows))
        self._vectors, self._values = Transfers(pattern.dtype, queue, own), pattern.values_of(own)
        blocks = BlockFormat.of(pattern.sizes.largest, pattern.dtype, vlen, queue)
        pattern, rows = SomeValues(pattern, self._values), own.numbered(paths.rows)
        self.lines = part_matrix(pattern, paths, rows, parts, blocks, options, vlen is not None)
        self._prepare()

    def _prepare(self):
        self.worker, self._staged = ThreadPoolExecutor(1), Buffer(WORD, None)

    def fill(self, values) -> None:
        shape = len(self._values), *values.shape[1:]
        there = backend(self._queue).empty(shape, values.dtype, self._queue)
        self._values.send(values, there, self._staged)
        self.lines.fill([there] * 3, NOW)

    def factor(self) -> np.ndarray:
        return on_host(self.lines.factor(NOW))

    def solve(self, rhs, x) -> None:
        self._vectors.apply(self.lines.solve, rhs, x, NOW)


def at_work(work, *args):
    """Call `work` in a thread of this package, where calls are not the user's."""
    with inner_calls():
        return work(*args)


class SomeValues:
    """The pattern of a matrix of which only some values are there."""

    def __init__(self, pattern, values: Runs):
        self._pattern, self._values = pattern, values

    def find(self, row, column, no_row):
        """Places of blocks, as in `Extraction`."""
        return self._values.numbered(self._pattern.find(row, column, no_row))


def share_out(paths, count) -> np.ndarray:
    """The share of each line, out of `count`: shares are even, and have lines that begin in neighbouring block rows."""
    share = np.empty(len(paths.length), np.int64)
    if len(share):
        order = np.argsort(np.minimum.reduceat(paths.rows, np.cumsum(paths.length) - paths.length), kind="stable")
        length = paths.length[order]
        middle = np.cumsum(length) - length / 2
        share[order] = middle * count / length.sum()
    return share
