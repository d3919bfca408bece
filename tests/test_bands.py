"""Systems with band matrices: residuals as LAPACK scales them, info, layouts, and what is the same to the bit."""

import numpy as np
import pyopencl.array
import pytest
from numba import njit

import compactla as cla
from cases import exhaustive, random
from compactla import cpu, gpu
from compactla.bands import cutting
from compactla.cpu import matrix
from compactla.cpu.bands import systems as cpu_bands
from compactla.gpu import bands as gpu_bands
from compactla.oracle import THRESHOLD
from drivers import working_devices
from reference import block_tridiagonal, solve_ratio
from solvers import in_band

EXHAUSTIVE = pytest.mark.exhaustive
SLOW = pytest.mark.slow
REAL_FIRST = ["d", pytest.param("F", marks=SLOW), *(pytest.param(x, marks=EXHAUSTIVE) for x in "fD")]
COMPLEX_FIRST = ["F", pytest.param("d", marks=SLOW), *(pytest.param(x, marks=EXHAUSTIVE) for x in "fD")]


def dense_tridiag(*diagonals):
    """Matrices of tridiagonal systems, or of rings, if there are as many couplings as unknowns."""
    return block_tridiagonal(*(a[..., None, None] for a in diagonals))


def dense_band(ab, kl, ku):
    n = ab.shape[2]
    A = np.zeros((len(ab), n, n), ab.dtype)
    for i in range(n):
        for j in range(max(0, i - kl), min(n, i + ku + 1)):
            A[:, i, j] = ab[:, ku + i - j, j]
    return A


def check(M, A, b):
    """Solve both ways, which has to be the same."""
    x = M.solve(b)
    info = M.info
    assert np.array_equal(M.factor(), info) and not info.any() and info.shape == (len(b),)
    assert np.array_equal(M.solve(b), x)
    assert x.dtype == M.dtype and x.shape == b.shape
    assert solve_ratio(A, x, b) < THRESHOLD


@pytest.mark.parametrize("char", REAL_FIRST)
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("pivoting", [True, pytest.param(False, marks=SLOW)])
def test_tridiag(char, periodic, pivoting):
    rng = np.random.default_rng(1)
    for n in 1, 2, 3, 4, 17, 40:
        m = n if periodic else n - 1
        for nsys in 1, 19:
            lower, diag, upper = (random(rng, (nsys, k), char) for k in (m, n, m))
            diag += 0 if pivoting else 5
            A = dense_tridiag(lower, diag, upper)
            T = cla.Tridiag(lower, diag, upper, periodic=periodic, pivoting=pivoting)
            check(T, A, random(rng, (nsys, n), char))
        check(T, A, random(rng, (nsys, n, 6 if n == 4 else 2), char)) if n in (3, 4, 40) and char == "d" else None


@pytest.mark.parametrize("char", COMPLEX_FIRST)
@pytest.mark.parametrize(
    ("kl", "ku", "pivoting"),
    [
        (2, 1, True),
        (7, 4, True),
        *(pytest.param(*x, marks=SLOW) for x in ((0, 2, True), (2, 0, True), (1, 2, False), (3, 8, False))),
        *(pytest.param(*x, marks=EXHAUSTIVE) for x in ((3, 3, True), (1, 6, True), (2, 2, False), (0, 0, True))),
    ],
)
def test_banded(char, kl, ku, pivoting):
    rng = np.random.default_rng(2)
    for n in 1, 2, 5, 33:
        for nsys in 1, 19:
            ab = random(rng, (nsys, kl + ku + 1, n), char)
            ab[:, ku] += 8 * (not pivoting) + (kl == 0) * 3 * np.sign(ab[:, ku].real)
            A = dense_band(ab, kl, ku)
            check(cla.Banded((kl, ku), *in_band(kl, ku)(A), pivoting=pivoting), A, random(rng, (nsys, n), char))


