"""Factorizations and solutions of stacks by teams of work-items with a matrix in their registers.

They run on GPUs; where there is none, a CPU stands in for one.
"""

import dataclasses
import functools
import itertools

import numpy as np
import pytest
import scipy.linalg

from compactla import linalg
from compactla.gpu import launch
from compactla.gpu.linalg import fused, grid, triangular
from compactla.gpu.tuning import choices
from compactla.oracle import THRESHOLD
from drivers import working_devices
from reference import solve_ratio
from test_linalg_opencl import compare, hermitian, on, random

FOUND = working_devices()
GPUS = [device for device in FOUND if not choices.is_cpu(device)]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("unoptimized"),
    pytest.mark.parametrize("queue", GPUS or FOUND, indirect=True, ids=lambda d: "opencl"),
]


@pytest.mark.parametrize(
    ("n", "lower"),
    [
        pytest.param(n, lower, marks=[pytest.mark.exhaustive] * (n in (2, 17, 64, 100) or (n > 7 and not lower)))
        for n in (1, 2, 7, 17, 33, 64, 100, 128)
        for lower in (True, False)
    ],
)
def test_grids(queue, rng, monkeypatch, n, lower):
    """Teams factor matrices of which one triangle is read, and leave others as they are if one is not definite."""
    monkeypatch.setattr(choices, "is_cpu", lambda device: False)
    monkeypatch.setattr(fused, "REGISTERS", 0)
    for dtype in "dF" if n < 100 else "d":
        launch.plans(queue).known.clear()
        x = random(rng, (5, n, n), dtype)
        a = (x @ x.conj().swapaxes(1, 2) + n * np.eye(n)).astype(dtype)
        given = np.where(np.tri(n, dtype=bool) if lower else np.tri(n, dtype=bool).T, a, np.nan)
        given[2, 0, 0] = -1
        found = linalg.cholesky(on(queue, given), upper=not lower, on_error="nan", compute="same").get()
        (plan,) = launch.plans(queue).known.values()
        assert type(plan) is fused.Fused and plan.group == plan.matrices * np.prod(grid.shape(n, n, a.dtype))
        assert np.isnan(found[2]).all()
        good = [0, 1, 3, 4]
        factor = (found if lower else found.conj().swapaxes(1, 2))[good]
        assert np.array_equal(factor, np.tril(factor))
        error = abs(factor @ factor.conj().swapaxes(1, 2) - a[good]).max() / abs(a).max()
        assert error <= n * np.finfo(dtype).eps
    launch.plans(queue).known.clear()


@pytest.fixture
def on_grids(queue, monkeypatch):
    """Teams of a GPU, on every device, have matrices of any size in their registers."""
    monkeypatch.setattr(choices, "is_cpu", lambda device: False)
    monkeypatch.setattr(fused, "REGISTERS", 0)
    launch.plans(queue).known.clear()
    yield
    ran = list(launch.plans(queue).known.values())
    launch.plans(queue).known.clear()
    assert ran and all(type(plan) in (fused.Fused, launch.KernelPlan) for plan in ran)


def stack_of(rng, n, dtype):
    """Nine matrices, of which number 4 is singular, and number 6 is not finite; which are neither."""
    a = random(rng, (9, n, n), dtype)
    a[4, :, -1], a[6, 0, 0] = 0, np.nan
    return a, np.delete(np.arange(9), [4, 6])


LARGE = [(1, "d"), (7, "F")]
MORE = itertools.product((7, 12, 17, 31, 33, 48, 64, 100), "fdFD")
TOO_LARGE = (100, "D")  # for a team's registers
LARGE += [pytest.param(*case, marks=pytest.mark.exhaustive) for case in MORE if case not in (*LARGE, TOO_LARGE)]


