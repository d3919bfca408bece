"""The compact layout: V matrices of a batch share every SIMD register.

Element (i, j) of matrix q is ``data[q // V, i, j, q % V]``; complex packs hold V real parts, then V
imaginary parts: ``data[q // V, i, j, :, q % V]``. It is the format of Intel MKL's compact routines.
"""

from typing import Any

import numpy as np

from compactla.arithmetic import Arithmetic
from compactla.backends import backend, device_module
from compactla.calls.launch import NOW, Launch
from compactla.calls.recording import repeats
from compactla.checks import (
    as_array,
    check_device_array,
    check_dtype,
    check_kind,
    check_launch,
    check_queue,
    check_size,
    check_written,
    is_device_array,
    stays,
)
from compactla.dtypes import COMPLEX, REAL, packed_dtype
from compactla.foreign import accepts_foreign, adopt, hand_back
from compactla.overlap import address
from compactla.pickling import Made
from compactla.types import Array, Events, Queue
from compactla.view import View

LONGEST = 2**16  # vector


def check_vlen(vlen: int | None, dtype: np.dtype, queue: Queue) -> int:
    if vlen is None:
        return backend(queue).default_vlen(dtype, queue)
    if not 1 <= check_size(vlen, "vlen") <= LONGEST:
        raise ValueError(f"vlen is {vlen}, must be from 1 to {LONGEST}")
    return int(vlen)


