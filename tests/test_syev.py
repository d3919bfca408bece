"""syev: eigenvalues and eigenvectors of Hermitian matrices that are special, all in one batch."""

import functools
import itertools

import numpy as np
import pytest
from numba import njit

import compactla as cla
from cases import in_turns, random, same_bits
from compactla.cpu import matrix, syev
from compactla.cpu.kernels import jacobi
from compactla.oracle import THRESHOLD, norm1, ratio, widen
from compactla.oracle.syev import residual

pytestmark = pytest.mark.slow

# In registers, in memory with pairs that are written out or in a loop, from one side; odd and even.
SIZES = [1, 2, 3, 6, 9, 18]


def eigen(a, queue=None, **options):
    """Eigenvalues, eigenvectors and info of a batch."""
    A = cla.pack(a, queue=queue)
    w, info = cla.syev(A, **options)
    w = w if queue is None else w.get()
    assert w.shape == a.shape[:2] and w.dtype == np.finfo(a.dtype).dtype
    return w, A.unpack(), info


def unitary(rng, n, dtype):
    return np.linalg.qr(random(rng, (n, n), np.dtype(dtype).char.upper() if np.dtype(dtype).kind == "c" else "d"))[0]


def families(rng, n, dtype):
    """Matrices of many kinds, which others fail on or take long for."""
    limits, wide = np.finfo(dtype), np.complex128 if np.dtype(dtype).kind == "c" else np.float64
    huge = float(limits.max) / 8
    Q = unitary(rng, n, dtype)

    def of(values):
        return (Q * np.asarray(values, float)) @ Q.conj().T

    index, general = np.arange(n), random(rng, (n, n), wide)
    general = general + general.conj().T
    kinds = [
        np.zeros((n, n)),
        np.eye(n),
        np.diag(index - n // 2),
        np.diag(index[::-1] * 1.0)[:, ::-1],
        np.ones((n, n)),
        of(index % 2),  # repeated
        of((-1.0) ** index),  # of equal size
        of(index == 0),  # of rank one
        of(1 + index * float(limits.eps)),  # clustered
        of(1 + 1e-3 * index),
        of(10.0**-index),
        of(-(10.0**-index)),
        np.tri(n, k=1) * np.tri(n, k=1).T * general,  # a band
        general * 10.0 ** -np.maximum.outer(index, index),  # graded down, and up
        general * 10.0 ** -np.maximum.outer(index, index)[::-1, ::-1],
        general,
        general @ general,
        general * (huge / n),
        general * float(limits.tiny),
        np.eye(n) * float(limits.smallest_subnormal) * 2,
        np.full((n, n), float(limits.smallest_subnormal) * 2),
        np.diag(np.where(index % 2, huge, float(limits.tiny))),
    ]
    with np.errstate(under="ignore"):
        return np.array([a / 2 + a.conj().T / 2 for a in kinds]).astype(dtype)


@pytest.mark.parametrize(("n", "dtype"), in_turns(SIZES, [3, 9, 18]), ids=str)
def test_special_matrices(n, dtype, queue, rng):
    a = families(rng, n, dtype)
    w, V, info = eigen(a, queue)
    assert not info.any() and np.isfinite(w).all() and np.isfinite(V).all()
    eps, least = np.finfo(dtype).eps, np.finfo(dtype).smallest_subnormal
    A, U = widen(a, V)
    turned = U.conj().swapaxes(1, 2) @ A @ U
    found = np.einsum("qii->qi", turned).real.copy()
    np.einsum("qii->qi", turned)[...] = 0
    assert ratio(norm1(turned), n * eps * norm1(A)).max() < THRESHOLD
    assert (np.abs(found - w) <= THRESHOLD * n * eps * norm1(A)[:, None] + least).all()
    assert ratio(norm1(U.conj().swapaxes(1, 2) @ U - np.eye(n)), np.full(len(a), n * eps)).max() < THRESHOLD
    values, _, info = eigen(a, queue, jobz="N")
    assert not info.any() and (np.abs(values - w) <= THRESHOLD * n * eps * norm1(A)[:, None]).all()


@pytest.mark.parametrize("uplo", "LU")
def test_one_triangle_is_read(uplo, queue, dtype, rng):
    for n in (3, 6, 17):
        a = random(rng, (5, n, n), dtype)
        a[:, (np.triu if uplo == "L" else np.tril)(np.ones((n, n), bool), 1 if uplo == "L" else -1)] = np.nan
        kept = a.copy()
        if dtype.kind == "c":
            np.einsum("qii->qi", kept).imag = 7
        w, V, info = eigen(kept, queue, uplo=uplo)
        assert not info.any()
        assert residual((a,), (V, w[:, :, None]), uplo).max() < THRESHOLD


def jacobi_values(a):
    """Eigenvalues by Jacobi's method in a wider precision, to a relative error of about its rounding."""
    a, n = a.copy(), len(a)
    for _ in range(12):
        for p, q in itertools.combinations(range(n), 2):
            if a[p, q] != 0:
                zeta = (a[q, q] - a[p, p]) / (2 * a[p, q])
                t = np.copysign(1, zeta) / (abs(zeta) + np.sqrt(1 + zeta * zeta))
                c = 1 / np.sqrt(1 + t * t)
                J = np.array([[c, c * t], [-c * t, c]])
                a[:, [p, q]] = a[:, [p, q]] @ J
                a[[p, q]] = J.T @ a[[p, q]]
    return np.sort(np.diag(a))


@pytest.mark.parametrize("n", [4, 7, 18])
def test_small_eigenvalues_of_graded_matrices_keep_their_digits(n, queue, rng):
    """The matrices are positive definite: D B D with a diagonal D of any numbers and a well-conditioned B."""
    x = rng.uniform(-1, 1, (6, n, n))
    b = x @ x.swapaxes(1, 2) / n + np.eye(n)
    down = 10.0 ** -np.arange(0, 3 * n, 3)
    scales = np.array([down, down[::-1], rng.permutation(down), rng.permutation(down), down**2, np.ones(n)])
    a = b * scales[:, :, None] * scales[:, None]
    a = np.tril(a) + np.tril(a, -1).swapaxes(1, 2)
    w, _, info = eigen(a, queue)
    assert not info.any()
    known = np.array([jacobi_values(x.astype(np.longdouble)) for x in a])
    assert (np.abs(w - known) <= THRESHOLD * n * np.finfo(float).eps * known).all()


@pytest.mark.parametrize("n", [3, 9, 18])
def test_matrices_do_not_see_each_other(n, queue, rng):
    """However many sweeps they need, and whatever NaN there is."""
    a = families(rng, n, np.float64)
    whole = eigen(a, queue)
    found = eigen(a[::-1].copy(), queue)
    assert all(same_bits(x[::-1].copy(), y) for x, y in zip(found, whole, strict=True))
    bad = a.copy()
    bad[4, n - 1, 0], bad[9, 0, 0], bad[15, 1, 1] = np.nan, np.inf, -np.inf
    w, V, info = eigen(bad, queue)
    assert info.tolist() == [n if q in (4, 9, 15) else 0 for q in range(len(a))]
    assert np.isnan(w[info > 0]).all() and np.isnan(V[info > 0]).all()
    assert same_bits(w[info == 0], whole[0][info == 0]) and same_bits(V[info == 0], whole[1][info == 0])


@functools.cache
def pack_level(V, uplo, n=None):
    columns = None if n is None else 1

    @njit(error_model="numpy")
    def kernel(a, w, info):
        for p in range(len(a)):
            syev(matrix(a[p], V, n, n), matrix(w[p], V, n, columns), info[p], uplo)

    return kernel


def run(kernel, a, V):
    A, w = cla.pack(a, V), cla.pack(np.zeros((*a.shape[:2], 1), np.finfo(a.dtype).dtype), V)
    info = np.zeros((len(a) // V, V), np.int64)
    kernel(A.data, w.data, info)
    return A.unpack(), w.unpack(), info.ravel()


@pytest.mark.parametrize(("known", "dtype"), in_turns([True, False]), ids=str)
def test_packs(known, dtype, rng):
    for n in (3,) if known else (0, 1, 2, 5, 20):
        a = random(rng, (16, n, n), dtype)
        V, w, info = run(pack_level(8, "U", n if known else None), a, 8)
        assert not info.any()
        assert residual((a,), (V, w), "U").max(initial=0) < THRESHOLD


@pytest.mark.slow
def test_large_packs_fetch_what_comes_next(rng):
    """Matrices of 4 KB or more, of a size that is compiled in."""
    a = random(rng, (16, 8, 8), np.float64)
    V, w, info = run(pack_level(8, "L", 8), a, 8)
    assert not info.any()
    assert residual((a,), (V, w), "L").max() < THRESHOLD


@pytest.mark.parametrize("n", [3, 7, 17])
def test_too_few_sweeps_are_reported(n, monkeypatch, rng):
    monkeypatch.setattr(jacobi, "SWEEPS", 2)
    a = random(rng, (8, n, n), np.float64)
    a[3], a[5] = np.eye(n), np.diag(np.arange(n))
    V, w, info = run(pack_level.__wrapped__(8, "L", n), a, 8)
    assert info.tolist() == [0 if q in (3, 5) else n for q in range(8)]
    assert np.isnan(V[info > 0]).all() and np.isnan(w[info > 0]).all()
    assert np.array_equal(V[3], np.eye(n)) and np.allclose(w[5, :, 0], np.arange(n), rtol=1e-14)
