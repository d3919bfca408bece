"""chud at the pack level, and its extremes: updates and downdates of Cholesky factors."""

import functools

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from numba import njit

import compactla as cla
from cases import in_turns, random, same_bits
from compactla import gpu
from compactla.cpu import chud, matrix
from compactla.oracle import THRESHOLD
from compactla.oracle import chud as oracle

OPENCL = """
#include "chud.cl"

__kernel void update(__global CLA_REAL *A, __global CLA_REAL *X, __global int *info)
{
    const long q = get_global_id(0);
    info[q] = cla_chud(N, R, 1, cla_matrix_of_batch(A, q, N, N), cla_matrix_of_batch(X, q, N, R));
}
"""


@functools.cache
def kernel(V, uplo, downdate):
    @njit(error_model="numpy")
    def run(a, x, info):
        for p in range(len(a)):
            chud(matrix(a[p], V), matrix(x[p], V), info[p], uplo, downdate)

    return run


@pytest.mark.parametrize(("where", "dtype"), in_turns([("L", False), ("U", True)], always=[("U", True)]), ids=str)
def test_in_numba(where, dtype, rng):
    uplo, downdate = where
    for n, r in ((1, 1), (4, 1), (5, 3), (9, 0)):
        a, x = oracle.operands(lambda m, k: random(rng, (16, m, k), dtype), n, r, downdate=downdate)
        A, X, info = cla.pack(a, 8), cla.pack(x, 8), np.zeros((2, 8), np.int64)
        kernel(8, uplo, downdate)(A.data, X.data, info)
        assert not info.any()
        assert oracle.residual((a, x), (A.unpack(), None), uplo, downdate).max() < THRESHOLD


def test_in_opencl(elsewhere, rng):
    a, x = oracle.operands(lambda m, k: random(rng, (8, m, k), np.float64), 4, 2, downdate=True)
    a[2, 0, 0], x[2, 0] = 1, 3
    A, X = (cla.pack(z, 8, queue=elsewhere) for z in (a, x))
    info = cl.array.zeros(elsewhere, 8, np.int32)
    program = gpu.build(elsewhere.context, OPENCL, np.float64, vlen=8, N=4, R=2)
    program.update(elsewhere, (8,), None, A.data.data, X.data.data, info.data)
    assert info.get().tolist() == [0, 0, 1, 0, 0, 0, 0, 0]
    good = np.arange(8) != 2
    assert oracle.residual((a[good], x[good]), (A.unpack()[good], None), downdate=True).max() < THRESHOLD


def test_huge_tiny_and_zero(queue, rng):
    """Squares would overflow, or become zero; zeros change nothing."""
    a, x = oracle.operands(lambda m, k: random(rng, (5, m, k), np.float64), 3, 1)
    a = np.tril(a)
    expected = cla.pack(a.copy())
    cla.chud(expected, cla.pack(x.copy()))
    scales = np.array([1e200, 1e-200, 1e300, 1e-290, 1])[:, None, None]
    for downdate in (False, True):
        A, X = cla.pack(a * scales, queue=queue), cla.pack(x * scales, queue=queue)
        assert not cla.chud(A, X, downdate=downdate).any()
        after = A.unpack() / scales
        assert oracle.residual((a, x), (after, None), downdate=downdate).max() < THRESHOLD
    A = cla.pack(a, queue=queue)
    cla.chud(A, cla.pack(np.zeros_like(x), queue=queue))
    np.testing.assert_allclose(A.unpack(), a, rtol=1e-15)
    Z = cla.pack(np.zeros_like(a), queue=queue)
    assert not cla.chud(Z, cla.pack(np.zeros_like(x), queue=queue)).any() and not Z.unpack().any()


def test_a_downdate_close_to_singular(rng):
    """As accurate as the condition lets it be: the pivot that is left has digits to lose."""
    n = 6
    a = np.tril(random(rng, (4, n, n), np.float64)) + 3 * np.eye(n)
    direction = random(rng, (4, n, 1), np.float64)
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    for gap in (1e-4, 1e-8, 1e-12):
        x = a @ direction * np.sqrt(1 - gap)
        A = cla.pack(a)
        info = cla.chud(A, cla.pack(x), downdate=True)
        assert not info.any()
        assert oracle.residual((a, x), (A.unpack(), None), downdate=True).max() < THRESHOLD


def test_back_and_forth(rng):
    a, x = oracle.operands(lambda m, k: random(rng, (9, m, k), np.complex128), 5, 2)
    A = cla.pack(np.tril(a))
    before = A.unpack()
    cla.chud(A, cla.pack(x))
    cla.chud(A, cla.pack(x), downdate=True)
    np.testing.assert_allclose(A.unpack(), before, atol=1e-13)


def test_what_is_refused():
    A, X = cla.Pack.identity(3, 2, 2), cla.Pack.zeros(3, 3, 1)
    with pytest.raises(ValueError, match="A is 2 x 2, must be 3 x 3"):
        cla.chud(A, X)
    with pytest.raises(ValueError, match="downdate is 1, must be one of False, True"):
        cla.chud(A, cla.Pack.zeros(3, 2, 1), downdate=1)
    assert same_bits(A.unpack(), cla.Pack.identity(3, 2, 2).unpack())
