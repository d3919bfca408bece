"""The lane type, and the pack level: routines called from a user's own `@njit` functions."""

import functools

import numpy as np
import pytest
from numba import njit, types
from numba.core.errors import TypingError

import compactla as cla
import reference
from cases import dominant, in_turns, random
from compactla import oracle
from compactla.cpu import (
    abs1,
    broadcast,
    conj,
    copysign,
    fma,
    fnma,
    gemm,
    getrfnp,
    matrix,
    maximum,
    minimum,
    rsqrt,
    select,
    sqrt,
    trsm,
)
from compactla.cpu.compile import compiled
from compactla.cpu.emit.code import routine
from compactla.oracle import ratio, widen
from rows import residual

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

    x, y, z = widen(*a[:, :, 0].T)
    expected = [x + y, x - y, x * y, x / y, -x, x.conj(), x * y + z, z - x * y, np.full(V, scalar)]
    exact = np.zeros(V)
    bound = [*[abs(x) + abs(y)] * 2, abs(x * y), abs(x / y), exact, exact, *[abs(x * y) + abs(z)] * 2, exact]
    error = np.abs(R.unpack()[:, :, 0].T - np.array(expected))
    assert ratio(error, np.finfo(dtype).eps * np.array(bound)).max() < THRESHOLD


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
    d, e, f = widen(d, e, f)
    assert reference.solve_ratio(d - e @ f, X.unpack(), x) < oracle.THRESHOLD


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
    how = {"side": side, "uplo": uplo, "trans": trans, "diag": diag, "alpha": alpha}
    assert residual("trsm", (a, b), (a, x), **how) < oracle.THRESHOLD
    c, result = c.swapaxes(1, 2), C.T.unpack()
    how = {"alpha": alpha, "beta": beta, "transa": "C", "transb": "T"}
    assert residual("gemm", (a, x, c), (a, x, result), **how) < oracle.THRESHOLD


def scaling(factor):
    @routine
    def scale(code, A):
        A[0, 0] = A[0, 0].fma(code.zero(A.vector).constant(factor), code.zero(A.vector))

    return scale


def test_routines_of_one_name(rng):
    """Each routine of one name is emitted as itself, even in one kernel."""
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


@pytest.mark.parametrize("shape", [(3, 0, 1, 4), (3, 1, 0, 4), (3, 0, 0, 2, 4)])
def test_matrices_without_elements(shape):
    """NumPy gives any strides to their arrays."""

    @njit
    def rows(a):
        total = 0
        for p in range(len(a)):
            total += matrix(a[p], 4).m
        return total

    assert rows(np.zeros(shape)) == 3 * shape[1]
    with pytest.raises(ValueError, match="array must have vectors of 4 contiguous lanes"):
        rows(np.zeros((*shape[:-1], 3)))


def samples(dtype, rng):
    """Numbers of which some are special."""
    limits = np.finfo(dtype)
    special = [0, -0.0, 1, np.inf, np.nan, limits.tiny, limits.smallest_subnormal, limits.max, limits.eps]
    magnitudes = rng.standard_normal(12) * 10 ** rng.uniform(-30, 30, 12)
    return np.concatenate([special, np.negative(special), magnitudes]).astype(dtype)


def pairs(dtype, V, rng):
    """Packs x, y of shape (2, packs, V) with every pair of samples, and last of all one of equal ones."""
    x, y = (np.ravel(z) for z in np.meshgrid(*[samples(dtype, rng)] * 2))
    size = len(x) // V * V
    return np.concatenate([np.stack([x, y])[:, :size], np.ones((2, V), dtype)], 1).reshape(2, -1, V)


@functools.cache
def real_vocabulary(V):
    """Kernel that applies what there is for real vectors to x and y."""

    @njit(error_model="numpy")
    def kernel(x, y, out, sums):
        for p in range(x.shape[0]):
            X, Y, R = matrix(x[p], V)[0, 0], matrix(y[p], V)[0, 0], matrix(out[p], V)
            less = X < Y
            R[0, 0], R[1, 0] = sqrt(X), rsqrt(X)
            R[2, 0], R[3, 0] = abs(X), abs1(X)
            R[4, 0], R[5, 0] = minimum(X, Y), maximum(X, 0.5)
            R[6, 0], R[7, 0] = copysign(X, Y), select(less, X, Y)
            R[8, 0], R[9, 0] = select(X > 0, X, 2), X.real + X.imag
            R[10, 0], R[11, 0] = 2 * X - 1, fma(X, 0.5, Y)
            R[12, 0] = 3
            one = broadcast(1, X)
            R[13, 0], R[14, 0], R[15, 0] = select(less, one, 0), select(X <= Y, one, 0), select(X == Y, one, 0)
            R[16, 0], R[17, 0], R[18, 0] = select(X != Y, one, 0), select(X >= Y, one, 0), select(X > Y, one, 0)
            R[19, 0], R[20, 0] = select(less & (Y > 1), one, 0), select(~less | (0 < X), one, 0)
            sums[p, 0], sums[p, 1] = less.any(), (X == Y).all()

    return kernel