@pytest.mark.parametrize("char", COMPLEX_FIRST)
@pytest.mark.parametrize("ku", [1, *(pytest.param(x, marks=SLOW) for x in (0, 2, 4, 11))])
@pytest.mark.parametrize("lower", [True, pytest.param(False, marks=SLOW)])
def test_bandedspd(char, ku, lower):
    rng = np.random.default_rng(3)
    for n in 1, 2, 5, 33:
        ab = random(rng, (19, ku + 1, n), char)
        ab[:, 0 if lower else ku] = 4 * ku + 1 + (1j if char in "FD" else 0)  # the imaginary part is not read
        reach = (ku, 0) if lower else (0, ku)
        A = dense_band(ab, *reach)
        (ab,) = in_band(*reach)(A)
        A *= 1 - np.eye(n)
        A += np.swapaxes(A, 1, 2).conj() + (4 * ku + 1) * np.eye(n)
        check(cla.BandedSPD(ab, lower=lower), A.astype(char), random(rng, (19, n), char))


def systems(nsys=21, n=37, periodic=False):
    rng = np.random.default_rng(4)
    m = n if periodic else n - 1
    return [random(rng, (nsys, k), "d") for k in (m, n, m, n)]


def test_rings_of_singular_lines():
    lower, diag, upper, b = systems(periodic=True)
    diag[:, 0] = upper[:, 0] = 0  # but for the coupling that closes the ring there is nothing in row 0
    check(cla.Tridiag(lower, diag, upper, periodic=True), dense_tridiag(lower, diag, upper), b)


def test_info():
    lower, diag, upper, _ = systems()
    diag[:, 0] = 0
    assert (cla.Tridiag(lower, diag, upper, pivoting=False).factor() == 1).all()
    spd = np.stack([np.zeros((21, 37)), np.ones((21, 37))], 1)
    spd[5, 1, 8], spd[6, 1, 9] = -1, np.nan
    info = cla.BandedSPD(spd).factor()
    assert info[5] == 9 and info[6] == 10 and not info[:5].any() and not info[7:].any()
    ring = cla.Tridiag(np.zeros((2, 5)), np.ones((2, 5)) * [[1], [0]], np.zeros((2, 5)), periodic=True).factor()
    assert ring[0] == 0 and 1 <= ring[1] <= 5


def test_axes_and_strides():
    rng = np.random.default_rng(5)
    lower, diag, upper, b = systems(20, 9)
    T = cla.Tridiag(lower, diag, upper)
    x = T.solve(b)
    for factored in False, True:
        if factored:
            T.factor()
        assert np.array_equal(T.solve(b.T, axis=0), x.T)
        field = np.ascontiguousarray(np.swapaxes(b.reshape(4, 5, 9), 1, 2))
        out = np.empty((4, 9, 10))[:, :, ::2]
        assert T.solve(field, axis=1, out=out) is out
        assert np.array_equal(out, np.swapaxes(x.reshape(4, 5, 9), 1, 2))
        many = T.solve(np.stack([b] * 5, 2))
        assert np.array_equal(many[:, :, 4], x)
    diagonals = (np.ascontiguousarray(np.swapaxes(a.reshape(4, 5, -1), 1, 2)) for a in (lower, diag, upper))
    F = cla.Tridiag(*diagonals, axis=1)
    assert np.array_equal(F.solve(field), np.swapaxes(x.reshape(4, 5, 9), 1, 2))
    shared = cla.Tridiag(lower[0], diag[0], upper[0])
    for _ in range(2):
        y = shared.solve(b)
        assert np.array_equal(y[0], x[0]) and np.array_equal(shared.solve(b[0]), x[0])
        assert solve_ratio(np.broadcast_to(dense_tridiag(lower[:1], diag[:1], upper[:1]), (20, 9, 9)), y, b) < THRESHOLD
        assert shared.factor().shape == (1,)
    whole = random(rng, (3, 2, 2, 9, 2), "d")[:, ::2, :, :, 1]  # axes that can't be one
    assert np.array_equal(shared.solve(whole, axis=-1).reshape(-1, 9), shared.solve(whole.reshape(-1, 9)))


