"""gesvd: matrices that others fail on, and what is right to the last digits of every singular value."""

import numpy as np
import pytest
from numba import njit

import compactla as cla
from cases import in_turns, random, same_bits
from compactla import oracle, results, routine
from compactla.cpu import gesvd, matrix

pytestmark = pytest.mark.slow

NOT_DONE = 40  # info
SIZES = [(3, 3), (17, 17), (3, 2), (3, 6), (40, 9)]

# On which other implementations hang (KokkosKernels issues 2344, 2557 and 2650).
HANGING = {
    (3, 3): [[0, 0, 0], [3.58442287931538747e-02, 3.81743062695684907e-02, 0], [0, 0, -5.55555555555555733e-02]],
    (3, 2): [
        [-1.6175067619642277e-05, 1.6175067619642277e-05],
        [-1.6175067619642270e-05, -1.6175067619642277e-05],
        [3.0662409276442540e-21, 2.3002860307475551e-21],
    ],
    (3, 6): [
        [-2.3588494081694974e-03, -2.3602176428346553e-03, -3.3360574050870077e-03, -2.3589487578561312e-03,
         -3.3359167956075490e-03, -3.3378517656821728e-03],
        [3.3359168246290603e-03, 3.3378518006490351e-03, 0, 3.3360573263032968e-03, 0, 0],
        [-2.3588494081695022e-03, -2.3602176428346587e-03, 3.3360574050869769e-03, -2.3589487578561286e-03,
         3.3359167956075399e-03, 3.3378517656821581e-03],
    ],
}  # fmt: skip


