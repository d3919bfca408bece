"""Block tridiagonal systems along many lines: factored once, solved many times."""

import numpy as np

from compactla.checks import (
    as_array,
    check_contiguous,
    check_device_array,
    check_dtype,
    check_kind,
    check_launch,
    check_queue,
    check_size,
    is_device_array,
)
from compactla.copies import Copied
from compactla.layout import check_vlen, pack_padded
from compactla.lines.packed import check_packed_lines
from compactla.lines.pivots import SMALLEST, WATCHED, PivotError, Policy, Report
from compactla.lines.storage import Stored, check_storage, refuse_overflow
from compactla.locks import Lock
from compactla.overlap import share_memory, span
from compactla.room import Room
from compactla.view import backend, packed_dtype


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
        Vector length V; default: what suits the device, or less for fewer, and long, lines.
    queue : pyopencl.CommandQueue, optional
        Where the lines are copied to and factored; default: where `diag` lives.
    parts : int, optional
        Into how many parts lines are cut, at most: more lines at once for a device that so few would leave idle, for
        nearly twice the work. 1 is for never; default: as the numbers of lines, blocks and processors suggest, not that
        of threads.
    periodic : bool or (nlines,) array_like of bool, optional
        Which lines close to rings. Where K is 2 the same two blocks are coupled twice, where it is 1 a block is
        coupled to itself: couplings add up.
    pivots : {"report", "raise", "perturb", "shift"}, optional
        What is done about small pivots, where nobody swaps rows across blocks. "report": nothing, zeros are told by
        `info`. "raise": the same, and then a `PivotError`, which has the report of all lines. "perturb": a pivot whose
        modulus is below sqrt(eps) times the largest entry of its diagonal block is replaced by that threshold, with the
        sign of its real part, and counted [2]_. "shift": that threshold is added to every pivot, with the sign of its
        real part, so that all move away from zero [3]_. The largest entry is taken over the block of the matrix and
        over what elimination has made of it; for a block of zeros it counts as 1.
    pivoting : bool, optional
        Swap rows within diagonal blocks, as LAPACK's getrf does within a matrix. Needed where blocks are well
        conditioned but meet zero pivots.
    diagnose : bool, optional
        Watch the pivots, so that `report` has their smallest and the growth factor, also where nothing is done about
        them. Factoring then takes longer, as it does with any of the above but "report" and "raise".
    storage : {None, "float32", "float16", "bfloat16"}, optional
        A smaller type that the factors are stored in, of the real and imaginary parts where they are complex: solves,
        which wait for the factors to be read, then take about as much less time. Factorization, vectors and arithmetic
        keep the dtype of the blocks; the factors are rounded when they are stored. An OverflowError is raised by
        `factor` if the factors of a line that has them are too large for the type, which for float16 means 65504.
    refine : int, optional
        Steps of iterative refinement in each solve: solve for the residual of the blocks as they were given, of which a
        copy is kept, and add. Makes up for smaller storage and for perturbed pivots; each step takes about as long as
        two solves.

    Attributes
    ----------
    lower, diag, upper : ndarray or pyopencl.array.Array
        What `refactor` reads: packed as `from_packed` says, and overwritten; or copies of what was given, where lines
        are periodic or cut.
    nlines, b, vlen : int
        Number of lines, size of the blocks, vector length.
    dtype : numpy.dtype
        That of the blocks.
    queue : pyopencl.CommandQueue or None
        Where the lines live; None on the CPU.
    info : (nlines,) ndarray of int64, or None before `factor`
        What `factor` returned.
    report : Report or None before `factor`
        Which block and which pivot of each line failed, and, where pivots were watched, the smallest, the growth
        factor and how many were replaced.

    Raises
    ------
    TypeError, ValueError
        If shapes, dtypes or devices do not fit together.

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

    _not_copied = ("_lines", "_spans", "_work", "_lock")
    _parted = None  # the parts of lines that are cut
    _broken = False  # whether a factorization was broken off, and what is there is neither blocks nor factors

    def __init__(
        self, lower, diag, upper, vlen=None, queue=None, *, parts=None, periodic=False,
        pivots="report", pivoting=False, diagnose=False, storage=None, refine=0,
    ):  # fmt: skip
        from compactla.lines import partition  # which is built on this class

        options = Policy(pivots, pivoting, diagnose), storage, refine
        blocks = {"lower": lower, "diag": diag, "upper": upper}
        if queue is not None:
            check_queue(queue, "queue")
        elif is_device_array(diag):
            queue = diag.queue
        on_device = is_device_array(diag)
        for name, a in blocks.items():
            if is_device_array(a) != on_device:
                raise TypeError(f"{name} is a {type(a).__name__}, must be an array of the kind of diag")
            if on_device:
                check_device_array(a, queue, name)
                check_contiguous(a, name)
            blocks[name] = a = a if on_device else as_array(a, name)
            check_dtype(a.dtype, name)
            if a.ndim != 4 or a.shape[2] != a.shape[3]:
                raise ValueError(f"{name} has shape {a.shape}, must be (lines, blocks, b, b)")
        nlines, K, b, _ = blocks["diag"].shape
        if K < 1:
            raise ValueError(f"diag has shape {blocks['diag'].shape}, must have at least one block a line")
        dtype = blocks["diag"].dtype
        ring = partition.check_periodic(periodic, nlines)
        closed = bool(np.any(periodic))
        shape = nlines, K - 1 + closed, b, b
        for name in ("lower", "upper"):
            if blocks[name].shape != shape:
                raise ValueError(f"{name} has shape {blocks[name].shape}, must be {shape} to fit diag and periodic")
            if blocks[name].dtype != dtype:
                raise TypeError(f"{name}: dtype is {blocks[name].dtype}, must be {dtype} as diag")
        given, vlen = vlen, check_vlen(vlen, dtype, queue)
        if closed and (K == 1 or nlines * b == 0):
            if K == 1:  # a block that is coupled to itself
                blocks["diag"] = partition.fold(*blocks.values(), ring, queue)
            blocks["lower"] = blocks["upper"] = np.empty((nlines, K - 1, b, b), dtype)
            ring = np.zeros_like(ring)
        whole = "pivoting" if pivoting else "refine" if refine else ""
        length = np.full(nlines, K)
        parts = partition.count_parts(parts, length, ring, b, dtype, vlen, queue, whole)
        if given is None:
            vlen = partition.enough_lanes(vlen, length, parts, b, dtype)
        if b and (ring.any() or (parts > 1).any()):
            within = {"pivots": "report" if pivots == "raise" else pivots, "diagnose": diagnose, "storage": storage}
            packed = partition.part(*blocks.values(), ring, parts, vlen, queue, within)
            self.lower, self.diag, self.upper, self._parted = packed
            self._policy, self._storage = options[0], check_storage(storage, dtype)
            self.nlines, self.b, self.vlen, self.dtype, self.queue = nlines, b, vlen, dtype, queue
            self._nrows, self._shape, self.info = nlines * K, (nlines, K, b), None
            self._prepare()
            return
        packed = []
        for name, a in blocks.items():
            A = pack_padded(a.reshape(nlines, a.shape[1] * b, b), vlen, queue, max(b, 1), int(name == "diag"))
            vlen, slots = A.vlen, A.data.shape[0] * a.shape[1]
            packed.append(A.data.reshape(slots, b, *A.data.shape[2:]))
        npack = -(-nlines // vlen)
        line = np.arange(npack * vlen).reshape(npack, 1, vlen)
        rows = np.where(line < nlines, line * K + np.arange(K).reshape(1, K, 1), -1).reshape(npack * K, vlen)
        self._adopt(*packed, np.arange(npack + 1) * K, rows, nlines, queue, *options)
        self._shape = (nlines, K, b)

    @classmethod
    def from_packed(
        cls, lower, diag, upper, offset, rows, nlines, queue=None, *,
        pivots="report", pivoting=False, diagnose=False, storage=None, refine=0,
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
        pivots, pivoting, diagnose, storage, refine
            As for `BlockTridiag`.

        Raises
        ------
        TypeError, ValueError
            If shapes, dtypes, offsets or rows do not fit together, an array is read-only or lives elsewhere, or two of
            them share memory.
        """
        blocks = {"lower": lower, "diag": diag, "upper": upper}
        offset, rows = check_packed_lines(blocks, offset, rows, nlines, queue)
        T = cls.__new__(cls)
        options = Policy(pivots, pivoting, diagnose), storage, refine
        T._adopt(lower, diag, upper, offset, rows, nlines, queue, *options)
        return T

    def _adopt(self, lower, diag, upper, offset, rows, nlines, queue, policy, storage, refine):
        run = backend(queue)
        storage, refine = check_storage(storage, diag.dtype), check_size(refine, "refine")
        self.lower, self.diag, self.upper = lower, diag, upper
        self.nlines, self.b, self.vlen, self.queue = nlines, diag.shape[1], diag.shape[-1], queue
        self.dtype = packed_dtype(diag)
        offset, rows = (np.ascontiguousarray(a, np.int64) for a in (offset, rows))
        self._offset, self._rows = run.upload(offset, queue), run.upload(rows, queue)
        self._nrows = int(rows.max(initial=-1)) + 1
        self._shape = None
        self._stored = Stored((lower, diag, upper), offset, storage, queue) if storage else None
        self._blocks = [run.empty(a.shape, a.dtype, queue) for a in (lower, diag, upper)] if refine else None
        self._refine = refine
        self._policy = policy
        self._swaps = backend(queue, "lines").swaps_like(diag, queue) if policy.pivoting else None
        self.info = self._watched = None
        self._storage, self._too_large = storage, np.zeros(nlines)
        self._prepare()

    def _prepare(self):
        """Set what is not copied along with the lines."""
        if self._parted is None:
            self._lines = backend(self.queue, "lines").Lines(
                self.lower, self.diag, self.upper, self._offset, self._rows,
                self._policy.kernel, self._swaps, self._stored,
            )  # fmt: skip
        self._spans = {name: span(getattr(self, name)) for name in ("lower", "diag", "upper")}
        self._work = []
        self._lock = Lock()

    def factor(self, threads=None, wait_for=None) -> np.ndarray:
        """Factor all lines in place.

        Parameters
        ----------
        threads : int, optional
            At most how many threads work on lines on the CPU, as for `compactla.gemm`.
        wait_for : list of pyopencl.Event, optional
            What a device waits for first, as for `compactla.gemm`.

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
        check_launch(threads, wait_for, self.queue)
        with self._lock:
            if self._broken:
                raise RuntimeError("factoring failed after it had begun: fill the blocks again, and call refactor()")
            return self._factor(threads, wait_for) if self.info is None else self.info

    def refactor(self, threads=None, wait_for=None) -> np.ndarray:
        """Factor again, after `lower`, `diag` and `upper` were filled with new values; otherwise as `factor`."""
        check_launch(threads, wait_for, self.queue)
        with self._lock:
            return self._factor(threads, wait_for)

    def _factor(self, threads, wait_for):
        self.refactor_anyway(threads, wait_for)
        refuse_overflow(self.too_large, self._storage)
        if self._policy.pivots == "raise" and self.info.any():
            raise PivotError(self.report)
        return self.info

    def refactor_anyway(self, threads=None, wait_for=None) -> np.ndarray:
        """As `refactor`, but nothing is raised of what the factorization meets, see `report` and `too_large`."""
        if self._parted is not None:
            blocks = (a.reshape(-1, self.b, self.b) for a in (self.lower, self.diag, self.upper))
            self.info = None
            self.info = self._parted.refactor(blocks, threads, wait_for)
            return self.info
        run, npack, launch = backend(self.queue), len(self._offset) - 1, check_launch(threads, wait_for, self.queue)
        self.info = None
        info = run.upload(np.zeros(npack * self.vlen, np.int64), self.queue)
        watched = None
        if self._policy.kernel:
            start = np.zeros((npack, WATCHED, *self.diag.shape[3:]), self.diag.dtype)
            start[:, SMALLEST] = np.inf
            watched = run.upload(start, self.queue)
        overflow = self._stored and self._stored.no_overflow()
        self._broken = True  # unless all of what follows succeeds
        for source, target in zip((self.lower, self.diag, self.upper), self._blocks or (), strict=False):
            backend(self.queue, "mixed").copy(source, target)
        backend(self.queue, "lines").factor_lines(self._lines, info, launch, watched)
        info = run.download(info)[: self.nlines]
        if watched is not None:
            lines = run.download(watched).reshape(npack, WATCHED, self.diag.ndim - 3, self.vlen)[:, :, 0]
            self._watched = lines.swapaxes(0, 1).reshape(WATCHED, npack * self.vlen)[:, : self.nlines]
        if self._stored:
            self._too_large = self._stored.fill((self.lower, self.diag, self.upper), info, overflow, launch)
        self.info, self._broken = info, False
        return self.info

    @property
    def too_large(self) -> np.ndarray:
        """The largest factor of each line where it overflows in `storage`, otherwise 0: (nlines,)"""
        return self._too_large if self._parted is None else self._parted.too_large

    @property
    def report(self) -> Report | None:
        """What the factorization met, line by line; None before `factor`."""
        return None if self.info is None else Report.of(self.info, self.b, self.watched)

    @property
    def watched(self):
        """What kernels kept of pivots, line by line: (WATCHED, nlines), or None where nobody asked."""
        return self._watched if self._parted is None else self._parted.watched

    def solve(self, rhs, threads=None, wait_for=None):
        """Solve with the factored lines.

        Parameters
        ----------
        rhs : (nlines, K, b) or (nlines, K, b, nrhs) array_like or pyopencl.array.Array
            Right-hand sides, of a dtype that casts to that of the lines.
        threads : int, optional
            At most how many threads work on lines on the CPU, as for `compactla.gemm`.
        wait_for : list of pyopencl.Event, optional
            What a device waits for first, as for `compactla.gemm`.

        Returns
        -------
        ndarray or pyopencl.array.Array
            The solutions, of the kind and shape of `rhs`; an Array from its allocator. NumPy arrays are copied to the
            device of the lines and back.

        Raises
        ------
        RuntimeError
            If the lines are not factored.
        TypeError, ValueError
            If `rhs` is of another shape or of a dtype that does not cast, or lives elsewhere, or the lines were made
            by `from_packed`, or `threads` or `wait_for` is not what `compactla.gemm` takes.
        """
        if self._shape is None:
            raise TypeError("lines of `from_packed` have no common shape, must be solved with solve_rows")
        on_device = is_device_array(rhs)
        rhs = rhs if on_device else as_array(rhs, "rhs")
        shape = self._shape
        if rhs.ndim not in (3, 4) or rhs.shape[:3] != shape:
            raise ValueError(f"rhs has shape {rhs.shape}, must be {shape} or {(*shape, 'nrhs')}")
        if on_device and self.queue is None:
            raise TypeError("rhs is a pyopencl Array, must be a NumPy array: the lines live on the CPU")
        if rhs.dtype != self.dtype and not np.can_cast(rhs.dtype, self.dtype, "same_kind"):
            raise TypeError(f"rhs: dtype is {rhs.dtype}, must cast to {self.dtype}")
        nrhs = rhs.shape[3] if rhs.ndim == 4 else 1
        run = backend(self.queue)
        if on_device:
            check_device_array(rhs, self.queue, "rhs")
            check_contiguous(rhs, "rhs")
            rhs = rhs if rhs.dtype == self.dtype else rhs.astype(self.dtype)
            x = run.empty(rhs.shape, self.dtype, self.queue, rhs.allocator)
        else:
            rhs = run.upload(np.ascontiguousarray(rhs, self.dtype), self.queue)
            x = np.empty(rhs.shape, self.dtype) if self.queue is None else rhs
        rows = shape[0] * shape[1], shape[2], nrhs
        launch = check_launch(threads, wait_for, self.queue)
        self.solve_anyway(rhs.reshape(rows), x.reshape(rows), launch)
        return x if on_device else run.download(x)

    def solve_rows(self, rhs, x, threads=None, wait_for=None) -> None:
        """Solve with vectors whose block rows are numbered as `rows` of `from_packed` says.

        Parameters
        ----------
        rhs, x : (nrows, b, nrhs) ndarray or pyopencl.array.Array
            Right-hand sides and solutions, C-contiguous, of the dtype and on the device of the lines. `x` may be
            `rhs`. Rows of `x` that are on no line are left alone.
        threads : int, optional
            At most how many threads work on lines on the CPU, as for `compactla.gemm`.
        wait_for : list of pyopencl.Event, optional
            What a device waits for first, as for `compactla.gemm`.

        Raises
        ------
        RuntimeError
            If the lines are not factored.
        TypeError, ValueError
            If the arrays are of another dtype or shape or live elsewhere, x is read-only or shares memory with the
            lines or, without being the same, with rhs, or `threads` or `wait_for` is not what `compactla.gemm` takes.
        """
        self.check_vectors(rhs, x, self._nrows)
        self.solve_anyway(rhs, x, check_launch(threads, wait_for, self.queue))

    def check_vectors(self, rhs, x, nrows) -> None:
        """Refuse what `solve_rows` does not take, where vectors have to have so many rows."""
        for name, a in (("rhs", rhs), ("x", x)):
            check_kind(a, self.queue, name)
            if a.dtype != self.dtype:
                raise TypeError(f"{name}: dtype is {a.dtype}, must be {self.dtype}")
            if a.ndim != 3 or a.shape[1] != self.b or a.shape[0] < nrows or a.shape != rhs.shape:
                least = f"({nrows} or more, {self.b}, nrhs)"
                raise ValueError(f"{name} has shape {a.shape}, must be {least}, the same for rhs and x")
            check_contiguous(a, name)
            if self.queue is not None:
                check_device_array(a, self.queue, name)
        if self.queue is None and not x.flags.writeable:
            raise ValueError("x is read-only, must be writeable")
        if x is not rhs and share_memory(x, rhs) and span(x) != span(rhs):
            raise ValueError("x shares memory with rhs, must be the same or apart from it")
        start, end, buffer = span(x)
        for name, (first, last, own) in self._spans.items():
            if start < last and first < end and buffer == own and x.size:
                raise ValueError(f"x shares memory with {name} of the lines, must not")

    def solve_anyway(self, rhs, x, launch) -> None:
        """As `solve_rows`, but the vectors are not checked; `launch` is what `check_launch` makes of the rest."""
        if self.info is None:
            raise RuntimeError("the lines are not factored: call factor() first")
        if self._parted is not None:
            self._parted.solve_anyway(rhs, x, launch)
            return
        lines = backend(self.queue, "lines")
        # Work arrays are kept; each of several threads that solve at once takes its own.
        try:
            work, vectors = self._work.pop()
        except IndexError:
            work = lines.Work(self._lines)
            vectors = [Room(self.dtype, self.queue) for _ in range(2 if self._refine else 0)]
        work.fit(rhs.shape[2])
        if self._refine:
            self._solve_refined(rhs, x, work, [room.array(x.shape) for room in vectors], launch)
        else:
            lines.solve_lines(self._lines, rhs, x, work, launch)
        self._work.append((work, vectors))

    def _solve_refined(self, rhs, x, work, vectors, launch):
        """Solve, and then for the residual, `refine` times; there is room for two vectors."""
        lines, mixed, (r, b) = backend(self.queue, "lines"), backend(self.queue, "mixed"), vectors
        mixed.copy(rhs, b, launch)
        r.fill(0)
        lines.solve_lines(self._lines, b, x, work, launch)
        for _ in range(self._refine):
            mixed.residual_lines(self._lines, self._blocks, b, x, r, work, launch)
            lines.solve_lines(self._lines, r, r, work, launch)
            x += r