@pytest.mark.parametrize(("dtype", "V"), [(np.float64, 1), (np.float32, 4), (np.float64, 8), (np.float32, 16)])
def test_vocabulary_of_real_vectors(dtype, V, rng):
    x, y = pairs(dtype, V, rng)
    out, sums = np.zeros((len(x), 21, 1, V), dtype), np.zeros((len(x), 2), bool)
    real_vocabulary(V)(x[:, None, None], y[:, None, None], out, sums)

    with np.errstate(all="ignore"):
        numbers = [np.sqrt(x), 1 / np.sqrt(x), abs(x), abs(x), np.minimum(x, y), np.maximum(x, dtype(0.5))]
        numbers += [np.copysign(x, y), np.where(x < y, x, y), np.where(x > 0, x, dtype(2)), x, 2 * x - 1, 0.5 * x + y]
        masks = [x < y, x <= y, x == y, x != y, x >= y, x > y, (x < y) & (y > 1), ~(x < y) | (x > 0)]
    numbers.append(np.full_like(x, 3))
    result = out[:, :, 0].swapaxes(0, 1)
    nearly = {1: 2, 10: 1, 11: 1}  # units in the last place
    for k, expected in enumerate([*numbers, *masks]):
        if k in (2, 3, 6, 7, 8):
            assert np.array_equal(np.signbit(result[k]), np.signbit(expected))
        np.testing.assert_array_max_ulp(result[k], np.asarray(expected, dtype), maxulp=nearly.get(k, 0))
    assert np.array_equal(sums, np.stack([(x < y).any(1), (x == y).all(1)], 1))
    assert sums.any(0).all()


@functools.cache
def complex_vocabulary(V, real):
    """Kernel that applies what there is for complex vectors to x and y, the parts of one after the other."""
    real = np.dtype(real).type

    @njit(error_model="numpy")
    def kernel(x, y, out, sums):
        for p in range(x.shape[0]):
            X, Y, R = matrix(x[p], V)[0, 0], matrix(y[p], V)[0, 0], matrix(out[p], V)
            R[0, 0], R[1, 0] = abs(X), abs1(X)
            R[2, 0], R[3, 0], R[4, 0] = X.real, X.imag, select(X == Y, X, 0)
            R[5, 0] = select((X != Y) | (X.real < 0), X, Y.imag)
            R[6, 0], R[7, 0], R[8, 0] = X * Y.real, Y.real + X, 1 - X
            R[9, 0], R[10, 0], R[11, 0] = X / Y.imag, fma(Y.real, X, Y), fnma(Y.real, Y.imag, X)
            R[12, 0], R[13, 0] = 2j * X, X.real.astype(real)
            sums[p, 0], sums[p, 1] = (X == Y).any(), (X == Y).all()

    return kernel


def complex_results(x, y):
    """Results of `complex_vocabulary` for complex x and y of shape (packs, V); real results as complex numbers."""
    V, real = x.shape[1], x.real.dtype
    parts = [np.stack([z.real, z.imag], 1)[:, None, None] for z in (x, y)]
    out, sums = np.zeros((len(x), 14, 1, 2, V), real), np.zeros((len(x), 2), bool)
    complex_vocabulary(V, real)(*parts, out, sums)
    return np.ascontiguousarray(out[:, :, 0].transpose(1, 0, 3, 2)).view(x.dtype)[..., 0], sums


COMPLEX = pytest.mark.parametrize(("dtype", "V"), [(np.complex128, 1), (np.complex64, 4), (np.complex128, 8)])


