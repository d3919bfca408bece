"""The line preconditioner in PETSc: ``-pc_type python -pc_python_type compactla.petsc.LinePC``.

Each rank solves along the lines within its own rows, as `compactla.LinePreconditioner` does for the rank's diagonal
block of the matrix. It talks to no other rank: products with the matrix and dot products, which are PETSc's, are all
that goes over the network. It is as good on many ranks as on one where no line is cut: distribute columns of the grid,
not cells.

Options, behind the prefix of the PC:

-pc_line_lines       auto: found by `compactla.find_lines` in the rank's block of the matrix (default); or a file as for
                     the command line, of block rows of the whole matrix in PETSc's numbering: those parts of lines
                     that a rank owns are its lines
-pc_line_block_size  size of the blocks (default: that of the matrix)
-pc_line_device      cpu (default), opencl, or opencl:NAME with a part of a device's name: of the devices that
                     this stands for the one whose number is the rank modulo how many there are
-pc_line_anisotropy, -pc_line_threshold, -pc_line_min_length
                     as for `compactla.find_lines`
-pc_line_threads, -pc_line_vlen, -pc_line_storage, -pc_line_pivots, -pc_line_pivoting
                     as for `compactla.LinePreconditioner`
-pc_line_scheme, -pc_line_sweeps, -pc_line_damping
                     as for `compactla.LineRelaxation`: where one of them is given, sweeps with all couplings within the
                     rank's rows take the place of one solve along lines. Conjugate gradients need the scheme jacobi or
                     symmetric

As a smoother of multigrid, for grids too stretched for one that goes point by point. Lines are found on every level;
given ones, and blocks of another size, are options of a level, as ``-mg_levels_2_pc_line_lines``::

    -ksp_type cg -pc_type gamg -mg_levels_ksp_type richardson -mg_levels_ksp_max_it 1 -mg_levels_pc_type python \\
        -mg_levels_pc_python_type compactla.petsc.LinePC -mg_levels_pc_line_scheme symmetric

`compactla/lines/README.md` has figures, and says which of all these to choose.

Programs give the same to `LinePC`, or lines that they know themselves. Whenever the operators change the blocks are
factored again; the symbolic work is only done again if the pattern or an option is another. Nothing has to be destroyed
at the end of a program: a PC that is still there when Python ends becomes one of type ``none``.

On many ranks. As PETSc has it there is one rank for each core, and compactla needs one thread in each::

    NUMBA_NUM_THREADS=1 mpiexec -n 128 python application.py -ksp_type gmres -ksp_pc_side right \\
        -pc_type python -pc_python_type compactla.petsc.LinePC -pc_line_block_size 5 -ksp_view

One rank for each socket, with as many threads as it has cores, and one rank for each GPU, with ``-pc_line_device
opencl``, work as well. Kernels are compiled when they are first used and then kept on disk: before a large job, run a
small one on one node, with NUMBA_CACHE_DIR a folder that all nodes see and that only you can write: whoever else can
write there could have you run what they like, so that in a folder of others, or one like /tmp, nothing is kept. What a
step costs on more and more ranks is measured by::

    python benchmarks/weak_scaling.py --ranks 1 2 4 8
"""

import atexit
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from petsc4py import PETSc
from scipy.sparse import csr_array

from compactla.cli.files import read_lines
from compactla.gpu.devices import queue_on
from compactla.lines.block_operator import BlockOperator
from compactla.lines.extraction import check_cover, check_matrix, flatten
from compactla.lines.finding import find_lines
from compactla.lines.precond import LinePreconditioner
from compactla.lines.relaxation import LineRelaxation

# How PETSc reads the options.
FINDING = {"anisotropy": "getReal", "threshold": "getReal", "min_length": "getInt"}
SOLVING = {"threads": "getInt", "vlen": "getInt", "storage": "getString", "pivots": "getString", "pivoting": "getBool"}
SWEEPING = {"scheme": "getString", "sweeps": "getInt", "damping": "getReal"}
OPTIONS = {"lines": "getString", "block_size": "getInt", "device": "getString", **FINDING, **SOLVING, **SWEEPING}
VALUES = {"getReal": "a number", "getInt": "an integer", "getBool": "true or false", "getString": "a word"}

