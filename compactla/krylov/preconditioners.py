"""Preconditioners of batches: approximate inverses, made anew when they are used after `A.update`."""

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from compactla.backends import backend, device_module, device_name
from compactla.calls.launch import NOW, Launch
from compactla.checks import check_launch, check_size
from compactla.dense.getrf import getrf
from compactla.dense.getri import getri
from compactla.foreign import accepts_foreign
from compactla.layout import Pack
from compactla.locks import Lock
from compactla.pickling import Copied
from compactla.sparse.columns import after, as_given, columns, contiguous
from compactla.sparse.csr import BatchCSR, Operator
from compactla.sparse.elimination import without_fill
from compactla.sparse.pattern import Pattern
from compactla.types import Array, Events


def operator_of(A, name="A"):
    """A batch of square matrices as an operator of kernels; a dense one is a sparse one without zeros."""
    if isinstance(A, BatchCSR):
        square, values, pattern = A.shape[0] == A.shape[1], A.values, A.pattern
    elif isinstance(A, Pack):
        square = A.m == A.n
        if square:
            data = contiguous(A).data
            values = Pack(data.reshape(data.shape[0], A.m * A.n, 1, *data.shape[3:]), A.nm)
            pattern = Pattern.dense(A.n)
    else:
        raise TypeError(f"{name} is a {type(A).__name__}, must be a BatchCSR or a Pack")
    if not square:
        raise ValueError(f"{name} is {A!r}, must be of square matrices")
    return Operator("csr", values, pattern)


class Preconditioner(Copied):
    """An approximate inverse M of each matrix of a batch: ``M @ r``.

    It follows `BatchCSR.update`; after changes of a dense pack call `update`.

    Parameters
    ----------
    A : BatchCSR or Pack
        The matrices, which are square, on the CPU or a device.

    Attributes
    ----------
    nm, n, dtype, vlen, queue : int, int, numpy.dtype, int, pyopencl.CommandQueue or None
        Number, order, type, vector length and queue of the matrices.

    Raises
    ------
    TypeError, ValueError
        If `A` is of another kind.
    """

    _not_copied = ("_lock",)
    _make: Callable[..., Operator]

    @accepts_foreign
    def __init__(self, A: BatchCSR | Pack) -> None:
        pattern = operator_of(A).pattern
        self.A, self.nm, self.n, self.dtype, self.vlen = A, A.nm, pattern.n, A.dtype, A.vlen
        self.queue = A.queue
        self._made: Operator | None = None
        self._version: Any = None
        self._prepare()

    def _prepare(self):
        self._lock = Lock()

    def __deepcopy__(self, memo: Any) -> Any:
        with self._reading, self._lock:
            return super().__deepcopy__(memo)

    def __repr__(self) -> str:
        made = self._made is not None and self._version == getattr(self.A, "version", None)
        sizes, state = f"{self.nm} x {self.n} x {self.n}", "made" if made else "not made"
        return (
            f"{type(self).__name__}({sizes}, {self.dtype}, vlen={self.vlen}, device={device_name(self.queue)}, {state})"
        )

    @accepts_foreign
    def update(self) -> None:
        """Have it made anew when it is next used."""
        with self._lock:
            self._made = None

    @property
    def _reading(self):
        """A lock that is held while the values of A must not change; none for packs, which their owner guards."""
        return self.A._lock.here.lock if isinstance(self.A, BatchCSR) else contextlib.nullcontext()

    def operator(self, launch: Launch = NOW) -> Operator:
        """The operator that kernels apply, of the current values of A; these must not change while it is used."""
        with self._reading, self._lock:
            version, made = getattr(self.A, "version", None), self._made
            if made is None or version != self._version:
                made = self._made = self._make(operator_of(self.A), launch)
                self._version = version
            return made

    def within(self, launch: Launch = NOW) -> Operator:
        """The operator that kernels apply which solve systems."""
        return self.operator(launch)

    def __matmul__(self, r: Array) -> Any:
        return self.solve(r)

    @accepts_foreign
    def solve(self, r: Array, *, threads: int | None = None, wait_for: Events = None) -> Any:
        """M r, for `r` of shape (nm, n) or (nm, n, nrhs), or a Pack of n x nrhs matrices; the result is of its kind."""
        launch = check_launch(threads, wait_for, self.queue)
        after(launch, self.queue)
        R, ndim = columns(r, "r", self, self.n)
        R, Y = contiguous(R), R.beside(R.m, R.n)
        with self._reading:
            backend(self.queue, "sparse").precondition(self.operator(launch), R, Y, launch)
        return as_given(Y, r, ndim)


class Identity(Preconditioner):
    """The identity: M r is r, which is no preconditioner.

    Parameters
    ----------
    A : BatchCSR or Pack
        The matrices, which are square.

    See Also
    --------
    compactla.krylov.Jacobi, compactla.krylov.ILU0

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> A = cla.pack(np.full((2, 3, 3), 1.0) + 4 * np.eye(3))
    >>> M = cla.krylov.Identity(A)
    >>> bool(cla.krylov.gmres(A, np.ones((2, 3)), M=M)[1].converged.all())
    True
    """

    def _make(self, A, launch):
        return Operator("none", A.values, A.pattern)


