"""The preconditioner that a Krylov solver is handed: an exact solve along every line of a sparse matrix."""

from typing import Any

from compactla.foreign import accepts_foreign
from compactla.lines.block_operator import BlockOperator
from compactla.lines.cutting import BlockFormat
from compactla.lines.in_parts import PartedLines, part_matrix
from compactla.lines.several_devices import Queues, SharedLines, check_queues
from compactla.types import Array, Events, Queue, Sparse


class LinePreconditioner(BlockOperator):
    """Block line preconditioner of a sparse matrix: block Jacobi whose blocks are lines of block rows.

    Applying it solves, for every line, the block-tridiagonal system of the diagonal blocks and of the
    couplings between neighbours on the line; all other couplings are dropped. Blocks that are missing in the
    sparsity pattern are zero. With lines of one block row it is point-block Jacobi. The factorization does
    not swap rows, except within blocks with ``pivoting=True``.

    It is a `scipy.sparse.linalg.LinearOperator` for a Krylov solver's argument ``M``, and may be applied from several
    threads at once, which wait for an `update` by another.

    Parameters
    ----------
    M : scipy.sparse BSR or CSR matrix or array, (n, n)
        The matrix: float32, float64, complex64 or complex128. Indices may be unsorted; duplicates are summed. Blocks on
        lines are copied; `M` is read again only for the adjoint, see `update`.
    lines : sequence of sequences of int, or (nlines, length) array of int
        The block rows along each line, of any length. Every block row is on exactly one line. Couplings between blocks
        of one line that are not neighbours on it are chords, which are dropped, too; of strong ones there is a warning.
    block_size : int or (nrow,) array_like of int, optional
        Size b of the blocks; needed for CSR, taken from the matrix for BSR. Block rows of sizes of their own, of a CSR
        matrix, are padded to the largest in memory.
    vlen : int, optional
        Vector length V. Default: that of the device, or less for few and long lines.
    queue : pyopencl.CommandQueue or list of pyopencl.CommandQueue, optional
        Queue of the device that holds the factors and applies them. Several devices, of any contexts, share the lines,
        about as many block rows each, and are applied to NumPy arrays only; all that is copied to a device is its part
        of these. Default: the CPU.
    threads : int, optional
        Maximum number of CPU threads, as for `compactla.gemm`, for calls that give none.
    parts : int, optional
        Number of parts that lines are cut into, which are solved in parallel, as for `BlockTridiag`. Default: more than
        one if a few long lines would leave most of the device idle.
    periodic : bool or (nlines,) array_like of bool, optional
        Which lines close to rings: their last block row and their first one are neighbours too. Makes no difference for
        lines of one or two block rows, which have no other couplings.
    pivots : {"report", "raise", "perturb", "shift"}, optional
        Treatment of small pivots. "report": zeros are in `info`. "raise": zeros raise a `PivotError`; after `update`
        the preconditioner can still be used. "perturb": pivots below sqrt(eps) times the largest entry of their block
        are replaced. "shift": all pivots are moved away from zero by that much. See `compactla.BlockTridiag`.
    pivoting : bool, optional
        Swap rows within diagonal blocks, for blocks that meet zero pivots.
    diagnose : bool, optional
        Record the smallest pivots and growth factors in `report` for any `pivots`; factoring takes longer.
    storage : {None, "float32", "float16", "bfloat16"}, optional
        Smaller type to store the factors in. The time of an application is about proportional to their bytes. Vectors
        and arithmetic keep the dtype of `M`. Factors that are too large for float16 raise an OverflowError. See
        `compactla.BlockTridiag`.
    refine : int, optional
        Number of steps of iterative refinement in each solve, with a copy of the blocks of `M`.
    tiny : float, optional
        Amount that every pivot moves away from zero by, see `compactla.BlockTridiag`.

    Attributes
    ----------
    shape, dtype
        Shape and type of `M`.
    info : (nlines,) array of int
        0, or 1 + the index of the first zero pivot among the rows of the line, in the order of `lines`. The
        solution on a line that has one is meaningless; the other lines are not affected. For lines that are rings, or
        cut into parts, it is the first in another order, see `BlockTridiag`. A subnormal pivot is no zero, but its
        reciprocal overflows: the solution on its line is not finite.
    report : compactla.pivots.Report
        `info`, the block and the pivot that it means, and, where pivots are watched, the smallest, the growth factor
        and how many were replaced: arrays (nlines,), in the order of `lines`.
    block_size, vlen : int
        Size of the blocks, or of the largest, and vector length.
    queue : pyopencl.CommandQueue, list of pyopencl.CommandQueue or None
        Queue of the device that holds the factors, or queues; None on the CPU.
    threads : int or None
        Value of the argument.

    Raises
    ------
    TypeError
        If `M` is not such a matrix, its dtype is none of the above, or an argument is of the wrong type.
    ValueError
        If `M` is malformed, not square or does not divide into square blocks, or `lines` lack a block row or repeat
        one, `periodic` does not fit them, an option is none of the above, `parts` is not positive, or given together
        with options for whole lines (`pivoting` and `refine`), or `threads` is not positive, or given for a device.
    PivotError
        If a pivot is zero, with ``pivots="raise"``.
    OverflowError
        If factors are too large for `storage`.

    See Also
    --------
    compactla.LineRelaxation, compactla.find_lines, compactla.BlockTridiag, compactla.krylov.gmres

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

    @accepts_foreign
    def __init__(
        self, M: Sparse, lines: Any, block_size: int | Array = None, vlen: int | None = None, *, queue: Queue = None,
        threads: int | None = None, parts: int | None = None, periodic: Any = False, pivots: str = "report",
        pivoting: bool = False, diagnose: bool = False, storage: str | None = None, refine: int = 0,
        tiny: float = 0.0,
    ) -> None:  # fmt: skip
        options = {
            "pivots": pivots, "pivoting": pivoting, "diagnose": diagnose, "storage": storage, "refine": refine,
            "tiny": tiny,
        }  # fmt: skip
        super().__init__(M, lines, block_size, check_queues(queue), threads, periodic, **options)
        self._given = {"vlen": vlen, "parts": parts, **options, "pivots": "report" if pivots == "raise" else pivots}
        queue, paths, pattern = self.queue, self._paths, self._pattern
        if isinstance(queue, Queues):
            self._lines: PartedLines | SharedLines = SharedLines(pattern, paths, parts, vlen, self._options, queue)
        else:
            blocks = BlockFormat.of(self.block_size, self.dtype, vlen, queue)
            self._lines = part_matrix(pattern, paths, paths.rows, parts, blocks, self._options, vlen is not None)
        self.vlen = self._lines.vlen
        self.update(M)

    @accepts_foreign
    def solve(self, rhs: Array, *, out: Array = None, threads: int | None = None, wait_for: Events = None) -> Any:
        """Apply the preconditioner.

        Parameters
        ----------
        rhs : (n,) or (n, nrhs) array_like or pyopencl.array.Array
            Right-hand sides. They are converted to the dtype of the matrix; for a real matrix, complex ones
            are solved as real and imaginary parts.
        out : ndarray or pyopencl.array.Array, optional
            Where the solution is written to: an array of the kind and shape of `rhs`, C-contiguous, of the dtype that
            is returned without it. It may be `rhs`.
        threads : int, optional
            Maximum number of CPU threads; default: that of the preconditioner.
        wait_for : list of pyopencl.Event, optional
            Events to wait for before starting (devices only), as for `compactla.gemm`.

        Returns
        -------
        ndarray or pyopencl.array.Array
            `out`, or the solution in a new array, C-contiguous, of the kind and shape of `rhs`, and of the dtype that
            NumPy gives the matrix times `rhs`; an Array from its allocator: with a `pyopencl.tools.MemoryPool` nothing
            is allocated. A large NumPy array may be in the memory of an earlier one that is gone.

        Raises
        ------
        TypeError
            If `rhs` is not numeric, or a pyopencl Array and the preconditioner lives on the CPU, or `out` is of another
            kind or dtype.
        ValueError
            If `rhs` has another shape or, on a device, is not C-contiguous or lives in another context; if `out` is
            none of the above, is read-only, or shares memory with `rhs` without being the same; or if `threads` or
            `wait_for` is invalid, see `compactla.gemm`.
        RuntimeError
            If the last update was broken off, by an interrupt or for lack of memory.
        """
        return self._solve(rhs, None, out, threads, wait_for)

    def _factor(self, values, launch):
        self._lines.fill([values] * 3, launch)
        return self._lines.factor(launch)

    def _met(self, what):
        return getattr(self._lines, what)

    def _apply(self, rhs, x, launch, started=False):
        self._lines.solve(rhs, x, launch)

    def _new_adjoint(self, MH, lines, **given):
        return Adjoint(MH, lines, **given, **self._given)


class Adjoint(LinePreconditioner):
    """The adjoint of a preconditioner, for the conjugate transpose of its matrix."""

    _warns = False
