"""Eigenvalues and singular values of stacks by teams of work-items, on every OpenCL device."""

import numpy as np
import pytest

from cases import exhaustive
from compactla import linalg
from compactla.gpu import launch
from compactla.gpu.linalg import fused, spectra
from drivers import working_devices
from test_linalg_eigh import check as check_eigenvectors
from test_linalg_eigh import hard as hermitian_and_hard
from test_linalg_opencl import compare, on, random
from test_linalg_svd import check as check_singular_vectors
from test_linalg_svd import hard

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("unoptimized"),
    pytest.mark.parametrize("queue", working_devices(), indirect=True, ids=lambda d: "opencl"),
]


def forced_teams(monkeypatch, members, teams, in_global):
    """Teams of a size find eigenvalues and singular values, on every device; where there are warps, of whole ones."""
    usual = spectra.spectrum

    def forced(*args):
        macros = usual(*args)
        least = 32 * macros["CLA_WARP"]
        own = max(members, least) if in_global else members
        return macros | {"MEMBERS": own, "TEAMS": max(teams, least // own), "IN_GLOBAL": in_global}

    monkeypatch.setattr(spectra.choices, "is_cpu", lambda device: False)
    monkeypatch.setattr(fused, "spectrum", forced)
    monkeypatch.setattr(fused, "REGISTERS", 0)
    monkeypatch.setattr(fused, "AT_A_TIME", 5)


def by_teams(queue, function, a, **options):
    """Results of a function in one launch, as NumPy arrays."""
    launch.plans(queue).known.clear()
    found = function(on(queue, a), **options, on_error="nan", compute="same")
    assert sum(type(plan) is fused.Fused for plan in launch.plans(queue).known.values()) == 1
    launch.plans(queue).known.clear()
    return [x.get() for x in (found if isinstance(found, tuple) else (found,))]


def among_others(given):
    """Matrices, one that is not a number, and some of the first again."""
    nan = given[0].copy()
    nan[-1, 0] = np.nan
    return np.concatenate([given, [nan], given[:2]])


def check_others(results, count):
    """One matrix has no result, and the first ones have the same bits wherever they are."""
    for x in results:
        assert np.isnan(x[count]).all()
        assert x[:2].tobytes() == x[count + 1 :].tobytes()


TEAMS = (
    (1, 2, 0),
    (2, 4, 0),
    (8, 1, 0),
    (8, 1, 1),
    (64, 1, 0),
)  # members, teams, and whether matrices are in global memory


@pytest.mark.parametrize(
    ("n", "dtype", "team"),
    [(1, "f", 0), (5, "F", 1), (6, "d", 0), (17, "d", 2), (2, "F", 3), (18, "D", 3), (35, "f", 4)],
)
def test_eigenvectors_by_teams(queue, monkeypatch, n, dtype, team):
    forced_teams(monkeypatch, *TEAMS[team])
    given = hermitian_and_hard(n, dtype)
    a = among_others(np.array([*given.values()]))
    for uplo in "LU":
        read = np.tri(n, dtype=bool) if uplo == "L" else np.tri(n, dtype=bool).T
        half = np.where(read, a if uplo == "L" else a.swapaxes(1, 2).conj(), np.nan).astype(dtype)
        w, v = by_teams(queue, linalg.eigh, half, UPLO=uplo)
        (values,) = by_teams(queue, linalg.eigvalsh, half, UPLO=uplo)
        check_others([w, v, values], len(given))
        for (name, x), *found in zip(given.items(), w, v, strict=False):
            check_eigenvectors(name, x, *found)
        limit = n * np.finfo(dtype).eps * abs(w).max(1, keepdims=True)
        assert (abs(values - w) <= limit)[: len(given)].all()


@pytest.mark.parametrize(
    ("m", "n", "dtype", "team"),
    [(1, 1, "d", 0), (3, 7, "F", 1), (6, 6, "d", 0), (17, 9, "f", 2), (5, 18, "D", 3), (9, 4, "d", 1), (5, 3, "D", 4)],
)
def test_singular_vectors_by_teams(queue, monkeypatch, m, n, dtype, team):
    forced_teams(monkeypatch, *TEAMS[team])
    given = hard(m, n, dtype)
    a = among_others(np.array([*given.values()]))
    for full in (True, False):
        U, S, Vh = by_teams(queue, linalg.svd, a, full_matrices=full)
        shapes = [x.shape for x in np.linalg.svd(a[0], full)]
        assert [x.shape[1:] for x in (U, S, Vh)] == shapes
        check_others([U, S, Vh], len(given))
        for (name, x), *found in zip(given.items(), U, S, Vh, strict=False):
            check_singular_vectors(name, x, *found)
    (values,) = by_teams(queue, linalg.svdvals, a)
    check_others([values], len(given))
    limit = max(m, n) * np.finfo(dtype).eps * S.max(1, keepdims=True)
    assert (abs(values - S) <= 4 * limit)[: len(given)].all()


def test_strides_by_teams(queue, rng, monkeypatch):
    """A stack with gaps, of transposes, and one matrix for all; in double precision where the matrices are not."""
    forced_teams(monkeypatch, 2, 3, 0)
    a = random(rng, (10, 4, 6), "f")
    some = on(queue, a)[::2].transpose((0, 2, 1))
    s = linalg.svdvals(some)
    compare(s, np.linalg.svd(a[::2], compute_uv=False))
    w, v = (x.get() for x in linalg.eigh(on(queue, a[:1, :, :4])))
    h = np.tril(a[:1, :, :4]) + np.tril(a[:1, :, :4], -1).swapaxes(1, 2)
    np.testing.assert_allclose(h @ v, v * w[:, None], atol=1e-5)
    launch.plans(queue).known.clear()


@pytest.mark.parametrize(
    ("m", "n", "dtype", "team"),
    [(2, 2, "d", 0), (5, 3, "F", 1), (4, 9, "d", 2), exhaustive(9, 9, "f", 3), (12, 5, "D", 3)],
)
def test_least_squares_by_teams(queue, rng, monkeypatch, m, n, dtype, team):
    forced_teams(monkeypatch, *TEAMS[team])
    a, b = random(rng, (7, m, n), dtype), random(rng, (7, m, 2), dtype)
    a[1, :, 1] = a[1, :, 0]
    eps = np.finfo(dtype).eps
    found = by_teams(queue, linalg.lstsq, a, b=on(queue, b), rcond=1e3 * float(eps))
    for x, y in zip(found, linalg.lstsq(a, b, rcond=1e3 * float(eps)), strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        np.testing.assert_allclose(x, y, rtol=0, atol=3e3 * eps * max(1, abs(np.nan_to_num(y)).max(initial=0)))
    limits = rng.random(7) / 2
    for limit in limits, 0.1:
        (x,) = by_teams(queue, linalg.pinv, a, rcond=limit)
        expected = np.linalg.pinv(a.astype("D"), limit)
        assert x.shape == expected.shape and x.dtype == a.dtype
        np.testing.assert_allclose(x, expected, rtol=0, atol=1e3 * eps * abs(expected).max())
    a[3, 1, 0] = np.nan
    x, _, rank, s = by_teams(queue, linalg.lstsq, a, b=on(queue, b))
    assert np.isnan(x[3]).all() and np.isnan(s[3]).all() and rank[3] == 0
    assert np.isnan(by_teams(queue, linalg.pinv, a)[0][3]).all()
