"""The solvers: for one large system, see `compactla.krylov.large`, or for a batch, of which all iterations of V systems
are one call of a kernel.
"""

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

from compactla.arithmetic import copied
from compactla.backends import backend
from compactla.checks import as_array, check_dtype, check_launch, check_size, is_device_array, on_host
from compactla.dtypes import REAL
from compactla.foreign import accepts_foreign
from compactla.krylov import plain
from compactla.krylov.preconditioners import Identity, Preconditioner, operator_of
from compactla.krylov.report import Report
from compactla.krylov_methods import METHODS, VECTORS
from compactla.layout import Pack, packed
from compactla.locks import reading
from compactla.sparse.columns import after, as_given, columns, contiguous
from compactla.sparse.csr import BatchCSR
from compactla.types import Array, Events

ORTHO = {"mgs": 0, "cgs": 1, "cgs2": 2}


@accepts_foreign
def cg(
    A: Array, b: Array, x0: Array = None, rtol: float = 1e-8, atol: float = 0.0, maxiter: int | None = None,
    M: Any = None, history: bool = False, *, callback: Callable[[float], object] | None = None,
    threads: int | None = None, wait_for: Events = None,
) -> tuple[Array, Report]:  # fmt: skip
    """Solve A x = b, one large system or each system of a batch, by conjugate gradients.

    Parameters
    ----------
    A : scipy.sparse matrix, SparseMatrix, LinearOperator, (n, n) array, BatchCSR, Pack or function
        The matrix, which is Hermitian and positive definite. A BatchCSR or a pack is a batch. A function makes of a
        vector (n,) the product; or of a pack of n x 1 vectors those of a batch, if `b` is not of shape (n,).
    b : (n,) or (n, 1) array_like or pyopencl.array.Array; for a batch (nm, n) such array, or Pack
        The right-hand side. One on a device is solved for there, by an `A` and `M` that live there: a sparse matrix is
        copied, operators and functions are given Arrays. A pack has n x 1 matrices. For a batch on a device, arrays of
        NumPy are copied there, and solutions back; with functions, NumPy does the rest of the work.
    x0 : like `b`, optional
        Initial guess; default: zero. It is not changed.
    rtol, atol : float
        The goal: ``||b - A x|| <= max(rtol ||b||, atol)``.
    maxiter : int, optional
        Maximum number of steps; default: 10 n.
    M : optional
        The preconditioner, approximately the inverse of `A`: a `LinePreconditioner`, a `LineRelaxation`, or any
        kind of `A`; for a batch one of this module, as `Jacobi`, or a function.
    history : bool
        Whether the report has the norms of residuals after all steps.
    callback : function, optional
        Called after every step with the norm of the residual, as the method knows it; not for a batch.
    threads : int, optional
        Maximum number of CPU threads, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        Events to wait for before starting (devices only), as for `compactla.gemm`.

    Returns
    -------
    x : ndarray, pyopencl.array.Array or Pack
        The solution, of the kind and shape of `b`.
    report : Report
        Iterations, convergence, true residuals, and their history.

    Raises
    ------
    TypeError, ValueError
        If an argument is not of this kind.

    See Also
    --------
    compactla.krylov.gmres, compactla.krylov.bicgstab, compactla.LinePreconditioner

    Notes
    -----
    Where the method breaks down, or has reached the goal but for the true residual, it restarts from its current
    solution, as long as that is better than before. Each system of a batch is solved as if it were alone: other
    systems, with or without a solution, change no bit of it, and it is left alone when it has converged.

    Norms and inner products neither overflow nor underflow: where b, or what `A` makes, or what `M` makes in `cg`, is
    far from one, it is multiplied by powers of two, which change no digit. So functions have to be linear. An `x0` so
    large that `b` is lost in what is rounded of ``b - A x0`` counts as zero. What is not finite has not converged.

    Results for one large system do not depend on the number of threads.

    References
    ----------
    .. [1] Hestenes and Stiefel, "Methods of conjugate gradients for solving linear systems", J. Res. NBS 49 (1952).

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> A = cla.pack(np.full((2, 3, 3), 1.0) + 4 * np.eye(3))
    >>> x, report = cla.krylov.cg(A, np.ones((2, 3)), M=cla.krylov.Jacobi(A))
    >>> report.iterations
    array([1, 1])
    """
    return solve("cg", A, b, x0, rtol, atol, maxiter, M, history, callback, threads, wait_for)