@pytest.mark.parametrize("spd", [False, pytest.param(True, marks=SLOW)])
def test_factors_past_the_caches(spd, monkeypatch):
    """Factors that are written past the caches have the same bits, also where they are made again of new values."""
    lower, diag, upper, b = systems()
    ab = np.stack([diag + 9, np.pad(lower, ((0, 0), (0, 1)))], 1)
    matrices = (ab,) if spd else (lower, diag, upper)
    found = []
    for limit in 1 << 40, 0:
        monkeypatch.setattr(cpu_bands, "past_caches", lambda limit=limit: limit)
        given = [a.copy() for a in matrices]
        T = cla.BandedSPD(*given, lower=True) if spd else cla.Tridiag(*given)
        for _ in range(3):  # the third time by the plan of the second
            assert not T.factor().any()
            found.append(T.solve(b))
            for a in given:
                a *= 1.25
    for one, other in zip(found[:3], found[3:], strict=True):
        assert np.array_equal(one, other)
    assert np.abs(found[2] * 1.25**2 - found[0]).max() < 1e-11 * np.abs(found[0]).max()


def test_refused():
    a, b = np.ones((2, 4)), np.ones((2, 3))
    T = cla.Tridiag(b, 4 * a, b)
    x = np.ones((2, 4))
    for error, name, call in [
        (ValueError, "lower", lambda: cla.Tridiag(a, a, b)),
        (ValueError, "upper", lambda: cla.Tridiag(a, a, b, periodic=True)),
        (TypeError, "upper", lambda: cla.Tridiag(b, a, b.astype("f"))),
        (TypeError, "diag", lambda: cla.Tridiag(b, a.astype(int), b)),
        (ValueError, "diag", lambda: cla.Tridiag(b[None], a[None], b[None])),
        (TypeError, "periodic", lambda: cla.Tridiag(b, a, b, periodic=2)),
        (ValueError, "ab", lambda: cla.Banded((1, 2), np.ones((2, 3, 4)))),
        (ValueError, "l_and_u", lambda: cla.Banded((-1, 2), np.ones((2, 2, 4)))),
        (TypeError, "l_and_u", lambda: cla.Banded(3, np.ones((2, 2, 4)))),
        (ValueError, "ab", lambda: cla.BandedSPD(np.ones(3))),
        (ValueError, "rhs", lambda: T.solve(x, axis=0)),
        (ValueError, "axis", lambda: T.solve(x, axis=2)),
    ]:
        with pytest.raises(error, match=f"^{name}"):
            call()


@pytest.mark.parametrize("char", ["d", pytest.param("F", marks=EXHAUSTIVE)])
def test_panels(char):
    """Systems side by side, in several panels and some behind them, are solved as others are, to the bit."""
    V = cpu_bands.lanes_of(np.dtype(char))
    for n in 3, 2 * V + 3:
        lower, diag, upper, b = systems(cpu_bands.LEAST * cpu_bands.PACKS * V + V + 3, n)
        lower, diag, upper, b = (a.astype(char) for a in (lower, diag, upper, b))
        diag[7, 0] = lower[7, 0] = 0
        side_by_side = [np.ascontiguousarray(a.T) for a in (lower, diag, upper, b)]
        T = cla.Tridiag(lower, diag, upper)
        x = T.solve(b)
        assert T.info[7] == 1 and np.count_nonzero(T.info) == 1
        for threads in 1, 2:
            S = cla.Tridiag(*side_by_side[:3], axis=0)
            for _ in range(2):
                out = side_by_side[3].copy()
                assert np.array_equal(S.solve(out, out=out, threads=threads).T, x, equal_nan=True)
                assert np.array_equal(S.info, T.info)
                assert np.array_equal(S.factor(threads=threads), T.info)


