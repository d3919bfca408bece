"""Stacks that are larger than a machine: functions of compactla.linalg as Dask and xarray call them, block by block."""

import threading
import time

import dask.array as da
import distributed
import numpy as np
import pytest
import xarray

from compactla import linalg

pytestmark = pytest.mark.slow

NM, N, BLOCK = 1000, 3, 256


@pytest.fixture(params=["d", "f"])
def stacks(request, rng):
    """Coefficients and right-hand sides, as arrays and in blocks, the last of which is smaller."""
    arrays = [rng.standard_normal((NM, N, k)).astype(request.param) for k in (N, 1)]
    return arrays, [da.from_array(a, chunks=(BLOCK, *a.shape[1:])) for a in arrays]


def test_map_blocks(stacks):
    (a, b), blocks = stacks
    x = da.map_blocks(linalg.solve, *blocks, dtype=a.dtype, chunks=blocks[1].chunks)
    assert type(x._meta) is np.ndarray and x.shape == b.shape
    found = x.compute(scheduler="threads")
    assert type(found) is np.ndarray and found.dtype == a.dtype
    np.testing.assert_array_equal(found, linalg.solve(a, b))


def test_options_and_failures(stacks):
    a, right = stacks[0][0], stacks[1][1]
    a[700] = 0
    blocks = da.from_array(a, chunks=(BLOCK, N, N))
    x = da.map_blocks(linalg.solve, blocks, right, on_error="nan", threads=1).compute()
    assert np.isnan(x[700]).all() and np.isfinite(np.delete(x, 700, axis=0)).all()
    with pytest.raises(np.linalg.LinAlgError, match=r"Singular matrix: 1 of 256 matrices, at 188"):
        da.map_blocks(linalg.solve, blocks, right, dtype=a.dtype).compute()


def test_apply_ufunc(stacks):
    """Core dimensions that are not the last ones, and a result that has names."""
    (a, b), (blocks, right) = stacks
    A = xarray.DataArray(blocks.transpose(1, 2, 0), dims=("row", "column", "cell"))
    B = xarray.DataArray(right[:, :, 0], dims=("cell", "row"))
    x = xarray.apply_ufunc(
        lambda a, b: linalg.solve(a, b[..., None])[..., 0],
        *(A, B),
        input_core_dims=[("row", "column"), ("row",)],
        output_core_dims=[("column",)],
        dask="parallelized",
        output_dtypes=[a.dtype],
        dask_gufunc_kwargs={"output_sizes": {"column": N}},
    )
    assert x.dims == ("cell", "column") and x.chunks[0] == blocks.chunks[0] and x.dtype == a.dtype
    np.testing.assert_array_equal(x.compute().values, linalg.solve(a, b)[..., 0])


def test_arrays_of_xarray_come_back(stacks):
    (a, b), _ = stacks
    A, B = (xarray.DataArray(x, dims=("cell", "row", "column")) for x in (a, b))
    x = linalg.solve(A, B)
    assert type(x) is type(np.linalg.solve(A, B))
    np.testing.assert_array_equal(x, linalg.solve(a, b))


def test_other_threads_go_on(rng):
    """Nobody waits for the interpreter while matrices are solved."""
    a = rng.standard_normal((300_000, 8, 8))
    linalg.solve(a[:9], a[:9], threads=1)
    beats, over = [], threading.Event()

    def beat():
        while not over.wait(0.001):
            beats.append(time.perf_counter())

    other = threading.Thread(target=beat)
    other.start()
    try:
        start = time.perf_counter()
        linalg.solve(a, a, threads=1)
        end = time.perf_counter()
    finally:
        over.set()
        other.join()
    times = np.array([start, *(t for t in beats if start < t < end), end])
    assert np.diff(times).max() < (end - start) / 2


def worst(a, b, x):
    """The largest error of a block of solutions, relative to what goes into it: of shape (1, 1, 1)."""
    error = abs(np.einsum("qij,qjk->qik", a, x) - b).max(axis=(1, 2))
    return (error / (abs(a).max(axis=(1, 2)) * abs(x).max(axis=(1, 2)) + 1)).max(keepdims=True)[:, None, None]


@pytest.mark.exhaustive
def test_more_than_workers_hold():
    """Three gigabytes, made, solved and reduced in blocks, by two workers that may hold three quarters of one each."""
    resource = pytest.importorskip("resource", reason="only Unix tells how much memory there was")
    n, block, size, limit = 8, 2**17, 3 * 2**30, 3 * 2**28
    a = da.random.default_rng(1).random((size // (8 * n * n), n, n), chunks=(block, n, n)) - 0.5
    b = da.ones((len(a), n, 1), chunks=(block, n, 1))
    x = da.map_blocks(linalg.solve, a, b, threads=1, dtype=float, chunks=b.chunks)
    errors = da.map_blocks(worst, a, b, x, chunks=(1, 1, 1), dtype=float)
    cluster = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": limit, "dashboard_address": None}
    with distributed.LocalCluster(**cluster) as workers, distributed.Client(workers) as client:
        largest = errors.max().compute()
        peaks = client.run(lambda: 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    assert a.nbytes == size > 2 * limit > 2 * max(peaks.values())
    assert largest < n * n * np.finfo(float).eps
