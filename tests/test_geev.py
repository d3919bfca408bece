"""geev: matrices that are hard, and calls from Numba functions."""

import numpy as np
import pytest
from numba import njit

import compactla as cla
from cases import exhaustive, random
from compactla import oracle
from compactla.cpu import geev, matrix
from test_linalg_eig import hard

V = 4


def residual(a, w, v):
    return oracle.named("geev").residual((a,), (None, w[:, :, None], v, None))


@pytest.mark.parametrize(("n", "dtype"), [exhaustive(n, x) for n in (1, 2, 5, 8) for x in "dD"])
def test_hard_matrices(n, dtype, queue):
    given = hard(n, dtype)
    a = np.array([x for name, x in given.items() if name not in ("huge", "tiny")])
    A = cla.pack(a, queue=queue)
    w, v, info = cla.geev(A)
    w = w if queue is None else w.get()
    assert info[-1] == n and not info[:-1].any() and np.isnan(w[-1]).all()
    assert (residual(a[:-1], w[:-1], v.unpack()[:-1]) < oracle.THRESHOLD).all()


@pytest.mark.slow
def test_balancing_does_no_harm(queue):
    """Frank's matrices, of which norms of another kind than Euclidean ones make others that are far larger."""
    n = 64
    rows = n - np.arange(n)
    a = np.triu(np.minimum(rows[:, None], rows), -1)[None].astype(float)
    w, v, info = cla.geev(cla.pack(a, queue=queue))
    assert not info.any()
    assert residual(a, w if queue is None else w.get(), v.unpack()) < oracle.THRESHOLD


@njit
def call(A, w, X, Z, info):
    for p in range(len(A)):
        geev(matrix(A[p], V, 3, 3), matrix(w[p], V, 3, 1), matrix(X[p], V, 3, 3), matrix(Z[p], V, 3, 3), info[p])


@pytest.mark.slow
def test_in_numba():
    a = random(np.random.default_rng(0), (2 * V, 3, 3), "d")
    A, Z = cla.pack(a, V), cla.Pack.zeros(2 * V, 3, 3, vlen=V)
    w, X = (cla.Pack.zeros(2 * V, 3, n, dtype=complex, vlen=V) for n in (1, 3))
    info = np.zeros((2, V), np.int64)
    call(A.data, w.data, X.data, Z.data, info)
    assert not info.any() and (residual(a, w.unpack()[:, :, 0], X.unpack()) < oracle.THRESHOLD).all()
