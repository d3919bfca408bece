"""Krylov methods for batches: solutions, counts as of one system at a time in NumPy, and systems left alone."""

import subprocess
import sys

import numpy as np
import pyopencl
import pytest

import compactla as cla
from cases import exhaustive, here, random, same_bits, there
from compactla import krylov
from compactla.gpu import sparse
from drivers import working_devices
from solvers import coupled, incomplete
from systems_sparse import dense, pattern, values

pytestmark = pytest.mark.slow

NM, N = 19, 13
METHODS = "cg", "bicgstab", "gmres"
LINES = [4, 1, 0, 6], [5, 2]
RTOL = {"f": 1e-4, "d": 1e-8}
TYPES = ["d", *(pytest.param(char, marks=pytest.mark.exhaustive) for char in "fFD")]


@pytest.fixture
def system(rng, dtype):
    """Hermitian positive definite matrices, dense and sparse, and right-hand sides of several scales."""
    mask = rng.random((N, N)) < 0.3
    np.fill_diagonal(mask, True)
    mask |= mask.T
    parts = np.nonzero(mask)[1], np.append(0, mask.sum(1).cumsum())
    data = values(rng, NM, *parts, dtype, 5, hermitian=True) * np.arange(1, NM + 1, dtype=dtype)[:, None]
    return cla.BatchCSR((data, *parts)), dense(data, *parts, N), random(rng, (NM, N), dtype)


def norms(a, x, b):
    return np.linalg.norm(b - np.einsum("qij,qj->qi", a, x), axis=1)


def reference(method, a, b, M, rtol, maxiter=200):
    """Steps of one system, in double."""
    a, b = a.astype(complex), b.astype(complex)
    x, r, limit = np.zeros_like(b), b.copy(), rtol * np.linalg.norm(b)
    if method == "cg":
        p = z = M(r)
        for k in range(1, maxiter):
            q, rho = a @ p, np.vdot(r, z)
            alpha = rho / np.vdot(p, q)
            x, r = x + alpha * p, r - alpha * q
            if np.linalg.norm(r) <= limit:
                return k
            z = M(r)
            p = z + np.vdot(r, z) / rho * p
    if method == "bicgstab":
        p, shadow = r.copy(), r.copy()
        for k in range(1, maxiter):
            v, rho = a @ M(p), np.vdot(shadow, r)
            alpha = rho / np.vdot(shadow, v)
            s = r - alpha * v
            if np.linalg.norm(s) <= limit:
                return k
            t = a @ M(s)
            omega = np.vdot(t, s) / np.vdot(t, t)
            r = s - omega * t
            if np.linalg.norm(r) <= limit:
                return k
            p = r + np.vdot(shadow, r) / rho * alpha / omega * (p - omega * v)
    basis = [r]
    for k in range(1, maxiter):
        q, _ = np.linalg.qr(np.array(basis).T)
        w = np.array([a @ M(v) for v in q.T]).T
        y = np.linalg.lstsq(w, b, rcond=None)[0]
        if np.linalg.norm(b - w @ y) <= limit:
            return k
        basis.append(a @ M(q[:, -1]))


def preconditioners(A, a):
    """All preconditioners, and the matrices that they apply."""
    n = a.shape[1]
    blocks = np.arange(n)[:, None] // 4 == np.arange(n) // 4
    yield None, np.tile(np.eye(n), (len(a), 1, 1))
    yield krylov.Jacobi(A), a * np.eye(n, dtype=a.dtype)
    yield krylov.BlockJacobi(A, 4), a * blocks.astype(a.dtype)
    yield krylov.ILU0(A), incomplete(a)
    yield krylov.Lines(A, LINES, 2), a * coupled(n, LINES, 2)