@pytest.mark.parametrize("char", ["d", pytest.param("F", marks=EXHAUSTIVE)])
@pytest.mark.parametrize("pivoting", [True, pytest.param(False, marks=SLOW)])
def test_few_long_systems(char, pivoting, monkeypatch):
    """Systems that are cut are solved as others are; those that must not be cut, to the bit."""
    for name, value in ("PART", 8), ("LONG", 16), ("BLOCK", 3):
        monkeypatch.setattr(cutting, name, value)
    for n in 16, 17, 70:
        lower, diag, upper, b = (a.astype(char) for a in systems(9, n))
        diag += 9
        diag[1, 3] = lower[1, 2:4] = upper[1, 2:4] = 0  # singular
        diag[2, 9] = lower[2, 8] / 2  # not dominant
        diag[3, 5], b[4, 6] = np.nan, np.nan
        many = cla.Tridiag(lower, diag, upper, pivoting=pivoting)
        expected = many.solve(b)
        assert many.info[1] == 4 and not many.info[[0, 2, 4, 5]].any()
        for some in [0], [5, 0], [1], [0, 2], [3, 0], [4], [2, 1]:
            T = cla.Tridiag(lower[some], diag[some], upper[some], pivoting=pivoting)
            x = T.solve(b[some])
            assert np.array_equal(T.info, many.info[some])
            for q, its in zip(some, x, strict=True):
                if q in (0, 5):
                    assert np.abs(its - expected[q]).max() < 20 * np.finfo(char).eps * np.abs(its).max()
                elif q in (1, 2, 3):
                    assert np.array_equal(its, expected[q], equal_nan=True)
                else:
                    assert np.isnan(its).any()
            side_by_side = [np.ascontiguousarray(a[some].T) for a in (lower, diag, upper, b)]
            S = cla.Tridiag(*side_by_side[:3], axis=0, pivoting=pivoting)
            out = side_by_side[3]
            assert np.array_equal(S.solve(out, out=out, threads=2).T, x, equal_nan=True)


@njit
def at_pack_level(lower, diag, upper, ab, U, L, ipiv, F, info, x, y, z):
    D, low, up = matrix(diag, 4), matrix(lower, 4), matrix(upper, 4)
    cpu.gttrf(low, D, up, matrix(U, 4, 3), matrix(L, 4, 1), matrix(ipiv, 4), info)
    cpu.gttrs(matrix(U, 4, 3), matrix(L, 4, 1), matrix(ipiv, 4), matrix(x, 4, None, 1))
    cpu.pttrf(D, low, matrix(F, 4, 2), info)
    cpu.pttrs(matrix(F, 4, 2), matrix(y, 4, None, 1))
    cpu.tbsv(matrix(ab, 4, 3), matrix(z, 4), "U", "T")


@SLOW
def test_pack_level():
    rng, n = np.random.default_rng(7), 9
    lower, diag, upper, x = (random(rng, (k, 1, 4), "d") for k in (n - 1, n, n - 1, n))
    diag += 4
    U, L, F = (np.ones((k, n, 4)) for k in (3, 1, 2))
    ipiv, info = np.ones((n, 1, 4), np.int64), np.zeros(4, np.int64)
    ab = np.full((3, n, 4), np.nan)
    ab[2], ab[1, 1:], ab[0, 2:] = diag[:, 0], upper[:, 0], random(rng, (n - 2, 4), "d")
    y, z = x.copy(), x.copy()
    b = x.copy()
    at_pack_level(lower, diag, upper, ab, U, L, ipiv, F, info, x, y, z)
    d = [a[:, 0].T for a in (lower, diag, upper)]
    for A, found in (
        (dense_tridiag(*d), x),
        (dense_tridiag(d[0], d[1], d[0]), y),
        (np.swapaxes(dense_band(np.moveaxis(ab, 2, 0), 0, 2), 1, 2), z),
    ):
        assert not info.any() and solve_ratio(A, found[:, 0].T, b[:, 0].T) < THRESHOLD


