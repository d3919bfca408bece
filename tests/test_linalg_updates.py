"""cholesky_update, nnls and solve(compute="mixed")."""

import numpy as np
import pytest
import scipy.optimize

import compactla as cla
from cases import exhaustive, here, random, same_bits, slow, there
from compactla import linalg
from compactla.oracle import THRESHOLD, ratio, widen


def adjoint(a):
    return a.conj().swapaxes(-1, -2)


@pytest.mark.parametrize(
    ("n", "k", "dtype"),
    [(3, None, "d"), slow(5, 2, "F"), slow(1, None, "D"), exhaustive(140, 1, "d"), exhaustive(33, 3, "f")],
)
@pytest.mark.parametrize("downdate", [False, True])
def test_factors(queue, rng, n, k, dtype, downdate):
    for lower in (True, False):
        a = random(rng, (2, 5, n, n), dtype)
        a = a @ adjoint(a) + (4 * n * np.eye(n)).astype(dtype)
        c = np.linalg.cholesky(a)
        c = c + np.triu(np.full_like(c, np.nan), 1) if lower else adjoint(c) + np.tril(np.full_like(c, np.nan), -1)
        x = random(rng, (5, n) if k is None else (2, 5, n, k), dtype)
        f = here(linalg.cholesky_update(there(c, queue), there(x, queue), downdate, lower, compute="same"))
        assert f.dtype == dtype and f.shape == c.shape
        assert not (np.triu(f, 1) if lower else np.tril(f, -1)).any()
        L, x, a = widen(f if lower else adjoint(f), x[..., None] if k is None else x, a)
        expected = a + x @ adjoint(x) * (-1 if downdate else 1)
        error, eps = np.abs(L @ adjoint(L) - expected).sum(-2).max(-1), np.finfo(dtype).eps
        assert ratio(error, n * eps * np.abs(a).sum(-2).max(-1)).max() < THRESHOLD


@pytest.mark.parametrize("n", [3, slow(150)])
def test_downdates_without_a_factor(queue, rng, n):
    """They are named in the stack of both arguments, or NaN; all others keep their bits."""
    c = np.tile(np.eye(n), (1, 4, 1, 1))
    x = random(rng, (3, 4, n), np.float64) / n
    good = linalg.cholesky_update(c, x, True)
    x[0, 2], x[2, 1, 0] = 2, np.nan
    given = there(c, queue), there(x, queue)
    with pytest.raises(linalg.LinAlgError, match=r"not positive definite: 2 of 12 matrices, at \(0, 2\), \(2, 1\)"):
        linalg.cholesky_update(*given, True)
    f = here(linalg.cholesky_update(*given, True, on_error="nan"))
    c[0, 3, -1, -1] = np.inf
    given = there(c, queue), there(x, queue)
    assert np.isnan(here(linalg.cholesky_update(*given, True, on_error="nan"))[:, 3]).all()
    bad = np.zeros((3, 4), bool)
    bad[0, 2] = bad[2, 1] = True
    assert np.isnan(f[bad]).all()
    assert same_bits(f[~bad], good[~bad]) if queue is None else np.allclose(f[~bad], good[~bad])


def test_arguments_of_updates():
    c = np.eye(3)
    assert linalg.cholesky_update(np.zeros((0, 3, 3)), np.zeros((0, 3))).shape == (0, 3, 3)
    assert linalg.cholesky_update(c.astype(int), [0, 0, 0]).dtype == np.float64
    assert linalg.cholesky_update(c.astype("f"), np.ones(3, "f")).dtype == np.float32
    for wrong, x, error in (np.ones((2, 3)), np.ones(3), linalg.LinAlgError), (c, np.ones(2), ValueError):
        with pytest.raises(error, match="must have"):
            linalg.cholesky_update(wrong, x)
    with pytest.raises(TypeError, match="float16"):
        linalg.cholesky_update(c.astype("e"), np.ones(3))
    with pytest.raises(TypeError, match="downdate is 1, must be a bool"):
        linalg.cholesky_update(c, np.ones(3), 1)


def check_nnls(A, b, x, rnorm):
    """The conditions of Karush, Kuhn and Tucker hold up to rounding."""
    eps, norm = np.finfo(float).eps, np.linalg.norm
    for q in range(len(A)):
        size = norm(A[q]) * norm(b[q]) + norm(A[q]) ** 2 * norm(x[q]) + 1e-300
        r = b[q] - A[q] @ x[q]
        w = A[q].T @ r
        limit = THRESHOLD * A.shape[2] * eps * size
        assert (x[q] >= 0).all()
        assert w.max(initial=0) < limit
        assert np.abs(w[x[q] > 0]).max(initial=0) < limit
        assert abs(norm(r) - rnorm[q]) <= THRESHOLD * eps * (norm(b[q]) + norm(A[q]) * norm(x[q]))


