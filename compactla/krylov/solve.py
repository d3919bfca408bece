"""The solvers: arguments are checked, and all iterations of V systems are one call of a kernel."""

from dataclasses import dataclass
from numbers import Real

import numpy as np

from compactla.checks import as_array, check_dtype, check_launch, check_size, is_device_array
from compactla.krylov import plain
from compactla.krylov.methods import METHODS, VECTORS
from compactla.krylov.preconditioners import Identity, Preconditioner, operator_of
from compactla.layout import Pack, pack_padded
from compactla.sparse.csr import BatchCSR, as_given, columns, contiguous, copied
from compactla.view import REAL, backend


@dataclass(frozen=True)
class Report:
    """How the solves of a batch went.

    Attributes
    ----------
    iterations : (nm,) ndarray of int64
        Steps of each system: Arnoldi steps of `gmres`; a half step of `bicgstab` counts as one.
    converged : (nm,) ndarray of bool
        Whether the norm of the residual is at most ``max(rtol ||b||, atol)``.
    residual : (nm,) ndarray
        ||b - A x||, the 2-norm, computed from x.
    history : (nm, steps + 1) ndarray or None
        The norm after each step as the method knows it, from that of the first residual to `residual`, which is
        repeated; only where it was asked for. `steps` is the largest of `iterations`.
    """

    iterations: np.ndarray
    converged: np.ndarray
    residual: np.ndarray
    history: np.ndarray | None = None


def cg(A, b, x0=None, rtol=1e-8, atol=0.0, maxiter=None, M=None, history=False, *, threads=None, wait_for=None):
    """Solve A x = b for each system of a batch by conjugate gradients.

    Parameters
    ----------
    A : BatchCSR, Pack or function
        The matrices, which are symmetric or Hermitian, and positive definite, on the CPU or a device; or a function of
        a pack of n x 1 vectors, where `b` lives, that returns a pack of the products.
    b : (nm, n) array_like or pyopencl.array.Array, or Pack
        Right-hand sides; a pack has n x 1 matrices. Arrays of NumPy are copied to the device of A, and solutions back.
    x0 : like `b`, optional
        Where to start; default: zero. It is not changed.
    rtol, atol : float
        A system has converged when ``||b - A x|| <= max(rtol ||b||, atol)``. It is left alone then.
    maxiter : int, optional
        At most how many steps a system takes; default: 10 n.
    M : Preconditioner or function, optional
        Approximate inverses of the matrices, as from `Jacobi`, `BlockJacobi` and `ILU0`; or a function like A.
    history : bool
        Whether residuals of all steps are reported.
    threads : int, optional
        At most how many threads work, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        What a device waits for first, as for `compactla.gemm`.

    Returns
    -------
    x : ndarray, pyopencl.array.Array or Pack
        The solutions, of the kind of `b`.
    report : Report
        Iterations, residuals, and what has converged.

    Raises
    ------
    TypeError, ValueError
        If an argument is not of this kind.

    Notes
    -----
    Each system is solved as if it were alone: what others are, or whether they have a solution, changes no bit of it.
    A system whose iteration breaks down ends where it was. With functions, NumPy computes what is left to do, on
    the CPU.

    References
    ----------
    .. [1] Hestenes and Stiefel, "Methods of conjugate gradients for solving linear systems", 1952.
    """
    return solve("cg", A, b, x0, rtol, atol, maxiter, M, history, threads, wait_for)


def bicgstab(A, b, x0=None, rtol=1e-8, atol=0.0, maxiter=None, M=None, history=False, *, threads=None, wait_for=None):
    """Solve A x = b for each system of a batch by stabilized bi-conjugate gradients, preconditioned from the right.

    Parameters, results and errors are those of `cg`; A may be any regular matrices.

    References
    ----------
    .. [1] van der Vorst, "Bi-CGSTAB: a fast and smoothly converging variant of Bi-CG", 1992.
    """
    return solve("bicgstab", A, b, x0, rtol, atol, maxiter, M, history, threads, wait_for)


def gmres(
    A, b, x0=None, rtol=1e-8, atol=0.0, maxiter=None, M=None, history=False, *, restart=30, ortho="mgs", threads=None,
    wait_for=None,
):  # fmt: skip
    """Solve A x = b for each system of a batch by the generalized minimal residual, preconditioned from the right.

    Parameters, results and errors are those of `cg`; A may be any regular matrices.

    Parameters
    ----------
    restart : int
        Steps after which it starts anew from where it is.
    ortho : {"mgs", "cgs", "cgs2"}
        How the basis is made orthogonal: by the modified Gram-Schmidt process, the classical one, or that twice.

    References
    ----------
    .. [1] Saad and Schultz, "GMRES: a generalized minimal residual algorithm for solving nonsymmetric linear systems",
       1986.
    """
    if check_size(restart, "restart") < 1:
        raise ValueError(f"restart is {restart}, must be positive")
    ways = {"mgs": 0, "cgs": 1, "cgs2": 2}
    if not isinstance(ortho, str) or ortho.lower() not in ways:
        raise ValueError(f"ortho is {ortho!r}, must be one of 'mgs', 'cgs', 'cgs2'")
    return solve(
        "gmres", A, b, x0, rtol, atol, maxiter, M, history, threads, wait_for, int(restart), ways[ortho.lower()]
    )


