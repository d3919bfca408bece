"""Sweeps along lines: block line Jacobi, Gauss-Seidel and SOR, as preconditioners, smoothers and solvers."""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array

from compactla.backends import backend
from compactla.buffers import Buffer, Pool
from compactla.checks import check_size, is_device_array, on_host
from compactla.cpu.late import CompiledLate
from compactla.foreign import accepts_foreign
from compactla.lines.block_operator import BlockOperator
from compactla.lines.cutting import BlockFormat
from compactla.lines.in_parts import PartedLines, part_matrix
from compactla.lines.packed import one_lane
from compactla.types import Array, Events, Queue, Sparse

SCHEMES = ("jacobi", "gauss-seidel", "symmetric")


class BlockRows(NamedTuple):
    """Some block rows of a matrix in BSR form, where the work is done, and where its values come from."""

    indptr: Any  # int64
    indices: Any  # int32
    data: Any  # (nblocks, b, b)
    place: Any  # of each block in the values of the whole matrix, or, in CSR form, of each number


class Colour(NamedTuple):
    """Lines that are updated at once: some that no coupling connects, or for Jacobi all.

    Block rows are numbered colour by colour.
    """

    rows: slice
    lines: np.ndarray
    along: PartedLines  # the blocks on the lines
    beside: BlockRows  # the rest of the rows