# The PCs whose context is a LinePC, by their handles: references that PETSc does not count, or they would keep the PCs.
_users: dict[int, PETSc.PC] = {}


@atexit.register
def _leave():
    """Part with the PCs that are still there when Python ends.

    petsc4py puts off what the last reference to an object does until PetscFinalize, which for global names is after the
    end of the interpreter, and calls Python to reset and to destroy a PC of type ``python`` then: a segmentation fault.
    """
    if not PETSc.Sys.isFinalized():
        for pc in list(_users.values()):
            pc.setType(PETSc.PC.Type.NONE)


class LinePC:
    """A preconditioner of PETSc's type ``python``: an exact solve along every line of the rank's own rows, or sweeps.

    Parameters
    ----------
    lines : str, or sequence of sequences of int
        "auto", or the name of a file, as in the options above; or the block rows along each line, counted from the
        first one of the rank, every one of them on exactly one line. As `compactla.LinePreconditioner` does, every rank
        warns of chords among its own.
    **options
        `block_size`, `device` and the others of the options above. What PETSc's database holds comes before it.

    Attributes
    ----------
    P : compactla.LinePreconditioner or compactla.LineRelaxation
        What is applied on this rank: the second where an option of sweeps is given.

    Raises
    ------
    TypeError, ValueError
        As from `compactla.find_lines` and what is applied, when the PC is set up. They name an option of PETSc's
        database as it is there, with its prefix.

    Examples
    --------
    The default, a PC of a KSP (not run here, as it needs petsc4py)::

        ksp.setOperators(A)
        ksp.pc.setType("python")
        ksp.pc.setPythonContext(LinePC(block_size=5))
        ksp.setFromOptions()
        ksp.solve(b, x)
    """

    def __init__(self, lines: Any = "auto", **options: Any) -> None:
        unknown = set(options) - set(OPTIONS)
        if unknown:
            raise TypeError(f"{min(unknown)} is no option, must be one of {', '.join(OPTIONS)}")
        self.options = {"lines": lines, **options}
        self._read: dict = {}  # of the options, in PETSc's database
        self.P: Any = None
        self._matrix: Any = None
        self._place: Any = None

    def create(self, pc: Any) -> None:
        _users[pc.handle] = pc
        pc.decRef()

    def destroy(self, pc: Any) -> None:
        _users.pop(pc.handle).incRef()

    def reset(self, pc: Any) -> None:
        self.P = self._matrix = None

    def setFromOptions(self, pc: Any) -> None:
        read = _read_options(pc.getOptionsPrefix() or "")
        if read != self._read:
            self.P = None  # which was made with others
        self._read = read
        self.options |= read

    def setUp(self, pc: Any) -> None:
        _, matrix = pc.getOperators()
        M = own_block(matrix)
        b = self.options.get("block_size")
        place = matrix.getBlockSize() if b is None else b, *matrix.getOwnershipRange()
        if self.P is not None and place == self._place and _same_pattern(M, self._matrix):
            self.P.update(M)
        else:
            with self._naming(pc.getOptionsPrefix() or ""):
                self.P = self._build(M, place[0], matrix, pc.comm.rank)
        self._matrix, self._place = M, place

    @contextmanager
    def _naming(self, prefix):
        """Where an option of PETSc's database is wrong it is named as it is there."""
        try:
            yield
        except (TypeError, ValueError) as error:
            if str(error).split(" ")[0] not in self._read:
                raise
            raise type(error)(f"-{prefix}pc_line_{error}") from error

    def _build(self, M, b, matrix, rank):
        """An operator for the rank's own block `M`, of blocks of `b`."""
        options = {name: value for name, value in self.options.items() if name != "block_size"}
        lines, device = options.pop("lines"), options.pop("device", "cpu")
        finding = {name: options.pop(name) for name in FINDING if name in options}
        if isinstance(lines, str) and lines == "auto":
            lines = find_lines(M, b, **finding)
        elif isinstance(lines, str):
            if not Path(lines).is_file():
                raise ValueError(f"lines is {lines!r}, must be 'auto' or the name of a file")
            check_matrix(M, b)
            first, last, n = (row // b for row in (*matrix.getOwnershipRange(), matrix.getSize()[0]))
            lines = own_parts(read_lines(lines), first, last, n)
        operator = LineRelaxation if SWEEPING.keys() & options.keys() else LinePreconditioner
        return operator(M, lines, b, queue=_queue(device, rank), **options)

    def _current(self, pc) -> BlockOperator:
        """The operator, set up where PETSc does not know that it must be: after `setFromOptions`."""
        if self.P is None:
            self.setUp(pc)
        return self.P

    def apply(self, pc: Any, x: Any, y: Any) -> None:
        self._current(pc).solve(x.getArray(readonly=True), out=y.getArray())

    def applyTranspose(self, pc: Any, x: Any, y: Any) -> None:
        """With factors of the transposed blocks, made when this is first called."""
        y.getArray()[:] = self._current(pc).T.matvec(x.getArray(readonly=True))

    def matApply(self, pc: Any, X: Any, Y: Any) -> None:
        """To several vectors at once, the columns of dense matrices."""
        Y.getDenseArray()[:] = self._current(pc).solve(X.getDenseArray(readonly=True))

    def view(self, pc: Any, viewer: Any) -> None:
        if viewer.getType() == PETSc.Viewer.Type.ASCII:
            viewer.printfASCII(f"  lines: {self._state(pc.comm)}\n")

    def _state(self, comm) -> str:
        """The parts of all ranks."""
        if _sum(comm, self.P is not None) < comm.size:
            return "not set up yet"
        info, lines = self.P.info, self.options["lines"]
        count, singular = (_sum(comm, n) for n in (len(info), np.count_nonzero(info)))
        origin = lines if isinstance(lines, str) else "given"
        device = "cpu" if self.P.queue is None else self.P.queue.device.name.strip()
        state = f"{origin}, {count} of blocks of {self.P.block_size}, {singular} singular; device: {device}"
        if not isinstance(self.P, LineRelaxation):
            return state
        return f"{state}; scheme: {self.P.scheme}, sweeps: {self.P.sweeps}, damping: {self.P.damping:g}"


def _read_options(prefix: str) -> dict:
    """The options that PETSc's database has behind this prefix."""
    given, read = PETSc.Options(prefix), {}
    for name, get in OPTIONS.items():
        option = f"pc_line_{name}"
        if not given.hasName(option):
            continue
        text = given.getString(option)
        try:
            read[name] = getattr(given, get)(option)
        except (PETSc.Error, KeyError) as error:
            raise ValueError(f"-{prefix}{option} is {text!r}, must be {VALUES[get]}") from error
        if read[name] == "":
            raise ValueError(f"-{prefix}{option} is '', must be {VALUES[get]}")
    return read


def own_block(matrix) -> csr_array:
    """The rank's diagonal block of a matrix of PETSc."""
    block = matrix.getDiagonalBlock()
    if block.getType() in ("seqaij", "seqbaij"):
        indptr, indices, data = block.getValuesCSR()
    else:
        copy = block.convert("seqaij", PETSc.Mat())
        indptr, indices, data = copy.getValuesCSR()
        copy.destroy()  # for PETSc would keep it to the end
    return csr_array((data, indices, indptr), shape=block.getSize())


def own_parts(lines, first: int, last: int, nrow: int) -> list[np.ndarray]:
    """The parts of lines of `nrow` block rows that are among `first` to `last` - 1, which count from 0 there."""
    flat, length = flatten(lines)
    line = np.repeat(np.arange(len(length)), length)
    check_cover(flat, line, nrow)
    mine = np.flatnonzero((flat >= first) & (flat < last))
    cuts = 1 + np.flatnonzero((np.diff(mine) > 1) | (np.diff(line[mine]) > 0))
    ends = [0, *cuts.tolist(), len(mine)]
    return [flat[mine[start:stop]] - first for start, stop in pairwise(ends) if stop > start]


def _same_pattern(M, first) -> bool:
    if M.shape != first.shape or M.nnz != first.nnz:
        return False
    return np.array_equal(M.indptr, first.indptr) and np.array_equal(M.indices, first.indices)


@cache
def _queue(device: str, rank: int):
    return queue_on(device, "device", rank)


def _sum(comm, number) -> int:
    """The sum over all ranks."""
    vector = PETSc.Vec().createWithArray(np.array([number], PETSc.ScalarType), size=(1, None), comm=comm)
    total = round(vector.sum().real)
    vector.destroy()
    return total
