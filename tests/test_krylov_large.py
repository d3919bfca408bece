"""CG, BiCGSTAB and GMRES for one large system."""

import numpy as np
import pyopencl.array
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator
from scipy.sparse.linalg import bicgstab as scipys_bicgstab
from scipy.sparse.linalg import cg as scipys_cg
from scipy.sparse.linalg import gmres as scipys_gmres

import compactla as cla
from cases import exhaustive, here, random, there
from compactla.calls.launch import limited
from compactla.krylov import Jacobi, SparseMatrix, bicgstab, cg, gmres
from drivers import working_devices
from systems import convection_diffusion, shipped

pytestmark = pytest.mark.slow

on_devices = pytest.mark.parametrize("queue", working_devices(), indirect=True, ids=lambda d: "opencl")
BOTH = pytest.mark.parametrize("solve", [gmres, bicgstab])
ALL = pytest.mark.parametrize("solve", [cg, gmres, bicgstab])


def relative(M, x, b):
    return np.linalg.norm(b - M @ x) / np.linalg.norm(b)


@pytest.fixture(scope="module")
def sherman5():
    M, rhs, lines = shipped()
    return M, rhs, cla.LinePreconditioner(M, lines)


@pytest.mark.parametrize("ortho", ["mgs", "cgs", "cgs2"])
def test_gmres_on_sherman5(sherman5, ortho):
    M, rhs, P = sherman5
    norms = []
    x, report = gmres(M, rhs, M=P, restart=50, ortho=ortho, history=True, callback=norms.append)
    assert abs(report.iterations - 136) <= 1 and report.converged
    assert relative(M, x, rhs) <= 1e-8
    assert report.residual == pytest.approx(np.linalg.norm(rhs - M @ x), rel=1e-5)
    assert len(report.history) == report.iterations + 1 and len(norms) == report.iterations
    assert report.history[0] == pytest.approx(np.linalg.norm(rhs)) and report.history[-1] == report.residual
    np.testing.assert_allclose(norms, report.history[1:], rtol=1e-4)
    operator = LinearOperator(M.shape, lambda y: M @ P.solve(y), dtype=M.dtype)
    scipys = []
    callback = {"callback": scipys.append, "callback_type": "pr_norm"}
    scipys_gmres(operator, rhs, rtol=1e-8, restart=50, maxiter=20, **callback)
    np.testing.assert_allclose(report.history[1:101], np.array(scipys[:100]) * report.history[0], rtol=1e-3)


@pytest.mark.parametrize("dtype", ["f", "D", *map(exhaustive, "dF")])
@pytest.mark.parametrize("side", "RL")
def test_several_steps_at_once(rng, dtype, side):
    """They are those that are taken one by one, where A is a function, also for vectors that are nearly dependent."""
    M, lines = convection_diffusion(12, 10, 3)
    b, eps = random(rng, M.shape[0], dtype), float(np.finfo(dtype).eps)
    for shift, options in ((0, {}), (0, {"restart": 7}), (0, {"ortho": "cgs2", "maxiter": 11}), (1e3, {"maxiter": 9})):
        A = (M + shift * sp.eye_array(*M.shape)).tobsr(blocksize=(3, 3)).astype(dtype)
        P = cla.LinePreconditioner(A, lines) if side == "L" or not shift else None
        how = {"M": P, "rtol": eps**0.6, "history": True, "side": side, **options}
        (x, some), (_, one) = (gmres(a, b, **how) for a in (A, A.__matmul__))
        assert abs(some.iterations - one.iterations) <= 1 and some.converged == one.converged
        both = slice(1, min(len(some.history), len(one.history)) - 1)
        np.testing.assert_allclose(some.history[both], one.history[both], rtol=1e-2 if dtype in "fF" else 1e-5)
        assert abs(some.residual - np.linalg.norm(b - A @ x)) <= 1e-2 * some.residual + 20 * eps * np.linalg.norm(b)


