"""Copies of rows of arrays of the host to a device, and back: of all rows, or of runs of them."""

import numpy as np

from compactla.backends import device_module
from compactla.buffers import Buffer, Pool
from compactla.cpu.compile import compiled_once
from compactla.pickling import Copied

WORD = np.dtype(np.uint32)  # that is copied at once
LONG = 1 << 18  # bytes of a run that goes to a device as it is
STAGED = 1 << 20  # bytes of shorter runs that are gathered at once, and stay in the caches


class Runs:
    """Some rows of an array, which are numbered anew.

    Parameters
    ----------
    first, stop : array of int
        Where runs of rows begin and end in the array; they rise.
    """

    def __init__(self, first, stop):
        self.first, self.stop = np.asarray(first, np.int64), np.asarray(stop, np.int64)
        self.place = np.concatenate([[0], np.cumsum(self.stop - self.first)])

    @classmethod
    def of(cls, rows):
        """The runs of rows in ascending order."""
        if not len(rows):
            return cls.all(0)
        begins = np.concatenate([[0], np.flatnonzero(np.diff(rows) != 1) + 1])
        return cls(rows[begins], rows[np.append(begins[1:], len(rows)) - 1] + 1)

    @classmethod
    def all(cls, count):
        """One run of all `count` rows of an array."""
        return cls(np.zeros(1, np.int64), np.array([count]))

    def __len__(self):
        return int(self.place[-1])

    def numbered(self, rows):
        """The new numbers of rows; negative ones stay."""
        run = np.searchsorted(self.first, rows, "right") - 1
        return np.where(rows < 0, rows, rows + (self.place[:-1] - self.first)[run])

    def pieces(self, row_bytes):
        """Pieces that are copied one after the other: the number of the first row, and where runs of rows are.

        These are three arrays: where runs begin in the array and in the piece, and how long they are.
        """
        count, runs = len(self), len(self.first)
        if count * row_bytes >= runs * LONG or runs == 1:
            ends = self.place
        else:
            step = max(STAGED // max(row_bytes, 1), 1)
            ends = np.append(np.arange(0, count, step), count)
        for begin, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            i, j = np.searchsorted(self.place, begin, "right") - 1, np.searchsorted(self.place, end)
            if begin < end:
                start, stop = np.maximum(self.place[i:j], begin), np.minimum(self.place[i + 1 : j + 1], end)
                yield begin, (start + self.first[i:j] - self.place[i:j], start - begin, stop - start)

    def send(self, source, target, staged: Buffer) -> None:
        """target <- these rows of an array of the host; `staged` is room for words."""
        device, width = device_module(), words_of(source)
        for begin, (first, place, count) in self.pieces(width * WORD.itemsize):
            if len(first) == 1:
                piece = source[first[0] : first[0] + count[0]]
            else:
                piece = staged.array((int(count.sum()) * width,))
                copy_runs(words(source), first, piece, place, count, width)
                piece = piece.view(source.dtype)
            device.send(piece, target, begin)

    def bring(self, source, target, staged: Buffer) -> None:
        """Rows of an array of the host <- source"""
        device, width = device_module(), words_of(target)
        for begin, (first, place, count) in self.pieces(width * WORD.itemsize):
            if len(first) == 1:
                device.bring(source, target[first[0] : first[0] + count[0]], row=begin)
            else:
                piece = staged.array((int(count.sum()) * width,))
                device.bring(source, piece.view(target.dtype), row=begin)
                copy_runs(piece, place, words(target), first, count, width)


class Transfers(Copied):
    """The way of vectors of the host to a device, and back; room for them there is kept between calls.

    Parameters
    ----------
    dtype : numpy.dtype
        Type of the vectors, (block rows, b, nrhs).
    queue : pyopencl.CommandQueue
        Queue of the device.
    rows : Runs
        The block rows that go there.
    apart : bool
        Whether what is computed there may not take the place of what it is computed from.
    """

    _not_copied = ("_spare",)

    def __init__(self, dtype, queue, rows: Runs, apart=False):
        self._dtype, self._queue, self._rows, self._apart = dtype, queue, rows, apart
        self._prepare()

    def _prepare(self):
        dtype, queue = self._dtype, self._queue
        self._spare = Pool(queue, lambda: (Buffer(dtype, queue), Buffer(dtype, queue), Buffer(WORD, None)))

    def apply(self, work, rhs, x, launch, started=False) -> None:
        """x <- what ``work(rhs, x, launch)`` writes on the device; with a further argument if x is a beginning."""
        if not rhs.size or launch.later(self.apply, work, rhs, x):
            return
        rooms = self._spare.take()
        *vectors, staged = rooms
        b, y = (room.array((len(self._rows), *rhs.shape[1:])) for room in (vectors[0], vectors[self._apart]))
        self._rows.send(rhs, b, staged)
        if started:
            self._rows.send(x, y, staged)
        work(b, y, launch, *([True] * started))
        self._rows.bring(y, x, staged)
        self._spare.give(rooms)


def words(a):
    """The words of a contiguous array."""
    return a.reshape(-1).view(WORD)


def words_of(a) -> int:
    """The number of words of each row of a contiguous array."""
    return a.nbytes // WORD.itemsize // max(len(a), 1)


@compiled_once
def copy_runs(source, first, target, place, count, width):
    """Copy runs of rows of so many words from where they begin in `source` to their places in `target`."""
    for r in range(len(count)):
        start, to = first[r] * width, place[r] * width
        for k in range(count[r] * width):
            target[to + k] = source[start + k]