@pytest.mark.parametrize("method", METHODS)
def test_steps_and_residuals(method, system, dtype):
    A, a, b = system
    rtol = RTOL[dtype.char.lower()]
    for M, approximate in preconditioners(A, a):
        x, report = getattr(krylov, method)(A, b, rtol=rtol, M=M, history=True)
        assert x.dtype == dtype and x.shape == b.shape
        assert report.converged.all() and (norms(a, x, b) <= 1.01 * rtol * np.linalg.norm(b, axis=1)).all()
        assert np.allclose(report.residual, norms(a, x, b), rtol=0.1)
        assert report.history.shape == (NM, report.iterations.max() + 1)
        assert np.allclose(report.history[:, 0], np.linalg.norm(b, axis=1))
        assert np.array_equal(report.history[range(NM), report.iterations], report.residual)
        for q in range(0, NM, 6):
            apply = np.linalg.inv(approximate[q].astype(complex)).__matmul__
            assert abs(reference(method, a[q], b[q], apply, rtol) - report.iterations[q]) <= 1


@pytest.mark.parametrize("ortho", ["mgs", "cgs", "cgs2"])
def test_gmres_that_starts_anew(ortho, rng):
    parts = pattern(rng, N)
    data = values(rng, NM, *parts, np.float64)
    A, b = cla.BatchCSR((data, *parts)), random(rng, (NM, N), np.float64)
    x, report = krylov.gmres(A, b, restart=3, ortho=ortho)
    assert report.converged.all() and (norms(dense(data, *parts, N), x, b) <= 1e-8 * np.linalg.norm(b, axis=1)).all()
    assert (report.iterations > 3).all()


@pytest.mark.parametrize("restart", [3, exhaustive(30)])
def test_gmres_from_the_left(restart, system, dtype):
    """The goal is that of the true residual, and the first vector of the basis that of M r."""
    A, a, b = system
    rtol = RTOL[dtype.char.lower()]
    for M, approximate in preconditioners(A, a):
        how = {"rtol": rtol, "M": M, "restart": restart, "history": True}
        x, report = krylov.gmres(A, b, side="l", **how)
        true = norms(a, x, b)
        assert report.converged.all() and (true <= 1.01 * rtol * np.linalg.norm(b, axis=1)).all()
        assert np.allclose(report.residual, true, rtol=0.1)
        assert np.array_equal(report.history[range(NM), report.iterations], report.residual)
        if M is None:
            assert same_bits(x, krylov.gmres(A, b, side="R", **how)[0])
            continue
        # one step: the multiple of M b that makes M (b - A x) least
        (y, first), z = krylov.gmres(A, b, side="L", M=M, rtol=0, maxiter=1), np.linalg.solve(approximate, b[..., None])
        w = np.linalg.solve(approximate, a @ z)
        best = (w.conj() * z).sum(1) / (abs(w) ** 2).sum(1) * z[..., 0]
        assert (abs(y - best) <= 1e4 * np.finfo(dtype).eps * abs(best).max(1, keepdims=True)).all()
        assert (first.iterations == 1).all()
    _, report = krylov.gmres(lambda X: A @ X, b, side="L", rtol=rtol, M=krylov.Jacobi(A).solve, restart=restart)
    _, other = krylov.gmres(A, b, side="L", rtol=rtol, M=krylov.Jacobi(A), restart=restart)
    assert (abs(report.iterations - other.iterations) <= 1).all()


@pytest.mark.parametrize("method", METHODS)
def test_a_system_is_solved_as_if_it_were_alone(method, system, dtype):
    A, _, b = system
    rtol, run = RTOL[dtype.char.lower()], getattr(krylov, method)
    x, report = run(A, b, rtol=rtol, M=krylov.Jacobi(A))
    data = A.values.unpack()[:, :, 0]
    data[3], data[5], b[7] = np.nan, 0, 0
    B = cla.BatchCSR((data, A.indices, A.indptr))
    others = ~np.isin(np.arange(NM), (3, 5, 7))
    for steps in (None, 2):
        y, bad = run(B, b, rtol=rtol, M=krylov.Jacobi(B), maxiter=steps)
        assert not bad.converged[[3, 5]].any() and bad.converged[7] and bad.iterations[7] == 0 and not y[7].any()
        if steps is None:
            assert np.array_equal(y[others], x[others])
            assert np.array_equal(bad.iterations[others], report.iterations[others])
        else:
            assert (bad.iterations <= 2).all()
    z, again = run(A, b, x, rtol=rtol)  # what has converged is left alone
    assert np.array_equal(z[others], x[others]) and not again.iterations[others].any()


