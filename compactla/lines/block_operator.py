"""The base of preconditioners: they follow a sparse matrix, take vectors of every kind, and solvers take them."""

import abc
import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from compactla.backends import backend, device_name
from compactla.buffers import ResultPool
from compactla.checks import (
    as_array,
    check_contiguous,
    check_device_array,
    check_launch,
    check_queue,
    check_whole,
    is_device_array,
    on_host,
)
from compactla.dtypes import COMPLEX
from compactla.foreign import accepts_foreign, hand_back, on_vectors, root
from compactla.lines.chords import warn_of_chords
from compactla.lines.combined import VectorOperator
from compactla.lines.extraction import Extraction, check_paths, check_pattern, split
from compactla.lines.host_copies import Runs, Transfers
from compactla.lines.options import Options
from compactla.lines.right_hand_sides import check_out
from compactla.lines.several_devices import Queues
from compactla.lines.sizes import LineSizes, Padding
from compactla.lines.storage import refuse_overflow
from compactla.locks import Lock, read_write_lock
from compactla.overlap import is_same, share_memory
from compactla.pickling import Copied
from compactla.pivots import PivotError, Report
from compactla.types import Array, Events, Queue, Sparse

SAMPLES = 1000  # values of a matrix that are looked at again before its adjoint is made


