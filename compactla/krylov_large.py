"""GMRES and BiCGSTAB for one large sparse system, with preconditioners along lines, on the CPU or a device."""

import math
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from compactla.checks import as_array, check_dtype, check_launch, check_size, is_device_array
from compactla.cpu.kernel import compiled_once
from compactla.lines.block_operator import BlockOperator
from compactla.lines.extraction import check_pattern
from compactla.lines.relaxation import BlockRows
from compactla.view import REAL, backend

ORTHO = ("mgs", "cgs", "cgs2")


class Report(NamedTuple):
    """How a system was solved.

    Attributes
    ----------
    iterations : int
        Steps that were made.
    converged : bool
        Whether `residual` is at most ``max(rtol * norm(b), atol)``.
    residual : float
        2-norm of b - A x, computed from x.
    history : (iterations + 1,) ndarray or None
        2-norms of the residual before the first step and after every step, if they were asked for: those of the
        method's recurrence, and the true one where x was formed.
    """

    iterations: int
    converged: bool
    residual: float
    history: np.ndarray | None


class SparseMatrix:
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
    data : ndarray or pyopencl.array.Array
        (blocks, b, b): the values, which may be changed, or replaced by others like them.
    """

    def __init__(self, A, queue=None, dtype=None):
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

    def product(self, x, y, launch=None):
        """y <- A x, arrays (n,); complex ones for a real matrix are two right-hand sides."""
        shape = self.shape[0] // self.b, self.b, x.dtype.itemsize // self.dtype.itemsize
        x, y = (a.view(self.dtype).reshape(shape) for a in (x, y))
        rows = BlockRows(self.indptr, self.indices, self.data, None)
        backend(self.queue, "sweeps").product(rows, x, y, launch)


def gmres(
    A, b, x0=None, rtol=1e-8, atol=0.0, maxiter=None, M=None, history=False, restart=30, ortho="mgs", *,
    callback=None, threads=None,
):  # fmt: skip
    """Solve a linear system by GMRES, restarted and preconditioned from the right.

    Parameters
    ----------
    A : scipy.sparse matrix, SparseMatrix, LinearOperator or array, (n, n)
        The matrix. For `b` on a device, a sparse matrix is copied there, a `SparseMatrix` is there already; anything
        else is asked for ``A @ v``, v an Array.
    b : (n,) or (n, 1) array_like or pyopencl.array.Array
        The right-hand side. On a device, `M` lives on the same.
    x0 : like `b`, optional
        What to begin with; default: zeros.
    rtol, atol : float, optional
        The goal: a residual b - A x whose 2-norm is not over ``max(rtol * norm(b), atol)``.
    maxiter : int, optional
        At most how many steps; default: 10 n.
    M : LinePreconditioner, LineRelaxation, LinearOperator, matrix or function, optional
        The preconditioner: approximately the inverse of `A`.
    history : bool, optional
        Whether the report has the norms of the residual after every step.
    restart : int, optional
        After how many steps the method begins anew from what it has.
    ortho : {"mgs", "cgs", "cgs2"}, optional
        How vectors are made orthogonal: modified or classical Gram-Schmidt, or the latter twice. Each of them reads the
        vectors before twice, or, for the last, four times.
    callback : function, optional
        Called after every step with the norm of the residual, as the recurrence has it.
    threads : int, optional
        At most how many threads work on the CPU.

    Returns
    -------
    x : ndarray or pyopencl.array.Array
        The solution, of the shape of `b`.
    report : Report
        Iterations, convergence, the true residual, and its history.

    Raises
    ------
    TypeError, ValueError
        If an argument is not one of the above.

    Notes
    -----
    A step costs little more than the product with `A` and `M`: the vectors before are read once for all products with
    them, and once to subtract them. Modified Gram-Schmidt takes no more, as what it subtracts is the solution of a
    triangular system of these products [2]_. The method stops short of the goal where a cycle makes no progress, as
    for many a singular matrix; `x` is the best that it had. A zero `b` has the solution zero.

    References
    ----------
    .. [1] Saad and Schultz, "GMRES", SIAM J. Sci. Stat. Comput. 7 (1986).
    .. [2] Swirydowicz et al., "Low synchronization Gram-Schmidt and generalized minimal residual algorithms", Numerical
       Linear Algebra with Applications 28 (2021).

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> import compactla as cla
    >>> from compactla.krylov_large import gmres
    >>> T = sp.diags_array([-1.0, 4.0, -1.0], offsets=[-1, 0, 1], shape=(6, 6))
    >>> M = sp.kron(T, np.eye(2)).tobsr(blocksize=(2, 2))
    >>> x, report = gmres(M, np.ones(12), M=cla.LinePreconditioner(M, lines=[[0, 1, 2], [3, 4, 5]]))
    >>> report.converged, report.iterations
    (True, 2)
    """
    if ortho not in ORTHO:
        raise ValueError(f"ortho is {ortho!r}, must be one of {', '.join(map(repr, ORTHO))}")
    if check_size(restart, "restart") < 1:
        raise ValueError(f"restart is {restart}, must be at least 1")
    system = System(A, b, x0, (rtol, atol, maxiter), M, callback, threads)
    m = max(min(restart, system.most, system.n), 1)
    system.place(m + 1)
    while system.goes_on():
        z, u = system.spare
        vectors = Hessenberg(m, system.norm, system.dtype)
        below = system.norm
        for j in range(m):
            system.product(system.precondition(j, z), j + 1)
            before, scale = range(j + 1), 1 / below  # of vector j and its product
            for _ in range(2 if ortho == "cgs2" else 1):
                found = system.dots(before, range(j, j + 2), scale)
                below = math.sqrt(system.combine(j + 1, 1, before, vectors.subtracted(found, ortho == "mgs"), True)[0])
                scale = 1.0
            estimate = vectors.rotate(below, system.eps)
            if not system.step(estimate) or vectors.exhausted:
                break
        y = vectors.solution()
        system.combine(u, 0, range(len(y)), y)
        x = system.precondition(u, z)
        system.combine(x, 1, span(system.x), [1])
        system.advance(x)
    return system.result(history)


class Hessenberg:
    """The small least-squares problem of GMRES, of which every step adds a column.

    Parameters
    ----------
    m : int
        At most how many columns.
    norm : float
        Of the residual that a cycle begins with.
    """

    def __init__(self, m, norm, dtype):
        wide = np.complex128 if dtype.kind == "c" else np.float64
        self.products = np.zeros((m, m), wide)  # below the diagonal, of the vectors with those before
        self.columns = np.zeros((m, m), wide)  # the transpose of R
        self.rotations, self.rhs = np.zeros((m, 2), wide), np.zeros(m + 1, wide)
        self.rhs[0] = norm
        self.j, self.exhausted = 0, False

    def subtracted(self, found, modified):
        """What times the vectors is to be added to a new one, by its products with them; adds to the column."""
        if modified:
            _modify(self.products, self.j, found)
        self.columns[self.j, : self.j + 1] += found[1]
        return -found[1]

    def rotate(self, below, eps) -> float:
        """Finish the column, with what is below the diagonal; returns the norm of the residual.

        A vector of which nothing is left but what is rounded is the last: there are no others to be had.
        """
        kept, residual = _rotate(self.columns, self.rotations, self.rhs, self.j, below, eps)
        self.exhausted = kept < 2
        self.j += kept > 0
        return residual

    def solution(self):
        R = self.columns[: self.j, : self.j].T
        return scipy.linalg.solve_triangular(R, self.rhs[: self.j], check_finite=False) if self.j else self.rhs[:0]


@compiled_once
def _modify(products, j, found):
    """The products of modified Gram-Schmidt, of those of classical: the vectors' own products are found with them."""
    for k in range(j):
        products[j, k] = np.conj(found[0, k])
    for k in range(1, j + 1):
        for i in range(k):
            found[1, k] -= products[k, i] * found[1, i]