@accepts_foreign
def bicgstab(
    A: Array, b: Array, x0: Array = None, rtol: float = 1e-8, atol: float = 0.0, maxiter: int | None = None,
    M: Any = None, history: bool = False, *, callback: Callable[[float], object] | None = None,
    threads: int | None = None, wait_for: Events = None,
) -> tuple[Array, Report]:  # fmt: skip
    """Solve A x = b, one large system or each system of a batch, by BiCGSTAB, preconditioned from the right.

    Parameters, results and errors are those of `cg`; A may be any regular matrix. A step has two products with `A` and
    `M`; the last one may be half a step.

    See Also
    --------
    compactla.krylov.gmres, compactla.krylov.cg

    References
    ----------
    .. [1] van der Vorst, "Bi-CGSTAB: a fast and smoothly converging variant of Bi-CG", SIAM J. Sci. Stat. Comput. 13
       (1992).

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> A = cla.pack(np.full((2, 3, 3), 1.0) + 4 * np.eye(3))
    >>> x, report = cla.krylov.bicgstab(A, np.ones((2, 3)))
    >>> bool(report.converged.all())
    True
    """
    return solve("bicgstab", A, b, x0, rtol, atol, maxiter, M, history, callback, threads, wait_for)


@accepts_foreign
def gmres(
    A: Array, b: Array, x0: Array = None, rtol: float = 1e-8, atol: float = 0.0, maxiter: int | None = None,
    M: Any = None, history: bool = False, restart: int = 30, ortho: str = "mgs", side: str = "R", *,
    callback: Callable[[float], object] | None = None, threads: int | None = None, wait_for: Events = None,
) -> tuple[Array, Report]:  # fmt: skip
    """Solve A x = b, one large system or each system of a batch, by GMRES.

    Parameters, results and errors are those of `cg`; A may be any regular matrix.

    Parameters
    ----------
    restart : int
        Number of steps after which the method restarts.
    ortho : {"mgs", "cgs", "cgs2"}
        How the basis is made orthogonal: by the modified Gram-Schmidt process, the classical one, or that twice. For a
        large system each of them reads the basis twice in a step, or, for the last, four times: the
        coefficients of the modified process are the solution of a triangular system of products [2]_. On the CPU, with
        a sparse matrix for A and one of our preconditioners or none for M, up to four steps are taken at once, and the
        basis is read twice for all of them, by the classical process, and twice more where that is not enough [3]_.
        So up to three products with A and M may be made that turn out not to be needed.
    side : {"R", "L"}
        Whether M stands to the right of A, or to the left: the norm of ``b - A x`` is what is minimized, or that of
        ``M (b - A x)``. The goal is for the true residual in either case. From the left it is known at the start and at
        each restart only, and in steps between these, and in `history`, taken to fall as the other does; where that was
        too optimistic the method restarts.

    See Also
    --------
    compactla.krylov.bicgstab, compactla.krylov.cg, compactla.LinePreconditioner, compactla.LineRelaxation

    References
    ----------
    .. [1] Saad and Schultz, "GMRES: a generalized minimal residual algorithm for solving nonsymmetric linear systems",
       SIAM J. Sci. Stat. Comput. 7 (1986).
    .. [2] Swirydowicz et al., "Low synchronization Gram-Schmidt and generalized minimal residual algorithms", Numerical
       Linear Algebra with Applications 28 (2021).
    .. [3] Hoemmen, "Communication-avoiding Krylov subspace methods", PhD thesis, UC Berkeley (2010).

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> import compactla as cla
    >>> T = sp.diags_array([-1.0, 4.0, -1.0], offsets=[-1, 0, 1], shape=(6, 6))
    >>> M = sp.kron(T, np.eye(2)).tobsr(blocksize=(2, 2))
    >>> P = cla.LinePreconditioner(M, lines=[[0, 1, 2], [3, 4, 5]])
    >>> x, report = cla.krylov.gmres(M, np.ones(12), M=P)
    >>> report.converged, report.iterations
    (True, 2)
    """
    if check_size(restart, "restart") < 1:
        raise ValueError(f"restart is {restart}, must be positive")
    if not isinstance(ortho, str) or ortho.lower() not in ORTHO:
        raise ValueError(f"ortho is {ortho!r}, must be one of 'mgs', 'cgs', 'cgs2'")
    if not isinstance(side, str) or side.upper() not in ("R", "L"):
        raise ValueError(f"side is {side!r}, must be one of 'R', 'L'")
    how = int(restart), ORTHO[ortho.lower()], side.upper() == "L"
    return solve("gmres", A, b, x0, rtol, atol, maxiter, M, history, callback, threads, wait_for, *how)