@COMPLEX
def test_vocabulary_of_complex_vectors(dtype, V, rng):
    parts = pairs(np.finfo(dtype).dtype, V, rng)
    x = np.ascontiguousarray(np.stack(parts, 2)).view(dtype)[..., 0]
    y = np.where(rng.integers(2, size=x.shape), x, x[::-1])
    y[-1] = x[-1]
    result, sums = complex_results(x, y)

    with np.errstate(all="ignore"):
        different = np.where((x != y) | (x.real < 0), x, y.imag)
        expected = [abs(x), abs(x.real) + abs(x.imag), x.real, x.imag, np.where(x == y, x, 0), different]
    for k, number in enumerate(expected):
        for part in ("real", "imag"):
            found, right = getattr(result[k], part), getattr(number, part)
            np.testing.assert_array_max_ulp(found, right, maxulp=2 if k == 0 else 0)
    assert np.array_equal(sums, np.stack([(x == y).any(1), (x == y).all(1)], 1))
    assert sums.any(0).all()


@COMPLEX
def test_arithmetic_of_real_and_complex_vectors(dtype, V, rng):
    x, y = random(rng, (2, 20, V), dtype)
    result, _ = complex_results(x, y)
    x, y = widen(x, y)
    expected = [x * y.real, y.real + x, 1 - x, x / y.imag, y.real * x + y, x - y.real * y.imag, 2j * x, x.real]
    bound = np.finfo(dtype).eps * np.array([*map(abs, expected[:4]), *[abs(x) + abs(y)] * 2, abs(x), abs(x)])
    assert ratio(np.abs(result[6:] - np.array(expected)), bound).max() < THRESHOLD


@functools.cache
def integer_vocabulary(V):
    """Kernel that applies what there is for vectors of integers to i, j and real x."""

    @njit(error_model="numpy")
    def kernel(i, j, x, out, reals, info):
        A, B, X, R, S = matrix(i, V), matrix(j, V), matrix(x, V), matrix(out, V), matrix(reals, V)
        for p in range(A.m):
            a, b, z = A[p, 0], B[p, 0], X[p, 0]
            R[p, 0], R[p, 1], R[p, 2] = a + b, a - 3, 2 * a
            R[p, 3], R[p, 4], R[p, 5] = -a * b, abs(a), minimum(a, b)
            R[p, 6], R[p, 7] = maximum(a, 0), select(a == p, b, a)
            R[p, 8], R[p, 9] = select((a < b) | (a >= 5), 1, b), z.astype(np.int32).astype(np.int64)
            S[p, 0], S[p, 1], S[p, 2] = a.astype(np.float64), select(a != b, z, a.astype(np.float64)), -1
            S[p, 3] = z.astype(np.float32).astype(np.float64)
            info[p] = (a > b).any()

    return kernel


@pytest.mark.parametrize("V", [1, 4, 8])
def test_vocabulary_of_integer_vectors(V, rng):
    i, j = rng.integers(-9, 9, (2, 30, 1, V))
    i[7, 0] = 7
    x = rng.uniform(-100, 100, (30, 1, V))
    x[3:6, 0, 0] = np.nan, np.inf, -1e300
    out, reals, info = np.zeros((30, 10, V), int), np.zeros((30, 4, V)), np.zeros(30, bool)
    integer_vocabulary(V)(i, j, x, out, reals, info)

    info_expected = (i > j).any((1, 2))
    i, j, x, row = i[:, 0], j[:, 0], x[:, 0], np.arange(30)[:, None]
    cut = np.clip(np.nan_to_num(np.trunc(x), posinf=2.0**31), -(2**31), 2**31 - 1)
    expected = [i + j, i - 3, 2 * i, -i * j, abs(i), np.minimum(i, j), np.maximum(i, 0), np.where(i == row, j, i)]
    expected += [np.where((i < j) | (i >= 5), 1, j), cut]
    assert np.array_equal(out, np.stack(expected, 1))
    with np.errstate(over="ignore"):
        expected = [i, np.where(i != j, x, i), np.full_like(x, -1), x.astype("f").astype(float)]
    assert np.array_equal(reals, np.stack(expected, 1), equal_nan=True)
    assert np.array_equal(info, info_expected)