class BlockJacobi(Preconditioner):
    """The inverses of the b x b blocks on the diagonal; the last is smaller where b does not divide n.

    A block that is exactly singular counts as the identity.

    Parameters
    ----------
    A : BatchCSR or Pack
        The matrices, which are square; entries outside of the pattern are zero.
    b : int
        Rows of a block.

    Raises
    ------
    TypeError, ValueError
        If `A` is of another kind, or `b` is not positive.

    See Also
    --------
    compactla.krylov.Jacobi, compactla.krylov.Lines, compactla.krylov.ILU0

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> A = cla.pack(np.full((2, 3, 3), 1.0) + 4 * np.eye(3))
    >>> M = cla.krylov.BlockJacobi(A, 2)
    >>> bool(cla.krylov.gmres(A, np.ones((2, 3)), M=M)[1].converged.all())
    True
    """

    @accepts_foreign
    def __init__(self, A: BatchCSR | Pack, b: int) -> None:
        super().__init__(A)
        if check_size(b, "b") < 1:
            raise ValueError(f"b is {b}, must be positive")
        self.b = min(int(b), max(self.n, 1))

    def _make(self, A, launch):
        b, data = self.b, A.values.data
        if self.queue is not None:
            blocks = device_module("sparse").inverses(A.values, A.pattern, b, launch)
            return Operator("block", blocks, A.pattern, size=b)
        places = A.pattern.blocks(b)
        npack, V, places, count = len(data), A.values.vlen, places.reshape(-1), len(places)
        taken = data[:, np.maximum(places, 0)] if A.values.m else np.zeros((npack, len(places), *data.shape[2:]))
        taken = np.ascontiguousarray(taken, data.dtype)
        real = taken[..., 0, :]  # of complex numbers the real part
        taken[:, places < 0] = 0
        real[:, places == -2] = 1
        blocks = taken.reshape(npack * count, b, b, *taken.shape[3:])
        inverses = Pack(blocks)
        ipiv, info = getrf(inverses, threads=launch.threads)
        getri(inverses, ipiv, threads=launch.threads)
        block, lane = np.divmod(np.flatnonzero(info), V)
        unit = np.eye(b) if blocks.ndim == 4 else np.eye(b)[..., None] * [1, 0]
        blocks[block, ..., lane] = unit
        return Operator("block", Pack(blocks.reshape(taken.shape), A.values.nm), A.pattern, size=b)


class Jacobi(BlockJacobi):
    """The reciprocals of the diagonal; 1 where it is zero.

    Parameters
    ----------
    A : BatchCSR or Pack
        The matrices, which are square.

    See Also
    --------
    compactla.krylov.BlockJacobi, compactla.krylov.ILU0

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> A = cla.pack(np.full((2, 3, 3), 1.0) + 4 * np.eye(3))
    >>> M = cla.krylov.Jacobi(A)
    >>> bool(cla.krylov.gmres(A, np.ones((2, 3)), M=M)[1].converged.all())
    True
    """

    @accepts_foreign
    def __init__(self, A: BatchCSR | Pack) -> None:
        super().__init__(A, 1)


class ILU0(Preconditioner):
    """The solve with the incomplete LU factors whose pattern is that of A, which has to have the whole diagonal.

    Factors are made without interchanges of rows. A pivot that is exactly zero counts as one, and is reported.

    Parameters
    ----------
    A : BatchCSR or Pack
        The matrices, which are square.

    See Also
    --------
    compactla.BatchLU, compactla.krylov.ISAI, compactla.krylov.Jacobi

    References
    ----------
    .. [1] Saad, Iterative Methods for Sparse Linear Systems, 2nd edition, algorithm 10.4.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> A = cla.pack(np.full((2, 3, 3), 1.0) + 4 * np.eye(3))
    >>> M = cla.krylov.ILU0(A)
    >>> bool(cla.krylov.gmres(A, np.ones((2, 3)), M=M)[1].converged.all())
    True
    """

    @accepts_foreign
    def __init__(self, A: BatchCSR | Pack) -> None:
        super().__init__(A)
        self._info = operator_of(A).pattern.diagonal  # which is looked for
        self._passed: Any = False

    @property
    def info(self) -> np.ndarray:
        """(nm,) integers: 0, or i + 1 where pivot i is the first that is exactly zero."""
        with self._reading:
            self.operator()
            return backend(self.queue).download(self._info)[: self.nm].astype(np.int64)

    @accepts_foreign
    def update(self) -> None:
        """Have the factors made anew when they are next used."""
        super().update()
        self._passed = False

    def _tiles(self, pattern):
        """Tiles for the factors, where these are faster."""
        if self.queue is not None:
            return None
        return without_fill(pattern, backend(None, "sparse").tile_of(self.dtype))

    def _make(self, A, launch):
        run, tiles = backend(self.queue, "sparse"), self._tiles(A.pattern)
        size = A.values.m if tiles is None else tiles.count + tiles.extra
        factors = A.values.beside(size, 1) if self._made is None else self._made.values
        if tiles is None:
            self._info = run.factor(A.values, A.pattern, factors, launch)
            return Operator("ilu", factors, A.pattern, A.pattern.diagonal)
        self._info = run.lu_factor(A.values, tiles, factors, launch)
        return Operator("lu", factors, tiles, tiles.diagonal, tiles.size, tiles.order, self._info)

    def within(self, launch: Launch = NOW) -> Operator:
        """The first solve with new values makes factors in passing, which stay in the cache; the next has them kept."""
        version = getattr(self.A, "version", None)
        if self._passed == version or (self._made is not None and self._version == version):
            return self.operator(launch)
        A = operator_of(self.A)
        tiles = self._tiles(A.pattern)
        if tiles is None:
            return self.operator(launch)
        self._passed, info = version, np.zeros(len(A.values.data) * self.vlen, np.int64)
        return Operator("fresh", A.values, tiles, tiles.diagonal, tiles.size, tiles.order, info)