@pytest.mark.parametrize("method", METHODS)
def test_functions_and_dense_matrices(method, system, dtype):
    A, a, b = system
    rtol, run = RTOL[dtype.char.lower()], getattr(krylov, method)
    _, report = run(A, b, rtol=rtol, M=krylov.Jacobi(A))
    P = cla.pack(a, A.vlen)
    ways = [(lambda X: A @ X, krylov.Jacobi(A).solve), (lambda X: A @ X, krylov.Jacobi(A)), (P, krylov.Jacobi(P))]
    for given, M in (*ways, (P, krylov.Jacobi(P).solve)):
        y, other = run(given, b, rtol=rtol, M=M, history=True)
        assert other.converged.all() and (abs(other.iterations - report.iterations) <= 1).all()
        assert (norms(a, y, b) <= 1.01 * rtol * np.linalg.norm(b, axis=1)).all()
    packed, _ = run(P, cla.pack(b[:, :, None], A.vlen), rtol=rtol, M=krylov.Jacobi(P))
    assert isinstance(packed, cla.Pack)


on_devices = pytest.mark.parametrize("queue", working_devices(), indirect=True, ids=lambda d: "opencl")


def on(queue, A):
    """The matrices on a device, in packs that suit it."""
    return cla.BatchCSR((A.values.unpack()[:, :, 0], A.indices, A.indptr), queue=queue)


@on_devices
@pytest.mark.parametrize("dtype", TYPES, indirect=True)
@pytest.mark.parametrize("method", METHODS)
def test_devices_do_as_the_cpu(queue, method, system, dtype):
    A, a, b = system
    D, rtol, run = on(queue, A), RTOL[dtype.char.lower()], getattr(krylov, method)
    for (M, _), (there_M, _) in zip(preconditioners(A, a), preconditioners(D, a), strict=True):
        x, report = run(A, b, rtol=rtol, M=M, history=True)
        y, other = run(D, there(b, queue), rtol=rtol, M=there_M, history=True)
        y = here(y)
        assert other.converged.all() and (norms(a, y, b) <= 1.01 * rtol * np.linalg.norm(b, axis=1)).all()
        assert (abs(other.iterations - report.iterations) <= 1).all() and np.allclose(x, y, rtol=0, atol=10 * rtol)
        assert np.array_equal(other.history[range(NM), other.iterations], other.residual)
        assert np.allclose(other.history[:, 0], np.linalg.norm(b, axis=1))
        if M is not None:
            assert np.allclose(M @ b, there_M @ b, rtol=0, atol=1e3 * np.finfo(dtype).eps * abs(M @ b).max())
            assert np.array_equal(here(there_M @ there(b[:, :, None], queue))[:, :, 0], there_M @ b)


@on_devices
@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", "F", indirect=True)
def test_teams_of_work_items(queue, system, monkeypatch):
    """Teams solve as on a GPU. PoCL is slow to compile them, the more so with preconditioners."""
    monkeypatch.setattr(sparse, "team_of", lambda n, queue: 4)
    A, _, b = system
    D = A.to(queue)
    for method in METHODS:
        x, report = getattr(krylov, method)(A, b, rtol=1e-4)
        y, other = getattr(krylov, method)(D, b, rtol=1e-4)
        assert (abs(other.iterations - report.iterations) <= 1).all() and np.allclose(x, y, rtol=0, atol=1e-3)
    for make in (krylov.Jacobi, krylov.ILU0):
        z = make(A) @ b
        assert np.allclose(make(D) @ b, z, rtol=0, atol=1e-4 * abs(z).max())


