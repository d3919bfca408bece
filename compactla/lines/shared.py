"""Lines that several devices share: each has some of them, for vectors of the host.

Each device has a thread of its own, which copies its part of a vector there, solves, and copies what it found back:
copies of ordinary memory keep the thread busy that asks for them, and those of several devices go on at the same time.
"""

from concurrent.futures import ThreadPoolExecutor, wait

import numpy as np

from compactla.checks import check_queue, on_host
from compactla.copies import Copied
from compactla.cpu.kernel import compiled_once
from compactla.cuda.interchange import calls_of_our_own
from compactla.layout import check_vlen
from compactla.lines.parted import part_matrix
from compactla.lines.partition import BlockFormat
from compactla.lines.pivots import WATCHED
from compactla.recording import later
from compactla.room import Room
from compactla.view import backend

WORD = np.dtype(np.uint32)  # that rows are copied in


class Queues(list):
    """Several queues."""


def check_queues(queue):
    """None or a queue, or `Queues` of a list of several; a list of one queue is that queue."""
    if not isinstance(queue, list | tuple):
        return queue
    if not queue:
        raise ValueError("queue is empty, must hold at least one queue")
    for i, one in enumerate(queue):
        check_queue(one, f"queue[{i}]")
    return queue[0] if len(queue) == 1 else Queues(queue)


class SharedLines(Copied):
    """Lines in a sparse matrix that are shared out over devices, as `compactla.lines.parted.PartedLines` are on one.

    Parameters
    ----------
    pattern : Extraction
        Where the blocks of the matrix are in its values.
    paths : Paths
        The lines. Those that begin in neighbouring block rows are given to one device, as many block rows to each.
    parts, vlen
        As for `compactla.LinePreconditioner`.
    options : Options
        Of all lines.
    queues : Queues
        Queues of the devices.
    """

    def __init__(self, pattern, paths, parts, vlen, options, queues: Queues):
        self.nlines, place = len(paths.length), share_out(paths, len(queues))
        mine = [np.flatnonzero(place == i) for i in range(len(queues))]
        some = [(lines, queue) for lines, queue in zip(mine, queues, strict=True) if len(lines)]
        some = some or [(mine[0], queues[0])]  # of a matrix without rows
        self._shares = [Share(lines, pattern, paths, parts, vlen, options, queue) for lines, queue in some]
        self.vlen = max(share.lines.vlen for share in self._shares)

    def fill(self, sources, _) -> None:
        """Take blocks from the values of a matrix, which are the same for all kinds."""
        self._at_once(Share.fill, sources[0])

    def factor(self, _) -> np.ndarray:
        """Factor what was filled; returns `info` of each line."""
        return self._joined((), self._at_once(Share.factor), np.int64)

    def solve(self, rhs, x, launch) -> None:
        """x <- the solutions for `rhs`, vectors (block rows, b, nrhs) of the host; `x` may be `rhs`."""
        if rhs.size and not later(launch, self.solve, rhs, x):
            self._at_once(Share.solve, rhs, x)

    @property
    def too_large(self) -> np.ndarray:
        """As that of `PackedLines`."""
        return self._joined((), [share.lines.too_large for share in self._shares])

    @property
    def watched(self):
        """As that of `PackedLines`."""
        found = [share.lines.watched for share in self._shares]
        return None if found[0] is None else self._joined((WATCHED,), found)

    def _at_once(self, work, *args) -> list:
        """What every share returns from this work, which all do at the same time."""
        calls = [share.worker.submit(at_work, work, share, *args) for share in self._shares]
        wait(calls)
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

    _not_copied = "worker", "_vectors", "_staged"

    def __init__(self, numbers, pattern, paths, parts, vlen, options, queue):
        self.numbers, self._queue, self._dtype = numbers, queue, pattern.dtype
        which = np.zeros(len(paths.length), bool)
        which[numbers] = True
        paths = paths.some(which)
        own = np.sort(paths.rows)
        self._rows, self._values = Picked(own), Picked(pattern.places_of(own))
        blocks = BlockFormat(pattern.block_size, pattern.dtype, check_vlen(vlen, pattern.dtype, queue), queue)
        pattern, rows = SomeValues(pattern, self._values), self._rows.numbered(paths.rows)
        self.lines = part_matrix(pattern, paths, rows, parts, blocks, options, vlen is not None)
        self._prepare()

    def _prepare(self):
        self.worker = ThreadPoolExecutor(1)
        self._vectors, self._staged = Room(self._dtype, self._queue), Room(self._dtype, None)

    def fill(self, values) -> None:
        shape = len(self._values.index), *values.shape[1:]
        values = self._values.of(values, None if self._values.is_run else np.empty(shape, values.dtype))
        self.lines.fill([backend(self._queue).upload(values, self._queue)] * 3, ())

    def factor(self) -> np.ndarray:
        return on_host(self.lines.factor(()))

    def solve(self, rhs, x) -> None:
        run, shape = backend(self._queue), (len(self._rows.index), *rhs.shape[1:])
        vectors = self._vectors.array(shape)
        staged = None if self._rows.is_run else self._staged.array(shape)
        run.send(self._rows.of(rhs, staged), vectors)
        self.lines.solve(vectors, vectors, ())
        run.bring(vectors, self._rows.of(x) if staged is None else staged)
        if staged is not None:
            put_rows(words(staged), self._rows.index, words(x))


def at_work(work, *args):
    """What a thread does, in which nobody but this package calls."""
    with calls_of_our_own():
        return work(*args)


class Picked:
    """Some of the rows of arrays, those with these numbers, which rise."""

    def __init__(self, index):
        self.index = index
        self.first, last = (int(index[0]), int(index[-1])) if len(index) else (0, -1)
        self.is_run = last - self.first + 1 == len(index)

    def numbered(self, rows):
        """What the numbers of rows are among these; negative ones stay."""
        return np.where(rows < 0, rows, np.searchsorted(self.index, rows))

    def of(self, a, target=None):
        """Those of an array: a view if they are a run, else a copy in `target`."""
        if self.is_run:
            return a[self.first : self.first + len(self.index)]
        take_rows(words(a), self.index, words(target))
        return target


class SomeValues:
    """The pattern of a matrix of which only some values are there."""

    def __init__(self, pattern, values: Picked):
        self._pattern, self._values = pattern, values

    def find(self, row, column, no_row):
        """As that of `Extraction`."""
        return self._values.numbered(self._pattern.find(row, column, no_row))


def share_out(paths, count) -> np.ndarray:
    """Which of so many shares each line is in: even ones, of lines that begin in neighbouring block rows."""
    share = np.empty(len(paths.length), np.int64)
    if len(share):
        order = np.argsort(np.minimum.reduceat(paths.rows, np.cumsum(paths.length) - paths.length), kind="stable")
        length = paths.length[order]
        middle = np.cumsum(length) - length / 2
        share[order] = middle * count / length.sum()
    return share


def words(a):
    """Rows of words in the place of a contiguous array."""
    return a.reshape(len(a), -1).view(WORD)


@compiled_once
def take_rows(source, rows, target):
    """target <- these rows of `source`"""
    for i in range(len(rows)):
        for j in range(source.shape[1]):
            target[i, j] = source[rows[i], j]


@compiled_once
def put_rows(source, rows, target):
    """These rows of `target` <- source"""
    for i in range(len(rows)):
        for j in range(source.shape[1]):
            target[rows[i], j] = source[i, j]