PACK_LEVEL = """
#include "gttrs.cl"
#include "gttrf.cl"
#include "pttrs.cl"
#include "pttrf.cl"
#include "tbsv.cl"

#define PLACE(a, m, n) cla_matrix_of_batch(a, q, m, n)

__kernel void solve(__global CLA_REAL *lower, __global CLA_REAL *diag, __global CLA_REAL *upper, __global CLA_REAL *ab,
                    __global CLA_REAL *f, __global int *swaps, __global CLA_REAL *x, __global CLA_REAL *y,
                    __global CLA_REAL *z, __global int *info)
{
    const long q = get_global_id(0);
    const cla_matrix l = PLACE(lower, N - 1, 1), d = PLACE(diag, N, 1), u = PLACE(upper, N - 1, 1), F = PLACE(f, N, 4);
    __global int *const s = cla_ints_of_batch(swaps, q, N);
    info[q] = cla_gttrf(N, 1, l, d, u, F, s);
    cla_gttrs(N, 1, 1, F, s, PLACE(x, N, 1));
    info[q] += cla_pttrf(N, d, l, F);
    cla_pttrs(N, 1, F, PLACE(y, N, 1));
    cla_tbsv(N, 2, 0, 0, CLA_NONUNIT, PLACE(ab, 3, N), PLACE(z, N, 1));
    cla_tbsv(N, 2, 0, 1, CLA_NONUNIT, cla_conjugated(PLACE(ab, 3, N)), PLACE(z, N, 1));
    cla_tbsv(N, 2, 1, 0, CLA_UNIT, PLACE(ab, 3, N), PLACE(z, N, 1));
    cla_tbsv(N, 2, 1, 1, CLA_NONUNIT, PLACE(ab, 3, N), PLACE(z, N, 1));
}
"""


@pytest.mark.parametrize("char", COMPLEX_FIRST)
def test_pack_level_in_opencl(queue, char):
    if queue is None:
        return
    rng, n, nm, vlen = np.random.default_rng(7), 9, 5, 8
    lower, diag, upper, x = (random(rng, (nm, k, 1), char) for k in (n - 1, n, n - 1, n))
    diag.real[:] += 5
    ab = random(rng, (nm, 3, n), char)
    ab[:, 0] += 4
    ab[:, 2] += 4
    F, packs = cla.Pack.empty(nm, n, 4, dtype=char, vlen=vlen, queue=queue), [lower, diag, upper, ab, x, x, x]
    packs = [cla.pack(a, vlen, queue=queue) for a in packs]
    swaps, info = (pyopencl.array.zeros(queue, (k, vlen), np.int32) for k in (n, 1))
    program = gpu.build(queue.context, PACK_LEVEL, char, vlen, N=n)
    data = [a.data.data for a in (*packs[:4], F)] + [swaps.data] + [a.data.data for a in packs[4:]]
    program.solve(queue, (vlen,), None, *data, info.data)
    assert not info.get()[0, :nm].any()
    L, U = dense_band(ab, 2, 0), dense_band(ab, 0, 2)  # as `ab` of lower and of upper triangles
    unit = U * (1 - np.eye(n)) + np.eye(n)
    H = dense_tridiag(lower[..., 0], diag[..., 0].real.astype(char), lower[..., 0].conj())
    tridiagonal = dense_tridiag(lower[..., 0], diag[..., 0], upper[..., 0])
    for A, found in zip((tridiagonal, H), packs[4:6], strict=True):
        assert solve_ratio(A, found.unpack(), x) < THRESHOLD
    z = x
    for A in L, np.swapaxes(L, 1, 2).conj(), unit, np.swapaxes(U, 1, 2):
        z = np.linalg.solve(A.astype("D"), z)
    assert np.abs(packs[6].unpack() - z).max() < 1e4 * np.finfo(char).eps * np.abs(z).max()


def test_devices(queue):
    if queue is None:
        return
    lower, diag, upper, b = systems(19, 9, periodic=True)
    T = cla.Tridiag(lower, diag, upper, periodic=True, queue=queue)
    x = T.solve(b)
    assert solve_ratio(dense_tridiag(lower, diag, upper), x, b) < THRESHOLD
    assert not T.factor().any()
    given = pyopencl.array.to_device(queue, np.stack([b, b], 2))
    y = T.solve(given)
    assert np.array_equal(y.get()[..., 1], x)
    field = np.swapaxes(b[:18].reshape(3, 6, 9), 1, 2).copy()
    with pytest.raises(ValueError, match=r"^rhs"):
        T.solve(field, axis=1)
    shared = cla.Tridiag(lower[0, 1:], diag[0], upper[0, 1:], queue=queue)
    on_cpu = cla.Tridiag(lower[0, 1:], diag[0], upper[0, 1:]).solve(field, axis=1)
    assert np.abs(shared.solve(field, axis=1) - on_cpu).max() < 1e-12 * np.abs(on_cpu).max()