class Batch:
    """What is known of a batch whose matrices are a function: as much as right-hand sides tell."""

    def __init__(self, b):
        b = b if isinstance(b, Pack) or is_device_array(b) else as_array(b, "b")
        self.nm, self.dtype = (b.nm if isinstance(b, Pack) else b.shape[0]), check_dtype(b.dtype, "b")
        self.queue = getattr(b, "queue", None)
        self.vlen = b.vlen if isinstance(b, Pack) else backend(self.queue).default_vlen(self.dtype, self.queue)
        self.n = b.m if isinstance(b, Pack) else b.shape[1] if b.ndim > 1 else 0


def solve(method, A, b, x0, rtol, atol, maxiter, M, history, threads, wait_for, restart=1, ortho=0):
    for name, x in (("rtol", rtol), ("atol", atol)):
        if not isinstance(x, Real) or isinstance(x, bool) or not x >= 0:
            raise ValueError(f"{name} is {x!r}, must be a number that is not negative")
    given = isinstance(A, BatchCSR | Pack)
    if not given and not callable(A):
        raise TypeError(f"A is a {type(A).__name__}, must be a BatchCSR, a Pack or a function")
    operator = operator_of(A) if given else None
    batch = A if given else Batch(b)
    launch = check_launch(threads, wait_for, batch.queue)
    n = operator.pattern.n if given else batch.n
    check_preconditioner(M, batch, n)
    B, ndim = columns(b, "b", batch, n)
    if B.n != 1:
        raise ValueError(f"b has {B.n} columns for each matrix, must have one")
    X = B.beside(n, 1)
    X.data.fill(0)
    if x0 is not None:
        start, _ = columns(x0, "x0", batch, n)
        if start.n != 1:
            raise ValueError(f"x0 has {start.n} columns for each matrix, must have one")
        copied(start, X)
    maxiter = 10 * n if maxiter is None else check_size(maxiter, "maxiter")
    restart = max(min(restart, n, maxiter), 1)
    numbers = bool(x0 is not None), maxiter, float(rtol), float(atol), restart, ortho
    options = (float(np.finfo(batch.dtype).eps),) if method == "gmres" else ()
    steps = (maxiter + 1) * bool(history)
    if given and (M is None or isinstance(M, Preconditioner)):
        M = Identity(A) if M is None else M
        found, past = compiled(method, options, operator, M.operator(launch), B, X, steps, numbers, launch)
    else:
        found, past = interpreted(method, options, A, M, B, X, steps, numbers)
    count, size, limit = found
    iterations = count.astype(np.int64)
    converged = (size <= limit) & np.isfinite(size)
    if past is not None:
        past = past[:, : iterations.max(initial=0) + 1]
        past = np.where(np.arange(past.shape[1]) <= iterations[:, None], past, size[:, None])
    return as_given(X, b, ndim), Report(iterations, converged, size, past)


def check_preconditioner(M, batch, n):
    """Refuse what is not one of these matrices."""
    if isinstance(M, Preconditioner):
        if (M.nm, M.n, M.dtype, M.vlen) != (batch.nm, n, batch.dtype, batch.vlen):
            have = f"{M.nm} matrices {M.n} x {M.n}, {M.dtype}, vlen={M.vlen}"
            raise ValueError(f"M is of {have}, must be of {batch.nm}, {n} x {n}, {batch.dtype}, vlen={batch.vlen}")
        if (M.queue and M.queue.context) != (batch.queue and batch.queue.context):
            raise TypeError("M lives on another device, must live where A does")
    elif M is not None and not callable(M):
        raise TypeError(f"M is a {type(M).__name__}, must be a preconditioner or a function")


def compiled(method, options, A, M, B, X, steps, numbers, launch):
    """Solve by a kernel: iterations, norms and limits, and the history."""
    npack, V, queue, real = B.view.npack, B.vlen, B.queue, REAL[B.dtype.char]
    arrays = backend(queue)
    out, history = (arrays.empty((npack, rows, V), real, queue) for rows in (3, steps))
    backend(queue, "sparse").solve(method, options, A, M, contiguous(B), X, out, history, *numbers, launch)
    found = arrays.download(out).swapaxes(0, 1).reshape(3, -1)[:, : B.nm]
    return found, arrays.download(history).swapaxes(1, 2).reshape(-1, steps)[: B.nm] if steps else None


def interpreted(method, options, A, M, B, X, steps, numbers):
    """Solve by NumPy, calling the user's functions."""
    apply, precondition = (
        plain.applied(f) if isinstance(f, BatchCSR | Pack | Preconditioner) else plain.called(f, name, B)
        for f, name in ((A, "A"), (M if M is not None else lambda x: x, "M"))
    )  # fmt: skip
    b, x = B.unpack()[:, :, 0], X.unpack()[:, :, 0]
    *_, restart, _ = numbers
    W = np.empty((VECTORS.get(method, restart + 2), *b.shape), b.dtype)
    real = REAL[b.dtype.char]
    out, history = np.empty((3, 1, len(b)), real), np.zeros((len(b), steps), real)
    with np.errstate(all="ignore"):
        iterate = METHODS[method](plain.words(apply, precondition), *options)
        iterate(None, None, b, x, W, {}, history, out, *numbers)
    pack_padded(x[:, :, None], None, None, unit=0, out=X)
    return out[:, 0], history if steps else None
