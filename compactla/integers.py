"""Results of routines beside packs: integers for each matrix, such as pivots, and arrays of real numbers."""

from typing import Any

import numpy as np

from compactla.backends import backend, device_name
from compactla.checks import as_array, check_launch, stays
from compactla.dtypes import INTEGERS
from compactla.foreign import adopt, hand_back
from compactla.layout import Pack
from compactla.overlap import address
from compactla.pickling import Made
from compactla.types import Array, Queue
from compactla.view import View


class Integers(Made):
    """Columns of integers beside a batch of matrices, in its layout, such as the pivots of `compactla.getrf`.

    ``np.asarray`` makes an ordinary array of them, (nm, k) of int64, for which it waits on a device.

    Attributes
    ----------
    nm, k, vlen : int
        Number of matrices, of integers for each, and vector length V.
    data : ndarray of int64 or pyopencl.array.Array of int32
        Integer i of matrix q is ``data[q // V, i, 0, q % V]``.
    queue : pyopencl.CommandQueue or None
        The queue that they live in; None on the CPU.
    """

    __slots__ = ("k", "nm", "queue", "view", "vlen")
    _way_to_host = "see numpy.asarray"

    def __init__(self, data: Array, nm: int, queue: Queue = None) -> None:
        start = data.offset // data.dtype.itemsize if queue is not None else address(data)
        self._set(data, start, nm, queue)

    def _set(self, data, start, nm, queue):
        npack, k, _, V = data.shape
        self.nm, self.k, self.vlen, self.queue = nm, k, V, queue
        self.view = View(data, start, npack, k, 1, k * V, V, V, V, data.dtype, queue)

    def _parts(self) -> tuple[Any, ...]:
        return self.view.buffer, self.nm, self.queue

    @classmethod
    def beside(cls, A: Pack, k: int) -> "Integers":
        """Unset ones, k for each matrix of a batch, where that lives."""
        queue, view = A.queue, A.view
        data, start = backend(queue).beside(view.buffer, (view.npack, k, 1, A.vlen), INTEGERS[queue is not None])
        found = cls.__new__(cls)
        found._set(data, start, A.nm, queue)
        return found

    @classmethod
    def of_view(cls, view: View, nm: int) -> "Integers":
        """Those that a view has, which is not checked."""
        found = cls.__new__(cls)
        found.nm, found.k, found.vlen, found.queue, found.view = nm, view.m, view.vlen, view.queue, view
        return found

    @classmethod
    def given(cls, x: Array, A: Pack, k: int, name: str, least: int = 0) -> "Integers":
        """An argument: one of these, or k integers for each matrix of a batch in an array, from `least` to k - 1."""
        if isinstance(x, Integers):
            context = None if x.queue is None else x.queue.context
            if context != (None if A.queue is None else A.queue.context):
                raise ValueError(f"{name} lives on another device than the packs, must live on the same")
            if (x.nm, x.k, x.vlen) != (A.nm, k, A.vlen):
                has = f"{x.nm} x {x.k} in vectors of {x.vlen}"
                raise ValueError(f"{name} is {has}, must be {A.nm} x {k} in vectors of {A.vlen}")
            return x
        x = adopt(x, name)
        x = x.get() if stays(x) else as_array(x, name)
        if x.size and x.dtype.kind not in "iu":
            raise TypeError(f"{name}: dtype is {x.dtype}, must be one of integers")
        if x.shape != (A.nm, k):
            raise ValueError(f"{name} has shape {x.shape}, must be ({A.nm}, {k})")
        if x.size and not least <= int(x.min()) <= int(x.max()) < k:
            must = f"must have entries from {least} to {k - 1}"
            raise ValueError(f"{name} has entries from {x.min()} to {x.max()}, {must}")
        npack, V, dtype = A.view.npack, A.vlen, INTEGERS[A.queue is not None]
        padded = np.tile(np.arange(k, dtype=dtype), (npack * V, 1))
        padded[: A.nm] = x
        lanes_last = np.ascontiguousarray(padded.reshape(npack, V, k).swapaxes(1, 2))
        run = backend(A.queue)
        data = run.empty(lanes_last.shape, dtype, None) if A.queue is None else None
        if data is None:
            data = run.upload(lanes_last, A.queue)
        else:
            data[...] = lanes_last
        return cls(data.reshape(npack, k, 1, V), A.nm, A.queue)

    @property
    def data(self) -> Any:
        """The memory itself, (npack, k, 1, V)."""
        return self.view.buffer if self.queue is None else hand_back(self.view.buffer)

    @property
    def shape(self) -> tuple[int, int]:
        """(nm, k)"""
        return self.nm, self.k

    def __len__(self) -> int:
        return self.nm

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("copy is False, must be None or True: integers have to be unpacked")
        data = backend(self.queue).download(self.view.buffer)[:, :, 0]
        ordinary = data.swapaxes(1, 2).reshape(len(data) * self.vlen, self.k)[: self.nm]
        return ordinary.astype(np.int64 if dtype is None else dtype)

    def __getitem__(self, index: Any) -> Any:
        return np.asarray(self)[index]

    def __repr__(self) -> str:
        return f"Integers({self.nm} x {self.k}, device={device_name(self.queue)})"


def rows(P: Pack, threads: int | None = None) -> Array:
    """A batch of columns n x 1, or rows 1 x n, as an array (nm, n) where it lives."""
    run = backend(P.queue)
    out = run.empty((P.nm, P.m * P.n), P.dtype, P.queue)
    run.unpack(P.view, P.nm, out.reshape(P.nm, P.m, P.n), check_launch(threads, None, P.queue, recorded=True))
    return hand_back(out)