@SLOW
@pytest.mark.parametrize("periodic", [False, pytest.param(True, marks=EXHAUSTIVE)])
def test_tiles_on_devices(queue, periodic, monkeypatch, unoptimized):
    """Kernels of GPUs: several rows in a tile, fewer packs at a time than there are, and arrays of other strides."""
    if queue is None:
        return
    monkeypatch.setattr(gpu_bands, "TURNS", 4)
    monkeypatch.setattr(gpu_bands.BandLaunch, "packs_at_a_time", lambda self: min(2, self.npack))
    lower, diag, upper, b = systems(115, 11, periodic=periodic)
    x = cla.Tridiag(lower, diag, upper, periodic=periodic).solve(b)
    given = [pyopencl.array.to_device(queue, a) for a in (lower, diag, upper)]
    T = cla.Tridiag(*given, periodic=periodic)
    right, wide = (pyopencl.array.to_device(queue, np.repeat(a, 2, axis=1)) for a in (b, 0 * b))
    out = wide[:, 1::2]
    for _ in range(2):
        assert T.solve(right[:, ::2], out=out) is out
        found = wide.get()
        assert np.abs(found[:, 1::2] - x).max() < 1e-11 * np.abs(x).max() and not found[:, ::2].any()
        assert not T.factor().any()
        y = T.solve(pyopencl.array.to_device(queue, b.T.copy()), axis=0)
        assert np.array_equal(y.get().T, found[:, 1::2])


@SLOW
@pytest.mark.parametrize("char", ["d", pytest.param("f", marks=EXHAUSTIVE)])
def test_minors_on_devices(queue, char, monkeypatch, unoptimized):
    """Kernels of GPUs for many systems that are neighbours in memory: solutions, and info as on the CPU."""
    if queue is None:
        return
    monkeypatch.setattr(gpu_bands, "is_cpu", lambda device: False)
    monkeypatch.setattr(gpu_bands, "FEW_PACKS", 0)
    monkeypatch.setattr(gpu_bands, "LONG", 0)
    monkeypatch.setattr(gpu_bands, "BESIDE", 4)  # PoCL takes long to compile more
    rng = np.random.default_rng(14)
    for n in 1, 2, 21:
        lower, diag, upper, b = (random(rng, (37, k), char) for k in (n - 1, n, n - 1, n))
        diag += 5
        scale = np.exp2(rng.integers(-40, 40, 37))[:, None].astype(char)  # minors are scaled, too
        A, fine = dense_tridiag(lower, diag, upper), np.arange(37)
        if n == 21:
            diag[2, 11] = lower[2, 10] = 0
            diag[3, 7] = np.nan
            diag[4, :2], lower[4, 0], upper[4, 0] = (2, 1.5), 3, 1  # of which the second pivot is zero
            fine = np.setdiff1d(fine, [2, 3, 4])
        given = ((scale * a).T.copy() for a in (lower, diag, upper, b))
        *diagonals, right = (pyopencl.array.to_device(queue, a) for a in given)
        T = cla.Tridiag(*diagonals, pivoting=False, axis=0)
        x = T.solve(right, axis=0, out=right).get().T
        assert solve_ratio(A[fine], x[fine], b[fine]) < THRESHOLD and (n < 21 or np.isnan(x[3]).any())
        info = cla.Tridiag(scale * lower, scale * diag, scale * upper, pivoting=False).factor()
        assert np.array_equal(T.info, info) and info.any() == (n == 21)
        ab = np.zeros((2, n, 37), char)
        ab[0], ab[1, :-1] = diag.T, lower.T
        S = cla.BandedSPD(pyopencl.array.to_device(queue, ab).transpose((2, 0, 1)), lower=True)
        right, out = (pyopencl.array.to_device(queue, np.array([b.T, -b.T], order="C")) for _ in range(2))
        S.solve(right.transpose((2, 1, 0)), out=out.transpose((2, 1, 0)))
        x, y = np.swapaxes(out.get(), 1, 2)
        assert solve_ratio(dense_tridiag(lower, diag, lower)[fine], x[fine], b[fine]) < THRESHOLD
        assert np.array_equal(x[fine], -y[fine])
        assert np.array_equal(S.info, cla.BandedSPD(np.moveaxis(ab, -1, 0), lower=True).factor())