@pytest.mark.usefixtures("on_grids")
@pytest.mark.parametrize(("n", "dtype"), LARGE)
class TestLU:
    """Factorizations with pivots, by teams; a matrix that is singular or not finite touches no other."""

    def test_factors(self, queue, rng, n, dtype):
        a, good = stack_of(rng, n, dtype)
        with pytest.warns(scipy.linalg.LinAlgWarning, match="1 of 9 matrices, at 4"):
            lu, piv = (x.get() for x in linalg.lu_factor(on(queue, a), compute="same"))
        for q in good:
            expected, rows = scipy.linalg.lu_factor(a[q])
            np.testing.assert_array_equal(piv[q], rows)
            assert abs(lu[q] - expected).max() <= 30 * n * np.finfo(dtype).eps * abs(expected).max()

    def test_determinants(self, queue, rng, n, dtype):
        a, good = stack_of(rng, n, dtype)
        a /= a.dtype.type(np.sqrt(n))  # none overflows
        wide = a.astype("D" if dtype in "FD" else "d")
        found = linalg.det(on(queue, a), compute="same").get()
        sign, logarithm = (x.get() for x in linalg.slogdet(on(queue, a), compute="same"))
        limit = 1e3 * n * np.finfo(dtype).eps
        np.testing.assert_allclose(found[good], np.linalg.det(wide[good]), limit)
        np.testing.assert_allclose(sign[good], np.linalg.slogdet(wide[good])[0], limit)
        np.testing.assert_allclose(logarithm[good], np.linalg.slogdet(wide[good])[1], limit, limit)
        assert found[4] == sign[4] == 0 and logarithm[4] == -np.inf and np.isnan(found[6])

    def test_solutions(self, queue, rng, n, dtype):
        a, good = stack_of(rng, n, dtype)
        b = random(rng, (9, n, 3), dtype)
        x = linalg.solve(on(queue, a).transpose((0, 2, 1)), on(queue, b), on_error="nan", compute="same").get()
        assert solve_ratio(a[good].swapaxes(1, 2), x[good], b[good]) < THRESHOLD
        assert np.isnan(x[[4, 6]]).all()
        alone = linalg.solve(on(queue, a[5].T), on(queue, b[5]), compute="same").get()
        np.testing.assert_array_equal(alone, x[5])

    def test_inverses(self, queue, rng, n, dtype):
        a, good = stack_of(rng, n, dtype)
        x = linalg.inv(on(queue, np.repeat(a, 2, 0))[::2], on_error="nan", compute="same").get()
        one = np.broadcast_to(np.eye(n, dtype=dtype), (len(good), n, n))
        assert solve_ratio(a[good], x[good], one) < THRESHOLD
        assert np.isnan(x[[4, 6]]).all()

    @pytest.mark.parametrize("trans", [0, 1, 2])
    def test_solutions_with_factors(self, queue, rng, n, dtype, trans):
        a, good = stack_of(rng, n, dtype)
        b = random(rng, (n, 5), dtype)[:, ::2]
        factors = [scipy.linalg.lu_factor(x) for x in a[good]]
        lu, piv = (on(queue, np.array(x)) for x in zip(*factors, strict=True))
        x = linalg.lu_solve((lu, piv), on(queue, b), trans, compute="same").get()
        op = (a, a.swapaxes(1, 2), a.conj().swapaxes(1, 2))[trans]
        assert solve_ratio(op[good], x, np.broadcast_to(b, x.shape)) < THRESHOLD


@pytest.mark.usefixtures("on_grids")
def test_the_first_of_equal_pivots(queue, rng):
    a = np.array([scipy.linalg.hadamard(8)[rng.permutation(8)] for _ in range(9)], float)
    _, piv = linalg.lu_factor(on(queue, a))
    np.testing.assert_array_equal(piv.get(), [scipy.linalg.lu_factor(x)[1] for x in a])


@pytest.mark.usefixtures("on_grids")
@pytest.mark.parametrize("shape", [(5, 9), (1, 4), (13, 13), (33, 3)], ids=str)  # in 4, 8 and 32 work-items
def test_factors_of_rectangles(queue, rng, shape):
    a = random(rng, (7, *shape), "d")
    lu, piv = (x.get() for x in linalg.lu_factor(on(queue, a)))
    for q in range(7):
        expected, rows = scipy.linalg.lu_factor(a[q])
        np.testing.assert_array_equal(piv[q], rows)
        np.testing.assert_allclose(lu[q], expected, 1e-12, 1e-12)


@pytest.mark.usefixtures("on_grids")
def test_rows_that_are_none(queue, rng):
    lu, b = on(queue, random(rng, (4, 3, 3), "d")), on(queue, np.ones(3))
    for row in -1, 3:
        piv = np.array([[0, 1, 2]] * 3 + [[0, row, 2]])
        with pytest.raises(ValueError, match="no rows: 1 of 4 matrices, at 3"):
            linalg.lu_solve((lu, on(queue, piv)), b)


@pytest.mark.usefixtures("on_grids")
def test_warps_that_do_not_build(queue, rng, monkeypatch):
    """Instructions of warps do not build but for NVIDIA: barriers take their place."""
    usual, build, tried = fused.grid, fused.kernel, []
    monkeypatch.setattr(fused, "grid", lambda *args: usual(*args) | {"CLA_WARP": 2})
    monkeypatch.setattr(fused, "kernel", functools.partial(built, build, tried))
    a = random(rng, (9, 3, 3), "d")
    compare(linalg.inv(on(queue, a)), np.linalg.inv(a))
    assert tried == [2, 1, 0]