@pytest.mark.parametrize("V", [1, 3, 16])
def test_masks_go_through_loops_and_calls(V, rng):
    @njit(inline="never")
    def either(done, size):
        done |= size > 1
        return done, ~done

    @njit
    def kernel(a):
        A = matrix(a, V)
        x, done = A[0, 0], A[0, 0] > 0
        for i in range(1, A.m):
            done, left = either(done, A[i, 0])
            if not left.any():
                break
            x += select(left, A[i, 0], 0)
        A[0, 0] = x
        return done.all()

    a = rng.standard_normal((4, 1, V))
    x, done = a[0, 0].copy(), a[0, 0] > 0
    for row in a[1:, 0]:
        done |= row > 1
        x += np.where(done, 0, row)
    assert kernel(a) == done.all()
    assert np.array_equal(a[0, 0], x)


def test_pivots_of_each_lane(rng):
    """Rows with the largest elements of columns, as integers of 32 bits."""

    @njit
    def kernel(a, piv):
        A, P = matrix(a, 16), matrix(piv, 16)
        for j in range(A.n):
            best, row = abs(A[0, j]), broadcast(0, P[0, 0])
            for i in range(1, A.m):
                size = abs(A[i, j])
                larger = size > best
                best, row = select(larger, size, best), select(larger, i, row)
            P[j, 0] = row

    a = rng.standard_normal((5, 3, 16)).astype(np.float32)
    piv = np.zeros((3, 1, 16), np.int32)
    kernel(a, piv)
    assert np.array_equal(piv[:, 0], np.argmax(abs(a), 0))


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (lambda x, z, f, n: sqrt(z), r"x is Vector\(complex128, 4\), must be of real numbers"),
        (lambda x, z, f, n: rsqrt(n), r"x is Vector\(int64, 4\), must be of real numbers"),
        (lambda x, z, f, n: z < x, r"operands of < are Vector\(complex128, 4\) and Vector\(float64, 4\), must be real"),
        (lambda x, z, f, n: maximum(z, x), "must be real"),
        (lambda x, z, f, n: x + f, r"operands are Vector\(float64, 4\), Vector\(float32, 4\), must be of one type"),
        (lambda x, z, f, n: fma(x, n, x), "must be of one type"),
        (lambda x, z, f, n: x * 2j, "must be of one type"),
        (lambda x, z, f, n: n + 0.5, "must be of one type"),
        (lambda x, z, f, n: n / n, r"x is Vector\(int64, 4\), must be of real or complex numbers"),
        (lambda x, z, f, n: select(x, x, x), r"mask is Vector\(float64, 4\), must be a mask"),
        (lambda x, z, f, n: select(f < 1, 1, 2), "must have a vector among them"),
        (lambda x, z, f, n: x & x, r"operands are Vector\(float64, 4\), Vector\(float64, 4\), must be masks"),
        (lambda x, z, f, n: z.astype(np.float64), r"dtype is float64, must be complex as Vector\(complex128, 4\) is"),
        (lambda x, z, f, n: x.astype(np.int8), "must be a real or complex type, int32 or int64"),
        (lambda x, z, f, n: x.astype(), "must have one: dtype"),
        (lambda x, z, f, n: broadcast(1j, x), "x is complex128, must be a number that fits like"),
    ],
)
def test_what_vectors_refuse(expression, message):
    expression = njit(expression)

    @njit
    def kernel(a, c, b, i):
        expression(matrix(a, 4)[0, 0], matrix(c, 4)[0, 0], matrix(b, 4)[0, 0], matrix(i, 4)[0, 0])

    a = np.ones((1, 1, 4))
    with pytest.raises(TypingError, match=message):
        kernel(a, np.ones((1, 1, 2, 4)), a.astype("f"), a.astype(np.int64))


def test_strides_that_are_not_known(rng):
    """Arrays of a known size whose type says nothing of strides: every second pack, and blocks of larger matrices."""

    @njit(error_model="numpy")
    def kernel(a, b, c):
        for p in range(len(c)):
            gemm(matrix(a[p], 2, 3, 3), matrix(b[p], 2, 3, 3), matrix(c[p], 2, 3, 3))

    a, b = (random(rng, (4, 3, 3, 2), np.float64) for _ in range(2))
    for shape, place in ((3, 3), np.s_[::2]), ((6, 6), np.s_[::2, ::2, :3]), ((6, 6), np.s_[::2, :3, ::2]):
        A, B, whole = (np.full((8, *shape, 2), np.nan) for _ in range(3))
        A[place], B[place] = a, b
        kernel(A[place], B[place], whole[place])
        np.testing.assert_allclose(whole[place], np.einsum("pikv,pkjv->pijv", a, b), rtol=1e-14)
        assert np.isfinite(whole).sum() == a.size
