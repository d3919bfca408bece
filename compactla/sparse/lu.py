"""Direct LU factors of sparse matrices of one pattern: one order of pivots, and one list of operations, for all."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from compactla.backends import backend, device_name
from compactla.calls.launch import NOW
from compactla.checks import check_launch, is_device_array, option
from compactla.foreign import accepts_foreign
from compactla.layout import Pack
from compactla.locks import read_write_lock
from compactla.sparse.columns import after, as_given, columns, contiguous, vectors
from compactla.sparse.csr import BatchCSR, Replaced
from compactla.sparse.elimination import in_tiles, ordered
from compactla.types import Array, Events, Queue


class Report(NamedTuple):
    """The quality of an elimination without row swaps, for each system: arrays (nm,); see `BatchLU.report`.

    Attributes
    ----------
    info : ndarray of int64
        0, or k + 1 where pivot k is the first that is exactly zero.
    smallest : ndarray
        The smallest \\|pivot\\|, over the largest entry of the matrix.
    growth : ndarray
        The largest entry of U over the largest entry of the matrix.
    """

    info: np.ndarray
    smallest: np.ndarray
    growth: np.ndarray

    def __repr__(self) -> str:
        return f"Report({len(self.info)} systems, {np.count_nonzero(self.info)} with a zero pivot)"


class BatchLU(Replaced):
    """The LU factors of a batch of sparse matrices of one pattern, to solve systems with.

    The order of pivots, the fill and the list of operations are found once, from the pattern, for all matrices. Rows
    are not swapped by size. So the matrices should be diagonally dominant, positive definite, or near to that, as
    I - dt J of an implicit step is; for others see `report`.

    Parameters
    ----------
    A : BatchCSR
        The matrices, which are square. Zeros on the diagonal may be left out of the pattern: their rows come later,
        when they have filled in.

    Attributes
    ----------
    A : BatchCSR
        The matrices.
    nm, n, dtype, vlen : int, int, numpy.dtype, int
        Number, order, type and vector length of the matrices.
    queue : pyopencl.CommandQueue or None
        Where the matrices live; None on the CPU.
    perm : (n,) ndarray of int64
        The order of pivots: pivot k is on the diagonal of row ``perm[k]`` of A.
    nnz : int
        Entries of L and U together.
    dense : bool
        Whether the factors are stored as full matrices, where the pattern leaves few zeros.
    info : (nm,) ndarray of int64, or None
        Result of the last factorization, perhaps by a solve: see `factor`. None before the first. Reading it waits for
        a device.

    Raises
    ------
    TypeError, ValueError
        If `A` is of another kind, or not square.

    Notes
    -----
    The order is that of Markowitz [1]_ for pivots on the diagonal, which bounds the fill also where the pattern is not
    symmetric. On the CPU, factors are kept and eliminated in tiles of 1 x 1, 2 x 2 or 4 x 4 entries, whichever the
    pattern makes fastest. For almost dense patterns all tiles are there, and this is the LU of dense matrices.

    Results do not depend on the number of threads or the position of a system, and systems do not change each other.

    References
    ----------
    .. [1] Duff, Erisman and Reid, Direct Methods for Sparse Matrices, 2nd edition, chapters 7 and 10.

    See Also
    --------
    compactla.BatchCSR, compactla.krylov, compactla.Banded

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> A = cla.BatchCSR((np.array([[2.0, 1, 4], [4, 2, 8]]), [0, 1, 1], [0, 2, 3]))
    >>> F = cla.BatchLU(A)
    >>> F.factor()
    array([0, 0])
    >>> F.solve(np.array([[3.0, 4], [6, 8]]))
    array([[1., 1.],
           [1., 1.]])
    """

    _not_copied = ("_lock",)

    @accepts_foreign
    def __init__(self, A: BatchCSR) -> None:
        if not isinstance(A, BatchCSR):
            raise TypeError(f"A is a {type(A).__name__}, must be a BatchCSR")
        if A.shape[0] != A.shape[1]:
            raise ValueError(f"A is {A!r}, must be of square matrices")
        self.A, self.nm, self.n, self.dtype, self.vlen = A, A.nm, A.shape[0], A.dtype, A.vlen
        self.perm, self._filled = ordered(A.pattern)
        self._tiles = in_tiles(A.pattern, self.perm, self._filled, self._run.tile_of(A.dtype))
        self.nnz, self.dense = len(self._filled.indices), len(self._tiles.indices) == self._tiles.m**2
        self._found: Any = None
        self._factors: Any = None
        self._own: Any = None
        self._version, self._factored = A.version, False
        self._prepare()

    def _prepare(self):
        self._lock = read_write_lock()

    def __deepcopy__(self, memo: Any) -> Any:
        with self.A._reading:  # before its own lock, as everywhere
            return super().__deepcopy__(memo)

    def __repr__(self) -> str:
        state = "factored" if self._factored and self._version == self.A.version else "not factored"
        sizes = f"{self.nm} x {self.n} x {self.n}, nnz={self.nnz}"
        return f"BatchLU({sizes}, {self.dtype}, vlen={self.vlen}, device={device_name(self.queue)}, {state})"

    @property
    def queue(self) -> Queue:
        """The queue of the matrices; None on the CPU."""
        return self.A.queue

    @property
    def info(self) -> np.ndarray | None:
        """Result of the last factorization, (nm,) integers; None before the first."""
        with self._lock.here.lock:
            if self._found is None:
                return None
            return backend(self.queue).download(self._found)[: self.nm].astype(np.int64)

    @property
    def _run(self):
        return backend(self.queue, "sparse")

    @accepts_foreign
    def update(self, data: Array, *, threads: int | None = None, wait_for: Events = None) -> None:
        """Take new values of the pattern of A, (nm, nnz), which are factored when they are next needed.

        `A` itself keeps its values. After `A.update` those of A count again.

        Parameters
        ----------
        data : (nm, nnz) array_like or pyopencl.array.Array
            The values, in the order in which those of A were given, and of its dtype.
        threads, wait_for : optional
            As for `compactla.gemm`.

        Raises
        ------
        TypeError, ValueError
            If `data` is of another dtype or shape.
        """
        self._lock.write(self._update, data, {"threads": threads, "wait_for": wait_for})

    def _update(self, data, launch):
        out = self.A.beside() if self._own is None else self._own
        self._own = self._replaced(self.A, data, out, launch)
        self._version, self._factored = self.A.version, False

    @accepts_foreign
    def factor(self, *, threads: int | None = None, wait_for: Events = None) -> Any:
        """Factor all matrices, as they are now, and keep the factors.

        Parameters
        ----------
        threads, wait_for : optional
            As for `compactla.gemm`.

        Returns
        -------
        (nm,) ndarray of int64
            For each matrix 0, or k + 1 where pivot k is the first that is exactly zero: LAPACK's info of the matrix
            whose rows and columns are in the order of `perm`.
        """
        launch = check_launch(threads, wait_for, self.queue)
        with self.A._lock.here.lock:
            return self._lock.write(self._factor, launch)

    def _values(self):
        """The values that count now, as a pack."""
        if self._version != self.A.version:
            self._version, self._own, self._factored, self._is_whole = self.A.version, None, False, True
        self._check_whole()
        return self.A.values if self._own is None else self._own

    def _factor(self, launch):
        self._factor_values(self._values(), launch)
        return self.info

    def _factor_values(self, values, launch):
        if self._factors is None:
            self._factors = values.beside(self._tiles.count, 1)
        self._factored = False
        self._found = self._run.lu_factor(values, self._tiles, self._factors, launch)
        self._factored = True

    def _with_factors(self, launch, use: Callable[..., Any], *args: Any) -> Any:
        """Call a function while there are factors of the current values, and return its result."""
        with self.A._lock.here.lock:
            while True:
                with self._lock.here.lock:
                    if self._factored and self._is_whole and self._version == self.A.version:
                        return use(*args)
                self._lock.write(self._factor_once, launch)

    def _factor_once(self, launch):
        values = self._values()
        if not self._factored:  # which another thread may have done just now
            self._factor_values(values, launch)

    @accepts_foreign
    def solve(self, b: Array, *, trans: str = "N", threads: int | None = None, wait_for: Events = None) -> Any:
        """Solve op(A) x = b, after factoring the matrices if they have changed, or have not been factored.

        Parameters
        ----------
        b : (nm, n) or (nm, n, nrhs) array_like or pyopencl.array.Array, or Pack
            Right-hand sides, of a dtype that the matrices' holds; a pack has those of n x nrhs matrices.
        trans : {"N", "T", "C"}
            Whether op(A) is A, its transpose or its conjugate transpose.
        threads, wait_for : optional
            As for `compactla.gemm`.

        Returns
        -------
        ndarray, pyopencl.array.Array or Pack
            The solutions, of the kind and shape of `b`. Those of systems that `info` names are meaningless.

        Raises
        ------
        TypeError, ValueError
            If an argument is not of this kind.
        """
        trans = option("trans", trans, "NTC")
        launch = check_launch(threads, wait_for, self.queue)
        after(launch, self.queue)
        given = vectors(b, "b", self, self.n)
        if is_device_array(given):
            found = self._with_factors(launch, self._solve_array, given, trans, launch)
            if found is not None:
                return found
        B, ndim = columns(given, "b", self, self.n)
        B = contiguous(B)
        X = B.beside(B.m, B.n) if isinstance(b, Pack) else B
        self._with_factors(launch, self._solve, B, X, trans, launch)
        return as_given(X, b, ndim)

    def _solve_array(self, b, trans, launch):
        return self._run.lu_solve_array(self._factors, self._tiles, b, trans, launch)

    def _solve(self, B, X, trans, launch):
        self._run.lu_solve(self._factors, self._tiles, B, X, trans, launch)

    @accepts_foreign
    def report(self) -> Report:
        """The smallest pivots and the growth of entries, for the current values.

        `smallest` near eps, or `growth` near its reciprocal, says that a solution may have few right digits, or none.
        This costs nothing until it is called, and then several times as much as a solve.

        Returns
        -------
        Report
            Arrays (nm,) `info`, `smallest` and `growth`; NaN where a matrix has NaN, or is zero.
        """
        return self._with_factors(NOW, self._report)

    def _report(self):
        factors, values = self._factors, self._values()
        if self.queue is not None:
            factors, values = factors.to("cpu"), values.to("cpu")
        rows, columns, pivots = self._filled.rows, self._filled.indices, np.arange(self.n)
        upper = self._tiles.at(rows[rows < columns], columns[rows < columns])
        diagonal = self._tiles.at(pivots, pivots)  # of the reciprocals
        largest, above = extreme(np.max, values, slice(None)), extreme(np.max, factors, upper)
        with np.errstate(all="ignore"):
            small, large = 1 / extreme(np.max, factors, diagonal), 1 / extreme(np.min, factors, diagonal)
            info: Any = self.info
            return Report(info, np.where(info > 0, 0, small) / largest, np.maximum(above, large) / largest)


def extreme(reduce, P, places):
    """The largest or smallest modulus of these numbers of each column of a pack, (nm,); 0 if there are none."""
    moduli = np.zeros((len(P.data), P.vlen))
    for p, numbers in enumerate(P.data):  # one pack fits a cache
        some = numbers[places, 0]
        if len(some):
            moduli[p] = reduce(np.hypot(some[:, 0], some[:, 1]) if P.dtype.kind == "c" else abs(some), axis=0)
    return moduli.reshape(-1)[: P.nm]