def built(usual, tried, *args, CLA_WARP=0, **macros):
    """A kernel, of a device that has no warps."""
    tried.append(CLA_WARP)
    if CLA_WARP:
        raise RuntimeError("does not build")
    return usual(*args, CLA_WARP=CLA_WARP, **macros)


@pytest.mark.parametrize("lower", [True, False])
def test_cho_factor_on_grids(queue, rng, on_grids, lower):
    """Factors leave the other triangle as it is."""
    a = hermitian(random(rng, (3, 5, 5), "D"))
    given = np.where(np.tri(5, dtype=bool) if lower else np.tri(5, dtype=bool).T, a, 7)
    compare(linalg.cho_factor(on(queue, given), lower)[0], linalg.cho_factor(given, lower)[0])


SHAPES, MODES = [(1, 1), (7, 3), (3, 7), (6, 5)], ["reduced", "complete", "r", "raw"]


@pytest.mark.parametrize(
    ("shape", "mode"),
    [
        pytest.param(shape, mode, marks=[pytest.mark.exhaustive] * (shape != (7, 3) and mode != "reduced"))
        for shape, mode in itertools.product(SHAPES, MODES)
    ],
    ids=str,
)
def test_qr_on_grids(queue, rng, monkeypatch, on_grids, shape, mode):
    """Teams factor matrices as LAPACK does, whatever the scales of their columns; NaN stays in its matrix."""
    monkeypatch.setitem(grid.GRIDS, "qr", dataclasses.replace(grid.GRIDS["qr"], shape=lambda *args: (4, 4)))
    for dtype in "dF":
        a, limits = random(rng, (9, *shape), dtype), np.finfo(dtype)
        scales = 2.0 ** rng.integers(limits.minexp + 10, limits.maxexp - 6, (9, 1, shape[1]))
        a[8], a[3], a[5, 1:] = np.nan, 0, 0
        found = linalg.qr(on(queue, (a * scales).astype(dtype)), mode, compute="same")
        expected = np.linalg.qr(a.astype("D" if dtype == "F" else "d"), mode)
        found, expected = ((x,) if mode == "r" else x for x in (found, expected))
        for x, y, name in zip(found, expected, {"r": "r", "raw": "ht"}.get(mode, "qr"), strict=True):
            assert x.shape == y.shape and x.dtype == dtype
            ours = x.get().astype(y.dtype)
            if name == "r":
                ours = ours / scales
            elif name == "h":
                ours = np.where(np.tri(*shape, -1, dtype=bool).T, ours, ours / scales.swapaxes(1, 2))
            assert np.isnan(ours[8]).any() or name in "qt"
            assert abs(ours - y)[:8].max() <= 1e4 * limits.eps


@pytest.mark.parametrize(
    ("n", "r", "dtype", "room", "lower"),
    [
        pytest.param(*case, lower, marks=[pytest.mark.exhaustive] * (case[2] != "F" and not lower))
        for case in [(1, 1, "d", 2**15), (5, 3, "F", 2**15), (9, 5, "d", 1300), (3, 2, "D", None)]
        for lower in (True, False)
    ],
)
def test_triangles_on_grids(queue, rng, monkeypatch, on_grids, n, r, dtype, room, lower):
    """Teams solve for right-hand sides in several turns, with panels of a triangle that has no room as a whole."""
    if room is None:  # single work-items
        monkeypatch.setattr(fused, "REGISTERS", 200)
    else:
        monkeypatch.setattr(triangular, "LOCAL_BYTES", room)
        monkeypatch.setattr(triangular, "shape", lambda *args: (4, 2, 1))
        monkeypatch.setattr(triangular, "WARP", 16)
    a, b = random(rng, (3, n, n), dtype) / n + 2 * np.eye(n, dtype=dtype), on(queue, random(rng, (3, n, r), dtype))
    triangle = np.tri(n, dtype=bool) if lower else np.tri(n, dtype=bool).T
    t = np.where(triangle, a, 0)
    factor = t if lower else t.conj().swapaxes(1, 2)
    read = on(queue, np.where(triangle, a, np.nan))
    x = linalg.cho_solve((read, lower), b, compute="same")
    compare(x, np.linalg.solve(factor @ factor.conj().swapaxes(1, 2), b.get()))
    for trans, op in enumerate((t, t.swapaxes(1, 2), t.conj().swapaxes(1, 2))):
        compare(linalg.solve_triangular(read, b, trans, lower, compute="same"), np.linalg.solve(op, b.get()))
    unit = on(queue, np.where(triangle & ~np.eye(n, dtype=bool), a, np.nan))
    x = linalg.solve_triangular(unit, b, 0, lower, True, compute="same")
    compare(x, np.linalg.solve(np.where(np.eye(n, dtype=bool), 1, t), b.get()))