@compiled_once
def _rotate(columns, rotations, rhs, j, below, eps):
    """Make column j triangular. Returns 2, or 1 if the vectors end here, or 0 if this column is zero; the residual."""
    h, size = columns[j], below
    for k in range(j + 1):
        size = np.hypot(size, abs(h[k]))
    size *= eps
    is_last = below <= size
    if is_last:
        below = 0.0
    for k in range(j):
        c, s = rotations[k, 0], rotations[k, 1]
        above = c * h[k] + s * h[k + 1]
        h[k + 1] = c * h[k + 1] - np.conj(s) * h[k]
        h[k] = above
    length = np.hypot(abs(h[j]), below)
    if is_last and abs(h[j]) <= size:
        return 0, abs(rhs[j])
    if h[j] == 0:
        c, s = h[j], h[j] + 1
    else:
        c, s = 0 * h[j] + abs(h[j]) / length, h[j] / abs(h[j]) * (below / length)
    h[j] = c * h[j] + s * below
    rotations[j, 0], rotations[j, 1] = c, s
    rhs[j + 1] = -np.conj(s) * rhs[j]
    rhs[j] = c * rhs[j]
    return (1 if is_last else 2), abs(rhs[j + 1])


def bicgstab(
    A, b, x0=None, rtol=1e-8, atol=0.0, maxiter=None, M=None, history=False, *, callback=None, threads=None
):
    """Solve a linear system by BiCGSTAB, preconditioned from the right.

    It takes less memory than `gmres`, and as much in every step, which has two products with `A` and `M`. The last one
    may be half a step.

    Parameters
    ----------
    A, b, x0, rtol, atol, maxiter, M, history, callback, threads
        As for `gmres`.

    Returns
    -------
    x, report
        As from `gmres`.

    Raises
    ------
    TypeError, ValueError
        As from `gmres`.

    Notes
    -----
    Where the method breaks down, or its recurrence has left the true residual, it begins anew from what it has, as long
    as that is better than before.

    References
    ----------
    .. [1] van der Vorst, "Bi-CGSTAB", SIAM J. Sci. Stat. Comput. 13 (1992).
    """
    system = System(A, b, x0, (rtol, atol, maxiter), M, callback, threads)
    r, v, t, p, y, z, shadow = range(7)
    system.place(7)
    while system.goes_on():
        x, _ = system.spare
        for row, start in ((shadow, r), (p, r), (x, system.x)):
            system.combine(row, 0, span(start), [1])
        rho = system.norm**2
        while True:
            moved = system.precondition(p, y)
            system.product(moved, v)
            sigma = system.dots(span(shadow), span(v))[0, 0]
            if sigma == 0 or not np.isfinite(sigma):
                break
            alpha = rho / sigma
            system.combine(x, 1, span(moved), [alpha])
            half = math.sqrt(system.combine(r, 1, span(v), [-alpha], True)[0])
            if half <= system.goal:
                system.step(half)
                break
            moved = system.precondition(r, z)
            system.product(moved, t)
            both, square = system.dots(span(r, t), span(t))[0]
            omega = np.conj(both) / square if square else 0.0
            system.combine(x, 1, span(moved), [omega])
            square, rho_next = system.combine(r, 1, span(t), [-omega], True, shadow)
            if not system.step(math.sqrt(square)) or omega == 0 or rho_next == 0:
                break
            beta = rho_next / rho * (alpha / omega)
            system.combine(p, beta, span(r, v), [1, -beta * omega])
            rho = rho_next
        system.advance(x)
    return system.result(history)


