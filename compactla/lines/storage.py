"""Factors that are stored in a smaller type than they are computed in, and solves with.

Lines are factored in full precision, in the arrays that hold their blocks, and the result is rounded once into arrays
of the smaller type: there is one factorization for every storage, its pivots see no rounding but their own, and a
refactorization, which needs room for the new blocks in any case, allocates nothing. A solve reads the stored factors,
half or a quarter of the bytes, and computes in full precision.
"""

from typing import Any

import numpy as np

from compactla.backends import backend
from compactla.pickling import Copied

# NumPy's types for what is stored; it has none for bfloat16.
STORAGE: dict[str, np.dtype] = {
    "float32": np.dtype(np.float32),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(np.uint16),
}
LIMITS: dict[str, Any] = {"float32": np.finfo(np.float32).max, "float16": 65504.0, "bfloat16": 2.0**127 * (2 - 2**-7)}


class StoredFactors(Copied):
    """Rounded copies of the factors of lines.

    Parameters
    ----------
    blocks : sequence of ndarray or pyopencl.array.Array
        `lower`, `diag` and `upper` of a `BlockTridiag`.
    offset : (npack + 1,) ndarray of int64
        First slot of each pack in `diag`.
    storage : str
        A key of `STORAGE`.
    """

    def __init__(self, blocks, offset, storage, queue):
        run = backend(queue)
        self.storage, self.offset, self.queue = storage, offset, queue
        self._prepare()
        self.blocks = [run.empty(a.shape, STORAGE[storage], queue) for a in blocks]

    def _prepare(self):
        backend(self.queue, "storage").check_storage(self.storage, self.queue)  # here, where copies are used

    def no_overflow(self):
        """The argument `overflow` of `fill`."""
        return backend(self.queue).upload(np.zeros(1, np.int64), self.queue)

    def fill(self, blocks, info, overflow, launch) -> np.ndarray:
        """Round the factors `blocks` into what is stored; `overflow` was made by `no_overflow`.

        Returns
        -------
        (nlines,) ndarray of float64
            The largest factor of each line whose `info` is 0 where it is too large for the type, otherwise 0.
        """
        run, limit = backend(self.queue), LIMITS[self.storage]
        for source, target in zip(blocks, self.blocks, strict=True):
            backend(self.queue, "storage").round_blocks(source, target, self.storage, limit, overflow, launch)
        if not run.download(overflow)[0]:
            return np.zeros(len(info))
        largest = self._largest(blocks)[: len(info)]
        return np.where((largest > limit) & (info == 0), largest, 0)

    def _largest(self, blocks):
        """The largest factor of every lane."""
        pack = np.repeat(np.arange(len(self.offset) - 1), np.diff(self.offset))
        coupled = np.delete(pack, self.offset[1:] - 1)
        largest = np.zeros((len(self.offset) - 1, blocks[1].shape[-1]))
        for a, packs in zip(blocks, (coupled, pack, coupled), strict=True):
            a = np.abs(backend(self.queue).download(a))
            np.maximum.at(largest, packs, a.max(tuple(range(1, a.ndim - 1)), initial=0))
        return largest.reshape(-1)


def refuse_overflow(too_large, storage) -> None:
    """Raise an OverflowError if factors of a line are too large to be stored; see `StoredFactors.fill`."""
    bad = np.flatnonzero(too_large)
    if len(bad):
        what = f"factors of {len(bad)} lines, among them line {bad[0]}, are as large as {too_large.max():.3g}"
        limit = f"{storage} holds no more than {LIMITS[storage]:.6g}"
        raise OverflowError(f"{what}: {limit}; bfloat16 and float32 do")