def special(m, n, dtype, rng):
    """Matrices of all kinds: of low rank, with singular values that are equal, close or graded, tiny and huge."""
    limits, k = np.finfo(dtype), min(m, n)
    eps, i, j = limits.eps, np.arange(m)[:, None], np.arange(n)
    left, right = (np.linalg.qr(random(rng, (size, size), np.dtype("D")))[0][:, :k] for size in (m, n))
    left, right = (x if np.dtype(dtype).kind == "c" else np.linalg.qr(x.real)[0] for x in (left, right))
    values = [np.ones(k), 1 + eps * np.arange(k), np.where(np.arange(k) < k // 2, 1, 1e-3)]
    values += [np.where(np.arange(k) < k - 1, 1, eps), eps ** np.linspace(0, 1, k), np.linspace(1, eps, k)]
    found = [(left * s) @ right.conj().T for s in values]
    a = random(rng, (m, n), np.dtype("D"))
    found += [0 * a, np.eye(m, n), np.ones((m, n)), i + j * 1.0, np.eye(m, 1) * a[0], a[:, :1] * np.eye(1, n)]
    found += [a * (j != n // 2), a * (i != m // 2), a[:, [0] * n], a[[0] * m], np.round(a), np.eye(m, n, 1)]
    found += [a * 4.0**-j, a * 4.0 ** (j - n), a * 4.0**-i, a * 4.0 ** (i - m), 1 / (i + j + 1.0)]
    found += [np.triu(-np.ones((m, n)), 1) + np.eye(m, n), a * float(limits.tiny), a * float(limits.max) / (4 * m * n)]
    found += [np.array(HANGING[m, n])] if (m, n) in HANGING else []
    return np.stack([x if np.dtype(dtype).kind == "c" else x.real for x in found]).astype(dtype)


def decompose(a, compute_uv=True, queue=None):
    """The operands after a call, as the oracle takes them, and info."""
    A = cla.pack(a, queue=queue)
    return results.unpacked(routine.named("gesvd"), [A], cla.gesvd(A, compute_uv))


def ratio(a, after, compute_uv=True):
    return oracle.named("gesvd").residual([a], after, compute_uv)


@pytest.mark.parametrize(("size", "dtype"), in_turns(SIZES, always=SIZES[:2]), ids=str)
def test_special_matrices(queue, size, dtype, rng):
    """Results of special matrices have the same bits in one batch and in other company."""
    a = special(*size, dtype, rng)
    after, info = decompose(a, queue=queue)
    assert not info.any()
    assert ratio(a, after).max() < oracle.THRESHOLD
    values, info = decompose(a, False, queue)
    assert not info.any()
    assert ratio(a, values, False).max() < oracle.THRESHOLD
    for some in (slice(7, 8), slice(None, None, -3)):
        found, _ = decompose(a[some], queue=queue)
        assert all(same_bits(x, y[some].copy()) for x, y in zip(found[1:], after[1:], strict=True))


def test_zeros_are_exact(queue, dtype):
    """Singular values of a matrix that has fewer columns than it seems to."""
    a = np.zeros((2, 5, 4), dtype)
    a[1, 1, 2] = -3
    (_, U, s, Vh), info = decompose(a, queue=queue)
    assert s[:, :, 0].tolist() == [[0, 0, 0, 0], [3, 0, 0, 0]] and not info.any()
    assert ratio(a, (None, U, s, Vh)).max() < oracle.THRESHOLD


@pytest.mark.parametrize("wide", [False, True], ids=["tall", "wide"])
def test_graded_matrices(queue, dtype, wide, rng):
    """Columns that are orthogonal, or nearly, times powers of two in any order: every value is as accurate as the
    largest."""
    eps, n = np.finfo(dtype).eps, 8
    few = 9 if np.finfo(dtype).bits == 32 else 80
    hadamard = np.array([[1]])
    for _ in range(3):
        hadamard = np.block([[hadamard, hadamard], [hadamard, -hadamard]])
    tall = np.pad(hadamard, ((0, wide), (0, 0)))
    a = np.stack([tall * 2.0 ** (-few * rng.permutation(n)) for _ in range(11)]).astype(dtype)
    after, info = decompose(a.swapaxes(1, 2) if wide else a, queue=queue)
    expected = np.sqrt(8) * 2.0 ** (-few * np.arange(n))
    assert not info.any()
    assert (np.abs(after[2][:, :, 0] / expected - 1) < oracle.THRESHOLD * eps).all()
    if np.finfo(dtype).bits == 32:  # which LAPACK knows to the last digits in double precision
        a = random(rng, (11, n + wide, n), dtype) * np.float32(0.1) ** np.arange(n, dtype=np.float32)
        after, info = decompose(a.swapaxes(1, 2) if wide else a, queue=queue)
        exact = np.linalg.svd(a.astype(np.result_type(a, np.float64)), compute_uv=False)
        condition = np.linalg.cond(a / np.linalg.norm(a, axis=1)[:, None])[:, None]
        assert not info.any()
        assert (np.abs(after[2][:, :, 0] / exact - 1) < oracle.THRESHOLD * eps * condition).all()


def test_powers_of_two_change_nothing(queue, dtype, rng):
    """Huge, tiny and subnormal matrices have the vectors that others have, and the values times that power."""
    limits = np.finfo(dtype)
    a = np.round(random(rng, (1, 6, 5), dtype) * 64)
    (_, U, s, Vh), _ = decompose(a, queue=queue)
    for power in (limits.maxexp - 12, limits.minexp // 2, limits.minexp - 6, limits.minexp - limits.nmant):
        scaled = a * limits.dtype.type(2) ** (power // 2) * limits.dtype.type(2) ** (power - power // 2)
        (_, V, values, Wh), info = decompose(scaled, queue=queue)
        assert info == 0 and same_bits(V, U) and same_bits(Wh, Vh)
        assert same_bits(values, np.ldexp(s, power))


def test_infinity_and_nan_are_reported(queue, dtype, rng):
    a = random(rng, (20, 9, 4), dtype)
    bad = a.copy()
    bad[4, 1, 2], bad[11, 2, 0], bad[12] = np.inf, np.nan, -np.inf
    for compute_uv in (True, False):
        good, _ = decompose(a, compute_uv, queue)
        after, info = decompose(bad, compute_uv, queue)
        assert info.tolist() == [NOT_DONE if q in (4, 11, 12) else 0 for q in range(20)]
        assert np.isnan(after[2][info > 0]).all()
        assert all(x is y or same_bits(x[info == 0], y[info == 0]) for x, y in zip(after, good, strict=True))


@pytest.mark.parametrize("dtype", [np.float64, np.complex64])
def test_pack_level(dtype, rng):
    V = 4

    @njit(error_model="numpy")
    def kernel(a, u, s, vh, info):
        for p in range(len(a)):
            gesvd(matrix(a[p], V), matrix(u[p], V), matrix(s[p], V), matrix(vh[p], V), info[p])

    for m, n in ((7, 5), (4, 4), (6, 1)):
        a, info = random(rng, (2 * V, m, n), dtype), np.zeros((2, V), np.int64)
        A = cla.pack(a, V)
        U, s, Vh = A.beside(m, n), A.beside(n, 1, real=True), A.beside(n, n)
        kernel(A.data, U.data, s.data, Vh.data, info)
        assert not info.any()
        assert ratio(a, [None, U.unpack(), s.unpack(), Vh.unpack()]).max() < oracle.THRESHOLD
