"""eigh and eigvalsh on stacks: accuracy on inputs that are hard, and options."""

import numpy as np
import pytest

from compactla import linalg

SIZES = [3, 9, *(pytest.param(n, marks=pytest.mark.exhaustive) for n in (1, 2, 4, 5, 16, 32, 40))]
LIMIT = 4  # of residuals, in units of n eps


def hard(n, dtype):
    """Hermitian matrices by the names of what is hard about them."""
    rng = np.random.default_rng(n)

    def normal(*shape):
        x = rng.standard_normal(shape)
        return x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x

    def hermitian(x):
        return x + np.conj(x.swapaxes(-1, -2))

    far = 300 if np.dtype(dtype).char in "dD" else 36
    graded = np.logspace(0, -far // 12, n)
    v, _ = np.linalg.qr(normal(n, n))
    found = {
        "usual": normal(n, n),
        "huge": normal(n, n) * 10.0**far,
        "tiny": normal(n, n) * 10.0**-far,
        "graded": normal(n, n) * graded * graded[:, None],
        "graded upwards": (normal(n, n) * graded * graded[:, None])[::-1, ::-1],
        "multiple": (v * np.arange(n).clip(max=1)) @ np.conj(v.T),
        "nearly multiple": (v * (1 + 1e-13 * np.arange(n))) @ np.conj(v.T),
        "rank 1": normal(n, 1) * np.ones(n),
        "Wilkinson": np.diag(abs(np.arange(n) - n // 2)) + np.eye(n, k=1),
        "blocks": np.kron(np.eye(n), np.ones((2, 2)))[:n, :n],
        "identity": np.eye(n),
        "zero": np.zeros((n, n)),
    }
    return {name: hermitian(x).astype(dtype) for name, x in found.items()}


def check(name, a, w, v):
    eps, n = np.finfo(a.dtype).eps, len(w)
    scale = abs(w).max() or 1
    assert (np.diff(w) >= 0).all(), name
    assert abs(np.conj(v.T) @ v - np.eye(n)).max() <= LIMIT * n * eps, name
    assert abs((a / scale) @ v - v * (w / scale)).max() <= LIMIT * n * eps, name


@pytest.mark.parametrize("dtype", ["d", *(pytest.param(x, marks=pytest.mark.exhaustive) for x in "fFD")])
@pytest.mark.parametrize("n", SIZES)
def test_accuracy(n, dtype):
    given = hard(n, dtype)
    w, v = linalg.eigh(np.array([*given.values()]), compute="same")
    for (name, a), *found in zip(given.items(), w, v, strict=True):
        check(name, a, *found)
    values = linalg.eigvalsh(np.array([*given.values()]), compute="same")
    assert (abs(values - w) <= LIMIT * n * np.finfo(dtype).eps * abs(w).max(1, keepdims=True)).all()


def test_triangles():
    """Only one triangle is read, and no imaginary part of the diagonal."""
    a = np.random.default_rng(0).standard_normal((5, 3, 3))
    for uplo, other in (("L", np.triu_indices(3, 1)), ("u", np.tril_indices(3, -1))):
        b = a.copy()
        b[:, *other] = np.nan
        np.testing.assert_allclose(linalg.eigh(b, uplo)[0], np.linalg.eigh(a, uplo)[0], atol=1e-14)
    with pytest.raises(ValueError, match="UPLO argument must be 'L' or 'U'"):
        linalg.eigh(a, "X")


def test_type():
    a = np.eye(3)
    found = linalg.eigh(a)
    assert type(found) is type(np.linalg.eigh(a))
    assert repr(found) == repr(np.linalg.eigh(a))


@pytest.mark.parametrize(("n", "dtype"), [(3, "d"), (8, "D"), (9, "d")])
def test_alone(n, dtype):
    """The bits of a matrix do not depend on others, whatever they are."""
    a = np.random.default_rng(0).standard_normal((5, n, n)).astype(dtype)
    a += (1j if dtype == "D" else 1) * a.swapaxes(1, 2)
    others = [np.full((n, n), np.nan), np.eye(n), np.diag(np.arange(n))]
    among = np.concatenate([a, others, a[::-1] * 1e200])
    whole = linalg.eigh(among, on_error="nan")
    for q in range(5):
        assert [x[q].tobytes() for x in whole] == [x.tobytes() for x in linalg.eigh(a[q : q + 1])]
