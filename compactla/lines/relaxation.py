"""Sweeps along lines: block line Jacobi, Gauss-Seidel and SOR, as preconditioners, smoothers and solvers."""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import bsr_array, coo_array, csr_array

from compactla.checks import check_dtype, check_launch, check_size
from compactla.cpu.kernel import compiled_once
from compactla.lines.block_operator import BlockOperator
from compactla.lines.chords import warn_of_chords
from compactla.lines.extraction import Extraction, check_cover, check_matrix, flatten, split
from compactla.lines.partition import check_periodic
from compactla.lines.pivots import PivotError, Report
from compactla.lines.precond import LinePreconditioner
from compactla.lines.storage import refuse_overflow
from compactla.room import Room
from compactla.view import backend

SCHEMES = ("jacobi", "gauss-seidel", "symmetric")


class BlockRows(NamedTuple):
    """Some block rows of a BSR matrix, where the work is done."""

    indptr: Any  # int64
    indices: Any  # int32
    data: Any  # (nnzb, b, b)


class Colour(NamedTuple):
    """Lines that are updated at once: some that no coupling connects, or for Jacobi all.

    Block rows are numbered colour by colour. Of the blocks of the matrix in these rows some are `on` the lines, the
    others `off` them: entries of sparse matrices, which say where among the values of the matrix a block is.
    """

    rows: slice
    lines: np.ndarray
    solver: "Within"
    on: csr_array
    off: csr_array


class Within(LinePreconditioner):
    """The lines of a colour: what their factorization meets is told line by line of all colours."""

    _warns = False

    def _refuse(self):
        pass


