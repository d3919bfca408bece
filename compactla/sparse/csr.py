"""Sparse matrices of one pattern: their values are packed, and a product goes through all of a pack at once."""

from typing import Any

import numpy as np

from compactla.backends import backend, device_module, device_name
from compactla.calls.launch import Unrecorded
from compactla.checks import (
    as_array,
    check_device_array,
    check_dtype,
    check_launch,
    check_written,
    is_device_array,
    on_host,
    option,
)
from compactla.foreign import accepts_foreign
from compactla.layout import Pack, pack_padded, packed
from compactla.locks import read_write_lock
from compactla.pickling import Copied
from compactla.sparse.columns import after, as_given, columns, contiguous, one_column, vectors
from compactla.sparse.pattern import Pattern
from compactla.types import Array, Events, Queue


class Replaced(Copied):
    """An object whose values are replaced; where that was broken off there are some of both, which must not be used."""

    _is_whole = True

    def _replaced(self, A, data, out, launch):
        """`out`, which other values of the pattern of A were written to."""
        try:
            A.packed(data, out, **launch)
        except (TypeError, ValueError, Unrecorded):  # before anything is written
            raise
        except BaseException:
            self._is_whole = False
            raise
        self._is_whole = True
        return out

    def _check_whole(self):
        if not self._is_whole:
            raise RuntimeError("an update failed and left values of both matrices: update must be called again")