# PoCL takes a minute for these kernels, which Intel's compiler and Oclgrind run.
TEAMS = [exhaustive(device) if "PoCL" in device.platform.version else device for device in working_devices()]


@SLOW
@pytest.mark.parametrize("queue", TEAMS, indirect=True, ids=lambda device: "opencl")
@pytest.mark.parametrize("char", ["d", pytest.param("F", marks=EXHAUSTIVE)])
def test_teams_on_devices(queue, char, monkeypatch, unoptimized):
    """Kernels of GPUs without row interchanges: solutions in all layouts, and info as on the CPU."""
    monkeypatch.setattr(gpu_bands, "is_cpu", lambda device: False)
    monkeypatch.setattr(gpu_bands, "DEEP", 16)  # two rows: PoCL takes long to compile many
    monkeypatch.setattr(gpu_bands, "LONG", 0)
    rng = np.random.default_rng(10)
    lower, diag, upper, b = (random(rng, (19, k), char) for k in (36, 37, 36, 37))
    diag += 5
    x = cla.Tridiag(lower, diag, upper, pivoting=False, queue=queue).solve(b)
    assert solve_ratio(dense_tridiag(lower, diag, upper), x, b) < THRESHOLD
    diag[2, 11] = lower[2, 10] = 0
    diag[3, 32] = lower[3, 31] = 0
    diag[4, 20] = np.nan
    diag[5], lower[5], upper[5] = 1, 1, 1  # of which the second pivot is zero
    diag[6], lower[6], upper[6] = 1e30, 1e30, 1
    fine = np.setdiff1d(np.arange(19), range(2, 7))
    info = cla.Tridiag(lower, diag, upper, pivoting=False).factor()
    given = [pyopencl.array.to_device(queue, a.T.copy()) for a in (lower, diag, upper, b)]
    for T, right, axis in (
        (cla.Tridiag(*given[:3], pivoting=False, axis=0), given[3], 0),
        (cla.Tridiag(lower, diag, upper, pivoting=False, queue=queue), b, 1),
    ):
        for _ in range(2):
            y = T.solve(right, axis=axis)
            y = y.get().T if axis == 0 else y
            assert np.abs(y[fine] - x[fine]).max() < 100 * np.finfo(char).eps and np.isnan(y[4]).any()
            assert np.array_equal(T.info, info) and info[:6].tolist() == [0, 0, 12, 33, 0, 2]
            assert np.array_equal(T.factor(), info)
    many = T.solve(np.stack([2 * b, b], 2))
    assert np.abs(many[fine, :, 1] - x[fine]).max() < 100 * np.finfo(char).eps