@on_devices
@pytest.mark.parametrize("dtype", "d", indirect=True)
@pytest.mark.parametrize("method", METHODS)
def test_a_system_is_solved_as_if_it_were_alone_on_devices(queue, method, system):
    A, _, b = system
    run, M = getattr(krylov, method), krylov.Jacobi
    D, data = on(queue, A), A.values.unpack()[:, :, 0]
    done = [pyopencl.enqueue_marker(queue)]
    x, report = run(D, b, M=M(D), wait_for=done)
    assert np.array_equal(M(D).solve(b, wait_for=done), M(D) @ b)
    data[3], data[5], b[7] = np.nan, 0, 0
    others = ~np.isin(np.arange(NM), (3, 5, 7))
    D.update(data)
    y, bad = run(D, cla.pack(b[:, :, None], D.vlen, queue=queue), M=M(D))
    assert np.array_equal(y.unpack()[others, :, 0], x[others])
    assert np.array_equal(bad.iterations[others], report.iterations[others])
    assert not bad.converged[[3, 5]].any() and bad.converged[7] and bad.iterations[7] == 0
    z, again = run(D, b, y, M=M(D))  # what has converged is left alone
    assert np.array_equal(z[others], x[others]) and not again.iterations[others].any()
    part = cla.BatchCSR((data[8:], A.indices, A.indptr), queue=queue)
    assert np.array_equal(run(part, b[8:], M=M(part))[0], x[8:])


@on_devices
@pytest.mark.parametrize("dtype", "d", indirect=True)
def test_functions_and_dense_matrices_on_devices(queue, system, elsewhere):
    A, a, b = system
    D, P = on(queue, A), cla.pack(a, queue=queue)
    expected, report = krylov.bicgstab(A, b, M=krylov.Jacobi(A))
    wide = cla.pack(np.concatenate([a, a], 2), queue=queue)
    ways = [(D.__matmul__, krylov.Jacobi(D).solve), (D, krylov.Jacobi(D).solve), (D.__matmul__, krylov.Jacobi(D))]
    ways += [(P, krylov.Jacobi(P)), (wide[:, N:], krylov.Jacobi(wide[:, :N])), (P, krylov.Jacobi(P).solve)]
    for given, M in ways:
        x, other = krylov.bicgstab(given, there(b, queue), M=M)
        assert other.converged.all() and (abs(other.iterations - report.iterations) <= 1).all()
        assert np.allclose(here(x), expected, rtol=0, atol=1e-6)
    for wrong in ({"A": A, "b": there(b, queue)}, {"A": D, "b": b, "M": krylov.Jacobi(A)}):
        with pytest.raises(TypeError, match=r"b|M"):
            krylov.cg(**wrong)
    with pytest.raises((TypeError, ValueError), match="b"):
        krylov.cg(D, there(b, elsewhere))


@on_devices
def test_factors_on_devices(queue, rng):
    a = random(rng, (3, 4, 4), np.float64)
    a[1, 0, 0] = 0
    A = cla.pack(a, queue=queue)
    assert np.array_equal(krylov.ILU0(A).info, [0, 1, 0])
    for M in (krylov.ILU0(A), krylov.Jacobi(A), krylov.BlockJacobi(A, 3)):
        assert np.isfinite(M @ np.ones((3, 4))).all()
    a[:] = 1
    singular = cla.pack(a, queue=queue)
    assert np.array_equal(krylov.BlockJacobi(singular, 2) @ np.ones((3, 4)), np.ones((3, 4)))
    none = cla.BatchCSR((np.ones((0, 3)), range(3), range(4)), queue=queue)
    x, report = krylov.cg(none, np.ones((0, 3)), M=krylov.ILU0(none), history=True)
    assert x.shape == (0, 3) and report.iterations.shape == (0,)


@pytest.mark.parametrize("density", [0.2, 0.85])
def test_incomplete_factors(density, rng, dtype):
    parts = pattern(rng, 10, density=density)
    data, b = values(rng, NM, *parts, dtype), random(rng, (NM, 10), dtype)
    approximate = incomplete(dense(data, *parts, 10))
    expected = np.linalg.solve(approximate, b[:, :, None])[:, :, 0]
    x = krylov.ILU0(cla.BatchCSR((data, *parts))) @ b
    assert np.allclose(x, expected, rtol=0, atol=1e3 * np.finfo(dtype).eps * abs(expected).max())


