"""A large sparse system and the vectors of a Krylov method that solves it, on the CPU or a device."""

import math
import threading
from collections.abc import Callable
from functools import partial
from operator import matmul
from typing import Any

import numpy as np
import scipy.sparse

from compactla.backends import backend, device_module, device_name
from compactla.calls.launch import NOW, Launch
from compactla.checks import as_array, check_dtype, check_launch, check_size, is_device_array, stays
from compactla.cpu.arnoldi_steps import SOME
from compactla.cpu.kernels.norms import RANGE
from compactla.dtypes import REAL
from compactla.foreign import called_back
from compactla.krylov.report import Report
from compactla.lines.block_operator import BlockOperator
from compactla.lines.extraction import check_pattern
from compactla.lines.relaxation import BlockRows
from compactla.pickling import Copied
from compactla.sparse.columns import after
from compactla.types import Queue

KEPT = 1 << 26  # bytes of vectors, at most, that a thread keeps for the next system like the last one
MODERATE = 7  # what is left alone has exponents up to this part of the largest ones of its type

kept = threading.local()


class SparseMatrix(Copied):
    """A sparse matrix where the work is done, for products in threads or on a device.

    Parameters
    ----------
    A : scipy.sparse matrix or array, (n, n)
        Blocks of BSR are used if they are square; every other format becomes CSR.
    queue : pyopencl.CommandQueue, optional
        The device; default: the CPU.
    dtype : dtype, optional
        float32, float64, complex64 or complex128; default: that of `A`.

    Attributes
    ----------
    shape, dtype, queue
        Shape, type and device.
    data : ndarray or pyopencl.array.Array
        (blocks, b, b): the values, which may be changed or replaced.

    See Also
    --------
    compactla.krylov.gmres, compactla.LinePreconditioner

    Examples
    --------
    >>> import compactla as cla, numpy as np, scipy.sparse as sp
    >>> A = cla.krylov.SparseMatrix(4 * sp.eye_array(6))
    >>> x, report = cla.krylov.gmres(A, np.ones(6))
    >>> x
    array([0.25, 0.25, 0.25, 0.25, 0.25, 0.25])
    """

    def __init__(self, A: Any, queue: Queue = None, dtype: Any = None) -> None:
        run = backend(queue)
        if not (A.format == "bsr" and A.blocksize[0] == A.blocksize[1]):
            A = A.tocsr()
        check_pattern(A)
        self.dtype = check_dtype(A.dtype if dtype is None else dtype, "A")
        self.shape, self.queue = A.shape, queue
        self.b = A.blocksize[0] if A.format == "bsr" else 1
        stored = A.indptr[-1]
        data = np.ascontiguousarray(A.data[:stored], self.dtype).reshape(-1, self.b, self.b)
        self.data = run.upload(data, queue)
        indices = np.ascontiguousarray(A.indices[:stored], np.int32)
        self.indptr, self.indices = (run.upload(a, queue) for a in (A.indptr.astype(np.int64), indices))

    def __repr__(self) -> str:
        m, n = self.shape
        sizes = f"{m} x {n}, {len(self.data)} blocks {self.b} x {self.b}"
        return f"SparseMatrix({sizes}, {self.dtype}, device={device_name(self.queue)})"

    def multiply(self, launch: Launch = NOW) -> Callable[..., None]:
        """A function of x and y, y <- A x, for the values there are now; see `blocks`."""
        rows = BlockRows(self.indptr, self.indices, self.data, None)
        product = backend(self.queue, "sweeps").product
        return lambda x, y: product(rows, x, y, launch)