@pytest.mark.parametrize(("m", "n"), [(9, 4), slow(3, 3), slow(4, 9), slow(1, 1), slow(70, 20), slow(80, 70)])
def test_nonnegative_least_squares(rng, m, n):
    A, b = random(rng, (19, m, n), np.float64), random(rng, (19, m), np.float64)
    A[1, :, n // 2] = A[1, :, 0]  # dependent
    A[2], A[3], b[3], b[4] = 0, -np.abs(A[3]), np.abs(b[3]), 0
    A[5] *= 10.0 ** -np.arange(n)
    A[6], b[6] = np.abs(A[6]), np.abs(A[6]).sum(-1)  # nothing is left
    x, rnorm = linalg.nnls(A, b)
    check_nnls(A, b, x, rnorm)
    for q in range(19):
        y, norm = scipy.optimize.nnls(A[q], b[q])
        assert abs(norm - rnorm[q]) < 1e-13 * (1 + norm)
        if m >= n and q not in (1, 2, 5):
            np.testing.assert_allclose(x[q], y, atol=1e-11)
    one = np.delete(np.arange(19), [1, 6] if m < n else [1])  # that have one solution
    np.testing.assert_allclose(linalg.nnls(A * 1e200, b * 1e-100)[0][one], x[one] * 1e-300, rtol=1e-9, atol=1e-310)
    one = one[one != 5]  # whose solution is large
    np.testing.assert_allclose(linalg.nnls(A * 1e-280, b)[0][one], x[one] * 1e280, rtol=1e-9)
    for q in (0, 18):
        found = linalg.nnls(np.repeat(A[q : q + 1], 19, 0), b[q])
        assert same_bits(found[0], np.repeat(x[q : q + 1], 19, 0))


def test_failures_of_nnls(rng):
    A, b = random(rng, (11, 9, 4), np.float64), random(rng, (11, 9), np.float64)
    x, rnorm = linalg.nnls(A, b)
    failed = []
    for q in range(11):
        try:
            scipy.optimize.nnls(A[q], b[q], maxiter=3)
        except RuntimeError:
            failed.append(q)
    assert 0 < len(failed) < 11
    with pytest.raises(RuntimeError, match=f"Maximum number of iterations reached: {len(failed)} of 11 matrices"):
        linalg.nnls(A, b, 3)
    y, norms = linalg.nnls(A, b, maxiter=3, on_error="nan")
    good = np.setdiff1d(range(11), failed)
    assert np.isnan(y[failed]).all() and np.isnan(norms[failed]).all() and same_bits(y[good], x[good])
    A[3, 0, 0], b[7, 2] = np.nan, np.inf
    with pytest.raises(ValueError, match="A must not contain infs or NaNs: 1 of 11 matrices, at 3"):
        linalg.nnls(A, b)
    y, norms = linalg.nnls(A, b, on_error="nan")
    good = np.setdiff1d(range(11), [3, 7])
    assert np.isnan(y[[3, 7]]).all() and same_bits(y[good], x[good]) and same_bits(norms[good], rnorm[good])


def test_arguments_of_nnls():
    A, b = np.eye(3)[:, :2], np.ones(3)
    x, rnorm = linalg.nnls(A, b)
    assert x.dtype == np.float64 and isinstance(rnorm, float)
    assert linalg.nnls(A.astype("f"), b.astype("f"), compute="same")[0].dtype == np.float32
    assert linalg.nnls(A.astype("f"), b.astype("f"))[0].dtype == np.float64
    assert linalg.nnls(A, np.tile(b, (4, 2, 1)))[0].shape == (4, 2, 2)
    assert [a.shape for a in linalg.nnls(np.zeros((0, 3, 2)), b)] == [(0, 2), (0,)]
    with pytest.raises(ValueError, match="b has shape"):
        linalg.nnls(A, np.ones(2))
    with pytest.raises(TypeError, match="complex128, must be real"):
        linalg.nnls(A * 1j, b)


def mixed_ratio(a, x, b):
    """||b - A x|| / (||x|| ||A|| eps sqrt(n)), as in LAPACK's dsgesv."""
    a, x, b = widen(a, x, b)
    bound = np.abs(a).sum(-1).max(-1)[:, None] * np.abs(x).max(-2) * np.sqrt(a.shape[-1]) * 2.0**-53
    return ratio(np.abs(b - a @ x).max(-2), bound)


@pytest.mark.parametrize(
    ("n", "dtype"), [slow(5, "D"), slow(17, "d"), *(exhaustive(*x) for x in ((3, "D"), (40, "D"), (130, "d")))]
)
def test_mixed_precision(queue, rng, n, dtype):
    a, b = random(rng, (19, n, n), dtype) + 2 * np.eye(n).astype(dtype), random(rng, (19, n, 2), dtype)
    a[1, 0] = a[1, 1] + 1e-9 * a[1, 0]  # single precision does not see that it is regular
    a[2] *= 1e60  # nor has it such numbers
    b[3] *= 1e-60
    a[4] *= 1e-60
    x = here(linalg.solve(there(a, queue), there(b, queue), compute="mixed"))
    expected = here(linalg.solve(there(a, queue), there(b, queue)))
    assert x.dtype == expected.dtype
    assert mixed_ratio(a, x, b).max() < max(4, 2 * mixed_ratio(a, expected, b).max())
    a[7] = 0
    with pytest.raises(linalg.LinAlgError, match="Singular matrix: 1 of 19 matrices, at 7"):
        linalg.solve(there(a, queue), there(b, queue), compute="mixed")
    y = here(linalg.solve(there(a, queue), there(b, queue), compute="mixed", on_error="nan"))
    others = np.arange(19) != 7
    assert np.isnan(y[7]).all() and same_bits(y[others], x[others])


@pytest.mark.slow
def test_mixed_precision_of_numbers_that_are_infinite_in_single(queue):
    x = linalg.solve(*(there(np.full((1, 1, 1), number), queue) for number in (2.0, 1e300)), compute="mixed")
    assert here(x) == 5e299


def test_mixed_precision_of_other_arguments():
    a = np.eye(3) + 0.1
    assert linalg.solve(a.astype("f"), np.ones(3, "f"), compute="mixed").dtype == np.float32
    np.testing.assert_allclose(linalg.solve(a, np.ones(3), compute="mixed"), np.linalg.solve(a, np.ones(3)))
    with pytest.raises(ValueError, match="compute is 'half'"):
        linalg.solve(a, np.ones(3), compute="half")
    assert cla.linalg.solve(np.zeros((0, 3, 3)), np.ones(3), compute="mixed").shape == (0, 3)
