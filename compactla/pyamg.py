"""The line preconditioner as a smoother of PyAMG's multigrid solvers.

For a Krylov method of PyAMG, a `compactla.LinePreconditioner` is a preconditioner as it is: ``pyamg.krylov.gmres(A, b,
M=P)``.
"""

from functools import partial

from compactla.checks import check_size
from compactla.lines.finding import find_lines
from compactla.lines.precond import LinePreconditioner


def line_relaxation(A, x, b, P, iterations=1, omega=2 / 3):
    """Damped line Jacobi, in place: ``x += omega * P(b - A x)``, in the manner of `pyamg.relaxation.relaxation`.

    Parameters
    ----------
    A : scipy.sparse matrix or array, (n, n)
        The matrix.
    x : (n,) or (n, 1) ndarray
        The approximate solution, which is overwritten by a better one.
    b : (n,) or (n, 1) ndarray
        The right-hand side.
    P : compactla.LinePreconditioner
        That of `A`.
    iterations : int
        Number of sweeps.
    omega : float
        The damping factor: 2/3 smooths best between lines in a plane, 4/5 between lines in space.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> import compactla as cla
    >>> A = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(6, 6), format="csr")
    >>> x, b = np.zeros(6), A @ np.ones(6)
    >>> line_relaxation(A, x, b, cla.LinePreconditioner(A, [range(6)], block_size=1), omega=1)
    >>> np.allclose(x, 1)
    True
    """
    for _ in range(iterations):
        r = b - A @ x
        r = P.solve(r, out=r)
        r *= omega
        x += r


def setup_line_relaxation(level, lines=None, block_size=None, iterations=1, omega=2 / 3, **options):
    """The smoother of a level: a function of (A, x, b), in the manner of `pyamg.relaxation.smoothing`.

    Parameters
    ----------
    level : pyamg.multilevel.MultilevelSolver.Level
        Its matrix `A`, CSR or BSR, is the one that the smoother is for.
    lines : sequence of sequences of int, optional
        The block rows along each line; default: those that `compactla.find_lines` finds.
    block_size : int, optional
        Size of the blocks; default: that of a BSR matrix, 1 for CSR.
    iterations, omega
        As for `line_relaxation`.
    **options
        As for `compactla.LinePreconditioner`.
    """
    check_size(iterations, "iterations")
    A = level.A
    if block_size is None and A.format == "csr":
        block_size = 1
    lines = find_lines(A, block_size) if lines is None else lines
    P = LinePreconditioner(A, lines, block_size, **options)
    return partial(line_relaxation, P=P, iterations=iterations, omega=omega)


def smooth_along_lines(ml, lines=None, block_size=None, **options):
    """Make the line preconditioner the smoother of all levels but the coarsest, before and after their correction.

    Parameters
    ----------
    ml : pyamg.multilevel.MultilevelSolver
        The hierarchy, which is changed.
    lines : sequence of sequences of int, optional
        The lines of the finest level; those of the others, and by default its own, are found in their matrices.
    block_size : int, optional
        Size of the blocks of the finest level; those of the others, and by default its own, are those of their
        matrices.
    **options
        As for `setup_line_relaxation`.

    Raises
    ------
    TypeError, ValueError
        As from `compactla.find_lines` and `compactla.LinePreconditioner`; the hierarchy is left as it was.

    Examples
    --------
    >>> import numpy as np, pyamg
    >>> A = pyamg.gallery.stencil_grid(pyamg.gallery.diffusion_stencil_2d(1e-3, 0, type="FD"), (50, 50), format="csr")
    >>> ml = pyamg.smoothed_aggregation_solver(A, strength=("symmetric", {"theta": 0}), max_coarse=20)
    >>> smooth_along_lines(ml)
    >>> x = ml.solve(A @ np.ones(2500), tol=1e-8, accel="cg")
    >>> np.allclose(x, 1, atol=1e-5)
    True
    """
    smoothers = []
    for level in ml.levels[:-1]:
        smoothers.append(setup_line_relaxation(level, lines, block_size, **options))
        lines = block_size = None
    for level, smoother in zip(ml.levels[:-1], smoothers, strict=True):
        level.presmoother = level.postsmoother = smoother
    ml.symmetric_smoothing = True
