"""The preconditioner that a Krylov solver is handed: an exact solve along every line of a sparse matrix."""

from dataclasses import asdict, replace

import numpy as np
from scipy.sparse.linalg import LinearOperator

from compactla.blocktridiag import BlockTridiag
from compactla.checks import (
    check_context,
    check_contiguous,
    check_dtype,
    check_queue,
    check_size,
    check_threads,
    is_device_array,
)
from compactla.lines import Extraction, check_matrix, pack_lines
from compactla.pack import check_vlen
from compactla.pivots import PivotError, Policy, Report
from compactla.storage import check_storage
from compactla.view import COMPLEX, REAL, backend


class LinePreconditioner(LinearOperator):
    """Block line preconditioner of a sparse matrix: block Jacobi whose blocks are lines of block rows.

    Applying it solves, for every line, the block-tridiagonal system of the diagonal blocks and of the
    couplings between neighbours on the line; all other couplings are dropped. Blocks that are missing in the
    sparsity pattern are zero. With lines of one block row it is point-block Jacobi. The factorization does
    not pivot, but within blocks if it is asked to.

    It is a `scipy.sparse.linalg.LinearOperator`, to be handed to a Krylov solver as ``M``, and may be applied
    from several threads at once.

    Parameters
    ----------
    M : scipy.sparse BSR or CSR matrix or array, (n, n)
        The matrix: float32, float64, complex64 or complex128. Indices may be unsorted; duplicates are summed.
    lines : sequence of sequences of int, or (nlines, length) array of int
        The block rows along each line, of any length. Every block row is on exactly one line.
    block_size : int, optional
        Size b of the blocks; needed for CSR, taken from the matrix for BSR.
    vlen : int, optional
        Vector length V; default: what suits the device.
    queue : pyopencl.CommandQueue, optional
        Where the factors live and the work is done; default: the CPU.
    threads : int, optional
        At most how many threads factor and solve on the CPU, as for `compactla.gemm`, where a call says nothing else.
    pivots : {"report", "raise", "perturb", "shift"}, optional
        What is done about small pivots: nothing but telling zeros by `info`; raising a `PivotError`, of which `update`
        leaves a preconditioner that can be used; replacing those below sqrt(eps) times the largest entry of their
        block; or moving all away from zero by that much. See `compactla.BlockTridiag`.
    pivoting : bool, optional
        Swap rows within diagonal blocks, for blocks that meet zero pivots.
    diagnose : bool, optional
        Watch the pivots also where nothing is done about them, for `report`; factoring takes longer.
    storage : {None, "float32", "float16", "bfloat16"}, optional
        A smaller type that the factors are stored in, for applications that take about as much less time as there are
        fewer bytes to read; vectors and arithmetic keep the dtype of `M`. An OverflowError says where float16 is
        too small. See `compactla.BlockTridiag`.
    refine : int, optional
        Steps of iterative refinement of every solve, with the blocks as they are in `M`, of which a copy is kept.

    Attributes
    ----------
    shape, dtype
        Those of `M`.
    info : (nlines,) array of int
        0, or 1 + the index of the first zero pivot among the rows of the line, in the order of `lines`. The
        solution on a line that has one is meaningless; the other lines are not affected.
    report : compactla.pivots.Report
        `info`, the block and the pivot that it means, and, where pivots are watched, the smallest, the growth factor
        and how many were replaced: arrays (nlines,), in the order of `lines`.
    tridiag : BlockTridiag
        The factors of the lines.
    block_size : int
        Size of the blocks.
    queue : pyopencl.CommandQueue or None
        Where the factors live; None on the CPU.
    threads : int or None
        What was given.

    Raises
    ------
    TypeError
        If `M` is not such a matrix, its dtype is none of the above, or an argument is of the wrong type.
    ValueError
        If `M` is not square or does not divide into square blocks, or `lines` lack a block row or repeat one, or
        `threads` is not positive, or given for a device.
    PivotError
        If a pivot is zero, with ``pivots="raise"``.
    OverflowError
        If factors are too large for `storage`.

    References
    ----------
    .. [1] Kim et al., "Designing Vector-Friendly Compact BLAS and LAPACK Kernels", SC17: the line solver that
       the compact layout was made for.
    .. [2] ``Ifpack2::BlockTriDiContainer`` of Trilinos.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from scipy.sparse.linalg import gmres
    >>> import compactla as cla
    >>> T = sp.diags_array([-1.0, 4.0, -1.0], offsets=[-1, 0, 1], shape=(6, 6))
    >>> M = sp.kron(T, np.eye(2)).tobsr(blocksize=(2, 2))
    >>> P = cla.LinePreconditioner(M, lines=[[0, 1, 2, 3], [4, 5]])
    >>> x, status = gmres(M, np.ones(12), M=P)
    >>> status
    0
    """

    def __init__(
        self, M, lines, block_size=None, vlen=None, queue=None, threads=None,
        *, pivots="report", pivoting=False, diagnose=False, storage=None, refine=0,
    ):  # fmt: skip
        policy = Policy(pivots, pivoting, diagnose)
        b = self.block_size = check_matrix(M, block_size)
        dtype = check_dtype(M.dtype, "M")
        if queue is not None:
            check_queue(queue, "queue")
        check_threads(threads, queue)
        check_storage(storage, dtype)
        check_size(refine, "refine")
        vlen = check_vlen(vlen, dtype, queue)
        slots = pack_lines(lines, M.shape[0] // b, vlen)
        super().__init__(dtype, M.shape)
        self.queue, self.threads = queue, threads
        self._order = slots.order
        self._extraction = Extraction(M, b, slots)
        run = backend(queue)
        places = (self._extraction.lower, self._extraction.diag, self._extraction.upper)
        self._places = [run.upload(place, queue) for place in places]
        lanes = (vlen,) if dtype.kind == "f" else (2, vlen)
        self._blocks = [run.empty((len(place), b, b, *lanes), REAL[dtype.char], queue) for place in places]
        self._raises = policy.pivots == "raise"
        if self._raises:
            policy = replace(policy, pivots="report")  # lines have other numbers there
        where = slots.offset, slots.rows, slots.nlines, queue
        options = {"storage": storage, "refine": refine}
        self.tridiag = BlockTridiag.from_packed(*self._blocks, *where, **asdict(policy), **options)
        self.update(M)

    def update(self, M, threads=None) -> np.ndarray:
        """Factor a matrix with new values on the same pattern; the symbolic work is not done again.

        Must not run while another thread applies the preconditioner.

        Parameters
        ----------
        M : scipy.sparse BSR or CSR matrix or array, (n, n)
            Format, shape, block size, dtype and pattern are those of the first matrix.
        threads : int, optional
            At most how many threads work on the CPU; default: what the preconditioner was made with.

        Returns
        -------
        (nlines,) array of int
            The new `info`.

        Raises
        ------
        TypeError, ValueError
            If `M` is not such a matrix, or `threads` is not a positive integer, or given for a device. The factors are
            left as they were.
        PivotError, OverflowError
            If a pivot is zero, with ``pivots="raise"``, or factors are too large for `storage`. The lines that have
            none of these can be solved with all the same.
        """
        threads = self._threads(threads)
        values = self._extraction.values(M)
        if values.dtype != self.dtype:
            raise TypeError(f"M: dtype is {values.dtype}, must be {self.dtype} as at first")
        run = backend(self.queue)
        values = run.upload(values, self.queue)
        gather = run.gather_blocks if values.ndim == 3 else run.gather_values
        for place, block in zip(self._places, self._blocks, strict=True):
            gather(values, place, block, threads)
        info = np.empty(len(self._order), np.int64)
        info[self._order] = self.tridiag.refactor(threads)
        self.info = info
        if self._raises and info.any():
            raise PivotError(self.report)
        return info

    @property
    def report(self) -> Report:
        """What the factorization met, line by line."""
        return self.tridiag.report.reordered(self._order)

    def solve(self, r, threads=None):
        """Apply the preconditioner: solve along every line.

        Parameters
        ----------
        r : (n,) or (n, nrhs) array_like or pyopencl.array.Array
            Right-hand sides. They are converted to the dtype of the matrix; for a real matrix, complex ones
            are solved as real and imaginary parts.
        threads : int, optional
            At most how many threads work on the CPU; default: what the preconditioner was made with.

        Returns
        -------
        ndarray or pyopencl.array.Array
            The solution, C-contiguous, of the kind and shape of `r`, and of the dtype that NumPy gives the
            matrix times `r`.

        Raises
        ------
        TypeError
            If `r` is not numeric, or a pyopencl Array and the preconditioner lives on the CPU.
        ValueError
            If `r` has another shape or, on a device, is not C-contiguous or lives in another context, or `threads` is
            not positive, or given for a device.
        """
        on_device = is_device_array(r)
        if not on_device:
            r = np.asarray(r)
        elif self.queue is None:
            raise TypeError("r is a pyopencl Array, must be a NumPy array as P lives on the CPU")
        else:
            check_context(r, self.queue, "r")
            check_contiguous(r, "r")
        if r.ndim not in (1, 2) or r.shape[0] != self.shape[0]:
            raise ValueError(f"r has shape {r.shape}, must be ({self.shape[0]},) or ({self.shape[0]}, nrhs)")
        if r.dtype.kind not in "biufc":
            raise TypeError(f"r: dtype is {r.dtype}, must be numeric")
        work = COMPLEX[self.dtype] if r.dtype.kind == "c" and self.dtype.kind == "f" else self.dtype
        result = work if r.dtype == work else np.result_type(self.dtype, r.dtype)
        run = backend(self.queue)
        if on_device:
            rhs = r if r.dtype == work else r.astype(work)
            x = run.empty(r.shape, work, self.queue)
        else:
            rhs = run.upload(np.ascontiguousarray(r, work), self.queue)
            x = np.empty(r.shape, work) if self.queue is None else rhs
        self.tridiag.solve_rows(self._rows(rhs), self._rows(x), self._threads(threads))
        if not on_device:
            x = run.download(x)
        return x if result == work else x.astype(result)

    def _rows(self, r):
        """Vectors as (block rows, b, right-hand sides); complex ones for a real matrix are two each."""
        b = self.block_size
        nrhs = r.size * r.dtype.itemsize // max(self.shape[0] * self.dtype.itemsize, 1)
        return r.view(self.dtype).reshape(self.shape[0] // b, b, nrhs)

    def _threads(self, threads):
        """The `threads` of a call, checked."""
        check_threads(threads, self.queue)
        return self.threads if threads is None else threads

    _matvec = _matmat = solve

    def dot(self, x):
        """``P @ x``, as for every LinearOperator; also for a pyopencl Array."""
        return self.solve(x) if type(x) is np.ndarray or is_device_array(x) else super().dot(x)