class Pack(Arithmetic, Made):
    """A batch of `nm` matrices of size m x n in the compact layout.

    Made by `compactla.pack`, by `Pack.zeros`, `Pack.empty` and `Pack.identity`, or, without a copy, from an
    array that already holds the layout.

    Parameters
    ----------
    data : ndarray or pyopencl.array.Array
        Shape (npack, m, n, V) for real matrices, (npack, m, n, 2, V) for complex ones, dtype float32 or float64.
        Strides of the first three axes are free, the others must be contiguous.
    nm : int, optional
        Number of matrices, at most ``npack * V`` (the default) and too many for one pack less.

    Attributes
    ----------
    nm, m, n, vlen : int
        Number of matrices, rows, columns, and vector length V.
    dtype : numpy.dtype
        float32, float64, complex64 or complex128.
    device : "cpu" or pyopencl.Device
        Where the data lives.
    queue : pyopencl.CommandQueue or None
        The queue that the data lives in; None on the CPU.
    data : ndarray or pyopencl.array.Array
        The memory itself.

    See Also
    --------
    compactla.pack : Packs of arrays.
    compactla.arithmetic.Arithmetic : ``len(A)``, ``A[q]``, ``A.copy()``, ``A @ B`` and the other operators.

    Raises
    ------
    TypeError, ValueError
        If `data` or `nm` do not describe compact matrices.

    References
    ----------
    .. [1] Kim et al., "Designing Vector-Friendly Compact BLAS and LAPACK Kernels", SC17.

    Examples
    --------
    >>> import compactla as cla
    >>> A = cla.Pack.identity(10, 2, vlen=8)
    >>> (2 * A @ A)[9]
    array([[2., 0.],
           [0., 2.]])
    """

    __slots__ = ("_T", "_real", "dtype", "is_complex", "kind", "m", "n", "nm", "queue", "view", "vlen")

    def __init__(self, data: Array, nm: int | None = None) -> None:
        data = data if type(data) is np.ndarray else adopt(data, "data")
        on_device = is_device_array(data)
        if on_device:
            check_device_array(data, data.queue, "data")
        else:
            check_kind(data, None, "data")
        if data.ndim not in (4, 5) or (data.ndim == 5 and data.shape[3] != 2):
            raise ValueError(f"data has shape {data.shape}, must be (npack, m, n, V) or (npack, m, n, 2, V)")
        real = np.dtype(data.dtype)
        if real not in COMPLEX or not real.isnative:
            raise TypeError(f"data: dtype is {real}, must be float32 or float64")
        npack, m, n, *_, vlen = data.shape
        if vlen < 1:
            raise ValueError(f"data has vector length {vlen}, must be at least 1")
        strides, item = data.strides, real.itemsize
        contiguous = (vlen == 1 or strides[-1] == item) and (data.ndim == 4 or strides[3] == vlen * item)
        if (not contiguous or any(s % item for s in strides)) and data.size:
            raise ValueError(f"data has strides {strides}, must be contiguous within a vector of {vlen} lanes")
        nm = npack * vlen if nm is None else check_size(nm, "nm")
        if -(-nm // vlen) != npack:
            raise ValueError(f"nm is {nm}, must need exactly the {npack} packs of {vlen} lanes that data has")
        self.nm, self.m, self.n, self.vlen = nm, m, n, vlen
        self.dtype, self.is_complex = packed_dtype(data), data.ndim == 5
        self.queue = data.queue if on_device else None
        if on_device:
            address = data.offset // item
        else:
            address = data.__array_interface__["data"][0]
        ps, rs, cs = strides[0] // item, strides[1] // item, strides[2] // item
        self.view = View(data, address, npack, m, n, ps, rs, cs, vlen, self.dtype, self.queue)
        self._T: Pack | None = None
        self._real: Pack | None = None
        # What packs have to share to be arguments of one call.
        self.kind = (self.nm, vlen, self.dtype.char, None if self.queue is None else self.queue.context)

    def _parts(self) -> tuple[Any, ...]:
        return self.view.buffer, self.nm

    @property
    def data(self) -> Any:
        """The memory itself, (npack, m, n, V) or (npack, m, n, 2, V)."""
        return self.view.buffer if self.queue is None else hand_back(self.view.buffer)

    @property
    def device(self) -> Any:
        """The device of the memory, or "cpu"."""
        return "cpu" if self.queue is None else self.queue.device

    @property
    def T(self) -> "Pack":
        """The transposed matrices, as a view of the same memory."""
        if self._T is None:
            data = self.view.buffer
            self._T = Pack(data.transpose((0, 2, 1, *range(3, data.ndim))), self.nm)
        return self._T

    @property
    def parts(self) -> "Pack":
        """The real and the imaginary parts as real matrices, in twice as many lanes; a view of the same memory."""
        if not self.is_complex:
            return self
        if self._real is None:
            data = self.view.buffer
            shape = *data.shape[:3], 2 * self.vlen
            if self.queue is None:
                data = data.reshape(shape)
            else:  # where reshape takes no gaps
                data = device_module().seen_as(data, shape, (*data.strides[:3], data.dtype.itemsize))
            self._real = Pack(data)
        return self._real

    @repeats("out")
    def unpack(self, *, out: Array = None, threads: int | None = None, wait_for: Events = None) -> Any:
        """The matrices as an ordinary array.

        Parameters
        ----------
        out : ndarray or pyopencl.array.Array, optional
            Array of shape (nm, m, n) and the pack's dtype, of any strides, on the pack's device, to write to.
        threads : int, optional
            Maximum number of CPU threads, as for `compactla.gemm`.
        wait_for : list of pyopencl.Event, optional
            Events to wait for before starting (devices only), as for `compactla.gemm`.

        Returns
        -------
        ndarray or pyopencl.array.Array
            `out`, or a new NumPy array of shape (nm, m, n), for which this waits.

        Raises
        ------
        TypeError, ValueError
            If `out` is of another kind, dtype or shape, is read-only, shares memory with the pack or has several
            elements in one place, or `threads` or `wait_for` is invalid, see `compactla.gemm`.
        """
        launch = check_launch(threads, wait_for, self.queue)
        run = backend(self.queue)
        if out is None:
            target = run.empty(self.shape, self.dtype, self.queue)
            run.unpack(self.view, self.nm, target, launch)
            return target if stays(target) else run.download(target)
        check_kind(out, self.queue, "out")
        if self.queue is not None:
            check_device_array(out, self.queue, "out")
        if out.dtype != self.dtype:
            raise TypeError(f"out: dtype is {out.dtype}, must be {self.dtype}")
        if out.shape != self.shape:
            raise ValueError(f"out has shape {out.shape}, must be {self.shape}")
        check_written("out", out, {"the pack": self.view.buffer})
        run.unpack(self.view, self.nm, out, launch)
        return out

    @accepts_foreign
    def to(self, device: Any) -> "Pack":
        """A copy of the batch on another device.

        Parameters
        ----------
        device : "cpu" or pyopencl.CommandQueue or Pack
            Where the copy lives; a pack stands for where it lives.

        Raises
        ------
        TypeError
            If `device` is none of these.
        """
        if isinstance(device, Pack):
            queue = device.queue
        elif isinstance(device, str) and device == "cpu":
            queue = None
        else:
            check_queue(device, "device")
            queue = device
        data = self.view.buffer
        data = data if self.queue is None else backend(self.queue).download(data)
        if queue is not None:
            return Pack(backend(queue).upload(data, queue), self.nm)
        copy = backend(None).empty(data.shape, data.dtype, None)
        copy[...] = data
        return Pack(copy, self.nm)

    def beside(self, m: int, n: int, real: bool = False, twin: bool = False) -> "Pack":
        """Unset matrices m x n, as many as here and where these live.

        They are of real numbers of the same precision if `real` is set, of complex ones if `twin` is.
        """
        dtype = REAL[self.dtype.char] if real else np.result_type(self.dtype, np.complex64) if twin else self.dtype
        V, view = self.vlen, self.view
        is_complex = twin or (self.is_complex and not real)
        shape = (view.npack, m, n, 2, V) if is_complex else (view.npack, m, n, V)
        data, start = backend(self.queue).beside(view.buffer, shape, view.buffer.dtype)
        return self._around(data, start, m, n, dtype)

    def around(self, data: Array) -> "Pack":
        """Matrices of these sizes and this type in other memory, an array like that of these."""
        start = address(data) if self.queue is None else data.offset // data.dtype.itemsize
        view = self.view
        return self._around(data, start, self.m, self.n, self.dtype, (view.ps, view.rs, view.cs))

    def _around(self, data, start, m, n, dtype, strides=None):
        V = self.vlen
        column = 2 * V if dtype.kind == "c" else V
        strides = strides or (m * n * column, n * column, column)
        view = View(data, start, self.view.npack, m, n, *strides, V, dtype, self.queue)
        return Pack.of_view(view, self.nm, self.kind[3])

    @classmethod
    def of_view(cls, view: View, nm: int, context: Any = None) -> "Pack":
        """The matrices that a view has, which is not checked, in a device's context."""
        P = cls.__new__(cls)
        V, dtype = view.vlen, view.dtype
        P.nm, P.m, P.n, P.vlen, P.dtype, P.queue, P.view = nm, view.m, view.n, V, dtype, view.queue, view
        P.is_complex, P._T, P._real, P.kind = dtype.kind == "c", None, None, (nm, V, dtype.char, context)
        return P

    @classmethod
    @accepts_foreign
    def empty(
        cls, nm: int, m: int, n: int, dtype: Any = np.float64, vlen: int | None = None, *, queue: Queue = None
    ) -> "Pack":
        """A batch of unset matrices; unused lanes hold the identity.

        Parameters
        ----------
        nm, m, n : int
            Number of matrices, rows, columns.
        dtype : dtype
            float32, float64, complex64 or complex128.
        vlen : int, optional
            Vector length; default: one that suits the device.
        queue : pyopencl.CommandQueue, optional
            Where the batch lives; default: the CPU.

        Raises
        ------
        TypeError, ValueError
            If a size is not a non-negative integer, or the dtype or the vector length is not one of the above.
        """
        P = cls._allocate(nm, m, n, dtype, vlen, queue)
        unused = -P.nm % P.vlen
        if unused:
            cls(P.view.buffer[P.nm // P.vlen :], P.vlen - unused)._fill(np.zeros((P.m, P.n), P.dtype))
        return P

    @classmethod
    @accepts_foreign
    def zeros(
        cls, nm: int, m: int, n: int, dtype: Any = np.float64, vlen: int | None = None, *, queue: Queue = None
    ) -> "Pack":
        """A batch of zero matrices; unused lanes hold the identity. Parameters as in `empty`."""
        return cls._allocate(nm, m, n, dtype, vlen, queue)._fill(np.zeros((m, n), dtype))

    @classmethod
    @accepts_foreign
    def identity(
        cls, nm: int, m: int, n: int | None = None, dtype: Any = np.float64, vlen: int | None = None, *,
        queue: Queue = None,
    ) -> "Pack":  # fmt: skip
        """A batch of identity matrices (ones where i == j), square by default. Parameters as in `empty`."""
        n = m if n is None else n
        return cls._allocate(nm, m, n, dtype, vlen, queue)._fill(np.eye(m, n, dtype=dtype))

    @classmethod
    def _allocate(cls, nm, m, n, dtype, vlen, queue):
        dtype = check_dtype(dtype, "dtype")
        if queue is not None:
            check_queue(queue, "queue")
        vlen = check_vlen(vlen, dtype, queue)
        return cls._new(check_size(nm, "nm"), check_size(m, "m"), check_size(n, "n"), dtype, vlen, queue)

    @classmethod
    def _new(cls, nm, m, n, dtype, vlen, queue):
        """An unset batch of sizes that were checked."""
        lanes = (vlen,) if dtype.kind == "f" else (2, vlen)
        if (nm + vlen) * max(m, 1) * max(n, 1) * dtype.itemsize >= 2**63:  # NumPy doesn't count an axis of no elements
            raise ValueError(f"nm, m, n are {nm}, {m}, {n}, must make less than 2**63 bytes")
        return cls(backend(queue).empty((-(-nm // vlen), m, n, *lanes), REAL[dtype.char], queue), nm)

    def _fill(self, matrix):
        run = backend(self.queue)
        run.pack(run.broadcast(matrix, self.nm, self.queue), self.view, self.nm, max(self.m, 1), 1)
        return self


@repeats("out")
def pack(
    a: Array, vlen: int | None = None, *, queue: Queue = None, out: Array = None, threads: int | None = None,
    wait_for: Events = None,
) -> Pack:  # fmt: skip
    """Pack a batch of matrices into the compact layout.

    Parameters
    ----------
    a : (nm, m, n) array_like or pyopencl.array.Array
        The matrices: float32, float64, complex64 or complex128, with any strides.
    vlen : int, optional
        Vector length V; default: one that suits the device (a SIMD register on a CPU, a warp on a GPU).
    queue : pyopencl.CommandQueue, optional
        Where the pack lives; default: where `a` lives.
    out : Pack, optional
        A pack of as many matrices of this size and dtype to write to, which sets vector length and device.
    threads : int, optional
        Maximum number of CPU threads, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        Events to wait for before starting (devices only), as for `compactla.gemm`.

    Returns
    -------
    Pack
        `out`, or a new pack. Unused lanes of its last pack hold the identity.

    Raises
    ------
    TypeError, ValueError
        If `a` is not a batch of matrices of such a dtype, `vlen` is not a positive integer or `queue` no queue,
        `out` does not fit, is read-only or shares memory with `a`, or `threads` or `wait_for` is invalid, see
        `compactla.gemm`.

    See Also
    --------
    compactla.Pack, compactla.Pack.unpack

    Notes
    -----
    Intel MKL calls this ``mkl_?gepack_compact``, with the same memory format in row-major order.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> A = cla.pack(np.ones((10, 3, 4)), vlen=8)
    >>> A.data.shape
    (2, 3, 4, 8)
    """
    return pack_padded(a, vlen, queue=adopt(queue, "queue"), out=out, threads=threads, wait_for=wait_for)


def pack_padded(
    a: Any, vlen: int | None, queue: Queue, unit: Any = 1, out: Any = None, threads: int | None = None,
    wait_for: Events = None,
) -> Pack:  # fmt: skip
    """`pack` with a choice for the unused lanes of the last pack: `unit` times the identity."""
    on_device = is_device_array(a)
    if not on_device:
        a = as_array(a, "a")
    dtype = check_dtype(a.dtype, "a")
    if a.ndim != 3:
        raise ValueError(f"a has shape {a.shape}, must be (nm, m, n)")
    if out is not None:
        check_target(out, a, dtype, vlen, queue)
        queue = out.queue
    elif queue is not None:
        check_queue(queue, "queue")
    elif on_device:
        queue = a.queue
    if on_device:
        check_device_array(a, queue, "a")
    launch = check_launch(threads, wait_for, queue)
    return packed(a, check_vlen(vlen, dtype, queue) if out is None else None, queue, unit=unit, out=out, launch=launch)


def packed(
    a: Any, vlen: int | None, queue: Queue, period: int | None = None, unit: Any = 1, out: Any = None,
    launch: Launch = NOW,
) -> Pack:  # fmt: skip
    """An array (nm, m, n) that was checked, as a pack.

    Element (i, j) of the unused lanes of the last pack is `unit` where ``i % period == j``, else 0. Lines of K blocks
    are tall matrices with the period of a block.
    """
    nm, m, n = a.shape
    A = Pack._new(nm, m, n, a.dtype, vlen, queue) if out is None else out
    run = backend(A.queue)
    source = a if is_device_array(a) else run.upload(a, A.queue)
    run.pack(source, A.view, nm, max(m, 1) if period is None else period, unit, launch)
    return A


def check_target(out, a, dtype, vlen, queue) -> None:
    """Refuse a pack that `a` cannot be written to."""
    if not isinstance(out, Pack):
        raise TypeError(f"out is a {type(out).__name__}, must be a Pack")
    if out.shape != a.shape or out.dtype != dtype:
        raise ValueError(f"out is {out.shape} of {out.dtype}, must be {a.shape} of {dtype} as a")
    for name, wanted, its in (("vlen", vlen, out.vlen), ("queue", queue, out.queue)):
        if wanted is not None and wanted != its:
            raise ValueError(f"{name} is {wanted!r}, must be that of out, {its!r}, or left away")
    if is_device_array(a) and out.queue is None:
        raise TypeError("out lives on the CPU, must live on a device as a")
    check_written("out", out.view.buffer, {"a": a})
