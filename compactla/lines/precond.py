"""The preconditioner that a Krylov solver is handed: an exact solve along every line of a sparse matrix."""

from dataclasses import asdict, replace
from typing import Any

import numpy as np

from compactla.checks import (
    check_contiguous,
    check_dtype,
    check_launch,
    check_queue,
    check_size,
    check_whole,
    is_device_array,
)
from compactla.layout import check_vlen
from compactla.lines.block_operator import BlockOperator
from compactla.lines.blocktridiag import BlockTridiag
from compactla.lines.chords import warn_of_chords
from compactla.lines.extraction import Extraction, check_matrix, pack_lines, sort_into_packs, split
from compactla.lines.partition import check_periodic, count_parts, enough_lanes, part_matrix
from compactla.lines.pivots import PivotError, Policy, Report
from compactla.lines.storage import check_storage, refuse_overflow
from compactla.view import REAL, backend


class LinePreconditioner(BlockOperator):
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
        The matrix: float32, float64, complex64 or complex128. Indices may be unsorted; duplicates are summed. Blocks on
        lines are copied; `M` is looked at again only if the adjoint is asked for, see `update`.
    lines : sequence of sequences of int, or (nlines, length) array of int
        The block rows along each line, of any length. Every block row is on exactly one line. Couplings between blocks
        of one line that are not neighbours on it are chords: they are left out as well, of which a warning tells.
    block_size : int, optional
        Size b of the blocks; needed for CSR, taken from the matrix for BSR.
    vlen : int, optional
        Vector length V; default: what suits the device, or less for fewer, and long, lines.
    queue : pyopencl.CommandQueue, optional
        Where the factors live and the work is done; default: the CPU.
    threads : int, optional
        At most how many threads factor and solve on the CPU, as for `compactla.gemm`, where a call says nothing else.
    parts : int, optional
        Into how many parts lines are cut, of which then more are at work at once, as for `BlockTridiag`; default: more
        than one where few and long lines would leave the device idle.
    periodic : bool or (nlines,) array_like of bool, optional
        Which lines close to rings: their last block row and their first one are neighbours too. Makes no difference for
        lines of one or two block rows, which have no other couplings.
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
        solution on a line that has one is meaningless; the other lines are not affected. For lines that are rings, or
        cut into parts, it is the first in another order, see `BlockTridiag`. A subnormal pivot is no zero, but its
        reciprocal overflows: the solution on its line is not finite.
    report : compactla.pivots.Report
        `info`, the block and the pivot that it means, and, where pivots are watched, the smallest, the growth factor
        and how many were replaced: arrays (nlines,), in the order of `lines`.
    tridiag : BlockTridiag or PartedLines
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
        If `M` is malformed, not square or does not divide into square blocks, or `lines` lack a block row or repeat
        one, `periodic` does not fit them, an option is none of the above, `parts` is not positive, or given together
        with what takes whole lines (`pivoting` and `refine`), or `threads` is not positive, or given for a device.
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

    _warns = True  # of chords, which is done once

    def __init__(
        self, M, lines, block_size=None, vlen=None, queue=None, threads=None, *, parts=None, periodic=False,
        pivots="report", pivoting=False, diagnose=False, storage=None, refine=0,
    ):  # fmt: skip
        policy = Policy(pivots, pivoting, diagnose)
        b = check_matrix(M, block_size)
        dtype = check_dtype(M.dtype, "M")
        if queue is not None:
            check_queue(queue, "queue")
        check_launch(threads, None, queue)
        self._storage = check_storage(storage, dtype)
        check_size(refine, "refine")
        self._options = {"parts": parts, "periodic": periodic, **asdict(policy), "storage": storage, "refine": refine}
        self._options |= {"pivots": "report"} if pivots == "raise" else {}
        given, vlen = vlen, check_vlen(vlen, dtype, queue)
        slots = pack_lines(lines, M.shape[0] // b, vlen)
        self._given = slots.flat, slots.length, block_size, given, queue, threads
        ring = check_periodic(periodic, slots.nlines) & (slots.length > 2)  # two blocks are coupled in one way only
        if self._warns:
            warn_of_chords(M, b, slots.flat, slots.length, ring)
        whole = "pivoting" if pivoting else "refine" if refine else ""
        parts = count_parts(parts, slots.length, ring, b, dtype, vlen, queue, whole)
        if given is None and (enough := enough_lanes(vlen, slots.length, parts, b, dtype)) < vlen:
            vlen, slots = enough, sort_into_packs(slots.flat, slots.length, enough)
        self._parted = bool(ring.any() or (parts > 1).any())
        super().__init__(dtype, M.shape, b, queue, threads)
        self._raises = policy.pivots == "raise"
        if self._raises:
            policy = replace(policy, pivots="report")  # lines have other numbers there
        if self._parted:
            self._extraction = Extraction(M, b)
            within = {"pivots": policy.pivots, "diagnose": diagnose, "storage": storage}
            self.tridiag = part_matrix(self._extraction, slots, ring, parts, dtype, vlen, queue, within)
        else:
            self._pack_lines(M, slots, {**asdict(policy), "storage": storage, "refine": refine})
        self.update(M)

    def _pack_lines(self, M, slots, options):
        """Set up lines that are not cut."""
        b, queue = self.block_size, self.queue
        self._order = slots.order
        self._extraction = Extraction(M, b, slots)
        run = backend(queue)
        places = (self._extraction.lower, self._extraction.diag, self._extraction.upper)
        self._places = [run.upload(place, queue) for place in places]
        lanes = ([2] if self.dtype.kind == "c" else []) + [slots.rows.shape[1]]
        self._blocks = [run.empty((len(place), b, b, *lanes), REAL[self.dtype.char], queue) for place in places]
        where = slots.offset, slots.rows, slots.nlines, queue
        self.tridiag = BlockTridiag.from_packed(*self._blocks, *where, **options)

    info: Any

    def update(self, M, threads=None, wait_for=None) -> np.ndarray:
        """Factor a matrix with new values on the same pattern; the symbolic work is not done again.

        Must not run while another thread applies the preconditioner. The adjoint, `rmatvec` and ``H``, is made when it
        is first asked for after this, from `M` itself: until then its values have to stay what they are.

        Parameters
        ----------
        M : scipy.sparse BSR or CSR matrix or array, (n, n), or pyopencl.array.Array
            Format, shape, block size, dtype and pattern are those of the first matrix. An Array is its new ``data``
            alone, (nnzb, b, b) for BSR and (nnz,) for CSR, in the order in which the first matrix stored it; only for
            a preconditioner on a device, where nothing of it is copied to the host.
        threads : int, optional
            At most how many threads work on the CPU; default: what the preconditioner was made with.
        wait_for : list of pyopencl.Event, optional
            What a device waits for first, as for `compactla.gemm`.

        Returns
        -------
        (nlines,) array of int
            The new `info`.

        Raises
        ------
        TypeError, ValueError
            If `M` is not such a matrix, or `threads` or `wait_for` is not what `compactla.gemm` takes. The factors are
            left as they were.
        PivotError, OverflowError
            If a pivot is zero, with ``pivots="raise"``, or factors are too large for `storage`. The lines that have
            none of these can be solved with all the same.
        MemoryError
            If there is no room on the device. Nothing is solved with then before another update has succeeded.
        """
        self.update_anyway(M, threads, wait_for)
        self._refuse()
        return self.info

    def _refuse(self):
        """Raise what the options ask for, of what the factorization met."""
        refuse_overflow(self.too_large, self._storage)
        if self._raises and self.info.any():
            raise PivotError(self.report)

    def update_anyway(self, M, threads=None, wait_for=None) -> None:
        """As `update`, but nothing is raised of what the factorization meets, see `report` and `too_large`."""
        if threads is None:
            threads = self.threads
        launch = check_launch(threads, wait_for, self.queue)
        run = backend(self.queue)
        if is_device_array(M):
            self._check_values(M)
            values = M
        else:
            values = self._extraction.values(M)
            if values.dtype != self.dtype:
                raise TypeError(f"M: dtype is {values.dtype}, must be {self.dtype} as at first")
            values = run.upload(values, self.queue)
        with self._renewing():
            self.info = None
            if self._parted:
                self.info = self.tridiag.refactor([values] * 3, threads, wait_for)
            else:
                gather = run.gather_blocks if values.ndim == 3 else run.gather_values
                for place, block in zip(self._places, self._blocks, strict=True):
                    gather(values, place, block, launch)
                self.info = self._as_given(self.tridiag.refactor_anyway(threads, wait_for))
            self._keep(M)

    def _as_given(self, of_lines):
        """What there is of each of the lines of `tridiag`, in the order of `lines`."""
        ordered = np.empty_like(of_lines)
        ordered[self._order] = of_lines
        return ordered

    @property
    def too_large(self) -> np.ndarray:
        """The largest factor of each line where it overflows in `storage`, otherwise 0: (nlines,)"""
        return self.tridiag.too_large if self._parted else self._as_given(self.tridiag.too_large)

    @property
    def report(self) -> Report | None:
        """What the factorization met, line by line; None after an update that was broken off."""
        if self.info is None:
            return None
        if self._parted:
            return Report.of(self.info, self.block_size, self.tridiag.watched)
        return self.tridiag.report.reordered(self._order)

    def _check_values(self, data):
        """Refuse a device array that is not the data of a matrix like the first."""
        if self.queue is None:
            raise TypeError("M is a pyopencl Array, must be a scipy.sparse matrix as P lives on the CPU")
        check_whole(data, self.queue, "M")
        check_contiguous(data, "M")
        if data.dtype != self.dtype:
            raise TypeError(f"M: dtype is {data.dtype}, must be {self.dtype} as at first")
        if data.shape != self._extraction.data_shape:
            raise ValueError(f"M has shape {data.shape}, must be {self._extraction.data_shape}, as data at first")

    def _conjugate_transposed(self):
        if is_device_array(self._matrix):
            self._matrix = self._extraction.matrix(self._matrix.get())
        return super()._conjugate_transposed()

    def _new_adjoint(self, MH):
        flat, length, *others = self._given
        return Adjoint(MH, split(flat, length), *others, **self._options)

    def _apply(self, rhs, x, started, threads, wait_for):
        self.tridiag.solve_anyway(rhs, x, check_launch(threads, wait_for, self.queue))


class Adjoint(LinePreconditioner):
    """The adjoint of a preconditioner, for the conjugate transpose of its matrix."""

    _warns = False