def is_large(A, b):
    """Whether a matrix is one for a large system: functions are for vectors like b."""
    if isinstance(A, BatchCSR | Pack):
        return False
    return any(hasattr(A, name) for name in ("shape", "__matmul__")) or (
        callable(A) and not isinstance(b, Pack) and np.ndim(b) == 1
    )


class Batch:
    """Sizes, type and device of a batch whose matrices are a function, from the right-hand sides and M."""

    def __init__(self, b, M):
        b = b if isinstance(b, Pack) or is_device_array(b) else as_array(b, "b")
        self.nm, self.dtype = (b.nm if isinstance(b, Pack) else b.shape[0]), check_dtype(b.dtype, "b")
        self.queue = getattr(b, "queue", None)
        like = next((x for x in (b, M) if isinstance(x, Pack | Preconditioner)), None)
        self.vlen = backend(self.queue).default_vlen(self.dtype, self.queue) if like is None else like.vlen
        self.n = b.m if isinstance(b, Pack) else b.shape[1] if b.ndim > 1 else 0


def solve(
    method, A, b, x0, rtol, atol, maxiter, M, history, callback, threads, wait_for, restart=1, ortho=0, left=False
):
    for name, x in (("rtol", rtol), ("atol", atol)):
        if not isinstance(x, Real) or isinstance(x, bool) or not x >= 0:
            raise ValueError(f"{name} is {x!r}, must be a number that is not negative")
    if callback is not None and not callable(callback):
        raise TypeError(f"callback is a {type(callback).__name__}, must be a function")
    if is_large(A, b):
        from compactla.krylov import large, system

        one = system.System(A, b, x0, (rtol, atol, maxiter), M, callback, threads, wait_for)
        return reading(one.locks, large.solve, method, one, history, restart, ortho, left)
    if callback is not None:
        raise ValueError("callback is given for a batch, must be None")
    given = isinstance(A, BatchCSR | Pack)
    if not given and not callable(A):
        raise TypeError(f"A is a {type(A).__name__}, must be a matrix, an operator, a BatchCSR, a Pack or a function")
    # the batch that decides about sizes, type and device: A, or what a function's packs have
    operator = operator_of(A) if given else None
    batch = A if given else Batch(b, M)
    launch = check_launch(threads, wait_for, batch.queue)
    n = operator.pattern.n if given else batch.n
    check_preconditioner(M, batch, n)
    after(launch, batch.queue)
    B, ndim = columns(b, "b", batch, n)
    if B.n != 1:
        raise ValueError(f"b has {B.n} columns for each matrix, must have one")
    # the guess
    X = B.beside(n, 1)
    X.data.fill(0)
    if x0 is not None:
        start, _ = columns(x0, "x0", batch, n)
        if start.n != 1:
            raise ValueError(f"x0 has {start.n} columns for each matrix, must have one")
        copied(start, X, unit=0)
    # numbers that kernels take, in their order
    maxiter = 10 * n if maxiter is None else check_size(maxiter, "maxiter")
    restart = max(min(restart, n, maxiter), 1)
    numbers = bool(x0 is not None), maxiter, float(rtol), float(atol), restart, ortho
    kind = np.finfo(batch.dtype)
    options = float(kind.eps), int(kind.maxexp), *([True] if left else [])
    steps = (maxiter + 1) * bool(history)
    # one kernel for the whole solve, or NumPy where functions are called
    if given and (M is None or isinstance(M, Preconditioner)):
        M = Identity(A) if M is None else M
        locks = [matrices._lock for matrices in (A, M.A) if isinstance(matrices, BatchCSR)]
        found, past = reading(locks, compiled, method, options, A, M, B, X, steps, numbers, launch)
    else:
        found, past = interpreted(method, options, A, M, B, X, steps, numbers)
    count, residual, converged, unit = found
    iterations = count.astype(np.int64)
    # norms in the units of b; the true residual after the last step of each system
    if past is not None:
        past = past[:, : iterations.max(initial=0) + 1]
        with np.errstate(over="ignore", invalid="ignore"):
            past = np.where(np.arange(past.shape[1]) <= iterations[:, None], past * unit[:, None], residual[:, None])
    return as_given(X, b, ndim), Report(iterations, converged > 0, residual, past)