@SLOW
@pytest.mark.parametrize("parts", [False, True])
@pytest.mark.parametrize("char", ["d", *(pytest.param(x, marks=EXHAUSTIVE) for x in "fFD")])
def test_teams_that_swap_rows_on_devices(queue, char, parts, monkeypatch):
    """Kernels of GPUs with row interchanges, of one team for a system and of several."""
    if queue is None:
        return
    monkeypatch.setattr(gpu_bands, "is_cpu", lambda device: False)
    monkeypatch.setattr(gpu_bands, "DEEP", 4 * np.dtype(char).itemsize)
    monkeypatch.setattr(gpu_bands, "LONG", 0)
    if parts:
        monkeypatch.setattr(gpu_bands, "MOST", 8)
        monkeypatch.setattr(gpu_bands, "TOGETHER", 4)
    rng, n = np.random.default_rng(12), 37
    lower, diag, upper, b = (random(rng, (19, k), char) for k in (n - 1, n, n - 1, n))
    diag[1] = 0  # of which each pivot needs an interchange but the last, which is zero
    diag[2, 11] = lower[2, 10] = upper[2, 11] = 0
    diag[3, 20] = np.nan
    diag[4, ::2] *= 1e-20
    bad, A = [1, 2, 3], dense_tridiag(lower, diag, upper)
    fine, info = np.setdiff1d(np.arange(19), bad), cla.Tridiag(lower, diag, upper).factor()
    x = cla.Tridiag(lower, diag, upper, queue=queue).solve(b)
    assert solve_ratio(A[fine], x[fine], b[fine]) < THRESHOLD
    given = [pyopencl.array.to_device(queue, a.T.copy()) for a in (lower, diag, upper, b)]
    T = cla.Tridiag(*given[:3], axis=0)
    assert np.array_equal(T.solve(given[3], axis=0).get().T, x, equal_nan=True)
    assert np.array_equal(T.info, info) and info[:4].tolist() == [0, n, n, 0]
    few = cla.Tridiag(lower[7:8], diag[7:8], upper[7:8], queue=queue)
    assert np.array_equal(few.solve(np.stack([2 * b, b], 2)[7:8])[..., 1], x[7:8]) and not few.info.any()


@SLOW
@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_short_systems_of_teams_that_swap_rows(queue, n, monkeypatch):
    if queue is None:
        return
    monkeypatch.setattr(gpu_bands, "is_cpu", lambda device: False)
    monkeypatch.setattr(gpu_bands, "DEEP", 16)
    monkeypatch.setattr(gpu_bands, "LONG", 0)
    rng = np.random.default_rng(13)
    ab, b = random(rng, (5, 3, n), "d"), random(rng, (5, n), "d")
    x = cla.Banded((1, 1), ab, queue=queue).solve(b)
    assert solve_ratio(dense_band(ab, 1, 1), x, b) < THRESHOLD


@EXHAUSTIVE
@pytest.mark.parametrize("queue", working_devices(), indirect=True, ids=lambda d: "opencl")
@pytest.mark.parametrize("shared", [False, True])
def test_more_elements_than_integers_count(queue, shared):
    """Systems beyond 2^31 elements, and factors if matrices are shared by none; on devices with memory for them."""
    n, nsys = 128, 2**24 + 37
    if queue.device.max_mem_alloc_size < 2**34 or queue.device.global_mem_size < 2**35 + 2**33:
        pytest.skip("needs a device with 40 GiB of memory")
    rng = np.random.default_rng(9)
    lower, diag, upper, rhs = (random(rng, (n - k,), "f") for k in (1, 0, 1, 0))
    diag += 5
    few = cla.Tridiag(lower, diag, upper, queue=queue).solve(rhs[None])
    b = pyopencl.array.empty(queue, (nsys, n), "f")
    b[...] = 0
    places = [slice(0, 2), slice(2**24 - 1, 2**24 + 1), slice(nsys - 2, nsys)]
    for place in places:
        b[place].set(np.stack([rhs] * 2))
    given = [pyopencl.array.to_device(queue, a) for a in (lower, diag, upper)]
    if not shared:  # by strides of zero
        given = [
            pyopencl.array.Array(queue, (nsys, *a.shape), a.dtype, strides=(0, 4), data=a.base_data) for a in given
        ]
    T = cla.Tridiag(*given)
    assert T.solve(b, out=b) is b
    for place in places:
        assert np.array_equal(b[place].get(), np.concatenate([few, few]))
    assert not b[5].get().any() and not T.info.any()
    if not shared:
        part = 2**31 // (4 * n) + 1000  # factors of more elements than that
        assert not cla.Tridiag(*(a[:part] for a in given)).factor().any()