@pytest.mark.parametrize("dtype", TYPES, indirect=True)
def test_approximate_inverses(queue, rng, dtype):
    n = 9
    indices, indptr = pattern(rng, n)
    data, b = values(rng, NM, indices, indptr, dtype), random(rng, (NM, n), dtype)
    data[3, : indptr[1]], data[4] = 0, np.nan
    A, a = cla.BatchCSR((data, indices, indptr), queue=queue), dense(data, indices, indptr, n)
    M = krylov.ISAI(A)
    x = M @ b
    assert np.array_equal(np.flatnonzero(M.info[5:]), []) and M.info[3] == 1
    for q in (0, 3, NM - 1):
        m = np.zeros_like(a[q])
        for i in range(n):
            row = indices[indptr[i] : indptr[i + 1]]
            small = a[q][np.ix_(row, row)].T
            m[i, row] = np.linalg.solve(small, row == i) if small.any(0).all() else (row == i) / (a[q, i, i] or 1)
        assert np.allclose(x[q], m @ b[q], rtol=0, atol=1e3 * np.finfo(dtype).eps * abs(x[q]).max())
    _, report = krylov.gmres(A, b, M=M, rtol=1e-4)
    assert report.converged[5:].all()


def test_lines_with_zero_pivots(queue):
    a = np.tile(np.eye(5), (3, 1, 1))
    a[1, 3, 3] = a[2, 0, 0] = a[2, 4, 4] = 0
    M = krylov.Lines(cla.pack(a, queue=queue), [[4, 3, 0]])
    assert np.array_equal(M.info, [0, 4, 5]) and np.array_equal(M @ np.ones((3, 5)), np.ones((3, 5)))


@pytest.mark.parametrize("lines", [[[0, 0]], [[1], [1]], [[3]], [[-1]]])
def test_refused_lines(lines):
    with pytest.raises(ValueError, match="lines"):
        krylov.Lines(cla.pack(np.tile(np.eye(6), (2, 1, 1))), lines, 2)


def test_singular_systems(rng):
    a, b = random(rng, (3, 6, 6), np.float64) + 8 * np.eye(6), random(rng, (3, 6), np.float64)
    a[0], a[1] = 0, 1
    x, report = krylov.gmres(cla.pack(a), b)
    assert np.array_equal(report.converged, [False, False, True]) and np.isfinite(report.residual).all()
    assert np.linalg.norm(x[1]) <= 10 * np.linalg.norm(b[1]) and not x[0].any()


def test_where_they_are():
    code = "import compactla as cla; cla.krylov.gmres, cla.krylov.ILU0, cla.BatchCSR"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_factors_made_in_passing(rng):
    a, b = random(rng, (NM, 7, 7), np.float64) + 6 * np.eye(7), random(rng, (NM, 7), np.float64)
    a[:, 2, 4] = 0
    A = cla.pack(a)
    M = krylov.ILU0(A)
    (x, first), (y, again) = (krylov.gmres(A, b, M=M) for _ in range(2))
    assert np.array_equal(x, y) and np.array_equal(first.residual, again.residual) and first.converged.all()


