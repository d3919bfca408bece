"""Pack-level functions called from a user's own OpenCL kernel, and how such kernels are built."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyopencl.array
import pytest

import compactla as cla
from compactla import gpu
from drivers import working_devices
from reference import THRESHOLD, widen

on_devices = pytest.mark.parametrize("queue", working_devices(), indirect=True)

SCHUR = """
#include "gemm.cl"
#include "getrf.cl"

/* x <- inv(D - E F) x for matrices of order N; D is overwritten by its factors */
__kernel void schur(__global REAL *D, __global const REAL *E, __global const REAL *F, __global REAL *x)
{
    const long q = get_global_id(0); /* one work-item a lane */
    const matrix d = matrix_of_batch(D, q, N, N), e = matrix_of_batch(E, q, N, N);
    const matrix f = matrix_of_batch(F, q, N, N), b = matrix_of_batch(x, q, N, 1);

    gemm(N, N, N, lane_real(-1), e, f, lane_real(1), d);
    getrfnp(N, N, NONUNIT, d);
    trsm(N, 1, UNIT, lane_real(1), d, b);
    trsm(N, 1, NONUNIT, lane_real(1), reversed(d, N, N), rows_reversed(b, N)); /* U, last row first */
}
"""


@on_devices
@pytest.mark.parametrize("n", [3, 10])
def test_user_kernel(queue, dtype, n, rng):
    nm, vlen = 21, 8

    def batch(*shape):
        a = rng.uniform(-1, 1, (nm, *shape)) + 1j * rng.uniform(-1, 1, (nm, *shape))
        return a.astype(dtype) if dtype.kind == "c" else a.real.astype(dtype)

    d, e, f, b = batch(n, n) + 2 * n * np.eye(n, dtype=dtype), batch(n, n), batch(n, n), batch(n, 1)
    D, E, F, x = (cla.pack(a, vlen=vlen, queue=queue) for a in (d, e, f, b))

    program = gpu.build(queue.context, SCHUR, dtype, vlen, N=n)
    lanes = x.data.shape[0] * vlen
    program.schur(queue, (lanes,), None, D.data.data, E.data.data, F.data.data, x.data.data)

    d, e, f, b, x = widen(d, e, f, b, x.unpack())
    a = d - e @ f
    scale = (np.abs(d) + np.abs(e) @ np.abs(f)) @ np.abs(x)
    assert np.max(np.abs(b - a @ x) / scale) < THRESHOLD * n * np.finfo(dtype).eps


@on_devices
def test_built_once(queue):
    def build(vlen):
        return gpu.build(queue.context, SCHUR, np.float32, vlen, N=2)

    with ThreadPoolExecutor(4) as pool:
        programs = list(pool.map(build, [4, 4, 4, 8]))
    assert programs[0] is programs[1] is programs[2] is not programs[3]


@on_devices
def test_build_log(queue):
    with pytest.raises(RuntimeError, match="undeclared_name"):
        gpu.build(queue.context, "__kernel void k(__global int *a) { *a = undeclared_name; }", np.float32)


class SingleDevice:
    name, extensions = "Small GPU", "cl_khr_icd"


class SingleContext:
    devices = (SingleDevice,)


@pytest.mark.parametrize(
    ("dtype", "vlen", "error", "message"),
    [
        (np.float64, 8, ValueError, "float64.*Small GPU has no double"),
        (np.complex128, 8, ValueError, "complex128.*Small GPU has no double"),
        (np.int32, 8, TypeError, "int32"),
        (np.float32, 0, ValueError, "vlen is 0"),
    ],
)
def test_build_arguments(dtype, vlen, error, message):
    with pytest.raises(error, match=message):
        gpu.build(SingleContext, SCHUR, dtype, vlen)


@on_devices
def test_factors_without_waiting(queue, rng):
    a = rng.uniform(-1, 1, (21, 4, 4)) + 8 * np.eye(4)
    a[5, 2, :3] = 0
    A, B = (cla.pack(a, queue=queue) for _ in range(2))
    info = pyopencl.array.empty(queue, (21,), np.int32)
    assert gpu.getrfnp(A, info) is info
    assert info.events[-1] == A.data.events[-1]
    assert np.array_equal(info.get(), cla.getrfnp(B))
    assert np.array_equal(A.unpack(), B.unpack())
    empty = pyopencl.array.empty(queue, (0,), np.int32)
    assert gpu.getrfnp(cla.Pack.zeros(0, 4, 4, queue=queue), empty) is empty


@on_devices
def test_factors_without_waiting_are_checked(queue):
    A = cla.Pack.identity(3, 4, queue=queue)
    for info, error, message in (
        (np.zeros(3, np.int32), TypeError, "info is a ndarray"),
        (pyopencl.array.zeros(queue, (3,), np.int64), TypeError, "int64, must be int32"),
        (pyopencl.array.zeros(queue, (4,), np.int32), ValueError, r"\(4,\), must be \(3,\)"),
    ):
        with pytest.raises(error, match=message):
            gpu.getrfnp(A, info)
    with pytest.raises(TypeError, match="A lives on the cpu"):
        gpu.getrfnp(cla.Pack.identity(3, 4), pyopencl.array.zeros(queue, (3,), np.int32))


@on_devices
def test_what_does_not_fit(queue):
    with pytest.raises(MemoryError, match=r"shape \(\d+, 32, 32, 8\) and float64 does not fit"):
        cla.Pack._allocate(2**43, 32, 32, np.float64, 8, queue)