@pytest.mark.parametrize("matrix", ["shift", "rank", "alike"])
def test_vectors_that_end_within_several_steps(matrix):
    """Bases that are exhausted after few steps, and matrices that map a vector to one that is orthogonal to it."""
    n = 12
    A = {"shift": np.roll(np.eye(n), 1, axis=0), "rank": np.eye(n), "alike": np.diag(1 + 1e-9 * np.arange(n))}[matrix]
    if matrix == "rank":
        A[:, 0] += np.arange(n)
    b = np.eye(n)[0]
    x, report = gmres(sp.csr_array(A), b, restart=n, rtol=1e-12)
    assert report.converged and relative(A, x, b) <= 1e-12
    assert report.iterations <= {"shift": n, "rank": 2, "alike": 2}[matrix]


def test_vectors_of_one_step_among_several(rng):
    """Three steps that fill the space: the second and third are not taken together, as there is no fourth vector."""
    A, b = np.roll(np.eye(3), 1, axis=0), np.array([1, 0.5, -2])
    x, report = gmres(sp.csr_array(A), b, rtol=1e-12)
    assert report.converged and report.iterations == 3 and relative(A, x, b) <= 1e-12


def test_steps_together_that_lead_nowhere(rng):
    """Where x is so large that rounding it hides b, steps one by one follow, and go as far as they go alone."""
    n = 20
    A, b = np.diag(np.logspace(0, -10, n)) + np.diag(np.full(n - 1, 0.1), 1), rng.standard_normal(n)
    (x, some), (_, one) = (gmres(a, b, restart=n) for a in (sp.csr_array(A), A.__matmul__))
    assert np.linalg.norm(b - A @ x) <= 1.5 * one.residual and some.residual <= 1.5 * one.residual


@pytest.mark.optimized  # without, rounding makes it 85 steps instead of 68
def test_bicgstab_on_sherman5(sherman5):
    M, rhs, P = sherman5
    x, report = bicgstab(M, rhs, M=P, history=True)
    assert report.converged and relative(M, x, rhs) <= 1e-8 and report.iterations < 90
    operator, steps = LinearOperator(M.shape, lambda y: M @ P.solve(y), dtype=M.dtype), []
    scipys_bicgstab(operator, rhs, rtol=1e-8, callback=lambda y: steps.append(relative(operator, y, rhs)))
    assert 0.6 < report.iterations / len(steps) < 1.6  # they are at the mercy of rounding
    np.testing.assert_allclose(report.history[1:7], np.array(steps[:6]) * report.history[0], rtol=1e-4)


@BOTH
def test_relaxation(solve):
    M, rhs, lines = shipped()
    x, report = solve(M, rhs, M=cla.LineRelaxation(M, lines, scheme="gauss-seidel", sweeps=2))
    assert report.converged and relative(M, x, rhs) <= 1e-8 and report.iterations <= 31


@pytest.mark.parametrize(
    ("b", "dtype"),
    [
        (1, "D"),
        (3, "d"),
        (5, "F"),
        (9, "f"),
        *(pytest.param(b, "dD"[b < 30], marks=pytest.mark.exhaustive) for b in (2, 8, 21, 40)),
    ],
)
def test_product(rng, b, dtype):
    """Products of blocks that fill no register, several, or more than a tile; empty block rows, and NaN beside x."""
    pattern = sp.csr_array(np.diag([1, 1, 0, 1, 1]) + np.diag([1, 0, 0, 0], 1) + np.diag([1], 4))
    M = sp.bsr_array((random(rng, (pattern.nnz, b, b), dtype), pattern.indices, pattern.indptr), shape=(5 * b, 5 * b))
    x, y = random(rng, 5 * b, dtype), np.full(6 * b, 7, dtype)
    expected = M @ x
    x[2 * b : 3 * b] = np.nan  # which no block is multiplied with
    SparseMatrix(M).multiply(limited(2))(x.reshape(5, b, 1), y[: 5 * b].reshape(5, b, 1))
    np.testing.assert_allclose(y[: 5 * b], expected, rtol=0, atol=20 * b * np.finfo(dtype).eps)
    assert (y[5 * b :] == 7).all()