@pytest.mark.parametrize("dtype", TYPES, indirect=True)
def test_what_incomplete_factors_drop(rng, dtype):
    """Products with A M by what M drops, also beside a system one of whose pivots is replaced."""
    n, rtol = 18, RTOL[np.dtype(dtype).char.lower()]
    i, j = np.indices((n, n))
    mask = ((i + 2 * j) % 7 > 0) | (i == j)
    parts = np.nonzero(mask)[1], np.append(0, mask.sum(1).cumsum())
    data, b = values(rng, NM, *parts, dtype, 6), random(rng, (NM, n), dtype)
    singular = data.copy()
    singular[3, 0] = 0  # the first pivot
    A, B = cla.BatchCSR((data, *parts)), cla.BatchCSR((singular, *parts))
    others = np.arange(NM) != 3
    for solve in (krylov.gmres, krylov.bicgstab):
        M, L = krylov.ILU0(A), krylov.ILU0(B)
        x, report = solve(A, b, M=M, rtol=rtol)
        y, beside = solve(B, b, M=L, rtol=rtol)
        _, plain = solve(lambda v: A @ v, b, M=M, rtol=rtol)
        assert M._tiles(A.pattern).dropped.n == n and L.info[3] == 1 and not L.info[others].any()
        assert report.converged.all() and abs(report.iterations - plain.iterations).max() <= 1
        assert (norms(dense(data, *parts, n), x, b) <= 2 * report.residual).all()
        assert same_bits(x[others], y[others]) and beside.converged[3]
        assert (norms(dense(singular, *parts, n), y, b) <= 2 * beside.residual)[3]
    kept, again = krylov.gmres(A, b, M=M, rtol=rtol)
    first, report = krylov.gmres(A, b, M=krylov.ILU0(A), rtol=rtol)
    assert same_bits(first, kept) and np.array_equal(report.iterations, again.iterations)


def test_zero_pivots(rng):
    a = random(rng, (3, 4, 4), np.float64)
    a[1, 0, 0] = 0
    A = cla.pack(a)
    assert np.array_equal(krylov.ILU0(A).info, [0, 1, 0])
    assert np.isfinite(krylov.ILU0(A) @ np.ones((3, 4))).all()
    with pytest.raises(ValueError, match="diagonal"):
        krylov.ILU0(cla.BatchCSR((np.ones((2, 1)), [1], [0, 1, 1])))


@pytest.mark.parametrize(
    "wrong",
    [{"rtol": -1}, {"atol": "a"}, {"maxiter": -1}, {"restart": 0}, {"ortho": "qr"}, {"side": "B"}, {"x0": np.ones(3)}],
)
def test_refusals(wrong):
    A = cla.pack(np.tile(np.eye(3), (2, 1, 1)))
    with pytest.raises(ValueError, match=next(iter(wrong))):
        krylov.gmres(A, np.ones((2, 3)), **wrong)


def test_refused_operands():
    A = cla.pack(np.tile(np.eye(3), (2, 1, 1)))
    for given, b, M in ((None, np.ones((2, 3)), None), (A, np.ones((2, 3), complex), None), (A, np.ones((2, 3)), 3)):
        with pytest.raises(TypeError):
            krylov.cg(given, b, M=M)
    with pytest.raises(ValueError, match="M is"):
        krylov.cg(A, np.ones((2, 3)), M=krylov.Jacobi(cla.pack(np.tile(np.eye(4), (2, 1, 1)))))


FAR = {"f": 60, "d": 900}  # powers of two of which the squares are out of range


@pytest.fixture
def scaled(system, dtype):
    """Systems of which each has its powers of two, for A and for b, and the same systems without."""
    A, _, b = system
    powers = np.array([(i, j) for i in (0, 1, -1) for j in (0, 1, -1) if i * j >= 0]) * FAR[dtype.char.lower()]
    of_a, of_b = np.tile(powers.T, 3)[:, :NM]
    data = A.values.unpack()[:, :, 0]
    return A, b, (in_powers(data, of_a), A.indices, A.indptr), in_powers(b, of_b), of_a, of_b


def in_powers(x, powers):
    """The rows of x times powers of two, in its own type."""
    return np.ldexp(x.view(x.real.dtype), np.asarray(powers)[:, None]).view(x.dtype)