class BatchCSR(Replaced):
    """A batch of sparse matrices of one pattern, on the CPU or an OpenCL device.

    Parameters
    ----------
    arg : (data, indices, indptr)
        The values of the matrices, (nm, nnz) of float32, float64, complex64 or complex128, with any strides, a NumPy or
        pyopencl array, and their pattern, as of `scipy.sparse.csr_array`: the values of row i are
        ``data[:, indptr[i]:indptr[i + 1]]``, in the columns ``indices[indptr[i]:indptr[i + 1]]``, each of which is
        there once.
    shape : (int, int), optional
        Shape of a matrix; default: as many columns as rows.
    vlen : int, optional
        Number of matrices that are interleaved; default: one that suits the processor.
    queue : pyopencl.CommandQueue, optional
        Queue of the device of the values; default: that of `data`.

    Attributes
    ----------
    nm, shape, nnz, dtype, vlen : int, (int, int), int, numpy.dtype, int
        Matrices, rows and columns of each, values of each, their type, and vector length.
    indices, indptr : ndarray of int64
        The pattern, with columns in ascending order.
    queue : pyopencl.CommandQueue or None
        Where the values live; None on the CPU.
    data : ndarray or pyopencl.array.Array
        The packed values, (npack, nnz, V), or (npack, nnz, 2, V) of complex numbers, in the order of the pattern.
    T, H : object
        Operators of the transposes and the conjugate transposes, to multiply with: ``A.T @ x``. They are views.
    version : int
        Number of updates of the values.

    Raises
    ------
    TypeError, ValueError
        If the arguments are not of this kind.

    See Also
    --------
    compactla.BatchLU, compactla.krylov.cg, compactla.krylov.ILU0

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> A = cla.BatchCSR((np.array([[1.0, 2, 3], [4, 5, 6]]), [0, 1, 1], [0, 2, 3]))
    >>> A @ np.ones((2, 2))
    array([[3., 3.],
           [9., 6.]])
    """

    __array_ufunc__ = None  # so that ``x @ A`` is refused, and not computed for each element of x
    _not_copied = ("_lock",)
    _way_to_host = "see to('cpu')"

    @accepts_foreign
    def __init__(
        self, arg: tuple[Array, Array, Array], shape: tuple[int, int] | None = None, *, vlen: int | None = None,
        queue: Queue = None,
    ) -> None:  # fmt: skip
        if not isinstance(arg, tuple) or len(arg) != 3:
            raise TypeError(f"arg is a {type(arg).__name__}, must be a tuple (data, indices, indptr)")
        data: Array = arg[0] if is_device_array(arg[0]) else as_array(arg[0], "data")
        self.dtype = check_dtype(data.dtype, "data")
        self.pattern = Pattern(*arg[1:], shape)
        self.shape, self.nnz = (self.pattern.m, self.pattern.n), len(self.pattern.indices)
        if data.ndim != 2:
            raise ValueError(f"data has shape {data.shape}, must be (nm, nnz)")
        if is_device_array(data):
            check_device_array(data, data.queue if queue is None else queue, "data")
        self.nm = data.shape[0]
        self._values = self._packed(data, vlen, queue)
        self.vlen, self.version = self._values.vlen, 0
        self._prepare()

    def _prepare(self):
        self._lock = read_write_lock()

    def __repr__(self) -> str:
        sizes = f"{self.nm} x {self.shape[0]} x {self.shape[1]}, nnz={self.nnz}"
        return f"BatchCSR({sizes}, {self.dtype}, vlen={self.vlen}, device={device_name(self.queue)})"

    @property
    def queue(self) -> Queue:
        """The queue of the values; None on the CPU."""
        return self._values.queue

    @property
    def device(self) -> Any:
        """The device of the values, or "cpu"."""
        return self._values.device

    @property
    def values(self) -> Pack:
        """The values, as matrices of one column."""
        if not self._is_whole:
            self._check_whole()
        return self._values

    @property
    def indices(self) -> np.ndarray:
        """Columns of the values, in ascending order in each row."""
        return self.pattern.indices

    @property
    def indptr(self) -> np.ndarray:
        """The place in `indices` where each row begins."""
        return self.pattern.indptr

    @property
    def data(self) -> Array:
        """The packed values, (npack, nnz, V) or (npack, nnz, 2, V)."""
        return self.values.data[:, :, 0]

    @property
    def T(self) -> "Transposed":
        """The transposes, to multiply with."""
        return Transposed(self, "T")

    @property
    def H(self) -> "Transposed":
        """The conjugate transposes, to multiply with."""
        return Transposed(self, "C")

    def _packed(self, data, vlen=None, queue=None, out=None, **launch):
        """Values as packs of matrices of one column, in the order of the pattern."""
        if data.shape != (self.nm, self.nnz):
            raise ValueError(f"data has shape {data.shape}, must be {(self.nm, self.nnz)}")
        order = self.pattern.order
        if order is None:
            return pack_padded(one_column(data), vlen, unit=0, queue=queue, out=out, **launch)
        if not is_device_array(data):
            return pack_padded(one_column(data[:, order]), vlen, unit=0, queue=queue, out=out, **launch)
        if out is not None:
            vlen, queue = out.vlen, out.queue
        given = pack_padded(one_column(data), vlen, unit=0, queue=queue, **launch)
        out = given.beside(self.nnz, 1) if out is None else out
        device_module("sparse").reorder(given, self.pattern, out)
        return out

    @accepts_foreign
    def update(self, data: Array, *, threads: int | None = None, wait_for: Events = None) -> None:
        """Give the matrices new values, (nm, nnz) of the same type; preconditioners follow when they are next used.

        `data` is a NumPy array or, where the matrices are on a device, a pyopencl Array. `threads` and `wait_for` are
        as for `compactla.gemm`. It waits for calls of other threads that use the matrices, and they for it.

        Raises
        ------
        TypeError, ValueError
            If `data` is of another dtype or shape, or lives elsewhere.
        """
        self._lock.write(self._update, data, {"threads": threads, "wait_for": wait_for})

    def _update(self, data, launch):
        self._replaced(self, data, self._values, launch)
        self.version += 1

    def beside(self) -> Pack:
        """Room for other values of the same pattern."""
        return self._values.beside(self.nnz, 1)

    def packed(self, data: Array, out: Array, **launch: Any) -> Pack:
        """Other values of the same pattern, (nm, nnz), as a pack: `out`, which is written to."""
        data = data if is_device_array(data) and self.queue is not None else as_array(data, "data")
        if data.dtype != self.dtype:
            raise TypeError(f"data: dtype is {data.dtype}, must be {self.dtype}")
        return self._packed(data, out=out, **launch)

    @accepts_foreign
    def to(self, device: Any) -> "BatchCSR":
        """A copy of the batch on another device: a pyopencl.CommandQueue, or "cpu".

        Raises
        ------
        TypeError
            If `device` is none of these.
        """
        A = type(self).__new__(type(self))
        with self._lock.here.lock:
            A.__setstate__({**self.__getstate__(), "_values": self.values.to(device), "version": 0})
        return A

    @accepts_foreign
    def toarray(self) -> np.ndarray:
        """The matrices as an ordinary array (nm, m, n)."""
        a = np.zeros((self.nm, *self.shape), self.dtype)
        with self._lock.here.lock:
            a[:, self.pattern.rows, self.indices] = on_host(self.values.unpack())[:, :, 0]
        return a

    def __matmul__(self, x: Array) -> Any:
        return self.multiply(x)

    @accepts_foreign
    def multiply(
        self, x: Array, y: Array = None, *, alpha: Array = 1, beta: Array = 0, trans: str = "N",
        threads: int | None = None, wait_for: Events = None,
    ) -> Any:  # fmt: skip
        """alpha op(A) x + beta y, of all matrices.

        Parameters
        ----------
        x : (nm, k) or (nm, k, nrhs) array_like or pyopencl.array.Array, or Pack
            One or more columns for each matrix; a pack has those of k x nrhs matrices. Arrays of NumPy are copied to
            the device of the matrices, and the products back.
        y : array_like, pyopencl.array.Array or Pack, optional
            Vectors to add to, of the shape of the result and the kind of `x`; a pack is written to.
        alpha, beta : number or (nm,) array_like
            One for all systems, or one for each. `y` is not read where beta is zero, nor A and x where alpha is.
        trans : {"N", "T", "C"}
            op(A) is A, its transpose, or its conjugate transpose.
        threads : int, optional
            Maximum number of CPU threads, as for `compactla.gemm`.
        wait_for : list of pyopencl.Event, optional
            Events to wait for before starting (devices only), as for `compactla.gemm`.

        Returns
        -------
        ndarray, pyopencl.array.Array or Pack
            The products, of the kind of `x`; `y`, if that is a pack.

        Raises
        ------
        TypeError, ValueError
            If an argument is not of this kind.
        """
        trans = option("trans", trans, "NTC")
        launch = check_launch(threads, wait_for, self.queue)
        after(launch, self.queue)
        m, n = self.shape if trans == "N" else self.shape[::-1]
        plain = isinstance(alpha, int) and alpha == 1 and isinstance(beta, int) and beta == 0
        x = vectors(x, "x", self, n)
        if plain and y is None and is_device_array(x):
            with self._lock.here.lock:
                found = device_module("sparse").product(self.values, self.pattern, x, trans, launch)
            if found is not None:
                return found
        X, ndim = columns(x, "x", self, n)
        kinds = [(isinstance(a, Pack), is_device_array(a)) for a in (x, y)]
        if y is not None and kinds[0] != kinds[1]:
            raise TypeError(f"y is a {type(y).__name__}, must be of the kind of x")
        if y is None:
            Y = self._values.beside(m, X.n)
        else:
            Y, given = columns(y, "y", self, m)
            if (Y.n, given) != (X.n, ndim):
                raise ValueError("y must have as many columns as x")
            if isinstance(y, Pack):
                check_written("y", y.view.buffer, {"x": x.view.buffer, "A": self.values.view.buffer})
        scalars = None if plain else self._scalars(alpha, beta, y)
        run = backend(self.queue, "sparse")
        X, whole = (X, Y) if self.queue else (contiguous(X), contiguous(Y))  # devices take any strides
        with self._lock.here.lock:
            run.multiply(self.values, self.pattern, X, whole, trans, scalars, launch)
        if whole is not Y:
            Y.data[...] = whole.data
        return as_given(Y, x, ndim)

    def _scalars(self, alpha, beta, y):
        both = np.zeros((self.nm, 2, 1), self.dtype)
        for k, (name, number) in enumerate((("alpha", alpha), ("beta", beta))):
            number = backend(self.queue).download(number) if is_device_array(number) else as_array(number, name)
            if number.shape not in ((), (self.nm,)):
                raise ValueError(f"{name} has shape {number.shape}, must be a number, or ({self.nm},)")
            if number.dtype.kind not in "biuf" + self.dtype.kind:
                raise TypeError(f"{name}: dtype is {number.dtype}, must be one of {self.dtype}")
            both[:, k, 0] = number
        if y is None and both[:, 1].any():
            raise ValueError("y is None, must be given for a beta that is not zero")
        return packed(both, self.vlen, self.queue, unit=0)