class BlockOperator(Copied, VectorOperator, abc.ABC):
    """A linear operator that is made from lines of a sparse matrix, for vectors on the CPU or a device.

    Parameters
    ----------
    M, lines, block_size, queue, threads, periodic
        As for `LinePreconditioner`.
    **options
        See `Options`.

    Attributes
    ----------
    home : pyopencl.CommandQueue or None
        Queue of the device where vectors are; None on the host.
    unit : int
        Numbers in a row of vectors: `block_size`, or 1 where block rows have sizes of their own.
    """

    _not_copied: tuple[str, ...] = ("_lock", "_making", "_results")
    _warns = True  # of chords, which is done once
    _in_place = True  # whether the vectors that it is applied to may be those that it makes

    def __init__(
        self, M: Sparse, lines: Any, block_size: int | Array, queue: Queue, threads: int | None, periodic: Any,
        **options: Any,
    ) -> None:  # fmt: skip
        self._pattern = Extraction(M, block_size)
        super().__init__(self._pattern.dtype, self._pattern.shape)
        self._options = Options(self.dtype, **options)
        if queue is not None and not isinstance(queue, Queues):
            check_queue(queue, "queue")
        check_launch(threads, None, queue)
        sizes, nrow = self._pattern.sizes, self._pattern.nrow
        self.block_size, self.queue, self.threads = sizes.largest, queue, threads
        self.unit = 1 if sizes.differ else sizes.largest
        self.home, self._transfers = None if isinstance(queue, Queues) else queue, None
        if self.home is not None:
            rows = Runs.all(self.shape[0] // self.unit)
            self._transfers = Transfers(self.dtype, queue, rows, apart=not self._in_place)
        self._paths = check_paths(lines, nrow, periodic)
        self._counted = self._padding = None
        if sizes.differ:
            self._counted = LineSizes(sizes.size[self._paths.rows], self._paths.length, sizes.largest)
            rows = nrow, sizes.largest
            self._padding = Padding(sizes.unknowns, rows, self.dtype, self.home, apart=not self._in_place)
        if self._warns:
            warn_of_chords(M, sizes, self._paths, stacklevel=5)
        self.info, self._hermitian, self._is_current, self._is_usable = None, None, False, False
        self._prepare()

    def _prepare(self):
        self._lock, self._making, self._results = read_write_lock(), Lock(), ResultPool()

    def __deepcopy__(self, memo: Any) -> Any:
        with self._reading, self._making:
            return super().__deepcopy__(memo)

    @accepts_foreign
    def update(self, M: Sparse, *, threads: int | None = None, wait_for: Events = None) -> np.ndarray:
        """Factor a matrix with new values on the same pattern; the symbolic work is not done again.

        It waits for calls of other threads that apply the preconditioner, and they for it. The adjoint, `rmatvec` and
        ``H``, is made when it is first asked for after this, from `M` itself: until then its values must not change.
        Sweeps keep a copy for it.

        Parameters
        ----------
        M : scipy.sparse BSR or CSR matrix or array, (n, n), or pyopencl.array.Array
            Format, shape, block size, dtype and pattern are those of the first matrix. An Array is its new ``data``
            alone, (nnzb, b, b) for BSR and (nnz,) for CSR, in the order in which the first matrix stored it; only for
            a preconditioner on a device, where nothing of it is copied to the host.
        threads : int, optional
            Maximum number of CPU threads; default: that of the preconditioner.
        wait_for : list of pyopencl.Event, optional
            Events to wait for before starting (devices only), as for `compactla.gemm`.

        Returns
        -------
        (nlines,) ndarray of int64
            The new `info`.

        Raises
        ------
        TypeError, ValueError
            If `M` is not such a matrix, or `threads` or `wait_for` is invalid, see `compactla.gemm`. The factors are
            left as they were.
        PivotError, OverflowError
            If a pivot is zero, with ``pivots="raise"``, or factors are too large for `storage`. The lines that have
            none of these can be solved with all the same.
        MemoryError
            If there is no room on the device. Nothing is solved with then before another update has succeeded.
        RuntimeError
            If it is called within a solve that uses it, as by the callback of a Krylov method.
        """
        return self._lock.write(self._update_checked, M, threads, wait_for)

    def _update_checked(self, M, threads, wait_for):
        self._update(M, threads, wait_for)
        self._refuse()
        return hand_back(self._info)

    def _refuse(self):
        """Raise the errors that the options ask for."""
        if self._options.storage:
            refuse_overflow(self._met("too_large"), self._options.storage)
        if self._options.pivots == "raise" and on_host(self._info).any():
            raise PivotError(self.report)

    def _update(self, M, threads=None, wait_for=None) -> None:
        """Do what `update` does, without errors for pivots and overflow."""
        launch = self._launch(threads, wait_for)
        if is_device_array(M):
            self._check_values(M)
            values = M
        else:
            values = self._pattern.values(M)
        matrix = self._kept(M, values)
        values = values if is_device_array(M) else backend(self.home).upload(values, self.home)
        with self._renewing():
            info = self._factor(values, launch)
            self.info = info if self._counted is None else self._counted.count(info)
            self._matrix, self._is_current, self._sample = matrix, False, sample(matrix)

    def _kept(self, M, values):
        """The matrix that the adjoint is made from, or its values on a device."""
        return M

    def _launch(self, threads, wait_for, recorded=False):
        return check_launch(threads, wait_for, self.queue, recorded, default=self.threads)

    @property
    def _where(self):
        """The place where it lives, for messages."""
        return "the CPU" if self.queue is None else "several devices"

    def _check_values(self, data):
        """Refuse a device array that is not the data of a matrix like the first."""
        if self.home is None:
            raise TypeError(f"M is a pyopencl Array, must be a scipy.sparse matrix as P lives on {self._where}")
        check_whole(data, self.home, "M")
        check_contiguous(data, "M")
        if data.dtype != self.dtype:
            raise TypeError(f"M: dtype is {data.dtype}, must be {self.dtype} as at first")
        if data.shape != self._pattern.data_shape:
            raise ValueError(f"M has shape {data.shape}, must be {self._pattern.data_shape}, as data at first")

    def __repr__(self) -> str:
        b, (m, n) = self.block_size, self.shape
        most = "" if self._padding is None else "up to "
        sizes = f"{m} x {n}, {len(self._paths.length)} lines of blocks {most}{b} x {b}"
        state = "factored" if self._is_usable else "not factored"
        return (
            f"{type(self).__name__}({sizes}, {self.dtype}, device={device_name(self.queue)}, {self._summary()}{state})"
        )

    def _summary(self):
        """Options that `repr` tells."""
        return ""

    @contextlib.contextmanager
    def _renewing(self):
        """Replace values; until that has succeeded there is nothing to solve with."""
        self.info, self._is_usable = None, False
        yield
        self._is_usable = True

    def _check_usable(self):
        if not self._is_usable:
            raise RuntimeError("an update failed and left values of both matrices: update must be called again")

    @abc.abstractmethod
    def _factor(self, values, launch) -> np.ndarray:
        """Take the values of a matrix, from where the work is done, and factor the lines; returns their `info`."""

    @abc.abstractmethod
    def _met(self, what):
        """`too_large` or `watched` of the factored lines, in the order of `lines`."""

    @property
    def info(self) -> Any:
        """`info` of each line from the last factorization, as `update` returned it; None if it was broken off."""
        with self._lock.here.lock:
            return hand_back(self._info)

    @info.setter
    def info(self, info: Any) -> None:
        self._info = info

    @property
    def report(self) -> Report | None:
        """Report of the factorization, line by line; None after an update that was broken off."""
        with self._lock.here.lock:
            if self.info is None:
                return None
            return Report.of(self._info, self.block_size, self._met("watched"), self._counted)

    def _solve(self, rhs, x0, out, threads, wait_for):
        """The operator applied to `rhs`, from `x0` if there is one, written to `out` if there is one."""
        launch = self._launch(threads, wait_for, recorded=True)
        with self._lock.here.lock:
            if launch.recorded or not self._is_usable:
                launch.uses(self._lock, self._check_usable)
            rhs, x0 = self._checked(rhs, x0)
            rhs, x, result = self._prepared_vectors(rhs, x0, out, launch)
            self._apply_to(rhs, x, launch, x0 is not None)
            if out is None:
                return x if result == x.dtype else x.astype(result)
            if x is not out:
                out[...] = x
            return out

    def _checked(self, rhs, x0):
        """The arguments of a solve as arrays."""
        rhs = self._vector(rhs, "rhs")
        if x0 is not None:
            x0 = self._vector(x0, "x0")
            if x0.shape != rhs.shape or is_device_array(x0) != is_device_array(rhs):
                raise ValueError(f"x0 is a {type(x0).__name__} {x0.shape}, must be of the kind and shape of rhs")
        return rhs, x0

    def _prepared_vectors(self, rhs, x0, out, launch):
        """The vectors that the operator takes: `rhs`, and one for the result, which begins as `x0`; and its dtype.

        Both have the dtype of the work, and no vector is converted where calls are recorded.
        """
        home = self.home if is_device_array(rhs) else None
        given = rhs.dtype if x0 is None else np.result_type(rhs.dtype, x0.dtype)
        work = COMPLEX[self.dtype] if given.kind == "c" and self.dtype.kind == "f" else self.dtype
        result = work if given == work else np.result_type(self.dtype, given)
        if out is not None:
            check_out(out, rhs, result, self.home, x0)
        if x0 is not None or result != work:
            launch.refuse()
        if out is not None and result == work:
            x = out
            if share_memory(out, rhs) and (x0 is not None or not self._in_place):
                launch.refuse()
                rhs = rhs.copy()
        elif home is None:
            x = self._results.array(rhs.shape, work)
        else:
            x = self._results.beside(rhs, work, home)
        if x0 is not None:
            x0 = self._converted(x0, work)
            if not is_same(x0, x):
                backend(home, "lines").copy(x0, x, launch)
        converted = self._converted(rhs, work)
        if converted is not rhs:
            launch.refuse()
        return converted, x, result

    def _apply_to(self, rhs, x, launch, started):
        """x <- the operator times rhs, or sweeps from x, of vectors of the host or of a device."""
        on_device, rhs, x = is_device_array(rhs), self._rows(rhs), self._rows(x)
        if self._transfers is None or on_device:
            self._apply_padded(rhs, x, launch, started)
        else:
            self._transfers.apply(self._apply_padded, rhs, x, launch, started)

    def _apply_padded(self, rhs, x, launch, started=False):
        if self._padding is None:
            self._apply(rhs, x, launch, started)
        else:
            self._padding.apply(self._apply, rhs, x, launch, started)

    def solver(self, threads: int | None = None) -> Callable[..., None]:
        """A function of `rhs` and `x`: `solve` without checks, for vectors of `_rows` that share no memory."""
        self._check_usable()
        launch = self._launch(threads, None)
        return lambda rhs, x: self._apply_padded(rhs, x, launch)

    @abc.abstractmethod
    def _apply(self, rhs, x, launch, started=False):
        """x <- the operator times rhs, or sweeps from x; vectors are (block rows, block_size, nrhs)."""

    def _vector(self, r, name):
        """The vectors, if they are some."""
        if not is_device_array(r):
            r = as_array(r, name)
        elif self.home is None:
            raise TypeError(f"{name} is a pyopencl Array, must be a NumPy array as P lives on {self._where}")
        else:
            check_device_array(r, self.home, name)
            check_contiguous(r, name)
        if r.ndim not in (1, 2) or r.shape[0] != self.shape[0]:
            raise ValueError(f"{name} has shape {r.shape}, must be ({self.shape[0]},) or ({self.shape[0]}, nrhs)")
        if r.dtype.kind not in "biufc":
            raise TypeError(f"{name}: dtype is {r.dtype}, must be numeric")
        return r

    def _converted(self, r, dtype):
        """The vectors in another dtype, C-contiguous."""
        if is_device_array(r):
            return r.astype(dtype) if r.dtype != dtype else r
        return np.ascontiguousarray(r, dtype)

    def _rows(self, r):
        """Vectors as (rows, `unit`, right-hand sides); complex ones for a real matrix are two each."""
        b = self.unit
        nrhs = r.size * r.dtype.itemsize // max(self.shape[0] * self.dtype.itemsize, 1)
        r = r if r.dtype == self.dtype else r.view(self.dtype)
        return backend(self.home if is_device_array(r) else None).reshaped(r, (self.shape[0] // b, b, nrhs))

    def _matvec(self, r):
        return self._solve(r, None, None, None, None)

    def _rmatvec(self, r):
        with self._lock.here.lock:  # also from when the adjoint is there
            return self._adjoint()._matvec(r)

    _matmat, _rmatmat = _matvec, _rmatvec

    def _conjugate_transposed(self):
        """The conjugate transpose of the matrix."""
        if is_device_array(self._matrix):
            self._matrix = self._pattern.matrix(self._matrix.get())
        return self._matrix.conj().T.asformat(self._matrix.format)

    @abc.abstractmethod
    def _new_adjoint(self, MH, lines, **given):
        """The operator of the same kind for the conjugate transpose of the matrix."""

    def _adjoint(self):
        """The operator of `rmatvec` and ``P.H``, made when it is first asked for after an update.

        It is made from the matrix itself, of which no copy is kept: its values must not have changed.
        """
        with self._lock.here.lock, self._making:
            self._check_usable()
            if not self._is_current:
                self._make_adjoint()
                self._is_current = True
            return self._hermitian

    def _make_adjoint(self):
        if not is_device_array(self._matrix):
            check_pattern(self._matrix)
        if sample(self._matrix) != self._sample:
            raise ValueError("the matrix was changed since it was given, update must be called with it first")
        MH, adjoint = self._conjugate_transposed(), self._hermitian
        if adjoint is not None:
            adjoint._lock.write(adjoint._update, MH)
            return
        rows, length, ring = self._paths
        given = {"block_size": self._pattern.block_size, "queue": self.queue, "threads": self.threads}
        self._hermitian = self._new_adjoint(MH, split(rows, length), periodic=ring, **given)

    def dot(self, x: Array) -> Any:
        """``P @ x``, as for every LinearOperator; also for arrays on devices, and of PyTorch, CuPy and JAX."""
        if type(x) is np.ndarray or is_device_array(x):
            return self._matvec(x)
        if not (isinstance(x, LinearOperator) or np.isscalar(x) or root(type(x))):
            as_array(x, "rhs")  # SciPy takes what this refuses
        return super().dot(x)

    def _apply_vectors(self, x):
        return on_vectors(self._matvec, x, "rhs")


def sample(M) -> bytes:
    """Some of the values of a sparse matrix, by which a change of them is noticed; none of those on a device."""
    if is_device_array(M):
        return b""
    values = M.data.reshape(-1)
    return values[:: max(len(values) // SAMPLES, 1)].tobytes()
