"""Batches of sparse matrices of one pattern: values, products, and what is refused."""

import numpy as np
import pyopencl.array
import pytest
import scipy.sparse

import compactla as cla
from cases import here, random, there
from compactla import gpu
from compactla.gpu import sparse as gpu_sparse
from drivers import working_devices
from systems_sparse import dense, pattern, run_in_rounds, values

pytestmark = pytest.mark.slow

NM, M, N = 19, 7, 5


@pytest.fixture
def parts(rng):
    indices, indptr = pattern(rng, M, N)
    return indices, indptr


def close(y, expected):
    eps = np.finfo(y.dtype).eps
    return y.dtype == expected.dtype and abs(y - expected).max() <= 100 * eps * max(abs(expected).max(), 1)


def test_products(queue, rng, dtype, parts):
    data = values(rng, NM, *parts, dtype)
    A, a = cla.BatchCSR((data, *parts), (M, N), queue=queue), dense(data, *parts, N)
    assert (A.nm, A.shape, A.nnz, A.dtype) == (NM, (M, N), len(parts[0]), dtype)
    assert np.array_equal(A.toarray(), a)
    for q in range(2):
        x = random(rng, (N,), dtype)
        expected = scipy.sparse.csr_array((data[q], *parts), (M, N)) @ x
        assert close((A @ np.tile(x, (NM, 1)))[q], expected)
    for nrhs in (1, 3):
        x, z = random(rng, (NM, N, nrhs), dtype), random(rng, (NM, M, nrhs), dtype)
        assert close(A @ x, a @ x)
        assert close(A.T @ z, a.swapaxes(1, 2) @ z)
        assert close(A.H @ z, a.conj().swapaxes(1, 2) @ z)


@pytest.mark.parametrize("queue", working_devices(), indirect=True, ids=lambda d: "opencl")
@pytest.mark.parametrize("trans", "NTC")
def test_products_with_ordinary_vectors(queue, rng, dtype, parts, trans, monkeypatch):
    """In one launch, as on a GPU, of vectors of any strides; NaN stays in its system."""
    run_in_rounds(monkeypatch)
    monkeypatch.setattr(gpu_sparse, "multiply", None)
    data = values(rng, NM, *parts, dtype)
    A, a = cla.BatchCSR((data, *parts), (M, N), queue=queue), dense(data, *parts, N)
    a = {"N": a, "T": a.swapaxes(1, 2), "C": a.conj().swapaxes(1, 2)}[trans]
    x = random(rng, (NM, a.shape[2]), dtype)
    x[4] = np.nan
    good = np.arange(NM) != 4
    spread = there(np.repeat(np.repeat(x, 2, 0), 3, 1), queue)[::2, 1::3]
    for vectors in (there(x, queue), spread, there(np.ascontiguousarray(x.T), queue).T):
        found = A.multiply(vectors, trans=trans).get()
        assert close(found[good], np.einsum("qij,qj->qi", a, x)[good]) and np.isnan(found[4]).any()
    several = there(random(rng, (NM, a.shape[2], 3), dtype), queue)
    assert close(A.multiply(several, trans=trans).get(), a @ several.get())


def test_scalars(queue, rng, parts):
    data = values(rng, NM, *parts, np.float64)
    A, a = cla.BatchCSR((data, *parts), (M, N), queue=queue), dense(data, *parts, N)
    x, z = random(rng, (NM, N), np.float64), random(rng, (NM, M), np.float64)
    alpha, beta = random(rng, (NM,), np.float64), random(rng, (NM,), np.float64)
    assert close(A.multiply(x, z, alpha=alpha, beta=2), alpha[:, None] * np.einsum("qij,qj->qi", a, x) + 2 * z)
    beta[::2], alpha[1::3] = 0, 0
    bad_z, bad_x = z.copy(), x.copy()
    bad_z[::2], bad_x[1::3] = np.nan, np.nan  # which are not read
    expected = alpha[:, None] * np.einsum("qij,qj->qi", a, x) + beta[:, None] * z
    assert close(A.multiply(bad_x, bad_z, alpha=alpha, beta=beta), expected)
    expected = alpha[:, None] * np.einsum("qij,qi->qj", a, z) + beta[:, None] * x
    bad_z, bad_x = z.copy(), x.copy()
    bad_z[1::3], bad_x[::2] = np.nan, np.nan
    assert close(A.multiply(bad_z, bad_x, alpha=alpha, beta=beta, trans="T"), expected)


def test_packs_strides_and_order_of_columns(queue, rng, parts):
    data = values(rng, NM, *parts, np.float64)
    A, x = cla.BatchCSR((data, *parts), (M, N), queue=queue), random(rng, (NM, N, 2), np.float64)
    y, z = A @ x, random(rng, (NM, M, 2), np.float64)
    X, Y = (cla.pack(a, A.vlen, queue=queue) for a in (x, z))
    assert np.array_equal((A @ X).unpack(), y)
    both = cla.Pack.zeros(NM, max(M, N), 3, vlen=A.vlen, queue=queue)
    with pytest.raises(ValueError, match="y shares memory with x"):
        A.multiply(both[:N, :2], both[:M, 1:])
    assert A.multiply(X, Y, beta=1) is Y and close(Y.unpack(), y + z)
    assert np.array_equal(A @ np.asfortranarray(x), y)
    order = np.concatenate([np.arange(i, j)[::-1] for i, j in zip(parts[1], parts[1][1:], strict=False)])
    turned = parts[0][order], parts[1]
    for some, these in ((np.asfortranarray(data), parts), (data[:, order], turned), (data[:, order], turned)):
        assert np.array_equal(cla.BatchCSR((there(some, queue), *these), (M, N)) @ x, y)
    A.update(2 * data)
    assert np.array_equal(A @ x, 2 * y)
    A.update(there(data, queue))
    assert np.array_equal(A @ x, y)
    assert np.array_equal(A.to("cpu").toarray(), A.toarray())


