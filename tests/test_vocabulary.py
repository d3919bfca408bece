"""Routines of a user's own, of what there is at the pack level and of the vectors below: a few lines each."""

import re
from pathlib import Path

import numpy as np
import pytest
from numba import njit

import compactla as cla
from cases import random
from compactla import gpu, oracle
from compactla.cpu import conj, fnma, matrix
from drivers import working_devices

PAGE = (Path(__file__).parents[1] / "compactla" / "cpu" / "README.md").read_text()
on_devices = pytest.mark.parametrize("queue", working_devices(), indirect=True, ids=lambda d: "opencl")
NM, N, M, LIMIT = 21, 6, 3, 16 * 3


@pytest.fixture
def filters(rng):
    """States, covariances, measurements: of what, how uncertain, and what they are, outliers among them."""
    x, H = random(rng, (NM, N, 1), np.float64), random(rng, (NM, M, N), np.float64)
    P, R = (a @ a.swapaxes(1, 2) + np.eye(len(a[0])) for a in (random(rng, (NM, k, k), np.float64) for k in (N, M)))
    z = H @ x + random(rng, (NM, M, 1), np.float64)
    z[::5] += 100
    return x, P, H, R, z


def updated(x, P, H, R, z):
    """States and covariances after a measurement, as textbooks have it; they are as before where that is an outlier."""
    S, y = H @ P @ H.swapaxes(1, 2) + R, z - H @ x
    K = P @ H.swapaxes(1, 2) @ np.linalg.inv(S)
    expected = y.swapaxes(1, 2) @ np.linalg.solve(S, y) < LIMIT
    assert expected.any() and not expected.all()
    return np.where(expected, x + K @ y, x), np.where(expected, P - K @ H @ P, P)


def test_kalman_filter_of_the_page(filters):
    known = {"njit": njit}
    exec(re.search(r"```python\n(from compactla.cpu import dot.*?)```", PAGE, re.S).group(1), known)
    x, P, *others = (cla.pack(a, 8) for a in filters)
    W, d = cla.Pack.zeros(NM, M, N, vlen=8), cla.Pack.zeros(NM, 1, 1, vlen=8)
    info = np.zeros((len(x.data), 8), np.int64)
    known["update"](x.data, P.data, *(A.data for A in others), W.data, d.data, info)
    assert not info.any()
    for A, expected in zip((x, P), updated(*filters), strict=True):
        assert np.allclose(A.unpack(), expected, rtol=0, atol=1e-12)


KALMAN = """
    #include "dot.cl"
    #include "gemv.cl"
    #include "potrf.cl"
    #include "trsv.cl"
    __kernel void update(__global CLA_REAL *x, __global CLA_REAL *P, __global const CLA_REAL *H, __global CLA_REAL *R,
                         __global CLA_REAL *z, __global CLA_REAL *W)
    {
        const long q = get_global_id(0);
        const cla_matrix X = cla_matrix_of_batch(x, q, N, 1), C = cla_matrix_of_batch(P, q, N, N);
        const cla_matrix h = cla_matrix_of_batch(H, q, M, N), S = cla_matrix_of_batch(R, q, M, M);
        const cla_matrix y = cla_matrix_of_batch(z, q, M, 1), w = cla_matrix_of_batch(W, q, M, N);
        const cla_lane one = cla_lane_real(1);
        cla_gemv(M, N, -one, h, X, one, y);
        cla_gemm(M, N, N, one, h, C, cla_lane_real(0), w);
        cla_gemm(M, M, N, one, w, cla_transposed(h), one, S);
        cla_potrf(M, S);
        cla_trsv(M, CLA_NONUNIT, S, y);
        cla_trsm(M, N, CLA_NONUNIT, one, S, w);
        if (!(cla_lane_re(cla_dot(M, 0, y, y)) < LIMIT)) return;
        cla_gemv(N, M, one, cla_transposed(w), y, one, X);
        cla_gemm(N, N, M, -one, cla_transposed(w), w, one, C);
    }
"""


@pytest.mark.slow
@on_devices
def test_kalman_filter_on_devices(queue, filters):
    program = gpu.build(queue.context, KALMAN, np.float64, vlen=8, N=N, M=M, LIMIT=LIMIT)
    x, P, *others = (cla.pack(a, 8, queue=queue) for a in filters)
    W = cla.Pack.zeros(NM, M, N, vlen=8, queue=queue)
    program.update(queue, (len(x.data) * 8,), None, *(A.data.data for A in (x, P, *others, W)))
    for A, expected in zip((x, P), updated(*filters), strict=True):
        assert np.allclose(A.unpack(), expected, rtol=0, atol=1e-12)


@njit(error_model="numpy")
def ldlt(a):
    """A <- L below the diagonal, and D on it, with A = L D L^H, of one pack, for any number of lanes and type."""
    for k in range(a.m):
        for i in range(k + 1, a.m):
            x = a[i, k]
            a[i, k] = x / a[k, k]
            for j in range(k + 1, i + 1):
                a[i, j] = fnma(x, conj(a[j, k]), a[i, j])


@pytest.mark.parametrize("V", [8, 3])
def test_ldlt(V, dtype, rng):
    @njit(error_model="numpy")
    def factor(a):
        for p in range(len(a)):
            ldlt(matrix(a[p], V))

    a = random(rng, (NM, 7, 7), dtype)
    a += a.conj().swapaxes(1, 2)
    a[:, range(7), range(7)] += np.where(np.arange(7) % 2, 14, -14)  # definite neither way
    A = cla.pack(a, V)
    factor(A.data)
    (whole, factors), eps = oracle.widen(a, A.unpack()), np.finfo(dtype).eps
    L, D = np.tril(factors, -1) + np.eye(7), np.einsum("qii->qi", factors)[:, None]
    error = oracle.norm1(whole - (L * D) @ oracle.op(L, "C"))
    assert oracle.ratio(error, 7 * eps * oracle.norm1(whole)).max() < oracle.THRESHOLD
