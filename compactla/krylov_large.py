"""GMRES and BiCGSTAB for one large sparse system, with preconditioners along lines, on the CPU or a device."""

import math

import numpy as np
import scipy.linalg

from compactla.checks import check_size
from compactla.cpu.kernel import compiled_once
from compactla.lines.large_system import Report, SparseMatrix, System, span

__all__ = ["Report", "SparseMatrix", "bicgstab", "gmres"]
ORTHO = ("mgs", "cgs", "cgs2")


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