class System:
    """A linear system that is being solved: vectors are rows of one array, by their numbers.

    The residual is row 0 whenever `goes_on` is asked. `limits` are rtol, atol and maxiter.

    Whatever b and A are, and M in cg, numbers are so near to one that no square overflows or underflows: what is not is
    divided by powers of two, which change no digit. b and residuals, what A makes, and what M makes have `exponents` of
    these;
    that of x is the difference of the first two.
    """

    def __init__(self, A, b, x0, limits, M, callback, threads, wait_for=None):
        on_device = is_device_array(b)
        self.queue = b.queue if on_device else None
        self.launch = check_launch(threads, wait_for, self.queue)
        self.callback = callback and called_back(callback, "callback")
        after(self.launch, self.queue)
        # vectors: of one shape, in one place
        b = b if on_device else as_array(b, "b")
        if b.shape not in ((b.size,), (b.size, 1)):
            raise ValueError(f"b has shape {b.shape}, must be (n,) or (n, 1)")
        self.n = b.size
        if x0 is not None:
            x0 = x0 if is_device_array(x0) else as_array(x0, "x0")
            if is_device_array(x0) != on_device or x0.shape != b.shape:
                raise ValueError(f"x0 is a {type(x0).__name__} {x0.shape}, must be of the kind and shape of b")
        # operators: square, of one system, and M where it can be applied
        for name, operator in (("A", A), ("M", M)):
            if hasattr(operator, "nm"):
                raise TypeError(f"{name} is a {type(operator).__name__}, must be of one system as b is")
            if getattr(operator, "shape", (self.n, self.n)) != (self.n, self.n):
                raise ValueError(f"{name} has shape {operator.shape}, must be {(self.n, self.n)} for b")
        if isinstance(M, BlockOperator) and on_device and M.home is None:
            raise TypeError("M lives on the CPU, must live on the device of b")
        # one type for all: that of NumPy's arithmetic on A, b, x0 and M
        types = [a.dtype for a in (A, b, x0, M) if getattr(a, "dtype", None) is not None]
        self.dtype = check_dtype(np.result_type(np.float32, *types), "the dtype of A, b, x0 and M together")
        self.kind = np.finfo(self.dtype)
        self.eps = float(self.kind.eps)
        # how A and M are applied: matrices and lines by our kernels, all others as they are
        if scipy.sparse.issparse(A):
            A = SparseMatrix(A, self.queue, self.dtype if A.dtype.kind == "c" else REAL[self.dtype.char])
        if isinstance(A, SparseMatrix) and A.dtype not in (self.dtype, REAL[self.dtype.char]):
            raise TypeError(f"A: dtype is {A.dtype}, must be {self.dtype}, that of b")
        self.locks = [operator._lock for operator in (A, M) if isinstance(operator, BlockOperator)]
        self.A = A if isinstance(A, SparseMatrix) else multiplication(A, "A")
        its_own = isinstance(M, BlockOperator) and (M.home is None) == (self.queue is None)
        self.solves_blocks = its_own and M.dtype in (self.dtype, REAL[self.dtype.char])
        self.M = M if M is None or self.solves_blocks else multiplication(M, "M")
        self.given = b, x0
        *self.tolerances, maxiter = limits
        self.most = 10 * self.n if maxiter is None else check_size(maxiter, "maxiter")
        self.exponents, self.is_near = {"b": 0, "A": 0, "M": 0}, False
        its_own = self.queue is None and isinstance(self.A, SparseMatrix) and (M is None or self.solves_blocks)
        self.some = SOME if its_own else 1  # steps of GMRES at once

    def place(self, count):
        """Make room for so many vectors, and put the system beside them."""
        self.rows = self.room(count + 4)
        self.dots, self.combine = self.first_dots, self.rows.combine
        if isinstance(self.A, SparseMatrix):
            self.blocks, self.multiply = self.in_blocks(self.A.b, self.A.dtype), self.A.multiply(self.launch)
        if self.solves_blocks:
            self.lines = self.in_blocks(self.M.unit, self.M.dtype)
            self.solve = self.M.solver(self.launch.threads if self.M.queue is None else None)
        self.rhs, *self.loose = range(count, count + 4)
        self.x = self.loose[0]
        (b, x0), (rtol, atol) = self.given, self.tolerances
        self.put(b, self.rhs)
        self.norm, self.exponents["b"] = self.near_one(self.rhs)
        self.goal = max(rtol * self.norm, scaled(atol, -self.exponents["b"]))
        self.is_stuck = False
        if x0 is None or not self.begins_with(x0):
            self.combine((self.x, 0, range(0), ()), (0, 0, span(self.rhs), [1]), measured=False)
        self.made = None, 0
        self.history = [self.norm]

    def room(self, count):
        """Room for `count` vectors: on the CPU that of the previous system, if it fits."""
        rows = None if self.queue is not None else vars(kept).pop("rows", None)
        if rows is None or rows.n != self.n or rows.dtype != self.dtype or len(rows.vectors) < count:
            return backend(self.queue, "krylov").Rows(count, self.n, self.dtype, self.queue, self.launch)
        rows.begin(self.launch)
        return rows

    def in_blocks(self, b, dtype):
        """The vectors as (block rows, b, right-hand sides); complex ones for a real matrix are two."""
        blocks = self.rows.blocks
        if (b, dtype) not in blocks:
            shape = self.n // b, b, self.dtype.itemsize // dtype.itemsize
            blocks[b, dtype] = [x.view(dtype).reshape(shape) for x in self.rows.vectors]
        return blocks[b, dtype]

    def put(self, a, row):
        """Row <- a vector that was given."""
        if self.queue is None:
            self.rows[row][:] = a.reshape(self.n)
        else:
            self.copy(a, row)

    def begins_with(self, x0) -> bool:
        """x <- x0, but where b is zero, or lost in what is rounded of b - A x0, and x0 is finite."""
        self.put(x0, self.x)
        self.shift(self.x, -self.exponents["b"])
        norm = self.residual(self.x)
        if self.norm == 0 or not (norm <= self.goal or self.eps * norm <= self.norm):
            row, _ = self.spare
            self.put(x0, row)
            if self.near_one(row)[0] < math.inf:
                return False
        self.norm = norm
        return True

    def near_one(self, row, unit=1.0):
        """Divide a row by the power of two that its norm is near to, in this unit, unless that is moderate.

        Returns the norm then, and the exponent, which is 0 too where the norm is zero or not finite.
        """
        shift = 0
        with np.errstate(over="ignore", invalid="ignore"):
            square, _ = self.combine((row, 1, range(0), ()))
            limit = RANGE[self.kind.bits]
            if not 2.0**-limit <= square <= 2.0**limit:  # as for `compactla.nrm2`
                shift = limit if square > 1 else -limit
                self.shift(row, -shift)
                square, _ = self.combine((row, 1, range(0), ()))
        norm = math.sqrt(square)
        exponent = shift + math.frexp(norm / unit)[1] if 0 < norm < math.inf else 0
        if abs(exponent) <= self.kind.maxexp // MODERATE:
            exponent = 0
        self.shift(row, shift - exponent)
        return math.ldexp(norm, shift - exponent), exponent

    def shift(self, row, exponent):
        """Row <- ``2 ** exponent`` times it."""
        most = self.kind.maxexp - 2
        while exponent:
            step = max(min(exponent, most), -most)
            self.combine((row, 2.0**step, range(0), ()), measured=False)
            exponent -= step

    @property
    def spare(self):
        return [row for row in self.loose if row != self.x]

    def product(self, row, into):
        """Row `into` <- A times a row."""
        if isinstance(self.A, SparseMatrix):
            self.multiply(self.blocks[row], self.blocks[into])
        else:
            self.keep(self.A(self.rows[row]), into, "A")
        if not self.is_near:
            self.is_made(into, "A")

    def precondition(self, row, into):
        """M times a row: the number of the row that has it."""
        if self.M is None:
            return row
        if self.solves_blocks:
            self.solve(self.lines[row], self.lines[into])
        else:
            self.keep(self.M(self.rows[row]), into, "M")
        if not self.is_near:
            self.is_made(into, "M")
        return into

    def is_made(self, row, name):
        """Divide what an operator has made by its power of two."""
        self.made = name, row
        if self.exponents[name]:
            self.shift(row, -self.exponents[name])

    def take_as_they_are(self):
        """Divide nothing more that A and M make by powers of two."""
        self.dots, self.is_near = self.rows.dots, True

    def first_dots(self, rows, others, scale=1.0):
        """`Rows.dots`, for the first products with what M and A have made, which tell how large the operator is.

        `others` end with what one of them has made of the residual.
        """
        name, row = self.made
        if name is None:
            return self.rows.dots(rows, others, scale)
        unit, limit = self.norm * scale, 2.0 ** (self.kind.maxexp // MODERATE)
        with np.errstate(over="ignore", invalid="ignore"):
            found = self.rows.dots(rows, others, scale)
            if not unit**2 / limit <= abs(found[-1, -1]) <= unit**2 * limit:
                _, self.exponents[name] = self.near_one(row, unit)
                found = self.rows.dots(rows, others)
        if name == "A":  # the last one
            self.dots, self.is_near = self.rows.dots, not (self.exponents["A"] or self.exponents["M"])
            for x in self.loose:
                self.shift(x, self.exponents["A"])
        return found

    def orthogonalize(self, vectors, j, scale, ortho):
        """Row j + 1 made orthogonal to those before, and a column of a `Hessenberg`: norms of what is left, and of r.

        The row, and row j, are multiplied by `scale` before.
        """
        if self.queue is None and self.dots == self.rows.dots:
            return self.rows.orthogonalize(vectors, j, scale, ortho, self.eps)
        before = range(j + 1)
        for _ in range(max(ortho, 1)):
            found = self.dots(before, range(j, j + 2), scale)
            square, _ = self.combine((j + 1, 1, before, vectors.subtracted(found, ortho == 0)))
            below, scale = math.sqrt(square), 1.0
        return below, vectors.rotate(below, self.eps)

    def at_once(self, most) -> int:
        """How many steps of GMRES are taken together: few if few are left until the goal, as far as is known."""
        some = min(self.some, most, self.most - len(self.history) + 1)
        if some <= 1 or self.dots == self.first_dots:  # the first product tells how large A is
            return 1
        before = self.history[-SOME - 1 :]
        first, last = before[0], before[-1]
        if 0 < self.goal < last < first:
            left = math.log(self.goal / last) / math.log(last / first) * (len(before) - 1)
            some = min(some, math.ceil(left))
        return max(some, 1)

    def orthogonalize_some(self, vectors, j, some, product, scale, ortho):
        """Rows j + 1 to j + some, each of which `product` makes of the one before; norms of r after each of the steps.

        There may be fewer steps, if the last rows are not worth it. Row j is multiplied by `scale` before.
        """
        if scale != 1:
            self.combine((j, scale, range(0), ()), measured=False)
        for k in range(some):
            product(j + k)
            self.rows.shift(vectors, k, j + k)
        norms = self.rows.orthogonalize_some(vectors, j, some, ortho, self.eps)
        if len(norms) < some and not vectors.exhausted:
            self.some = len(norms)
        return norms

    def keep(self, a, row, name):
        """Row <- the result of a user's product."""
        if self.queue is not None and not is_device_array(a):
            raise TypeError(f"{name} has made a {type(a).__name__}, must make an array like its argument")
        if a.size != self.n:
            raise ValueError(f"{name} has made {a.shape} of ({self.n},), must make a vector like it")
        if not np.can_cast(a.dtype, self.dtype, "same_kind"):
            raise TypeError(f"{name} has made {a.dtype} of {self.dtype}, must make the same: b may be complex")
        if self.queue is None:
            self.rows[row][:] = a.reshape(self.n)
        else:
            self.copy(a, row)

    def copy(self, a, row):
        """Row <- a vector on the device, of any type and strides."""
        if a.dtype != self.dtype or not a.flags.c_contiguous:
            a = device_module("linalg.arrays").spread(a, a.shape, a.strides, self.dtype)
        backend(self.queue, "lines").copy(a, self.rows[row], self.launch)

    def residual(self, row) -> float:
        """Row 0 <- b - A times a row; its norm."""
        self.product(row, 0)
        return math.sqrt(self.combine((0, -1, span(self.rhs), [1]))[0])

    def goes_on(self) -> bool:
        unfinished = self.goal < self.norm < math.inf
        return unfinished and not self.is_stuck and len(self.history) <= self.most

    def step(self, norm) -> bool:
        """Note the residual after a step; whether there may be another before x is formed."""
        self.history.append(norm)
        if self.callback is not None:
            self.callback(scaled(norm, self.exponents["b"]))
        return self.goal < norm < math.inf and len(self.history) <= self.most

    def one_by_one(self):
        """Take steps of GMRES one by one from now on, also if steps together have led to no smaller residual."""
        if self.is_stuck:
            self.residual(self.x)
        self.is_stuck, self.some = False, 1

    def advance(self, row) -> float:
        """Take a row for x, if its residual is the smaller one; otherwise there is no way on. Returns its norm."""
        norm = self.residual(row)
        self.is_stuck = not norm < self.norm
        if not self.is_stuck:
            self.x, self.norm = row, norm
        self.history[-1] = self.norm
        return norm

    def result(self, history):
        exponent = self.exponents["b"]
        self.shift(self.x, exponent - self.exponents["A"])
        x = self.rows[self.x].copy()
        if self.queue is None and self.rows.memory.nbytes <= KEPT:
            kept.rows = self.rows
        converged = bool(self.norm <= self.goal and self.norm < math.inf)
        norms = np.array([scaled(norm, exponent) for norm in self.history]) if history else None
        report = Report(len(self.history) - 1, converged, scaled(self.norm, exponent), norms)
        return x.reshape(self.given[0].shape), report


def multiplication(A, name):
    """The function that makes A v of v: A itself, or that of a matrix or an operator."""
    if hasattr(A, "__matmul__") or stays(A):
        return partial(called_back(matmul, name), A)
    if hasattr(A, "matvec"):
        return called_back(A.matvec, name)
    if callable(A):
        return called_back(A, name)
    raise TypeError(f"{name} is a {type(A).__name__}, must be a matrix, an operator or a function")


def span(first, second=None) -> range:
    """The range of one row, or of two."""
    return range(first, first + 1) if second is None else range(first, 2 * second - first, second - first)


def scaled(number, exponent) -> float:
    """A real number times ``2 ** exponent``."""
    try:
        return math.ldexp(number, exponent)
    except OverflowError:
        return math.inf
