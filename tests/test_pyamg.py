"""The line preconditioner in PyAMG: for its Krylov methods, and as a smoother."""

import numpy as np
import pyamg
import pytest
import scipy.sparse

import compactla as cla
from compactla.pyamg import line_relaxation, setup_line_relaxation, smooth_along_lines
from systems import convection_diffusion

pytestmark = pytest.mark.slow


def steps(method, M, rhs, P):
    residuals = []
    x, status = method(M, rhs, M=P, tol=1e-10, maxiter=300, residuals=residuals)
    assert status == 0
    assert np.linalg.norm(rhs - M @ x) <= 1e-8 * np.linalg.norm(rhs)
    return len(residuals)


@pytest.mark.parametrize("method", [pyamg.krylov.fgmres, pyamg.krylov.bicgstab, pyamg.krylov.cg])
def test_krylov_methods(queue, method):
    M, lines = convection_diffusion(16, 12, 3, wind=0 if method is pyamg.krylov.cg else 0.5)
    rhs = M @ np.linspace(-1, 1, M.shape[0])
    line = cla.LinePreconditioner(M, lines, queue=queue)
    jacobi = cla.LinePreconditioner(M, np.arange(192)[:, None], queue=queue)
    assert steps(method, M, rhs, line) < steps(method, M, rhs, jacobi) / 3


@pytest.mark.parametrize("shape", [(-1,), (-1, 1)])
def test_relaxation_is_in_place(queue, rng, shape):
    M, lines = convection_diffusion(5, 7, 3)
    P = cla.LinePreconditioner(M, lines, queue=queue)
    x, b = rng.random((2, *np.empty(105).reshape(shape).shape))
    start, expected = x, x.copy()
    for _ in range(3):
        expected = expected + 0.9 * (P @ (b - M @ expected))
    assert line_relaxation(M, x, b, P, iterations=3, omega=0.9) is None
    assert x is start
    np.testing.assert_allclose(x, expected, rtol=1e-14, atol=0)


def anisotropic(n, epsilon=1e-3):
    """Diffusion in a plane that is a thousand times as strong one way: CSR."""
    stencil = pyamg.gallery.diffusion_stencil_2d(epsilon, 0, type="FD")
    return scipy.sparse.csr_array(pyamg.gallery.stencil_grid(stencil, (n, n), format="csr"))


def cycles(ml, A, **options):
    rhs, residuals = A @ np.linspace(-1, 1, A.shape[0]), []
    x = ml.solve(rhs, tol=1e-8, residuals=residuals, maxiter=200, **options)
    assert np.linalg.norm(rhs - A @ x) <= 1e-6 * np.linalg.norm(rhs)
    return len(residuals) - 1


def hierarchy(A, **options):
    return pyamg.smoothed_aggregation_solver(A, strength=("symmetric", {"theta": 0}), max_coarse=20, **options)


@pytest.mark.parametrize("accel", [None, "cg"])
def test_smoother_where_points_do_not_smooth(queue, accel):
    A = anisotropic(48)
    points, lines = hierarchy(A), hierarchy(A)
    smooth_along_lines(lines, queue=queue)
    assert len(lines.levels) > 2
    assert cycles(lines, A, accel=accel) < cycles(points, A, accel=accel) / 1.5


def test_smoother_of_systems():
    """Levels are in BSR form, with blocks of 2 x 2, then 3 x 3."""
    A, B = pyamg.gallery.linear_elasticity((24, 24), format="bsr")
    ml = pyamg.smoothed_aggregation_solver(A, B, max_coarse=30)
    smooth_along_lines(ml, omega=0.5)
    smoothers = [level.presmoother for level in ml.levels[:-1]]
    assert [smoother.keywords["P"].block_size for smoother in smoothers] == [2, 3, 3][: len(smoothers)]
    assert cycles(ml, A, accel="cg") < 40


def test_block_size_of_the_finest_level():
    """The finest level is in CSR form, others in BSR form, 3 x 3; wrong options leave the smoothers alone."""
    A, B = pyamg.gallery.linear_elasticity((24, 24), format="bsr")
    blocks, csr = (pyamg.smoothed_aggregation_solver(M, B, max_coarse=30) for M in (A, A.tocsr()))
    assert [level.A.format for level in csr.levels] == ["csr", "bsr", "bsr"]
    points = [level.presmoother for level in csr.levels[:-1]]
    coarse = csr.levels[1].A
    csr.levels[1].A = coarse.tocsc()
    with pytest.raises(TypeError, match="M is in CSC format"):
        smooth_along_lines(csr, block_size=2)
    csr.levels[1].A = coarse
    with pytest.raises(TypeError, match="iterations is 'two', must be an integer"):
        smooth_along_lines(csr, block_size=2, iterations="two")
    assert [level.presmoother for level in csr.levels[:-1]] == points
    for ml in (blocks, csr):
        smooth_along_lines(ml, np.arange(576).reshape(24, 24), block_size=2, omega=0.5)
        assert [level.postsmoother.keywords["P"].block_size for level in ml.levels[:-1]] == [2, 3]
    assert cycles(csr, A, accel="cg") == cycles(blocks, A, accel="cg") < 40


def test_given_lines():
    A = anisotropic(12)
    strong = np.array(cla.find_lines(A, 1))
    across = strong.T.copy()
    ml = hierarchy(A)
    counts = {}
    for name, lines in (("strong", strong), ("across", across), ("halves", strong.reshape(-1, 6))):
        smooth_along_lines(ml, lines, iterations=2, threads=1)
        P = ml.levels[0].postsmoother.keywords["P"]
        assert (len(P.info), P.threads) == (len(lines), 1)
        counts[name] = cycles(ml, A)
    assert counts["strong"] < counts["halves"] < counts["across"]


def test_wrong_lines():
    level = hierarchy(anisotropic(12)).levels[0]
    with pytest.raises(ValueError, match="block row 6 is on no line"):
        setup_line_relaxation(level, [range(6)])