def test_one_within_another(rng):
    """A preconditioner that solves by GMRES itself; the vectors that are kept are not those in use."""
    M, lines = convection_diffusion(6, 8, 2)
    P, b = cla.LinePreconditioner(M, lines), rng.standard_normal(M.shape[0])
    x, report = gmres(M, b, M=lambda v: gmres(M, v, M=P, rtol=1e-4)[0])
    first = x.copy()
    assert report.converged and report.iterations <= 4
    for solve in (cg, bicgstab, gmres):
        solve(M, -b, M=P, maxiter=5)
    np.testing.assert_array_equal(x, first)
    np.testing.assert_array_equal(gmres(M, b, M=P)[0], gmres(M, b, M=P, restart=29)[0])


@BOTH
@pytest.mark.parametrize("dtype", ["f", "D", *(pytest.param(c, marks=pytest.mark.exhaustive) for c in "dF")])
def test_types(rng, solve, dtype):
    M, lines = convection_diffusion(8, 10, 3)
    M = M.astype(dtype)
    if dtype in "FD":
        M.data *= np.exp(0.3j)
    b = rng.standard_normal(M.shape[0]).astype(dtype)
    P = cla.LinePreconditioner(M, lines)
    rtol = 1e-4 if dtype in "fF" else 1e-10
    first = None
    operator = LinearOperator(M.shape, M.__matmul__, dtype=M.dtype)
    for A in (M, M.tocsr(), M.tocoo(), SparseMatrix(M), M.toarray(), operator, M.__matmul__):
        x, report = solve(A, b, M=P, rtol=rtol)
        assert x.dtype == dtype and report.converged and relative(M, x, b) <= 1.01 * rtol
        first = first or report.iterations
        assert abs(report.iterations - first) <= 1


@pytest.mark.parametrize("dtype", ["f", "D", *(pytest.param(c, marks=pytest.mark.exhaustive) for c in "dF")])
def test_cg(rng, dtype):
    """cg takes as many steps as SciPy's, for a Hermitian matrix."""
    M, lines = convection_diffusion(12, 10, 2, wind=0)
    M = M.astype(dtype)
    turn = sp.diags_array(np.exp(1j * np.arange(M.shape[0]))) if dtype in "FD" else sp.eye_array(M.shape[0])
    M = (turn @ M @ turn.conj()).tobsr(blocksize=(2, 2)).astype(dtype)
    b = rng.standard_normal(M.shape[0]).astype(dtype)
    rtol = 1e-4 if dtype in "fF" else 1e-10
    for P in (None, cla.LinePreconditioner(M, lines)):
        x, report = cg(M, b, M=P, rtol=rtol, history=True)
        assert x.dtype == dtype and report.converged and relative(M, x, b) <= 1.01 * rtol
        assert report.history[-1] == report.residual
        steps = []
        scipys_cg(M, b, M=P, rtol=rtol, callback=lambda y, steps=steps: steps.append(y.copy()))
        norms = [np.linalg.norm(b - M @ y) for y in steps]
        assert abs(len(norms) - report.iterations) <= 1
        np.testing.assert_allclose(report.history[1:10], norms[:9], rtol=1e-2 if dtype in "fF" else 1e-6)


@ALL
def test_whole_numbers(solve):
    """Matrix and right-hand side may be integers, or lists."""
    T = sp.diags_array([-1, 4, -1], offsets=[-1, 0, 1], shape=(9, 9), dtype=int)
    for A in (T.tocsr(), T.toarray(), lambda v: T @ v):
        x, report = solve(A, list(range(9)))
        assert x.dtype == float and report.converged and relative(T, x, range(9)) <= 1e-8


