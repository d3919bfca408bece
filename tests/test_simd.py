"""The lane type, and the pack level: routines called from a user's own `@njit` functions."""

import functools

import numpy as np
import pytest
from numba import njit, types

import compactla as cla
import reference
from cases import dominant, in_turns, random
from compactla.cpu import broadcast, conj, fma, fnma, gemm, getrfnp, matrix, trsm
from compactla.cpu.emit import routine
from compactla.cpu.kernel import compiled

pytestmark = pytest.mark.optimized
THRESHOLD = 4  # units in the last place of a single operation; complex division takes a few


@functools.cache
def arithmetic(V):
    """Kernel that applies every operation to x, y, z, the rows of `a`."""

    @njit(error_model="numpy")
    def kernel(a, out, scalar):
        A, R = matrix(a, V), matrix(out, V)
        x, y, z = A[0, 0], A[1, 0], A[2, 0]
        R[0, 0] = x + y
        R[1, 0] = x - y
        R[2, 0] = x * y
        R[3, 0] = x / y
        R[4, 0] = -x
        R[5, 0] = conj(x)
        R[6, 0] = fma(x, y, z)
        R[7, 0] = fnma(x, y, z)
        R[8, 0] = broadcast(scalar, x)

    return kernel


@pytest.mark.parametrize("V", [1, 3, 8, 16])
def test_arithmetic(dtype, V, rng):
    a = random(rng, (V, 3, 1), dtype)
    A, R = cla.pack(a, V), cla.Pack.zeros(V, 9, 1, dtype, V)
    kernel, scalar = arithmetic(V), dtype.type(0.3)
    kernel(A.data[0], R.data[0], scalar)

    x, y, z = reference.widen(*a[:, :, 0].T)
    expected = [x + y, x - y, x * y, x / y, -x, x.conj(), x * y + z, z - x * y, np.full(V, scalar)]
    exact = np.zeros(V)
    bound = [*[abs(x) + abs(y)] * 2, abs(x * y), abs(x / y), exact, exact, *[abs(x * y) + abs(z)] * 2, exact]
    error = np.abs(R.unpack()[:, :, 0].T - np.array(expected))
    assert reference.ratio(error, np.finfo(dtype).eps * np.array(bound)) < THRESHOLD


@pytest.mark.parametrize(("dtype", "vector"), [(np.float64, "<8 x double>"), (np.complex64, "<16 x float>")])
def test_a_vector_is_a_vector_of_the_machine(dtype, vector):
    V = int(vector[1:3])
    kernel = arithmetic(V)
    A, R = cla.Pack.identity(V, 3, 1, dtype, V), cla.Pack.zeros(V, 9, 1, dtype, V)
    kernel(A.data[0], R.data[0], dtype(1))
    assert any(f"fdiv {vector}" in code for code in kernel.inspect_llvm().values())


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_division_of_any_magnitude(dtype):
    limits = np.finfo(dtype)
    y = np.array([s * w for s in (limits.max / 4, limits.tiny / limits.eps) for w in (1, 1j, 1 + 1j, 1e-3 - 1j)], dtype)
    a = np.stack([y, y, y], 1)[:, :, None]
    A, R = cla.pack(a, 8), cla.Pack.zeros(8, 9, 1, dtype, 8)
    arithmetic(8)(A.data[0], R.data[0], dtype(1))
    assert np.abs(R.unpack()[:, 3, 0] - 1).max() < THRESHOLD * limits.eps


def test_views(rng):
    @njit
    def kernel(a, out):
        A, R = matrix(a, 4), matrix(out, 4)
        for i in range(A.m):
            for j in range(A.n):
                R[i, j] = A.H[j, i] + A.T.T[i, j] + conj(A.H.H[i, j])

    a = random(rng, (4, 2, 3), np.complex128)
    A, R = cla.pack(a, 4), cla.Pack.zeros(4, 2, 3, np.complex128, 4)
    kernel(A.data[0], R.data[0])
    assert np.allclose(R.unpack(), 2 * a.conj() + a, rtol=1e-15, atol=0)
    kernel(A.T.data[0], R.T.data[0])
    assert np.allclose(R.unpack(), 2 * a.conj() + a, rtol=1e-15, atol=0)


