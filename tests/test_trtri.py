"""Tests specific to trtri and getrinp: inverses in place, of triangles and of both that a factorization leaves."""

import numpy as np
import pytest
from numba import njit

import compactla as cla
from cases import in_turns, random, same_bits
from compactla import gpu, oracle
from compactla.cpu import getrfnp, getrinp, matrix, trtri
from drivers import working_devices
from rows import masks, operands, results, routine

pytestmark = pytest.mark.slow

on_devices = pytest.mark.parametrize("queue", working_devices(), indirect=True, ids=lambda d: "opencl")
TRIANGLES = [(uplo, diag) for uplo in "LU" for diag in "NU"]


@pytest.mark.parametrize(("triangle", "dtype"), in_turns(TRIANGLES), ids=str)
def test_pack_level(triangle, dtype, rng):
    """One function inverts all sizes, and leaves the other triangle and a unit diagonal alone."""
    uplo, diag = triangle

    @njit(error_model="numpy")
    def invert(a, info):
        for p in range(len(a)):
            trtri(matrix(a[p], 4), info[p], uplo, diag)

    for n in (0, 1, 6, 13):
        (a,) = operands("trtri", rng, (n,), dtype, 8, uplo=uplo, diag=diag)
        A, info = cla.pack(a, 4), np.zeros((2, 4), np.int64)
        invert(A.data, info)
        assert not info.any()
        (mask,) = masks(routine.named("trtri"), [a], {"uplo": uplo, "diag": diag})
        assert same_bits(A.unpack()[:, mask], a[:, mask])
        found = oracle.named("trtri").residual([a], [A.unpack()], uplo, diag)
        assert found.max() < oracle.THRESHOLD


def inverse_ratio(a, x):
    return oracle.inverse_ratio(*oracle.widen(a, x), np.finfo(x.dtype).eps).max()


def test_inverses_at_the_pack_level(dtype, rng):
    @njit(error_model="numpy")
    def invert(a, info):
        for p in range(len(a)):
            A = matrix(a[p], 4)
            getrfnp(A, info[p])
            getrinp(A, info[p])

    for n in (1, 4, 11):
        a = oracle.dominant(random(rng, (8, n, n), dtype))
        A, info = cla.pack(a, 4), np.zeros((2, 4), np.int64)
        invert(A.data, info)
        assert not info.any()
        assert inverse_ratio(a, A.unpack()) < oracle.THRESHOLD


@on_devices
def test_inverses_on_devices_at_the_pack_level(queue, rng):
    source = """
        #include "getrinp.cl"
        __kernel void invert(__global CLA_REAL *A, __global int *info)
        {
            info[get_global_id(0)] = cla_getrinp(N, cla_matrix_of_batch(A, get_global_id(0), N, N));
        }
    """
    a = oracle.dominant(random(rng, (16, 9, 9), np.complex64))
    A, info = cla.pack(a, 8), cla.pack(np.zeros((16, 1, 1), np.float32), 8, queue=queue)
    cla.getrfnp(A)
    A = A.to(queue)
    program = gpu.build(queue.context, source, np.complex64, vlen=8, N=9)
    program.invert(queue, (16,), None, A.data.data, info.data.data)
    assert not info.unpack().any()
    assert inverse_ratio(a, A.unpack()) < oracle.THRESHOLD


@pytest.mark.parametrize("uplo", "LU")
def test_the_first_zero_is_reported(queue, dtype, uplo, rng):
    """Wherever others are; zeros on a diagonal that is not read are none."""
    (a,) = operands("trtri", rng, (11,), dtype, uplo=uplo)
    expected = np.zeros(len(a), np.int64)
    for q, zeros in ((3, (10,)), (7, (4, 9)), (8, (0, 1, 10))):
        a[q, zeros, zeros] = 0
        expected[q] = zeros[0] + 1
    assert np.array_equal(results("trtri", [a], uplo=uplo, queue=queue)[1], expected)
    assert not results("trtri", [a], uplo=uplo, diag="U", queue=queue)[1].any()


@pytest.mark.parametrize("uplo", "LU")
def test_graded_triangles(queue, dtype, uplo, rng):
    """Rows and columns of very different lengths change nothing but the scale of every element."""
    (a,) = operands("trtri", rng, (9,), dtype, uplo=uplo)
    a = oracle.triangle(np.nan_to_num(a), uplo)
    few = 9 if np.finfo(dtype).bits == 32 else 60
    rows, columns = (2.0 ** rng.integers(-few, few, (2, 9))).astype(np.finfo(dtype).dtype)
    plain, _ = results("trtri", [a], uplo=uplo, queue=queue)
    graded, info = results("trtri", [rows[:, None] * a * columns], uplo=uplo, queue=queue)
    assert not info.any()
    assert np.array_equal(oracle.triangle(graded * columns[:, None] * rows, uplo), oracle.triangle(plain, uplo))