@BOTH
def test_mixed_types(rng, solve):
    """Complex right-hand sides for a real matrix; a preconditioner in single precision."""
    M, lines = convection_diffusion(6, 8, 2)
    b = rng.standard_normal(M.shape[0]) + 1j * rng.standard_normal(M.shape[0])
    P = cla.LinePreconditioner(M.astype(np.float32), lines)
    for rhs in (b, b.real, b.real.astype(np.float32)):
        x, report = solve(M, rhs, M=P, rtol=1e-10)
        assert report.converged and relative(M, x, rhs) <= 1e-10
        assert x.dtype == np.result_type(np.float64, rhs)
    x, report = solve(M, b[:, None], M=lambda v: P @ v, x0=x[:, None] + 0j)
    assert x.shape == (len(b), 1) and relative(M, x[:, 0], b) <= 1e-8


@ALL
def test_start_and_limits(rng, solve):
    M, _ = convection_diffusion(6, 8, 2, wind=0)
    b = rng.standard_normal(M.shape[0])
    norm = np.linalg.norm(b)
    x, report = solve(M, b, maxiter=3, history=True)
    assert report.iterations == 3 and not report.converged and len(report.history) == 4
    again, further = solve(M, b, x0=x, atol=1e-3 * norm, rtol=0.0)
    assert further.converged and relative(M, again, b) <= 1e-3
    np.testing.assert_array_equal(solve(M, b, x0=again, rtol=1e-3)[0], again)
    assert solve(M, b, maxiter=0)[1] == (0, False, pytest.approx(norm), None)


FAR = {"d": 900, "F": 90}  # powers of two of which the squares are out of range
EVERYWHERE = pytest.mark.parametrize("dtype", ["d", "F"])


def definite(rng, dtype):
    """A Hermitian matrix, lines through it, and a right-hand side."""
    M, lines = convection_diffusion(6, 8, 2, wind=0)
    return M.astype(dtype), lines, random(rng, M.shape[0], dtype)


def in_powers(x, power):
    """x times a power of two, in its own type."""
    return np.ldexp(x.view(x.real.dtype), power).view(x.dtype)


def scales(far):
    """Powers of two for A, b and M."""
    for of_a, of_b in ((0, 0), (0, far), (0, -far), (far, 0), (-far, 0), (far, far), (-far, -far)):
        yield from ((of_a, of_b, of_m) for of_m in {0, far, -far} if abs(of_a + of_m) <= far)


@EVERYWHERE
@ALL
def test_scales(rng, queue, solve, dtype):
    """Scales so far from one that squares overflow or underflow change neither steps nor digits.

    With a function for M steps are taken one by one, without M several at a time.
    """
    M, _, b = definite(rng, dtype)
    rtol, expected = 1e-4 if dtype == "F" else 1e-8, {}
    for of_a, of_b, of_m in scales(FAR[dtype]):
        A, norms, factor = M.copy(), [], in_powers(np.ones(1, b.real.dtype), of_m)[0]
        A.data = in_powers(M.data, of_a)
        how = {"M": (lambda v, factor=factor: v * factor) if of_m else None, "rtol": rtol, "history": True}
        x, report = solve(A, there(in_powers(b, of_b), queue), callback=norms.append, **how)
        assert report.residual == report.history[-1] and norms[0] == report.history[1]
        found = in_powers(here(x), of_a - of_b), np.ldexp(report.history, -of_b)
        assert report.converged and relative(M, found[0], b) <= 1.01 * rtol
        x, history = expected.setdefault(bool(of_m), found)
        np.testing.assert_array_equal(found[0], x)
        np.testing.assert_array_equal(found[1], history)


