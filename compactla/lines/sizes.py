"""Block rows of sizes of their own: smaller ones are padded to the largest, in packs and in vectors."""

from typing import Any

import numpy as np
import scipy.sparse

from compactla.backends import backend
from compactla.buffers import Buffer, Pool
from compactla.checks import as_integers
from compactla.pickling import Copied

PADDING = -3  # place of what stands on the diagonal of a block past the size of its block row


class Sizes:
    """The sizes of the block rows of a matrix.

    Parameters
    ----------
    size : (nrow,) array of int
        The size of each.

    Attributes
    ----------
    start : (nrow + 1,) ndarray of int64
        The first row of the matrix in each block row, and the number of rows.
    largest : int
        The size that all are padded to.
    differ : bool
        Whether not all have it.
    """

    def __init__(self, size):
        self.size = size
        self.start = np.concatenate([[0], np.cumsum(size)])
        self.largest = int(size.max(initial=1))
        self.differ = bool((size != self.largest).any())

    @property
    def unknowns(self) -> np.ndarray:
        """The places of the rows of the matrix among those of padded block rows."""
        row = np.repeat(np.arange(len(self.size)), self.size)
        return row * self.largest + np.arange(len(row)) - self.start[row]

    def padded(self, M):
        """A CSR matrix whose block rows, and columns, are padded with zeros."""
        if not self.differ:
            return M
        place, n = self.unknowns, len(self.size) * self.largest
        count = np.zeros(n + 1, np.int64)
        count[place + 1] = np.diff(M.indptr)
        used = M.indptr[-1]
        return scipy.sparse.csr_array((M.data[:used], place[M.indices[:used]], np.cumsum(count)), shape=(n, n))


def check_sizes(block_size: Any, n: int) -> np.ndarray:
    """The sizes of block rows, which are given one by one, of a matrix of n rows."""
    size = as_integers(block_size, "block_size")
    if size.ndim != 1:
        raise ValueError(f"block_size has shape {size.shape}, must be an integer, or one for each block row")
    if size.min(initial=1) < 1:
        row = np.flatnonzero(size < 1)[0]
        raise ValueError(f"block_size[{row}] is {size[row]}, must be at least 1")
    if size.sum() != n:
        raise ValueError(f"block_size sums to {size.sum()}, must to the {n} rows of M")
    return size


class LineSizes:
    """The sizes of block rows along lines: how rows of lines are counted without padding.

    Parameters
    ----------
    size : (nrow,) array of int
        The sizes, one line after the other.
    length : (nlines,) array of int
        The number of block rows of each line.
    largest : int
        The size that all are padded to.
    """

    def __init__(self, size, length, largest):
        self._start = np.concatenate([[0], np.cumsum(size)])
        self._first, self._largest = np.cumsum(length) - length, largest

    def count(self, info) -> np.ndarray:
        """`info` of lines, from one that counts padding."""
        block, pivot = np.divmod(np.maximum(info - 1, 0), self._largest)
        return np.where(info > 0, self._start[self._first + block] - self._start[self._first] + pivot + 1, 0)

    def locate(self, info) -> tuple[np.ndarray, np.ndarray]:
        """The block and the pivot in it that `info` of lines, 1 and more, means."""
        row = self._start[self._first] + info - 1
        position = np.searchsorted(self._start, row, "right") - 1
        return position - self._first, row - self._start[position]


class Padding(Copied):
    """Vectors of all unknowns, and those of padded block rows; room for the latter is kept between calls.

    Parameters
    ----------
    unknowns : (n,) array of int
        The places of the unknowns among those of padded block rows.
    rows : tuple of int
        How many block rows there are, and the size that they are padded to.
    dtype : numpy.dtype
        Type of vectors.
    queue : pyopencl.CommandQueue or None
        Where they are.
    apart : bool
        Whether what is computed may not take the place of what it is computed from.
    """

    _not_copied = ("_spare",)

    def __init__(self, unknowns, rows, dtype, queue, apart=False):
        self._unknowns = backend(queue).upload(np.ascontiguousarray(unknowns, np.int64), queue)
        self._rows, self._dtype, self._queue, self._apart = rows, dtype, queue, apart
        self._prepare()

    def _prepare(self):
        dtype, queue = self._dtype, self._queue
        self._spare = Pool(queue, lambda: (Buffer(dtype, queue), Buffer(dtype, queue)))

    def apply(self, work, rhs, x, launch, started=False) -> None:
        """x <- what ``work(rhs, x, launch)`` writes of padded vectors; with a further argument if x is a beginning.

        Vectors are (n, 1, nrhs). What is computed in the padding of `rhs`, which is zero, is left out.
        """
        if not rhs.size or launch.later(self.apply, work, rhs, x):
            return
        permute, rooms = backend(self._queue, "sweeps").permute, self._spare.take()
        padded = [room.array((*self._rows, rhs.shape[2])) for room in rooms[: 1 + self._apart]]
        flat = [self._flat(a) for a in padded]
        for source, target in zip((rhs, x), flat[: 1 + started], strict=False):
            target.fill(0)
            permute(self._unknowns, source, target, True, launch)
        work(padded[0], padded[-1], launch, *([True] * started))
        permute(self._unknowns, flat[-1], x, False, launch)
        self._spare.give(rooms)

    def apply_trimmed(self, work, rhs, x, launch) -> None:
        """x <- what ``work(x, x, launch)`` makes of a padded vector, whose padding is not read, and zero in x."""
        if not rhs.size or launch.later(self.apply_trimmed, work, rhs, x):
            return
        permute, rooms = backend(self._queue, "sweeps").permute, self._spare.take()
        kept = rooms[0].array((len(self._unknowns), 1, rhs.shape[2]))
        permute(self._unknowns, self._flat(rhs), kept, False, launch)
        x.fill(0)
        permute(self._unknowns, kept, self._flat(x), True, launch)
        work(x, x, launch)
        self._spare.give(rooms)

    def _flat(self, a):
        """A padded vector, number by number."""
        return backend(self._queue).reshaped(a, (a.shape[0] * a.shape[1], 1, a.shape[2]))