def test_arrays_on_devices(elsewhere, rng, parts):
    data, x = values(rng, NM, *parts, np.float64), random(rng, (NM, N, 2), np.float64)
    A = cla.BatchCSR((data, *parts), (M, N)).to(elsewhere)
    columns, y = pyopencl.array.to_device(elsewhere, x), A @ x
    assert np.array_equal((A @ columns).get(), y) and np.array_equal((A @ columns[:, :, 1]).get(), y[:, :, 1])
    some = pyopencl.array.to_device(elsewhere, np.asfortranarray(x.astype(np.float32)))
    assert np.array_equal((A @ some).get(), A @ x.astype(np.float32))
    assert np.array_equal(A.multiply(columns, A @ columns, alpha=2, beta=-1).get(), y)
    for wrong in (cla.pack(x, A.vlen), columns[:, :3]):
        with pytest.raises((TypeError, ValueError), match="x"):
            A @ wrong
    with pytest.raises(TypeError, match="x"):
        A.to("cpu") @ columns
    with pytest.raises(TypeError, match="y"):
        A.multiply(columns, y, beta=1)


@pytest.mark.parametrize("nm, n, nnz", [(0, 3, 3), (2, 0, 0), (3, 4, 0)])
def test_empty(queue, nm, n, nnz):
    indptr = np.minimum(np.arange(n + 1), nnz)
    A = cla.BatchCSR((np.ones((nm, nnz)), np.arange(nnz), indptr), queue=queue)
    x = np.ones((nm, n))
    assert np.array_equal(A @ x, x * (nnz > 0)) and np.array_equal(A.T @ x, x * (nnz > 0))
    assert np.array_equal(here(A @ there(x, queue)), x * (nnz > 0))


@pytest.mark.parametrize(
    "change, error, match",
    [
        (lambda d, i, p: (d[0], i, p), ValueError, "data has shape"),
        (lambda d, i, p: (d[:, 1:], i, p), ValueError, "data has shape"),
        (lambda d, i, p: (d.astype(int), i, p), TypeError, "data"),
        (lambda d, i, p: (d, i + N, p), ValueError, "indices are"),
        (lambda d, i, p: (d, i.astype(float), p), TypeError, "indices"),
        (lambda d, i, p: (d, i, p[:-1]), ValueError, "shape"),
        (lambda d, i, p: (d, np.zeros_like(i), p), ValueError, "twice"),
        (lambda d, i, p: (d, i, p[::-1].copy()), ValueError, "ascend"),
    ],
)
def test_refusals(rng, parts, change, error, match):
    data = values(rng, NM, *parts, np.float64)
    with pytest.raises(error, match=match):
        cla.BatchCSR(change(data, *parts), (M, N))


def test_refused_operands(rng, parts):
    A = cla.BatchCSR((values(rng, NM, *parts, np.float64), *parts), (M, N))
    for x, error in ((np.ones((NM, M)), ValueError), (np.ones((NM, N), complex), TypeError), (None, TypeError)):
        with pytest.raises(error, match="x"):
            A @ x
    for wrong in ({"alpha": np.ones(3)}, {"beta": 1}, {"trans": "X"}):
        with pytest.raises(ValueError):
            A.multiply(np.ones((NM, N)), **wrong)
    with pytest.raises(TypeError, match="data"):
        A.update(np.ones((NM, A.nnz), np.float32))


USERS = """
#include "csrilu.cl"
#include "csrsv.cl"
/* y <- the incomplete factors' solution of A z = x, and x <- A y */
__kernel void both(__global const long *indptr, __global const int *indices, __global const int *diagonal,
                   __global const CLA_REAL *a, __global CLA_REAL *f, __global CLA_REAL *x, __global CLA_REAL *y)
{
    const long q = get_global_id(0), nnz = indptr[N];
    const cla_matrix A = cla_matrix_of_batch(a, q, nnz, 1), F = cla_matrix_of_batch(f, q, nnz, 1);
    const cla_matrix X = cla_matrix_of_batch(x, q, N, 1), Y = cla_matrix_of_batch(y, q, N, 1);
    cla_csrilu(N, A, indptr, indices, diagonal, Y, F);
    cla_csrsv(N, 1, F, indptr, indices, diagonal, X, Y, 0, 0);
    cla_csrmm(N, 1, A, indptr, indices, 0, cla_lane_real(1), cla_lane_real(0), Y, X, 0, 1);
}
"""


def test_user_kernel(elsewhere, rng):
    indices, indptr = pattern(rng, M)
    A = cla.BatchCSR((values(rng, NM, indices, indptr, np.complex64), indices, indptr), vlen=4)
    x = random(rng, (NM, M), np.complex64)
    D, X = A.to(elsewhere), cla.pack(x[:, :, None], 4, queue=elsewhere)
    F, Y = D.values.beside(A.nnz, 1), X.beside(M, 1)
    integers = indptr.astype(np.int64), indices.astype(np.int32), A.pattern.diagonal.astype(np.int32)
    arrays = [*(there(a, elsewhere) for a in integers), D.values.data, F.data, X.data, Y.data]
    program = gpu.build(elsewhere.context, USERS, np.complex64, 4, N=M)
    program.both(elsewhere, (X.data.shape[0] * 4,), None, *(a.data for a in arrays))
    expected = cla.krylov.ILU0(A) @ x
    assert close(Y.unpack()[:, :, 0], expected) and close(X.unpack()[:, :, 0], A @ expected)