@EVERYWHERE
@ALL
def test_scales_with_a_preconditioner_of_the_same(rng, queue, solve, dtype):
    M, lines, b = definite(rng, dtype)
    rtol, far, steps = 1e-4 if dtype == "F" else 1e-8, FAR[dtype], set()
    for of_a, of_b in ((0, 0), (far, far), (-far, -far), (-far, 0)):
        A = M.copy()
        A.data = in_powers(M.data, of_a)
        P = cla.LinePreconditioner(A, lines, queue=queue)
        x, report = solve(A, there(in_powers(b, of_b), queue), M=P, rtol=rtol)
        assert report.converged and relative(M, in_powers(here(x), of_a - of_b), b) <= 1.01 * rtol
        steps.add(report.iterations)
    assert len(steps) == 1


@EVERYWHERE
@ALL
def test_guesses_that_hide_the_right_hand_side(rng, queue, solve, dtype):
    """b is lost in what is rounded of b - A x0, or that overflows: zero is the better guess."""
    M, _, b = definite(rng, dtype)
    rtol, far = 1e-4 if dtype == "F" else 1e-8, FAR[dtype]
    for of_x0, of_b in ((0, -far), (far, 0), (far, -far), (0, -far // 4)):
        given, x0 = in_powers(b, of_b), in_powers(np.ones(len(b), dtype), of_x0)
        x, report = solve(M, there(given, queue), rtol=rtol)
        again, other = solve(M, there(given, queue), there(x0, queue), rtol=rtol)
        assert report.converged and other == report
        np.testing.assert_array_equal(here(again), here(x))
    x, report = solve(M, there(given, queue), there(x0, queue), atol=2.0 ** (far // 2))
    assert report.converged and report.iterations == 0
    np.testing.assert_array_equal(here(x), x0)


@pytest.mark.parametrize("bad", [np.inf, np.nan])
@EVERYWHERE
@ALL
def test_what_is_not_finite(rng, queue, solve, dtype, bad):
    M, _, b = definite(rng, dtype)
    for where in ("M", "b", "x0"):
        given = {"M": M.copy(), "b": b.copy(), "x0": np.ones_like(b)}
        (given[where].data if where == "M" else given[where])[3] = bad
        x0 = there(given["x0"], queue) if where == "x0" else None
        _, report = solve(given["M"], there(given["b"], queue), x0, maxiter=20)
        assert not report.converged and report.iterations <= 1
        assert where != "b" or not report.residual < np.inf


@ALL
def test_zero(solve):
    M, _ = convection_diffusion(3, 4, 2)
    for x0 in (None, np.ones(M.shape[0])):
        x, report = solve(M, np.zeros(M.shape[0]), x0)
        assert not x.any() and report == (0, True, 0.0, None)
    x, report = solve(sp.csr_array((0, 0)), np.zeros(0))
    assert x.shape == (0,) and report.converged


@BOTH
def test_what_has_no_solution(rng, solve):
    singular = sp.diags_array([1.0, 2.0, 0.0]).tocsr()
    x, report = solve(singular, np.array([1.0, 1, 1]))
    assert not report.converged and report.residual <= np.sqrt(3) and np.isfinite(x).all()
    x, report = solve(singular, np.array([1.0, 1, 0]))
    assert report.converged
    np.testing.assert_allclose(x[:2], [1, 0.5])
    turn = sp.csr_array([[0.0, 1], [-1, 0]])
    x, report = solve(turn, np.array([1.0, 2]))
    assert np.isfinite(x).all() and report.converged == (solve is gmres)  # BiCGSTAB breaks down at once
    nothing = solve(sp.csr_array((4, 4)), np.ones(4))
    assert not nothing[0].any() and not nothing[1].converged and nothing[1].residual == 2


@ALL
def test_not_a_number(sherman5, solve):
    M, rhs, P = sherman5
    wrong = M.copy()
    wrong.data[0, 0, 0] = np.nan
    for A, b, how in ((wrong, rhs, None), (M, rhs, lambda v: v * np.nan), (M, np.full_like(rhs, np.nan), P)):
        x, report = solve(A, b, M=how, maxiter=20)
        assert not report.converged and report.iterations <= 1 and not x.any()


def test_unattainable_goal_ends(rng):
    M, lines = convection_diffusion(6, 8, 2)
    b = rng.standard_normal(M.shape[0])
    for solve in (gmres, bicgstab):
        x, report = solve(M, b, M=cla.LinePreconditioner(M, lines), rtol=0.0)
        assert not report.converged and report.iterations < 900 and relative(M, x, b) < 1e-14


@BOTH
def test_bits_do_not_depend_on_threads(sherman5, solve):
    M, rhs, P = sherman5
    one, all_ = (solve(M, rhs, M=P, threads=threads, maxiter=20)[0] for threads in (1, None))
    np.testing.assert_array_equal(one, all_)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"b": np.ones(5)}, r"A has shape \(24, 24\), must be \(5, 5\) for b"),
        ({"b": np.ones((24, 2))}, r"b has shape \(24, 2\)"),
        ({"x0": np.ones(5)}, r"x0 is a ndarray \(5,\)"),
        ({"M": np.eye(5)}, r"M has shape \(5, 5\)"),
        ({"rtol": -1.0}, "rtol is -1.0, must be a number that is not negative"),
        ({"maxiter": -1}, "maxiter is -1"),
        ({"restart": 0}, "restart is 0, must be positive"),
        ({"ortho": "qr"}, "ortho is 'qr', must be one of 'mgs', 'cgs', 'cgs2'"),
        ({"threads": 0}, "threads is 0"),
    ],
)
def test_refused(given, message):
    M, _ = convection_diffusion(3, 4, 2)
    with pytest.raises(ValueError, match=message):
        gmres(**{"A": M, "b": np.ones(24), **given})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"A": "M"}, "A is a str, must be a matrix, an operator, a BatchCSR, a Pack or a function"),
        ({"M": 3}, "M is a int, must be a matrix, an operator or a function"),
        ({"M": Jacobi(cla.pack(np.eye(24)[None]))}, "M is a Jacobi, must be of one system"),
        ({"M": lambda v: v * 1j}, "M has made complex128 of float64, must make the same"),
        ({"callback": 3}, "callback is a int, must be a function"),
    ],
)
def test_refused_types(given, message):
    M, _ = convection_diffusion(3, 4, 2)
    with pytest.raises(TypeError, match=message):
        gmres(**{"A": M, "b": np.ones(24), **given})


