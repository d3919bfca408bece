"""What preconditioners share: they take vectors of every kind, and solvers take them."""

import abc
import contextlib

import numpy as np
from scipy.sparse.linalg import LinearOperator

from compactla.checks import as_array, check_contiguous, check_device_array, is_device_array
from compactla.copies import Copied
from compactla.lines.extraction import check_pattern
from compactla.locks import Lock
from compactla.view import COMPLEX, backend

SAMPLES = 1000  # values of a matrix that are looked at again before its adjoint is made


class BlockOperator(Copied, LinearOperator, abc.ABC):
    """A linear operator on vectors of block rows, on the CPU or a device.

    Parameters
    ----------
    dtype : numpy.dtype
        That of the matrix it stands for: float32, float64, complex64 or complex128.
    shape : (int, int)
        Its shape.
    block_size : int
        Size of the blocks.
    queue : pyopencl.CommandQueue or None
        Where the work is done; None on the CPU.
    threads : int or None
        At most how many threads work on the CPU, where a call says nothing else.
    """

    _not_copied: tuple[str, ...] = ("_making",)

    def __init__(self, dtype, shape, block_size, queue, threads):
        super().__init__(dtype, shape)
        self.block_size, self.queue, self.threads = block_size, queue, threads
        self._hermitian, self._is_current, self._is_usable = None, False, False
        self._prepare()

    @contextlib.contextmanager
    def _renewing(self):
        """While values are replaced, and until that has succeeded, there is nothing to solve with."""
        self._is_usable = False
        yield
        self._is_usable = True

    def _check_usable(self):
        if not self._is_usable:
            raise RuntimeError("an update failed and left values of both matrices: update must be called again")

    def solve(self, r, threads=None, wait_for=None):
        """Apply the preconditioner.

        Parameters
        ----------
        r : (n,) or (n, nrhs) array_like or pyopencl.array.Array
            Right-hand sides. They are converted to the dtype of the matrix; for a real matrix, complex ones
            are solved as real and imaginary parts.
        threads : int, optional
            At most how many threads work on the CPU; default: what the preconditioner was made with.
        wait_for : list of pyopencl.Event, optional
            What a device waits for first, as for `compactla.gemm`.

        Returns
        -------
        ndarray or pyopencl.array.Array
            The solution, C-contiguous, of the kind and shape of `r`, and of the dtype that NumPy gives the
            matrix times `r`; an Array from its allocator: with a `pyopencl.tools.MemoryPool` nothing is allocated.

        Raises
        ------
        TypeError
            If `r` is not numeric, or a pyopencl Array and the preconditioner lives on the CPU.
        ValueError
            If `r` has another shape or, on a device, is not C-contiguous or lives in another context, or `threads`
            or `wait_for` is not what `compactla.gemm` takes.
        RuntimeError
            If the last update was broken off, by an interrupt or for lack of memory.
        """
        return self._solve(r, None, threads, wait_for)

    def _solve(self, r, start, threads, wait_for):
        """`solve`, or what comes of the vectors `start`."""
        self._check_usable()
        run = backend(self.queue)
        if threads is None:
            threads = self.threads
        r = self._vector(r, "r")
        if start is not None:
            start = self._vector(start, "x0")
        given = r.dtype if start is None else np.result_type(r.dtype, start.dtype)
        work = COMPLEX[self.dtype] if given.kind == "c" and self.dtype.kind == "f" else self.dtype
        rhs = self._converted(r, work)
        if start is not None:
            if start.shape != r.shape or is_device_array(start) != is_device_array(r):
                raise ValueError(f"x0 is a {type(start).__name__} {start.shape}, must be of the kind and shape of r")
            x = self._converted(start, work, copy=True)
        elif self.queue is None:
            x = np.empty(r.shape, work)
        else:
            x = run.empty(r.shape, work, self.queue, r.allocator if is_device_array(r) else None)
        self._apply(self._rows(rhs), self._rows(x), start is not None, threads, wait_for)
        if not is_device_array(r):
            x = run.download(x)
        result = work if given == work else np.result_type(self.dtype, given)
        return x if result == work else x.astype(result)

    @abc.abstractmethod
    def _apply(self, rhs, x, started, threads, wait_for):
        """x <- the operator times rhs, or what comes of x; vectors are (block rows, block_size, nrhs)."""

    def _vector(self, r, name):
        """The vectors, if they are some."""
        if not is_device_array(r):
            r = as_array(r, name)
        elif self.queue is None:
            raise TypeError(f"{name} is a pyopencl Array, must be a NumPy array as P lives on the CPU")
        else:
            check_device_array(r, self.queue, name)
            check_contiguous(r, name)
        if r.ndim not in (1, 2) or r.shape[0] != self.shape[0]:
            raise ValueError(f"{name} has shape {r.shape}, must be ({self.shape[0]},) or ({self.shape[0]}, nrhs)")
        if r.dtype.kind not in "biufc":
            raise TypeError(f"{name}: dtype is {r.dtype}, must be numeric")
        return r

    def _converted(self, r, dtype, copy=False):
        """The vectors where the operator lives, in another dtype."""
        if is_device_array(r):
            return r.astype(dtype) if r.dtype != dtype else r.copy() if copy else r
        r = np.array(r, dtype, order="C") if copy else np.ascontiguousarray(r, dtype)
        return backend(self.queue).upload(r, self.queue)

    def _rows(self, r):
        """Vectors as (block rows, b, right-hand sides); complex ones for a real matrix are two each."""
        b = self.block_size
        nrhs = r.size * r.dtype.itemsize // max(self.shape[0] * self.dtype.itemsize, 1)
        return r.view(self.dtype).reshape(self.shape[0] // b, b, nrhs)

    def _matvec(self, r):
        return self.solve(r)

    _matmat = _matvec

    def _keep(self, M):
        """Remember what the operator was made of, for its adjoint."""
        self._matrix, self._is_current, self._sample = M, False, sample(M)

    def _conjugate_transposed(self):
        """The conjugate transpose of the matrix."""
        return self._matrix.conj().T.asformat(self._matrix.format)

    @abc.abstractmethod
    def _new_adjoint(self, MH):
        """The operator of the same kind for the conjugate transpose of the matrix."""

    def _adjoint(self):
        """What `rmatvec` and ``P.H`` apply, made when it is first asked for after an update.

        It is made from the matrix itself, of which no copy is kept: its values must still be what they were.
        """
        self._check_usable()
        with self._making:
            if not self._is_current:
                if not is_device_array(self._matrix):
                    check_pattern(self._matrix)
                if sample(self._matrix) != self._sample:
                    raise ValueError("the matrix was changed since it was given, update must be called with it first")
                if self._hermitian is None:
                    self._hermitian = self._new_adjoint(self._conjugate_transposed())
                else:
                    self._hermitian.update_anyway(self._conjugate_transposed())
                self._is_current = True
        return self._hermitian

    def _prepare(self):
        self._making = Lock()

    def dot(self, x):
        """``P @ x``, as for every LinearOperator; also for a pyopencl Array."""
        if type(x) is np.ndarray or is_device_array(x):
            return self.solve(x)
        if not isinstance(x, LinearOperator):
            as_array(x, "r")  # SciPy takes what this refuses
        return super().dot(x)


def sample(M) -> bytes:
    """Some of the values of a sparse matrix, by which a change of them is noticed; none of those on a device."""
    if is_device_array(M):
        return b""
    values = M.data.reshape(-1)
    return values[:: max(len(values) // SAMPLES, 1)].tobytes()