@pytest.mark.parametrize("dtype", TYPES, indirect=True)
@pytest.mark.parametrize("method", METHODS)
def test_scales(queue, method, scaled, dtype):
    """Scales so far from one that squares overflow or underflow change neither steps nor digits."""
    A, b, data, far, of_a, of_b = scaled
    run, rtol = getattr(krylov, method), RTOL[dtype.char.lower()]
    A, D = (cla.BatchCSR(parts, queue=queue) for parts in ((A.values.unpack()[:, :, 0], *data[1:]), data))
    for M, given, preconditioner in (
        (None, D, None),
        (krylov.Jacobi(A), D, krylov.Jacobi(D)),
        *([(None, lambda v: D @ v, None)] if queue is None else []),
    ):
        x, report = run(A if given is D else lambda v: A @ v, b, rtol=rtol, M=M, history=True)
        y, other = run(given, far, rtol=rtol, M=preconditioner, history=True)
        assert other.converged.all() and np.array_equal(other.iterations, report.iterations)
        assert np.array_equal(in_powers(y, of_a - of_b), x)
        assert np.array_equal(in_powers(other.history, -of_b), report.history)
        assert np.array_equal(other.history[:, -1], other.residual)


@pytest.mark.parametrize("dtype", TYPES, indirect=True)
@pytest.mark.parametrize("method", METHODS)
def test_scales_of_systems_that_begin_again(queue, method, scaled, dtype):
    """The goal is out of reach: methods begin anew from what they have, with scales that they know by then."""
    A, b, data, far, _, of_b = scaled
    A, D = (cla.BatchCSR(parts, queue=queue) for parts in ((A.values.unpack()[:, :, 0], *data[1:]), data))
    for given, rhs, powers in ((A, b, 0), (D, far, of_b)):
        _, report = getattr(krylov, method)(given, rhs, rtol=0.0, maxiter=3 * N, M=krylov.Jacobi(given))
        residual = np.ldexp(report.residual, -powers) / np.linalg.norm(b, axis=1)
        assert (residual < 100 * np.finfo(dtype).eps).all() and report.iterations.max() > N


@pytest.mark.parametrize("dtype", TYPES, indirect=True)
@pytest.mark.parametrize("method", METHODS)
def test_guesses_that_hide_the_right_hand_side(queue, method, scaled, dtype):
    """b is lost in what is rounded of b - A x0, or that overflows: zero is the better guess."""
    A, b, _, far, _, of_b = scaled
    A, rtol, run = on(queue, A), RTOL[dtype.char.lower()], getattr(krylov, method)
    x0 = in_powers(np.ones_like(b), np.where(of_b > 0, 0, np.arange(NM) % 2 * FAR[dtype.char.lower()]))
    hidden = (of_b < 0) | (x0[:, 0] != 1)
    for given in (A, *([lambda v: A @ v] if queue is None else [])):
        (x, report), (y, other) = (run(given, far, start, rtol=rtol) for start in (None, x0))
        assert other.converged.all() and np.array_equal(x[hidden], y[hidden])
        assert np.array_equal(other.iterations[hidden], report.iterations[hidden])


@pytest.mark.parametrize("bad", [np.inf, np.nan])
@pytest.mark.parametrize("method", METHODS)
def test_what_is_not_finite(queue, method, bad):
    a, b, x0 = np.tile(3 * np.eye(N) + 1, (4, 1, 1)), np.ones((4, N)), np.zeros((4, N))
    a[0, 2, 2] = b[1, 2] = x0[2, 2] = bad
    P = cla.pack(a, queue=queue)
    for given in (P, *([lambda v: P @ v] if queue is None else [])):
        _, report = getattr(krylov, method)(given, b, x0, maxiter=20)
        assert np.array_equal(report.converged, [False, False, False, True]) and not report.residual[1] < np.inf


@pytest.mark.parametrize("method", METHODS)
def test_right_hand_sides_of_zeros(queue, method):
    a = np.tile(np.eye(3) * 2, (3, 1, 1))
    b, start = np.ones((3, 3)) * [[0], [1], [0]], np.ones((3, 3)) * [[1e-3], [1], [3]]
    x, report = getattr(krylov, method)(cla.pack(a, queue=queue), b, start)
    assert np.allclose(x, b / 2) and report.converged.all() and not report.iterations[::2].any() and not x[::2].any()