def test_triangles_that_are_singular(queue, on_grids):
    a = np.tile(np.eye(5), (9, 1, 1))
    a[[4, 7], 3, 3] = 0
    x = linalg.solve_triangular(on(queue, a), on(queue, np.ones((9, 5, 2))), on_error="nan").get()
    assert np.isnan(x[[4, 7]]).all() and (np.delete(x, [4, 7], 0) == 1).all()
    with pytest.raises(linalg.LinAlgError, match=r"2 of 9 matrices, at 4, 7$"):
        linalg.solve_triangular(on(queue, a), on(queue, np.ones(5)))


@pytest.mark.parametrize(
    ("n", "r", "dtype", "lower"),
    [
        (5, 2, "f", True),
        pytest.param(18, 1, "D", False, marks=pytest.mark.exhaustive),
        pytest.param(49, 4, "d", True, marks=pytest.mark.exhaustive),
        pytest.param(97, 1, "f", False, marks=pytest.mark.exhaustive),
    ],
)
def test_definite_systems_on_grids(queue, rng, on_grids, n, r, dtype, lower):
    """One triangle is read; a matrix that is not definite has no solution, and touches no other."""
    x = random(rng, (7, n, n), dtype)
    a = (x @ x.conj().swapaxes(1, 2) + n * np.eye(n)).astype(dtype)
    b = random(rng, (7, n, r), dtype)
    given = np.where(np.tri(n, dtype=bool) if lower else np.tri(n, dtype=bool).T, a, np.nan)
    given[2, n // 2, n // 2] = -1
    options = {"assume_a": "pos", "lower": lower, "on_error": "nan", "compute": "same"}
    found = linalg.solve(on(queue, given), on(queue, b), **options).get()
    assert [type(plan) for plan in launch.plans(queue).known.values()] == [fused.Fused]
    assert np.isnan(found[2]).all()
    good = [0, 1, 3, 4, 5, 6]
    assert solve_ratio(a[good], found[good], b[good]) < 30


@pytest.mark.parametrize(
    ("shape", "dtype", "few"),
    [
        ((3, 2), "f", True),
        pytest.param((5, 3), "f", True, marks=pytest.mark.exhaustive),
        pytest.param((9, 9), "D", False, marks=pytest.mark.exhaustive),
        pytest.param((40, 24), "d", True, marks=pytest.mark.exhaustive),
        pytest.param((48, 48), "f", False, marks=pytest.mark.exhaustive),
    ],
)
def test_ranks_on_grids(queue, rng, monkeypatch, on_grids, shape, dtype, few):
    """Ranks that are full for sure, or not; of what is not finite nothing is known, and all others keep their bits."""
    monkeypatch.setattr(fused, "FEW", dict.fromkeys(fused.FEW, 1e9 * few))
    m, n = shape
    a, b = random(rng, (9, m, n), dtype), random(rng, (9, m, 2), dtype)
    a[1, :, 1] = a[1, :, 0]
    a[2] = a[2, :, :1]
    a[3] = 0
    a[4] = np.diag(np.append(np.ones(n - 1), 1e-30))[np.arange(m) % n]
    a[5, 0, 0] = np.nan
    a[8], b[8] = a[0], b[0]
    eps = float(np.finfo(dtype).eps)
    options = {"compute": "same", "on_error": "nan"}
    for rcond in (100 * eps, 0.2):
        x, squares, rank, s = (y.get() for y in linalg.lstsq(on(queue, a), on(queue, b), rcond, **options))
        assert np.isnan(x[5]).all() and np.isnan(s[5]).all() and rank[5] == 0
        assert x[0].tobytes() == x[8].tobytes() and s[0].tobytes() == s[8].tobytes()
        for q in (0, 1, 2, 3, 4, 6, 7):
            wide = a[q].astype("D" if dtype in "FD" else "d")
            y, left, full, t = np.linalg.lstsq(wide, b[q].astype(wide.dtype), rcond)
            size = t[0] / t[full - 1] if full else 1
            assert rank[q] == full
            assert abs(s[q] - t).max() <= 30 * m * eps * t[0]
            assert abs(x[q] - y).max() <= 300 * m * eps * size**2 * abs(y).max()
            if m > n and full == n:
                np.testing.assert_allclose(squares[q], left, 300 * m * eps * size)
            assert m == n or full == n or np.isnan(squares[q]).all()
