"""Factors that are stored in a smaller type than they are computed in, and solves with.

Lines are factored in full precision, in the arrays that hold their blocks, and the result is rounded once into arrays
of the smaller type: there is one factorization for every storage, its pivots see no rounding but their own, and a
refactorization, which needs room for the new blocks in any case, allocates nothing. A solve reads the stored factors,
half or a quarter of the bytes, and computes in full precision.
"""

import numpy as np

from compactla.view import backend

# NumPy's types for what is stored; it has none for bfloat16.
STORAGE: dict[str, np.dtype] = {
    "float32": np.dtype(np.float32),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(np.uint16),
}
LARGEST = {"float32": np.finfo(np.float32).max, "float16": 65504.0, "bfloat16": 2.0**127 * (2 - 2**-7)}


def check_storage(storage, dtype) -> str:
    """The name of a type that is smaller than that of the numbers of `dtype`, or "" if there is nothing to store."""
    names = ", ".join(map(repr, STORAGE))
    if storage is not None and not isinstance(storage, str):
        raise TypeError(f"storage is {storage!r}, must be None or one of {names}")
    real = np.finfo(dtype).dtype
    if storage is None or storage == real.name:
        return ""
    if storage not in STORAGE or STORAGE[storage].itemsize >= real.itemsize:
        raise ValueError(f"storage is {storage!r}, must be None or one of {names}, and smaller than {real.name}")
    return storage


class Stored:
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
        backend(queue, "mixed").check_storage(storage, queue)
        self.storage, self.offset, self.queue = storage, offset, queue
        self.blocks = [run.empty(a.shape, STORAGE[storage], queue) for a in blocks]

    def fill(self, blocks, info, launch) -> None:
        """Round the factors `blocks` into what is stored.

        Raises
        ------
        OverflowError
            If factors of a line whose `info` is 0 are too large for the type, when all others are stored.
        """
        run, limit = backend(self.queue), LARGEST[self.storage]
        overflow = run.upload(np.zeros(1, np.int64), self.queue)
        for source, target in zip(blocks, self.blocks, strict=True):
            backend(self.queue, "mixed").round_blocks(source, target, self.storage, limit, overflow, launch)
        if run.download(overflow)[0]:
            self._check(blocks, info, limit)

    def _check(self, blocks, info, limit):
        """Name the lines that are too large, of those that could be factored."""
        pack = np.repeat(np.arange(len(self.offset) - 1), np.diff(self.offset))
        coupled = np.delete(pack, self.offset[1:] - 1)
        largest = np.zeros((len(self.offset) - 1, blocks[1].shape[-1]))
        for a, packs in zip(blocks, (coupled, pack, coupled), strict=True):
            a = np.abs(backend(self.queue).download(a)).reshape(len(packs), -1, a.shape[-1])
            np.maximum.at(largest, packs, a.max(1, initial=0))
        largest = largest.reshape(-1)[: len(info)]
        bad = np.flatnonzero((largest > limit) & (info == 0))
        if len(bad):
            what = f"factors of {len(bad)} lines, among them line {bad[0]}, are as large as {largest[bad].max():.3g}"
            raise OverflowError(f"{what}: {self.storage} holds no more than {limit:.6g}; bfloat16 and float32 do")