class System:
    """A linear system that is being solved: vectors are rows of one array, by their numbers.

    The residual is row 0 whenever `goes_on` is asked.
    """

    def __init__(self, A, b, x0, limits, M, callback, threads):
        on_device = is_device_array(b)
        self.queue = b.queue if on_device else None
        self.launch, self.callback = check_launch(threads, None, self.queue), callback
        b = b if on_device else as_array(b, "b")
        if b.shape not in ((b.size,), (b.size, 1)):
            raise ValueError(f"b has shape {b.shape}, must be (n,) or (n, 1)")
        self.n, self.shape = b.size, b.shape
        if x0 is not None:
            x0 = x0 if is_device_array(x0) else as_array(x0, "x0")
            if is_device_array(x0) != on_device or x0.shape != b.shape:
                raise ValueError(f"x0 is a {type(x0).__name__} {x0.shape}, must be of the kind and shape of b")
        if not (scipy.sparse.issparse(A) or isinstance(A, SparseMatrix) or on_device):
            A = aslinearoperator(A)
        if M is not None and not (isinstance(M, BlockOperator) or callable(M) or on_device):
            M = aslinearoperator(M)
        for name, operator in (("A", A), ("M", M)):
            if getattr(operator, "shape", (self.n, self.n)) != (self.n, self.n):
                raise ValueError(f"{name} has shape {operator.shape}, must be {(self.n, self.n)} for b")
        if isinstance(M, BlockOperator) and on_device and M.queue is None:
            raise TypeError("M lives on the CPU, must live on the device of b")
        types = [a.dtype for a in (A, b, x0, M) if getattr(a, "dtype", None) is not None]
        self.dtype = check_dtype(np.result_type(np.float32, *types), "the dtype of A, b, x0 and M together")
        self.eps = float(np.finfo(self.dtype).eps)
        if scipy.sparse.issparse(A):
            A = SparseMatrix(A, self.queue, self.dtype if A.dtype.kind == "c" else REAL[self.dtype.char])
        if isinstance(A, SparseMatrix) and A.dtype not in (self.dtype, REAL[self.dtype.char]):
            raise TypeError(f"A: dtype is {A.dtype}, must be {self.dtype}, that of b")
        self.A, self.M, self.b, self.x0 = A, M, b, x0
        rtol, atol, maxiter = limits
        self.most = 10 * self.n if maxiter is None else check_size(maxiter, "maxiter")
        for name, value in (("rtol", rtol), ("atol", atol)):
            if not value >= 0:
                raise ValueError(f"{name} is {value}, must not be negative")
        self.rtol, self.atol = rtol, atol
        self.exponent = 0 if on_device else exponent(b)

    def place(self, count):
        """Make room for so many vectors, and put the system beside them."""
        shape = count + 4, self.n
        self.W = backend(self.queue, "krylov").room(shape, self.dtype, self.queue)
        self.rows = [self.W[i] for i in range(count + 4)]
        self.rhs, *self.loose = range(count, count + 4)
        self.x = self.loose[0]
        self.put(self.b, self.rhs)
        if self.x0 is None:
            self.combine(self.x, 0)
        else:
            self.put(self.x0, self.x)
        size = math.sqrt(self.combine(self.rhs, 1, measured=True)[0])
        self.goal = max(self.rtol * size, math.ldexp(self.atol, -self.exponent))
        if size == 0:
            self.combine(self.x, 0)
        self.norm, self.is_stuck = self.residual(self.x), False
        self.history = [self.norm]

    def put(self, a, row):
        """Row <- a vector that was given, divided by a power of two such that norms are in range."""
        a = a.reshape(self.n)
        if self.queue is None:
            scaled(a, -self.exponent, self.rows[row])
        else:
            a = a.astype(self.dtype) if a.dtype != self.dtype else a
            backend(self.queue, "lines").copy(a, self.rows[row], self.launch)

    @property
    def spare(self):
        return [row for row in self.loose if row != self.x]

    def combine(self, row, scale, rows=range(0), factors=(), measured=False, against=None):
        """Row <- scale row + sum of factors times rows: the square of its norm, and `against`^H times it."""
        run = backend(self.queue, "krylov")
        return run.combine(self.W, row, scale, rows, factors, against, measured, self.launch)

    def dots(self, rows, others, scale=1.0):
        """The products of rows, conjugate, with one or two neighbouring others, scaled before: (others, rows)."""
        return backend(self.queue, "krylov").dots(self.W, rows, others, scale, self.launch)

    def product(self, row, into):
        """Row `into` <- A times a row."""
        if isinstance(self.A, SparseMatrix):
            self.A.product(self.rows[row], self.rows[into], self.launch)
        else:
            self.keep(self.A @ self.rows[row], into)

    def precondition(self, row, into):
        """M times a row: the number of the row that has it."""
        M, v = self.M, self.rows[row]
        if M is None:
            return row
        if isinstance(M, BlockOperator):
            M.solve(v, out=self.rows[into], **({"threads": self.launch} if self.queue is None else {}))
        else:
            self.keep(M(v) if callable(M) and not isinstance(M, LinearOperator) else M @ v, into)
        return into

    def keep(self, a, row):
        if self.queue is None:
            self.rows[row][:] = a
        else:
            backend(self.queue, "lines").copy(a, self.rows[row], self.launch)

    def residual(self, row) -> float:
        """Row 0 <- b - A times a row; its norm."""
        self.product(row, 0)
        return math.sqrt(self.combine(0, -1, span(self.rhs), [1], True)[0])

    def goes_on(self) -> bool:
        unfinished = self.goal < self.norm < math.inf
        return unfinished and not self.is_stuck and len(self.history) <= self.most

    def step(self, norm) -> bool:
        """Note the residual after a step; whether there may be another before x is formed."""
        self.history.append(norm)
        if self.callback is not None:
            self.callback(math.ldexp(norm, self.exponent))
        return self.goal < norm < math.inf and len(self.history) <= self.most

    def advance(self, row):
        """Take a row for x, if its residual is the smaller one; otherwise there is no way on."""
        norm = self.residual(row)
        self.is_stuck = not norm < self.norm
        if not self.is_stuck:
            self.x, self.norm = row, norm
        self.history[-1] = self.norm

    def result(self, history):
        x = self.rows[self.x]
        x = scaled(x, self.exponent, np.empty_like(x)) if self.queue is None else x.copy()
        norms = np.ldexp(self.history, self.exponent)
        converged = bool(self.norm <= self.goal)
        report = Report(len(norms) - 1, converged, float(norms[-1]), norms if history else None)
        return x.reshape(self.shape), report


def span(first, second=None) -> range:
    """One row, or two."""
    return range(first, first + 1) if second is None else range(first, second + 1, second - first)


def exponent(b) -> int:
    """Of the power of two that the largest number of a vector is near to; 0 where there is none."""
    largest = float(abs(b).max(initial=0))
    return math.frexp(largest)[1] if 0 < largest < math.inf else 0


def scaled(a, exponent, out):
    """out <- a times a power of two."""
    out[:] = a
    parts = out.view(REAL[out.dtype.char])
    np.ldexp(parts, exponent, out=parts)
    return out
