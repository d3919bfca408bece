"""eig, eigvals, schur and hessenberg on stacks: accuracy on inputs that are hard, and options."""

import numpy as np
import pytest
import scipy.linalg

from cases import exhaustive, random, same_bits, slow
from compactla import linalg

CASES = [(5, "d"), slow(4, "F"), *(exhaustive(n, x) for n, x in [(1, "d"), (2, "D"), (3, "f"), (9, "D"), (16, "d")])]
CASES += [exhaustive(n, x) for n, x in [(3, "D"), (8, "d"), (33, "F"), (33, "d"), (32, "d"), (6, "f")]]
LIMIT = 8  # of residuals, in units of n eps


def hard(n, dtype):
    """Matrices by the names of what is hard about them."""
    rng, far = np.random.default_rng(n), 300 if np.dtype(dtype).char in "dD" else 30
    usual = random(rng, (n, n), dtype)
    ones, down, up = np.eye(n), np.eye(n, k=-1), np.eye(n, k=1)
    grades = np.logspace(-far // 30, far // 30, n)
    order = np.eye(n)[rng.permutation(n)]
    q, _ = np.linalg.qr(usual)
    companion = down.copy()
    companion[0] = -np.poly(np.arange(n) / 4 + 1)[1:]
    found = {
        "usual": usual,
        "huge": usual * 10.0**far,
        "tiny": usual * 10.0**-far,
        "graded": usual * grades[:, None] / grades,
        "graded downwards": usual * grades[::-1, None] * grades[::-1],
        "zero": np.zeros((n, n)),
        "identity": ones,
        "defective": 2 * ones + up,
        "defective, lower": 2 * ones + down,
        "nilpotent": up,
        "nearly defective": 2 * ones + up + 1e-14 * usual,
        "defective pairs": np.kron(ones, [[0, 1], [-1, 0]])[:n, :n] + np.eye(n, k=2),
        "multiple": q @ np.diag(np.arange(n).clip(max=1)) @ np.conj(q.T),
        "orthogonal": q,
        "cyclic": np.roll(ones, 1, axis=0),
        "triangular but for its order": order @ np.triu(usual) @ order.T,
        "companion": companion,
        "far from normal": np.triu(np.ones((n, n))) - down,
        "rank 1": np.outer(np.arange(n) + 1, np.ones(n)),
        "symmetric": usual + np.conj(usual.T),
        "skew": usual - np.conj(usual.T),
        "NaN": np.full((n, n), np.nan),
    }
    return {name: np.asarray(x).astype(dtype) for name, x in found.items()}


def norm(a):
    return np.linalg.norm(a, axis=(-2, -1))


def check(a, residual, vectors=1):
    """A residual of matrices is small relative to them, and to vectors."""
    limit = LIMIT * a.shape[-1] * np.finfo(a.dtype).eps
    assert (norm(residual) <= limit * norm(a) * vectors).all()


def stack(n, dtype):
    """Matrices, and the powers of two that make them neither large nor small."""
    a = np.array([*hard(n, dtype).values()])
    size = abs(a).max((1, 2))
    _, exponent = np.frexp(np.where(size > 0, size, 1))
    return a, np.ldexp(1.0, -(exponent // 2)), np.ldexp(1.0, exponent // 2 - exponent)


@pytest.mark.parametrize(("n", "dtype"), CASES)
def test_eig(n, dtype):
    a, *factors = stack(n, dtype)
    w, v = linalg.eig(a, compute="same", on_error="nan")
    values = linalg.eigvals(a, compute="same", on_error="nan")
    assert np.isnan(w[-1]).all() and np.isnan(v[-1]).all() and np.isnan(values[-1]).all()
    eps = np.finfo(a.dtype).eps
    assert (abs(np.linalg.norm(v[:-1], axis=1) - 1) <= LIMIT * n * eps).all()
    for x, y, z, matrix, *scale in zip(w[:-1], v[:-1], values[:-1], a[:-1], *(f[:-1] for f in factors), strict=True):
        first, second = scale
        b, d = matrix.astype("D") * first * second, x.astype("D") * first * second
        check(b.astype(np.result_type(matrix, "F")), b @ y - y * d, norm(y))
        # Without vectors, they are eigenvalues of a matrix that is as near.
        for value in z.astype("D") * first * second:
            least = np.linalg.svd(b - value * np.eye(n), compute_uv=False)[-1]
            assert least <= LIMIT * n * eps * norm(b)


@pytest.mark.parametrize(("n", "dtype"), CASES)
def test_schur(n, dtype):
    a, *factors = stack(n, dtype)
    t, z = linalg.schur(a, check_finite=False, compute="same", on_error="nan")
    assert np.isnan(t[-1]).all() and np.isnan(z[-1]).all()
    a, t, z = a[:-1], t[:-1], z[:-1]
    first, second = (f[:-1, None, None].astype(a.real.dtype) for f in factors)
    adjoint = z.conj().swapaxes(1, 2)
    check(a * first * second, a * first * second - z @ (t * first * second) @ adjoint)
    check(z, adjoint @ z - np.eye(n))
    below, above, d = (np.einsum("qii->qi", x) for x in (t[:, 1:, :-1], t[:, :-1, 1:], t))
    assert not np.tril(t, -1 if dtype in "FD" else -2).any()
    if dtype in "fd":
        blocks = below != 0
        assert ((np.sign(below) == -np.sign(above)) & (d[:, 1:] == d[:, :-1]))[blocks].all()
        assert not (blocks[:, 1:] & blocks[:, :-1]).any()


def test_rows_that_are_almost_nothing():
    """Reflections without digits, whose vectors are subnormal, are not repeated until they end."""
    rng = np.random.default_rng(5)
    a = rng.standard_normal((100, 5, 5)) * 1e300
    a[:, 2] *= 1e-160
    a[:, 2] *= 1e-160
    a[:, 3:, :3] = a[:, 4, 3] = 0  # so that this is the last row of three
    _, z = linalg.schur(a, check_finite=False, compute="same")
    check(z, z.swapaxes(1, 2) @ z - np.eye(5))


@pytest.mark.parametrize(("n", "dtype"), CASES)
def test_hessenberg(n, dtype):
    a, *factors = stack(n, dtype)
    a, (first, second) = a[:-1], (f[:-1, None, None].astype(a.real.dtype) for f in factors)
    a = a * first * second
    h, q = linalg.hessenberg(a, calc_q=True, compute="same")
    adjoint = q.conj().swapaxes(1, 2)
    check(a, a - q @ h @ adjoint)
    check(a[:1], np.max(abs(adjoint @ q - np.eye(n)), axis=0)[None])
    assert not np.tril(h, -2).any() and same_bits(linalg.hessenberg(a, compute="same"), h)
    assert n < 3 or not np.diagonal(h, -1, 1, 2).imag.any()  # as LAPACK's


def test_exact_eigenvalues():
    """Balancing finds those of matrices that are triangular in another order, without a rounding error."""
    rng, n = np.random.default_rng(0), 5
    order = rng.permutation(n)
    a = np.triu(rng.standard_normal((20, n, n)))[:, order][:, :, order]
    assert (np.sort(linalg.eigvals(a)) == np.sort(np.einsum("qii->qi", a))).all()


def test_pairs_are_conjugate_and_real_vectors_real():
    a = random(np.random.default_rng(1), (50, 5, 5), "d")
    w, v = linalg.eig(a)
    assert w.dtype == complex and not v.imag[np.broadcast_to(w.imag[:, None] == 0, v.shape)].any()
    q, j = np.nonzero(w.imag > 0)
    assert (w[q, j + 1] == w[q, j].conj()).all() and (v[q, :, j + 1] == v[q, :, j].conj()).all()


def outcome(function, *args, **options):
    try:
        found = function(*args, **options)
    except Exception as error:
        return type(error), str(error)
    return [(x.shape, x.dtype) for x in (found if isinstance(found, tuple | list) else [found])]


@pytest.mark.parametrize("dtype", [slow("d"), *map(exhaustive, "fFDilbe?g")])
def test_scipys_types_and_errors(dtype):
    for shape in (3, 4, 4), (4, 4), (2, 2, 2), (1, 1), (2, 3), (4,), (0, 0), (3, 0, 0):
        a = (np.random.default_rng(2).standard_normal(shape) * 3).astype(dtype)
        for name, options in ("schur", {}), ("schur", {"output": "complex"}), ("schur", {"output": "odd"}):
            assert outcome(getattr(linalg, name), a, **options) == outcome(getattr(scipy.linalg, name), a, **options)
        for options in {}, {"calc_q": True}:
            assert outcome(linalg.hessenberg, a, **options) == outcome(scipy.linalg.hessenberg, a, **options)


@pytest.mark.parametrize("name", ["schur", "hessenberg", "expm"])
@pytest.mark.parametrize("n", [1, 5])
def test_options_are_checked_whatever_the_size(name, n):
    for options, message in ({"compute": "half"}, "compute is 'half'"), ({"threads": 0}, "threads is 0"):
        with pytest.raises(ValueError, match=message):
            getattr(linalg, name)(np.ones((3, n, n)), **options)


def test_schur_sorts_as_scipy():
    a = random(np.random.default_rng(3), (4, 5, 5), "d")
    for x, y in zip(linalg.schur(a, sort="lhp"), scipy.linalg.schur(a, sort="lhp"), strict=True):
        assert np.array_equal(x, y)


def test_schur_of_what_is_not_finite():
    a = random(np.random.default_rng(4), (9, 5, 5), "d")
    good, a[5, 1, 1] = linalg.schur(a), np.inf
    with pytest.raises(ValueError, match="infs or NaNs"):
        linalg.schur(a, on_error="nan")
    with pytest.raises(linalg.LinAlgError, match="1 of 9 matrices, at 5"):
        linalg.schur(a, check_finite=False)
    for x, y in zip(linalg.schur(a, check_finite=False, on_error="nan"), good, strict=True):
        assert np.isnan(x[5]).all() and same_bits(np.delete(x, 5, 0), np.delete(y, 5, 0))