class LineRelaxation(BlockOperator):
    """Sweeps of block line Jacobi, Gauss-Seidel or SOR: ``x <- (1 - damping) x + damping inv(T) (r - R x)``.

    T are the lines of a sparse matrix M, as in `LinePreconditioner`, and R is the rest of it, M - T. Jacobi updates all
    lines at once; the others take coupled lines one after the other, in colours, and use new values.

    Parameters
    ----------
    M, lines, block_size, vlen, queue, threads, parts, periodic
        As for `LinePreconditioner`.
    scheme : {"jacobi", "gauss-seidel", "symmetric"}, optional
        "symmetric" goes through the colours and back. For a symmetric matrix it is symmetric, as "jacobi" is, and may
        be the preconditioner of conjugate gradients.
    sweeps : int, optional
        Maximum number of sweeps of `solve`.
    damping : float, optional
        Factor of every update. Other than 1, Gauss-Seidel is SOR, and "symmetric" SSOR.
    tol : float, optional
        `solve` stops when the 2-norm of the residual rhs - M x is not over `tol` times that of rhs, for each of them.
        This is looked at after every sweep, for the price of a product with M. Default: it is not looked at.
    **options
        `pivots`, `pivoting`, `diagnose`, `storage` and `refine`, as for `LinePreconditioner`.

    Attributes
    ----------
    shape, dtype, block_size, queue, threads, info, report
        As for `LinePreconditioner`.
    scheme, sweeps, damping, tol
        The arguments.
    ncolours : int
        Number of colours.
    sweeps_made : int
        Number of sweeps of the last `solve`.

    Raises
    ------
    TypeError, ValueError
        As for `LinePreconditioner`, or if `scheme` is none of the above, or a number is out of range.

    See Also
    --------
    compactla.LinePreconditioner, compactla.find_lines, compactla.krylov.cg

    Notes
    -----
    From a zero start, and without `tol`, it is a linear operator, which Krylov solvers take as ``M``; its adjoint,
    `rmatvec`, takes the colours in the opposite order. A sweep reads the factors of the lines and the blocks of the
    remainder once. Results do not depend on the number of threads.

    References
    ----------
    .. [1] ``Ifpack2::BlockTriDiContainer`` and ``Ifpack2::BlockRelaxation`` of Trilinos.
    .. [2] Saad, "Iterative Methods for Sparse Linear Systems", 2003, sections 4.1 and 12.4.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> import compactla as cla
    >>> T = sp.diags_array([-1.0, 4.0, -1.0], offsets=[-1, 0, 1], shape=(6, 6))
    >>> M = sp.kron(T, np.eye(2)).tobsr(blocksize=(2, 2))
    >>> S = cla.LineRelaxation(M, [[0, 1, 2], [3, 4, 5]], scheme="gauss-seidel", sweeps=50, tol=1e-6)
    >>> bool(np.allclose(S.solve(M @ np.ones(12)), 1, atol=1e-5))
    True
    """

    _not_copied = (*BlockOperator._not_copied, "_spare")
    _in_place = False

    @accepts_foreign
    def __init__(
        self, M: Sparse, lines: Any, block_size: int | Array = None, vlen: int | None = None, *, queue: Queue = None,
        threads: int | None = None, parts: int | None = None, periodic: Any = False, scheme: str = "jacobi",
        sweeps: int = 1, damping: float = 1.0, tol: Any = None, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(M, lines, block_size, queue, threads, periodic, **options)
        check_sweeps(scheme, sweeps, damping, tol, self.dtype)
        sweeping = {"scheme": scheme, "sweeps": sweeps, "damping": damping, "tol": tol}
        self._given = {"vlen": vlen, "parts": parts, **sweeping, **options}
        if options.get("pivots") == "raise":
            self._given["pivots"] = "report"
        self.scheme, self.sweeps, self.damping, self.tol = scheme, int(sweeps), float(damping), tol
        self.sweeps_made, self._backwards = 0, False
        pattern, paths, all_blocks = self._pattern, self._paths, self._pattern.blocks()
        line, place = paths.places()
        nlines = len(paths.length)
        colour = np.zeros(nlines, np.int64) if scheme == "jacobi" else colour_lines(all_blocks, line, nlines)
        self.ncolours = int(colour.max(initial=0)) + 1
        order, number = np.argsort(colour[line], kind="stable"), np.empty(pattern.nrow, np.int64)
        number[order] = np.arange(pattern.nrow)
        self._order = None if self.ncolours == 1 else backend(queue).upload(order, queue)
        on_line = coupled_on_lines(all_blocks, line, place, paths)
        beside = numbered(all_blocks, number, ~on_line)
        self._whole = None if tol is None else self._block_rows(numbered(all_blocks, number), all_blocks)
        blocks = BlockFormat.of(self.block_size, self.dtype, vlen, queue)
        bounds = np.cumsum(np.bincount(colour[line], minlength=self.ncolours)).tolist()
        self._colours = []
        for c, (lo, hi) in enumerate(pairwise([0, *bounds])):
            mine = paths.some(colour == c)
            along = part_matrix(pattern, mine, number[mine.rows] - lo, parts, blocks, self._options, vlen is not None)
            rest = self._block_rows(beside[lo:hi], all_blocks)
            self._colours.append(Colour(slice(lo, hi), np.flatnonzero(colour == c), along, rest))
        self.update(M)

    def _summary(self):
        return f"scheme={self.scheme!r}, sweeps={self.sweeps}, "

    def _prepare(self):
        super()._prepare()
        dtype, queue = self.dtype, self.queue
        self._spare = Pool(queue, lambda: [Buffer(dtype, queue) for _ in range(3)])

    def _block_rows(self, entries, blocks):
        """Room for the blocks of some rows: of those that are `entries` of a sparse matrix."""
        run, b = backend(self.queue), self.block_size
        place = np.ascontiguousarray(blocks.place[entries.data])
        arrays = entries.indptr.astype(np.int64), entries.indices.astype(np.int32)
        indptr, indices, place = (run.upload(a, self.queue) for a in (*arrays, place))
        return BlockRows(indptr, indices, run.empty((len(entries.data), b, b), self.dtype, self.queue), place)

    def _kept(self, M, values):
        copied = values.copy()  # of what may change, for the adjoint is made after that
        return copied if is_device_array(M) else self._pattern.matrix(copied)

    def _factor(self, values, launch):
        run = backend(self.queue)
        gather = run.gather_blocks if values.ndim == 3 else run.gather_values
        for colour in self._colours:
            colour.along.fill([values] * 3, launch)
        for rows in (*(colour.beside for colour in self._colours), *([self._whole] if self._whole else [])):
            gather(values, rows.place, one_lane(rows.data), launch)
        return self._of_lines([on_host(colour.along.factor(launch)) for colour in self._colours])

    def _met(self, what):
        return self._of_lines([getattr(colour.along, what) for colour in self._colours])

    def _of_lines(self, of_colours):
        """Arrays of the lines of all colours in the order of `lines`; None if there are none."""
        if of_colours[0] is None:
            return None
        numbers = np.concatenate([colour.lines for colour in self._colours])
        return np.concatenate(of_colours, axis=-1)[..., np.argsort(numbers)]

    @accepts_foreign
    def solve(
        self, rhs: Array, x0: Array = None, *, out: Array = None, threads: int | None = None, wait_for: Events = None
    ) -> Any:
        """Make sweeps for right-hand sides.

        Parameters
        ----------
        rhs : (n,) or (n, nrhs) array_like or pyopencl.array.Array
            As for `LinePreconditioner.solve`.
        x0 : array_like or pyopencl.array.Array, optional
            Initial guess, of the kind and shape of `rhs`; default: zeros.
        out : ndarray or pyopencl.array.Array, optional
            As for `LinePreconditioner.solve`. It may be `x0` too.
        threads, wait_for
            As for `LinePreconditioner.solve`.

        Returns
        -------
        ndarray or pyopencl.array.Array
            As from `LinePreconditioner.solve`; `x0` is left as it was, unless it is `out`.

        Raises
        ------
        TypeError, ValueError
            As from `LinePreconditioner.solve`, or if `x0` is of another kind or shape than `rhs`, or shares memory with
            `out` without being the same.
        """
        return self._solve(rhs, x0, out, threads, wait_for)

    def _apply(self, rhs, x, launch, started=False):
        if launch.later(self._apply, rhs, x):
            return
        sweeps = backend(self.queue, "sweeps")
        taken = self._spare.take()
        room, b, z = taken[0].array(x.shape), rhs, x
        if self._order is not None:
            b, z = (kept.array(x.shape) for kept in taken[1:])
            sweeps.permute(self._order, rhs, b, False, launch)
            if started:
                sweeps.permute(self._order, x, z, False, launch)
        if not started and (self.ncolours > 1 or self.damping != 1):
            z.fill(0)
        self._sweep(b, z, room, started, launch)
        if self._order is not None:
            sweeps.permute(self._order, z, x, True, launch)
        self._spare.give(taken)

    def _sweep(self, b, x, room, started, launch):
        """Sweeps over vectors that are sorted by colour."""
        run, sweeps = backend(self.queue), backend(self.queue, "sweeps")
        goal = None if self.tol is None else self.tol * column_norms(run.download(b))
        for sweep in range(self.sweeps):
            for turn, c in enumerate(self._turns()):
                rows, _, along, beside = self._colours[c]
                source, update = b[rows], room[rows]
                if started or sweep or turn:
                    sweeps.residual(beside, x, source, update, launch)
                    source = update
                if self.damping == 1:
                    update = x[rows]
                along.solve(source, update, launch)
                if self.damping != 1:
                    sweeps.damp(update, x[rows], self.damping, launch)
            self.sweeps_made = sweep + 1
            if goal is not None:
                sweeps.residual(self._whole, x, b, room, launch)
                if (column_norms(run.download(room)) <= goal).all():
                    break

    def _turns(self):
        """The colours of a sweep, one after the other."""
        turns = list(range(self.ncolours))
        if self.scheme == "symmetric":
            turns += turns[::-1]
        return turns[::-1] if self._backwards else turns

    def _new_adjoint(self, MH, lines, **given):
        adjoint = Adjoint(MH, lines, **given, **self._given)
        adjoint._backwards = not self._backwards
        return adjoint


class Adjoint(LineRelaxation):
    """The adjoint of sweeps, for the conjugate transpose of their matrix."""

    _warns = False


def check_sweeps(scheme, sweeps, damping, tol, dtype) -> None:
    if not isinstance(scheme, str) or scheme not in SCHEMES:
        raise ValueError(f"scheme is {scheme!r}, must be one of {', '.join(map(repr, SCHEMES))}")
    if check_size(sweeps, "sweeps") < 1:
        raise ValueError(f"sweeps is {sweeps}, must be at least 1")
    for name, value in (("damping", damping), ("tol", 1 if tol is None else tol)):
        if not isinstance(value, int | float | np.number) or isinstance(value, bool) or np.iscomplexobj(value):
            raise TypeError(f"{name} is {value!r}, must be a real number")
        if not 0 < value <= float(np.finfo(dtype).max):
            raise ValueError(f"{name} is {value}, must be positive and in the range of {dtype}")


def numbered(blocks, number, which=True) -> csr_array:
    """The numbers of the blocks of a matrix for which `which` holds, as its entries; block rows count as `number`."""
    row, which = np.repeat(number, np.diff(blocks.indptr)), np.broadcast_to(which, len(blocks.indices))
    entries = np.flatnonzero(which), (row[which], number[blocks.indices[which]])
    return coo_array(entries, shape=(len(number), len(number))).tocsr()


def coupled_on_lines(blocks, line, place, paths) -> np.ndarray:
    """Flags of a matrix's blocks that are on the diagonal, or couple neighbours on a line."""
    row, column = np.repeat(np.arange(len(line)), np.diff(blocks.indptr)), blocks.indices
    apart = abs(place[row] - place[column])
    closing = paths.ring[line[row]] & (apart == paths.length[line[row]] - 1)
    return (line[row] == line[column]) & ((apart <= 1) | closing)


def colour_lines(blocks, line, nlines) -> np.ndarray:
    """A colour for each line, such that no two of one colour are coupled: the first that is free, line by line."""
    row = np.repeat(line, np.diff(blocks.indptr))
    graph = coo_array((np.ones(len(row)), (row, line[blocks.indices])), shape=(nlines, nlines)).tocsr()
    graph = csr_array(graph + graph.T)
    colour = np.full(nlines, -1, np.int64)
    _colour_greedily(graph.indptr, graph.indices, colour, np.full(nlines + 1, -1))
    return colour


@CompiledLate
def _colour_greedily(indptr, indices, colour, taken):
    for i in range(len(colour)):
        for k in range(indptr[i], indptr[i + 1]):
            if colour[indices[k]] >= 0:
                taken[colour[indices[k]]] = i
        c = 0
        while taken[c] == i:
            c += 1
        colour[i] = c


def column_norms(r) -> np.ndarray:
    """2-norm of each right-hand side, in double precision and without overflow."""
    r = abs(r).astype(np.float64)
    largest = r.max((0, 1), initial=np.finfo(np.float64).tiny)
    return largest * np.sqrt(((r / largest) ** 2).sum((0, 1)))