class Transposed:
    """The transposes, or conjugate transposes, of a batch of sparse matrices, to multiply with."""

    __array_ufunc__ = None

    @accepts_foreign
    def __init__(self, A: Any, trans: Any) -> None:
        self.A, self.trans, self.shape, self.dtype, self.nm = A, trans, A.shape[::-1], A.dtype, A.nm

    def __repr__(self) -> str:
        return f"{self.A!r}.{'T' if self.trans == 'T' else 'H'}"

    def __matmul__(self, x: Array) -> Any:
        return self.A.multiply(x, trans=self.trans)


class Operator(Copied):
    """An operator that kernels apply: packed values, their pattern, and the kind of operator.

    For factors `diagonal` says where the diagonal is, and for those in tiles `order` which row each pivot is of; for
    blocks `size` says how large they are. Of a "fresh" one a solve makes incomplete factors in tiles, and `info`, which
    those that are made have.
    """

    @accepts_foreign
    def __init__(
        self, kind: str, values: Pack, pattern: Any, diagonal: np.ndarray | None = None, size: int = 1,
        order: np.ndarray | None = None, info: Any = None,
    ) -> None:  # fmt: skip
        self.kind, self.values, self.pattern, self.size = kind, values, pattern, size
        self.diagonal = pattern.indptr if diagonal is None else diagonal
        self.order, self.info = pattern.indptr if order is None else order, info