class LineRelaxation(BlockOperator):
    """Sweeps of block line Jacobi, Gauss-Seidel or SOR: ``x <- (1 - damping) x + damping inv(T) (r - R x)``.

    T are the lines of a sparse matrix M, as in `LinePreconditioner`, and R is the rest of it, M - T. Jacobi updates all
    lines at once; the others take lines that are coupled one after the other, in colours, and use what is new.

    Parameters
    ----------
    M, lines, block_size, vlen, queue, threads
        As for `LinePreconditioner`.
    scheme : {"jacobi", "gauss-seidel", "symmetric"}, optional
        "symmetric" goes through the colours and back. For a symmetric matrix it is symmetric, as "jacobi" is, and may
        be the preconditioner of conjugate gradients.
    sweeps : int, optional
        How many sweeps `solve` makes, at most.
    damping : float, optional
        Factor of every update. Other than 1, Gauss-Seidel is SOR, and "symmetric" SSOR.
    tol : float, optional
        `solve` stops when the 2-norm of the residual r - M x is not over `tol` times that of r, for every right-hand
        side. This is looked at after every sweep, for the price of a product with M. Default: it is not looked at.
    **options
        As for `LinePreconditioner`.

    Attributes
    ----------
    shape, dtype, block_size, queue, threads, info, report
        As for `LinePreconditioner`.
    scheme, sweeps, damping, tol
        What was given.
    ncolours : int
        How many lots of lines there are.
    sweeps_made : int
        How many sweeps the last `solve` made.

    Raises
    ------
    TypeError, ValueError
        As for `LinePreconditioner`, or if `scheme` is none of the above, or a number is out of range.

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

    _warns = True  # of chords, which is done once
    _not_copied = ("_making", "_spare")

    def __init__(
        self, M, lines, block_size=None, vlen=None, queue=None, threads=None,
        *, scheme="jacobi", sweeps=1, damping=1.0, tol=None, **options,
    ):  # fmt: skip
        ours = {"scheme": scheme, "sweeps": sweeps, "damping": damping, "tol": tol}
        b, dtype = check_matrix(M, block_size), check_dtype(M.dtype, "M")
        check_sweeps(scheme, sweeps, damping, tol, dtype)
        M = in_blocks(M, b)
        flat, length = flatten(lines)
        nrow, nlines = M.shape[0] // b, len(length)
        line_of = np.repeat(np.arange(nlines), length)
        check_cover(flat, line_of, nrow)
        self._given = split(flat, length), block_size, vlen, queue, threads
        self._options = ours | options
        self._raises = options.get("pivots") == "raise"
        if self._raises:
            self._options["pivots"] = options["pivots"] = "report"  # lines have other numbers in solvers
        super().__init__(dtype, M.shape, b, queue, threads)
        self.scheme, self.sweeps, self.damping, self.tol = scheme, int(sweeps), float(damping), tol
        self.sweeps_made, self._backwards = 0, False
        self._pattern = Extraction(M, b)
        line, place = np.empty((2, nrow), np.int64)
        line[flat], place[flat] = line_of, np.arange(nrow) - (np.cumsum(length) - length)[line_of]
        colour = np.zeros(nlines, np.int64) if scheme == "jacobi" else colour_lines(self._pattern, line, nlines)
        self.ncolours = int(colour.max(initial=0)) + 1
        order, number = np.argsort(colour[line], kind="stable"), np.empty(nrow, np.int64)
        number[order] = np.arange(nrow)
        self._order = None if self.ncolours == 1 else backend(queue).upload(order, queue)
        ring = check_periodic(options.pop("periodic", False), nlines)
        if self._warns:
            warn_of_chords(M, b, flat, length, ring)
        on_line = coupled_on_lines(self._pattern, line, place, length, ring)
        on, off = (places_of(self._pattern, number, which) for which in (on_line, ~on_line))
        self._whole = None if tol is None else places_of(self._pattern, number, np.ones_like(on_line))
        values = self._pattern.values(M)
        by_lines = split(number[flat], length)
        bounds = np.cumsum(np.bincount(colour[line], minlength=self.ncolours)).tolist()
        self._colours = []
        for c, (lo, hi) in enumerate(pairwise([0, *bounds])):
            mine = np.flatnonzero(colour == c)
            inner = on[lo:hi, lo:hi]
            where = [by_lines[i] - lo for i in mine]
            arguments = blocks_at(inner, values), where, None, vlen, queue, threads
            solver = Within(*arguments, periodic=ring[mine], **options)
            self._colours.append(Colour(slice(lo, hi), mine, solver, inner, off[lo:hi]))
        with self._renewing():
            self._set_values(M, values)
        self._refuse()

    def _prepare(self):
        super()._prepare()
        self._spare: list = []

    def update(self, M, threads=None) -> np.ndarray:
        """Take new values on the same pattern.

        Parameters, result and errors are those of `LinePreconditioner.update`, except that the values do not come from
        a device.
        """
        self.update_anyway(M, threads)
        self._refuse()
        return self.info

    def update_anyway(self, M, threads=None) -> None:
        """As `update`, but nothing is raised of what the factorization meets, see `report`."""
        M = in_blocks(M, check_matrix(M, self.block_size))
        values = self._pattern.values(M)
        if values.dtype != self.dtype:
            raise TypeError(f"M: dtype is {values.dtype}, must be {self.dtype} as at first")
        with self._renewing():
            for colour in self._colours:
                colour.solver.update(blocks_at(colour.on, values), threads)
            self._set_values(M, values)

    def _refuse(self):
        """Raise what the options ask for, of what the factorization met."""
        solvers = [colour.solver for colour in self._colours]
        refuse_overflow(self._of_lines([solver.too_large for solver in solvers]), solvers[0]._storage)
        if self._raises and self.info.any():
            raise PivotError(self.report)

    def _of_lines(self, of_colours):
        """What there is of the lines of each colour, in the order of `lines`; None if there is nothing."""
        if of_colours[0] is None:
            return None
        numbers = np.concatenate([colour.lines for colour in self._colours])
        return np.concatenate(of_colours)[np.argsort(numbers)]

    @property
    def info(self):
        return self._of_lines([colour.solver.info for colour in self._colours]) if self._is_usable else None

    @property
    def report(self) -> Report | None:
        """What the factorization met, line by line, as that of `LinePreconditioner`."""
        if not self._is_usable:
            return None
        return Report(*map(self._of_lines, zip(*(colour.solver.report for colour in self._colours), strict=True)))

    def _set_values(self, M, values):
        """Put the blocks that are on no line where the work is done, and all of them where residuals are looked at."""
        self._keep(self._pattern.matrix(values.copy()))
        self._remainders = [self._block_rows(colour.off, values) for colour in self._colours]
        self._all = None if self._whole is None else self._block_rows(self._whole, values)

    def _block_rows(self, places, values):
        upload = backend(self.queue).upload
        arrays = places.indptr.astype(np.int64), places.indices.astype(np.int32), values[places.data]
        return BlockRows(*(upload(np.ascontiguousarray(a), self.queue) for a in arrays))

    def solve(self, r, x0=None, threads=None, wait_for=None):
        """Make sweeps for right-hand sides.

        Parameters
        ----------
        r : (n,) or (n, nrhs) array_like or pyopencl.array.Array
            As for `LinePreconditioner.solve`.
        x0 : array_like or pyopencl.array.Array, optional
            What the sweeps begin with, of the kind and shape of `r`; default: zeros.
        threads, wait_for
            As for `LinePreconditioner.solve`.

        Returns
        -------
        ndarray or pyopencl.array.Array
            As from `LinePreconditioner.solve`; `x0` is left as it was.

        Raises
        ------
        TypeError, ValueError
            As from `LinePreconditioner.solve`, or if `x0` is of another kind or shape than `r`.
        """
        return self._solve(r, x0, threads, wait_for)

    def _apply(self, rhs, x, started, threads, wait_for):
        launch = check_launch(threads, wait_for, self.queue)
        sweeps = backend(self.queue, "sweeps")
        try:
            rooms = self._spare.pop()
        except IndexError:
            rooms = [Room(self.dtype, self.queue) for _ in range(1 if self._order is None else 3)]
        room, *sorted_by_colour = (kept.array(x.shape) for kept in rooms)
        b, z = sorted_by_colour or (rhs, x)
        if self._order is not None:
            sweeps.permute(self._order, rhs, b, False, launch)
            if started:
                sweeps.permute(self._order, x, z, False, launch)
        if not started and (self.ncolours > 1 or self.damping != 1):
            z.fill(0)
        self._sweep(b, z, room, started, threads, wait_for)
        if self._order is not None:
            sweeps.permute(self._order, z, x, True, launch)
        self._spare.append(rooms)

    def _sweep(self, b, x, room, started, threads, wait_for):
        """Sweeps over vectors that are sorted by colour."""
        run, sweeps = backend(self.queue), backend(self.queue, "sweeps")
        launch = check_launch(threads, wait_for, self.queue)
        goal = None if self.tol is None else self.tol * column_norms(run.download(b))
        for sweep in range(self.sweeps):
            for turn, c in enumerate(self._turns()):
                rows, solver, source = self._colours[c].rows, self._colours[c].solver, b[self._colours[c].rows]
                update = room[rows]
                if started or sweep or turn:
                    sweeps.residual(self._remainders[c], x, source, update, launch)
                    source = update
                if self.damping == 1:
                    update = x[rows]
                solver._apply(source, update, False, threads, wait_for)
                if self.damping != 1:
                    sweeps.damp(update, x[rows], self.damping, launch)
            self.sweeps_made = sweep + 1
            if goal is not None:
                sweeps.residual(self._all, x, b, room, launch)
                if (column_norms(run.download(room)) <= goal).all():
                    break

    def _turns(self):
        """The colours of a sweep, one after the other."""
        turns = list(range(self.ncolours))
        if self.scheme == "symmetric":
            turns += turns[::-1]
        return turns[::-1] if self._backwards else turns

    def _new_adjoint(self, MH):
        adjoint = Adjoint(MH, *self._given, **self._options)
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


def in_blocks(M, b):
    """A matrix in BSR form."""
    return M if M.format == "bsr" else M.tobsr((b, b))


def blocks_at(places, values) -> bsr_array:
    """The matrix of these blocks."""
    b, n = values.shape[1], places.shape[0] * values.shape[1]
    return bsr_array((values[places.data], places.indices, places.indptr), shape=(n, n), blocksize=(b, b))


def places_of(pattern, number, which) -> csr_array:
    """Where among the values of a matrix the blocks are for which `which` holds, block rows numbered by `number`."""
    row = np.repeat(number, np.diff(pattern.indptr))[which]
    place = np.flatnonzero(which)
    return coo_array((place, (row, number[pattern.indices[which]])), shape=(len(number), len(number))).tocsr()


def coupled_on_lines(pattern, line, place, length, ring) -> np.ndarray:
    """Which blocks of a matrix are on the diagonal, or couple neighbours on a line."""
    row, column = np.repeat(np.arange(len(line)), np.diff(pattern.indptr)), pattern.indices
    apart = abs(place[row] - place[column])
    closing = ring[line[row]] & (apart == length[line[row]] - 1)
    return (line[row] == line[column]) & ((apart <= 1) | closing)


def colour_lines(pattern, line, nlines) -> np.ndarray:
    """A colour for each line, such that no two of one colour are coupled: the first that is free, line by line."""
    row = np.repeat(line, np.diff(pattern.indptr))
    graph = coo_array((np.ones(len(row)), (row, line[pattern.indices])), shape=(nlines, nlines)).tocsr()
    graph = csr_array(graph + graph.T)
    colour = np.full(nlines, -1)
    _colour_greedily(graph.indptr, graph.indices, colour)
    return colour


@compiled_once
def _colour_greedily(indptr, indices, colour):
    taken = np.full(len(colour) + 1, -1)
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
