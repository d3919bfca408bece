"""Block tridiagonal systems along many lines: factored once, solved many times."""

import functools
from typing import Any

import numpy as np

from compactla.backends import backend, device_name
from compactla.buffers import ResultPool
from compactla.checks import check_info, check_launch, check_queue, is_device_array, on_host
from compactla.dtypes import packed_dtype
from compactla.foreign import accepts_foreign, hand_back
from compactla.lines.from_arrays import check_line_sizes, lines_of
from compactla.lines.host_copies import Runs, Transfers
from compactla.lines.in_parts import KINDS, PartedLines
from compactla.lines.info import Rewritten, own, write
from compactla.lines.options import Options
from compactla.lines.packed import PackedLines, check_packed_lines
from compactla.lines.right_hand_sides import as_rhs, check_apart, check_out, check_rows
from compactla.lines.sizes import LineSizes, Padding
from compactla.lines.storage import refuse_overflow
from compactla.locks import read_write_lock
from compactla.overlap import span
from compactla.pickling import Copied
from compactla.pivots import PivotError, Report
from compactla.types import Array, Events, Queue


def _block(kind, T):
    """The blocks of a kind of lines, which may be filled with new values."""
    return hand_back(T._arrays[kind])


class BlockTridiag(Copied):
    """A batch of block tridiagonal matrices ("lines") of K blocks of b x b.

    Parameters
    ----------
    lower : (nlines, K-1, b, b) array_like or pyopencl.array.Array
        ``lower[:, k]`` couples row k + 1 to unknown k. With `periodic` lines (nlines, K, b, b): ``lower[:, K-1]``
        couples row 0 to unknown K - 1; of the other lines it is not read.
    diag : (nlines, K, b, b) array_like or pyopencl.array.Array
        Diagonal blocks; float32, float64, complex64 or complex128.
    upper : (nlines, K-1, b, b) array_like or pyopencl.array.Array
        ``upper[:, k]`` couples row k to unknown k + 1. With `periodic` lines (nlines, K, b, b): ``upper[:, K-1]``
        couples row K - 1 to unknown 0.
    vlen : int, optional
        Vector length V. Default: that of the device, or less for few and long lines.
    queue : pyopencl.CommandQueue, optional
        Queue of the device that lines are copied to and factored on. Default: that of `diag`.
    parts : int, optional
        Maximum number of parts that lines are cut into. A few long lines would leave most of a device idle, so they are
        split into parts that are solved in parallel, for nearly twice the work. 1: never. Default: by the numbers of
        lines, blocks and processors, but not of threads.
    periodic : bool or (nlines,) array_like of bool, optional
        Which lines close to rings. Where K is 2 the same two blocks are coupled twice, where it is 1 a block is
        coupled to itself: couplings add up.
    pivots : {"report", "raise", "perturb", "shift"}, optional
        Treatment of small pivots, since rows are not swapped across blocks. "report": zeros are in `info`. "raise":
        zeros raise a `PivotError`, which has the report of all lines. "perturb": a pivot whose
        modulus is below sqrt(eps) times the largest entry of its diagonal block is replaced by that threshold, with the
        sign of its real part, and counted [2]_. "shift": that threshold is added to every pivot, with the sign of its
        real part, so that all move away from zero [3]_. The largest entry is taken over the block before and
        after elimination; for a block of zeros it counts as 1.
    pivoting : bool, optional
        Swap rows within diagonal blocks, as LAPACK's getrf does within a matrix. Needed where blocks are well
        conditioned but meet zero pivots.
    diagnose : bool, optional
        Record the smallest pivots and the growth factors in `report`. Factoring takes longer, as it does with
        "perturb", "shift" and `tiny`, which record them, too.
    storage : {None, "float32", "float16", "bfloat16"}, optional
        Smaller type to store the factors in, or their real and imaginary parts. The time of a solve is about
        proportional to the bytes of the factors. Factorization, vectors and arithmetic keep the dtype of the blocks;
        factors are rounded when they are stored. `factor` raises an OverflowError if factors of a regular line are too
        large for the type, for float16 above 65504.
    refine : int, optional
        Number of steps of iterative refinement in each solve, with residuals of a copy of the original blocks. It makes
        up for smaller storage and for perturbed pivots. A step takes about as long as two solves.
    sizes : (K,) or (nlines, K) array_like of int, optional
        Size of each block row, of all lines or of each. What is past it in blocks and right-hand sides is not read, and
        zero in solutions. In memory such lines are padded. Default: b for all.
    tiny : float, optional
        Amount that every pivot moves away from zero by when elimination comes to it, with the sign of its real part, as
        in `compactla.getrfnp` [3]_: "shift" with an amount that does not depend on the blocks. Default: 0, not at all.

    Attributes
    ----------
    lower, diag, upper : ndarray or pyopencl.array.Array
        Blocks that `refactor` reads: packed as for `from_packed`, and overwritten; or, for lines that are periodic or
        cut, copies of the arguments.
    nlines, b, vlen : int
        Number of lines, size of the blocks, vector length.
    dtype : numpy.dtype
        Type of the blocks.
    queue : pyopencl.CommandQueue or None
        Queue of the device that holds the lines; None on the CPU.
    info : (nlines,) ndarray of int64, or None before `factor`
        Result of `factor`.
    report : Report or None before `factor`
        For each line the block and the pivot that failed, and, if they are recorded, the smallest pivot, the growth
        factor and the number of replaced pivots.

    Raises
    ------
    TypeError, ValueError
        If shapes, dtypes or devices do not fit together.

    See Also
    --------
    compactla.LinePreconditioner, compactla.Tridiag, compactla.Banded

    Notes
    -----
    One pack of V lines is factored by LU of the diagonal block, two triangular solves and one update a block, without
    pivoting [1]_. Results do not depend on the number of threads or the position of a line. Factors hold reciprocals of
    pivots, which overflow for subnormal pivots: the solution on such a line is not finite, though its `info` is 0, and
    blocks of so small entries have to be scaled first.

    References
    ----------
    .. [1] Kim et al., "Designing Vector-Friendly Compact BLAS and LAPACK Kernels", SC17.
    .. [2] Li and Demmel, "SuperLU_DIST: A Scalable Distributed-Memory Sparse Direct Solver", 2003: static pivoting.
    .. [3] KokkosKernels' batched LU and Ifpack2's ``addRadiallyToDiagonal``, which add an absolute amount.
    .. [4] Wang, "A Parallel Method for Tridiagonal Equations", ACM TOMS 7, 1981: the partition method.
    .. [5] Polizzi and Sameh, "A parallel hybrid banded system solver: the SPIKE algorithm", Parallel Comput. 32, 2006.
    .. [6] Ifpack2's BlockTriDi container cuts lines for GPUs (``n_subparts_per_part``).

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> diag = rng.random((100, 8, 3, 3)) + 9 * np.eye(3)
    >>> T = cla.BlockTridiag(rng.random((100, 7, 3, 3)), diag, rng.random((100, 7, 3, 3)))
    >>> bool(T.factor().any())
    False
    >>> T.solve(np.ones((100, 8, 3))).shape
    (100, 8, 3)

    A ring, in two parts and two separators:

    >>> lower, upper = rng.random((2, 1, 8, 3, 3))
    >>> T = cla.BlockTridiag(lower, diag[:1], upper, parts=2, periodic=True)
    >>> T.factor()
    array([0])
    """

    _info: Any
    _not_copied = ("_spans", "_lock", "_results")

    @accepts_foreign
    def __init__(
        self, lower: Array, diag: Array, upper: Array, vlen: int | None = None, *, queue: Queue = None,
        parts: int | None = None, periodic: Any = False, pivots: str = "report", pivoting: bool = False,
        diagnose: bool = False, storage: str | None = None, refine: int = 0, tiny: float = 0.0, sizes: Any = None,
    ) -> None:  # fmt: skip
        if queue is not None:
            check_queue(queue, "queue")
        elif is_device_array(diag):
            queue = diag.queue
        options = {
            "pivots": pivots, "pivoting": pivoting, "diagnose": diagnose, "storage": storage, "refine": refine,
            "tiny": tiny,
        }  # fmt: skip
        self._shape: Any = np.shape(diag)[:3]
        size = check_line_sizes(sizes, self._shape) if len(self._shape) == 3 else None
        self._adopt(*lines_of(lower, diag, upper, vlen, queue, parts, periodic, size, options))
        if size is not None:
            self._set_sizes(size)

    @classmethod
    @accepts_foreign
    def from_packed(
        cls, lower: Array, diag: Array, upper: Array, offset: Array, rows: Array, nlines: int, *, queue: Queue = None,
        pivots: str = "report", pivoting: bool = False, diagnose: bool = False, storage: str | None = None,
        refine: int = 0, tiny: float = 0.0,
    ) -> "BlockTridiag":  # fmt: skip
        """Lines that are packed already, of any lengths; used without a copy.

        Parameters
        ----------
        lower, upper : (nslot - npack, b, b, V) or (nslot - npack, b, b, 2, V) ndarray or pyopencl.array.Array
            Slot ``offset[p] - p + k`` holds the couplings of blocks k and k + 1 of the lines of pack p.
        diag : (nslot, b, b, V) or (nslot, b, b, 2, V) ndarray or pyopencl.array.Array
            Slot ``offset[p] + k`` holds diagonal block k of the lines of pack p. In unused lanes, and past the end of
            the shorter lines of a pack, there are identities, and zeros in `lower` and `upper`.
        offset : (npack + 1,) ndarray of int64
            First slot of each pack.
        rows : (nslot, V) ndarray of int64
            Which block row of a vector each block is, -1 for padding; see `solve_rows`.
        nlines : int
            Number of lines.
        queue : pyopencl.CommandQueue, optional
            Where the arrays live; default: the CPU.
        pivots, pivoting, diagnose, storage, refine, tiny
            As for `BlockTridiag`.

        Raises
        ------
        TypeError, ValueError
            If shapes, dtypes, offsets or rows do not fit together, an array is read-only or lives elsewhere, or two of
            them share memory.
        """
        blocks = lower, diag, upper
        offset, rows = check_packed_lines(dict(zip(KINDS, blocks, strict=True)), offset, rows, nlines, queue)
        options = Options(packed_dtype(diag), pivots, pivoting, diagnose, storage, refine, tiny)
        T = cls.__new__(cls)
        T._adopt(blocks, PackedLines(lower, diag, upper, offset, rows, nlines, options, queue), options)
        T._shape = None
        return T

    def _adopt(self, arrays, lines, options):
        """Take lines, which are factored from these arrays."""
        self._arrays = tuple(arrays)
        self._lines, self._options, self.info = lines, options, None
        self._counted: LineSizes | None = None
        self._padding: Padding | None = None
        self.nlines, self.b, self.vlen = lines.nlines, lines.b, lines.vlen
        self.dtype, self.queue = lines.dtype, lines.queue
        self._transfers = None if self.queue is None else Transfers(self.dtype, self.queue, Runs.all(lines.nrows))
        self._prepare()

    def _set_sizes(self, size):
        nlines, K, b = self._shape
        self._counted = LineSizes(size.reshape(-1), np.full(nlines, K), b)
        unknowns = np.flatnonzero(np.arange(b) < size[:, :, None])
        self._padding = Padding(unknowns, (nlines * K, b), self.dtype, self.queue)

    def _prepare(self):
        """Set the attributes that are not copied."""
        self._spans = {name: span(a) for name, a in zip(KINDS, self._arrays, strict=True)}
        self._lock, self._results = read_write_lock(), ResultPool()

    def __repr__(self) -> str:
        blocks = f"of {self._shape[1]} blocks" if self._shape else "of blocks"
        sizes = f"{self.nlines} lines {blocks} {self.b} x {self.b}"
        state = "not factored" if self._info is None else "factored"
        return f"BlockTridiag({sizes}, {self.dtype}, vlen={self.vlen}, device={device_name(self.queue)}, {state})"

    lower, diag, upper = (property(functools.partial(_block, k), doc="Blocks that `refactor` reads.") for k in range(3))

    @accepts_foreign
    def factor(self, *, info: Array = None, threads: int | None = None, wait_for: Events = None) -> np.ndarray:
        """Factor all lines in place.

        Parameters
        ----------
        info : (nlines,) ndarray of int64 or pyopencl.array.Array of int32, optional
            Where the result goes, where the lines live: contiguous, on a device at the beginning of its buffer. On a
            device, nothing waits then for the factorization.
        threads : int, optional
            Maximum number of CPU threads, as for `compactla.gemm`.
        wait_for : list of pyopencl.Event, optional
            Events to wait for before starting (devices only), as for `compactla.gemm`.

        Returns
        -------
        (nlines,) ndarray of int64
            For each line 0, or 1 + the index of its first pivot that is exactly zero, counted over the K b rows of the
            line; see the class for lines that are cut. The solution on such a line is meaningless; no other line is
            touched.

        Raises
        ------
        PivotError
            If there is such a line, with ``pivots="raise"``; the others can be solved with all the same.
        RuntimeError
            If an earlier call was broken off, as by an interrupt, and left neither blocks nor factors.

        Notes
        -----
        Once factored, lines stay factored: a second call returns the same `info`.
        """
        launch = check_launch(threads, wait_for, self.queue)
        self._check_info(info)
        return self._lock.write(self._factor_once, info, launch)

    def _factor_once(self, info, launch):
        self._check_whole()
        found = self._own_info()
        if found is None:
            return self._factor(info, launch)
        if info is None:
            return found
        write(on_host(self._info), info)
        return hand_back(info)

    @accepts_foreign
    def refactor(self, *, info: Array = None, threads: int | None = None, wait_for: Events = None) -> np.ndarray:
        """Factor again, after `lower`, `diag` and `upper` were filled with new values; otherwise as `factor`.

        No thread may solve while they are filled, for they hold the factors; calls of other threads wait for this one.
        """
        launch = check_launch(threads, wait_for, self.queue, recorded=True)
        self._check_info(info)
        if not launch.recorded:
            return self._refactor(info, launch)
        if self._options.pivots == "raise" or not self._lines.is_plain:
            launch.refuse(functools.partial(self._refactor, info))
        launch.changes(self._lock)
        launch.run(setattr, self, "_info", None)
        found = self._lines.record(launch, info)
        launch.run(setattr, self, "_info", Rewritten(found))
        return hand_back(found if info is None else info)

    def _check_info(self, info):
        if info is not None:
            check_info(info, self.nlines, self.queue, "info")
            check_apart(info, "info", self._spans)

    def _refactor(self, info, launch):
        return self._lock.write(self._factor, info, launch)

    def _factor(self, info, launch):
        self.info = None
        if isinstance(self._lines, PartedLines):
            shape = (-1,) if self._counted else (-1, self.b, self.b)
            self._lines.fill([a.reshape(shape) for a in self._arrays], launch)
        if self._counted:
            self.info = self._counted.count(self._lines.factor(launch))
            if info is not None:
                write(self._info, info)
        else:
            self.info = self._lines.factor(launch, info)
        if self._options.storage:
            refuse_overflow(self._lines.too_large, self._options.storage)
        if self._options.pivots == "raise" and on_host(self._info).any():
            raise PivotError(self.report)
        return self._own_info() if info is None else hand_back(info)

    @property
    def info(self) -> Any:
        """`info` of each line from the last factorization, as `factor` returned it; None if it was broken off."""
        with self._lock.here.lock:
            return self._own_info()

    @info.setter
    def info(self, info: Any) -> None:
        self._info = info

    def _own_info(self):
        self._info = info = own(self._info)
        return hand_back(info)

    @property
    def report(self) -> Report | None:
        """Report of the factorization, line by line; None before `factor`."""
        with self._lock.here.lock:
            return None if self.info is None else Report.of(self._info, self.b, self._lines.watched, self._counted)

    @accepts_foreign
    def solve(self, rhs: Array, *, out: Array = None, threads: int | None = None, wait_for: Events = None) -> Any:
        """Solve with the factored lines.

        Parameters
        ----------
        rhs : (nlines, K, b) or (nlines, K, b, nrhs) array_like or pyopencl.array.Array
            Right-hand sides, of a dtype that casts to that of the lines.
        out : ndarray or pyopencl.array.Array, optional
            Where the solutions are written to: an array of the kind and shape of `rhs` and of the dtype of the lines,
            C-contiguous. It may be `rhs`.
        threads : int, optional
            Maximum number of CPU threads, as for `compactla.gemm`.
        wait_for : list of pyopencl.Event, optional
            Events to wait for before starting (devices only), as for `compactla.gemm`.

        Returns
        -------
        ndarray or pyopencl.array.Array
            `out`, or the solutions in a new array of the kind and shape of `rhs`; an Array from its allocator. Where it
            has none, as for large NumPy arrays, this may be in the memory of an earlier result that is gone: what other
            queues do with one has to end before. NumPy arrays are copied to the device of the lines and back.

        Raises
        ------
        RuntimeError
            If the lines are not factored, or the last factorization was broken off.
        TypeError, ValueError
            If `rhs` is of another shape or of a dtype that does not cast, or lives elsewhere, or the lines were made by
            `from_packed`; if `out` is of another kind, dtype or shape, is read-only, or shares memory with the lines
            or, without being the same, with `rhs`; or if `threads` or `wait_for` is invalid, see `compactla.gemm`.
        """
        if self._shape is None:
            raise TypeError("lines of `from_packed` have no common shape, must be solved with solve_rows")
        rhs, on_device = as_rhs(rhs, self._shape, self.dtype, self.queue), is_device_array(rhs)
        if out is not None:
            check_out(out, rhs, self.dtype, self.queue)
            check_apart(out, "out", self._spans)
        launch = check_launch(threads, wait_for, self.queue, recorded=True)
        with self._lock.here.lock:
            if launch.recorded or self._info is None:
                launch.uses(self._lock, self._check_factored)
            if rhs.dtype != self.dtype or not rhs.flags.c_contiguous:
                launch.refuse()
            run = backend(self.queue if on_device else None)
            if on_device:
                rhs = rhs if rhs.dtype == self.dtype else rhs.astype(self.dtype)
                x = self._results.beside(rhs, self.dtype, self.queue) if out is None else out
            else:
                rhs = np.ascontiguousarray(rhs, self.dtype)
                x = self._results.array(rhs.shape, self.dtype) if out is None else out
            nlines, K, b, *nrhs = rhs.shape
            shape = nlines * K, b, *(nrhs or [1])
            vectors = run.reshaped(rhs, shape), run.reshaped(x, shape)
            if on_device or self.queue is None:
                self._solve(*vectors, launch)
            else:
                self._transfers.apply(self._solve, *vectors, launch)
            return x

    def _solve(self, rhs, x, launch):
        if self._padding is None:
            self._lines.solve(rhs, x, launch)
        else:
            self._padding.apply_trimmed(self._lines.solve, rhs, x, launch)

    @accepts_foreign
    def solve_rows(self, rhs: Array, x: Array, *, threads: int | None = None, wait_for: Events = None) -> None:
        """Solve with vectors whose block rows are numbered as `rows` of `from_packed` says.

        Parameters
        ----------
        rhs, x : (nrows, b, nrhs) ndarray or pyopencl.array.Array
            Right-hand sides and solutions, C-contiguous, of the dtype and on the device of the lines. `x` may be
            `rhs`. Rows of `x` that are on no line are left alone.
        threads : int, optional
            Maximum number of CPU threads, as for `compactla.gemm`.
        wait_for : list of pyopencl.Event, optional
            Events to wait for before starting (devices only), as for `compactla.gemm`.

        Raises
        ------
        RuntimeError
            If the lines are not factored.
        TypeError, ValueError
            If the arrays are of another dtype or shape or live elsewhere, x is read-only or shares memory with the
            lines or, without being the same, with rhs, or `threads` or `wait_for` is invalid, see `compactla.gemm`.
        """
        check_rows(rhs, x, self._lines.nrows, self.b, self.dtype, self.queue)
        check_apart(x, "x", self._spans)
        launch = check_launch(threads, wait_for, self.queue, recorded=True)
        with self._lock.here.lock:
            if launch.recorded or self._info is None:
                launch.uses(self._lock, self._check_factored)
            self._lines.solve(rhs, x, launch)

    def _check_factored(self):
        if self._info is None:
            self._check_whole()
            raise RuntimeError("the lines are not factored: call factor() first")

    def _check_whole(self):
        """Refuse what was left of blocks."""
        if self._lines.broken:
            raise RuntimeError("factoring failed after it had begun: fill the blocks again, and call refactor()")