@functools.cache
def schur(V, n=None, columns=None):
    """Kernel x <- inv(D - E F) x on every pack, with sizes of the arrays, or with sizes that are compiled in."""

    @njit
    def kernel(d, e, f, x, info):
        for p in range(len(d)):
            D, X = matrix(d[p], V, n, n), matrix(x[p], V, n, columns)
            E, F = matrix(e[p], V, n, n), matrix(f[p], V, n, n)
            gemm(E, F, D, -1, 1)
            getrfnp(D, info[p])
            trsm(D, X, diag="U")
            trsm(D, X, uplo="U")

    return kernel


@pytest.mark.parametrize(("n", "columns", "static"), [(3, 1, True), (3, 1, False), (10, 7, False)])
def test_user_kernel(dtype, n, columns, static, rng):
    d, x = dominant(rng, 21, n, n, dtype), random(rng, (21, n, columns), dtype)
    e, f = random(rng, (2, 21, n, n), dtype)
    D, E, F, X = (cla.pack(a, 8) for a in (d, e, f, x))
    info = np.zeros((3, 8), np.int64)
    schur(8, *((n, columns) if static else ()))(D.data, E.data, F.data, X.data, info)
    assert not info.ravel()[:21].any()  # in the unused lanes D - E F is zero
    d, e, f = reference.widen(d, e, f)
    assert reference.solve_ratio(d - e @ f, X.unpack(), x) < reference.THRESHOLD


def test_user_kernel_reports_zero_pivots(rng):
    d, zero = dominant(rng, 8, 3, 3, np.float64), np.zeros((8, 3, 3))
    d[5, 1, :2] = 0
    D, E = cla.pack(d, 8), cla.pack(zero, 8)
    info = np.zeros((1, 8), np.int64)
    schur(8)(D.data, E.data, E.data, E.data, info)
    assert info.tolist() == [[0, 0, 0, 0, 0, 2, 0, 0]]


@pytest.mark.parametrize(("options", "dtype"), in_turns(["LUTN", "RLCU", "RUNN"]), ids=str)
def test_scalars_and_options_of_user_kernels(options, dtype, rng):
    side, uplo, trans, diag = options

    @njit
    def kernel(a, b, c, alpha, beta):
        A, B, C = matrix(a, 4), matrix(b, 4), matrix(c, 4)
        trsm(A, B, side, uplo, trans, diag, alpha)
        gemm(A.H, B.T, C.T, alpha, beta)

    a = (dominant(rng, 4, 3, 3, dtype) / 3).astype(dtype)
    b, c = random(rng, (2, 4, 3, 3), dtype)
    A, B, C = (cla.pack(x, 4) for x in (a, b, c))
    alpha, beta = dtype.type(0.5), dtype.type(-2)
    kernel(A.data[0], B.data[0], C.data[0], alpha, beta)
    x = B.unpack()
    assert reference.trsm_ratio(x, a, b, *options, alpha) < reference.THRESHOLD
    c, result = c.swapaxes(1, 2), C.T.unpack()
    assert reference.gemm_ratio(result, a, x, c, alpha, beta, "C", "T") < reference.THRESHOLD


def scaling(factor):
    @routine
    def scale(code, A):
        A[0, 0] = A[0, 0].fma(code.zero(A.vector).constant(factor), code.zero(A.vector))

    return scale


def test_routines_of_one_name(rng):
    """Each is emitted as itself, in one kernel too."""
    twice, thrice = scaling(2), scaling(3)

    @njit
    def kernel(x, y):
        twice(matrix(x, 4))
        thrice(matrix(y, 4))

    X, Y = cla.Pack(np.ones((1, 1, 1, 4))), cla.Pack(np.ones((1, 1, 1, 4)))
    kernel(X.data[0], Y.data[0])
    assert (X.data == 2).all()
    assert (Y.data == 3).all()


def test_a_kernel_with_an_error_is_compiled_once():
    tries = []

    @routine
    def fail(code, A):
        tries.append(code)
        raise ValueError("A is not to its taste")

    def make():
        def batch(lo, hi, a):
            fail(matrix(a, 4, 1, 1))

        return batch

    with pytest.raises(Exception, match="not to its taste"):
        compiled(make, (types.float64[:, :, ::1],))
    assert len(tries) == 1