def check_preconditioner(M, batch, n):
    """Refuse what is not one of these matrices."""
    if isinstance(M, Preconditioner):
        if (M.queue and M.queue.context) != (batch.queue and batch.queue.context):
            raise TypeError("M lives on another device, must live where A does")
        if (M.nm, M.n, M.dtype, M.vlen) != (batch.nm, n, batch.dtype, batch.vlen):
            have = f"{M.nm} matrices {M.n} x {M.n}, {M.dtype}, vlen={M.vlen}"
            raise ValueError(f"M is of {have}, must be of {batch.nm}, {n} x {n}, {batch.dtype}, vlen={batch.vlen}")
    elif M is not None and not callable(M):
        raise TypeError(f"M is a {type(M).__name__}, must be a preconditioner or a function")


def compiled(method, options, A, M, B, X, steps, numbers, launch):
    """Solve by a kernel: what methods put into `out`, and the history."""
    npack, V, queue, real = B.view.npack, B.vlen, B.queue, REAL[B.dtype.char]
    arrays, operators = backend(queue), (operator_of(A), M.within(launch))
    out, history = (arrays.empty((npack, rows, V), real, queue) for rows in (4, steps))
    backend(queue, "sparse").solve(method, options, *operators, contiguous(B), X, out, history, *numbers, launch)
    found = arrays.download(out).swapaxes(0, 1).reshape(4, -1)[:, : B.nm]
    return found, arrays.download(history).swapaxes(1, 2).reshape(-1, steps)[: B.nm] if steps else None


def interpreted(method, options, A, M, B, X, steps, numbers):
    """Solve by NumPy, calling the user's functions."""
    apply, precondition = (
        plain.applied(f) if isinstance(f, BatchCSR | Pack | Preconditioner) else plain.called(f, name, B)
        for f, name in ((A, "A"), (M if M is not None else lambda x: x, "M"))
    )  # fmt: skip
    b, x = (on_host(V.unpack())[:, :, 0] for V in (B, X))
    *_, restart, _ = numbers
    W = np.empty((VECTORS.get(method, restart + 2), *b.shape), b.dtype)
    real = REAL[b.dtype.char]
    out, history = np.empty((4, 1, len(b)), real), np.zeros((len(b), steps), real)
    with np.errstate(all="ignore"):
        iterate = METHODS[method](plain.words(apply, precondition), *options)
        iterate(None, None, b, x, W, {}, history, out, *numbers)
    packed(x[:, :, None], None, None, unit=0, out=X)
    return out[:, 0], history if steps else None