def test_refused_products():
    with pytest.raises(ValueError, match=r"A has made \(\) of \(3,\), must make a vector like it"):
        gmres(np.sum, np.ones(3))
    with pytest.raises(ValueError, match="callback is given for a batch"):
        gmres(cla.pack(np.eye(3)[None]), np.ones((1, 3)), callback=print)


@on_devices
@pytest.mark.parametrize("dtype", ["d", "F"])
@BOTH
def test_on_a_device(rng, queue, solve, dtype):
    M, lines = convection_diffusion(8, 10, 3)
    M = M.astype(dtype)
    b = rng.standard_normal(M.shape[0]).astype(dtype)
    P = cla.LinePreconditioner(M, lines, queue=queue)
    rtol, rhs = 1e-4 if dtype == "F" else 1e-10, pyopencl.array.to_device(queue, b)
    expected = solve(M, b, M=P, rtol=rtol)[1]
    for A in (M, SparseMatrix(M, queue)):
        x, report = solve(A, rhs, M=P, rtol=rtol, x0=pyopencl.array.zeros_like(rhs), history=True)
        assert report.converged and abs(report.iterations - expected.iterations) <= 1
        assert x.dtype == dtype and relative(M, x.get(), b) <= 1.01 * rtol
    x, report = solve(M, pyopencl.array.zeros_like(rhs), x, M=P)
    assert report.converged and not x.get().any()
    with pytest.raises(TypeError, match="M lives on the CPU"):
        solve(M, rhs, M=cla.LinePreconditioner(M, lines))
