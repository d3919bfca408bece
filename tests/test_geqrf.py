"""geqrf, ormqr and orgqr: reflectors as LAPACK has them, of numbers of any size, for packs side by side."""

import numpy as np
import pytest
from numba import njit

import compactla as cla
from cases import in_turns, random, same_bits
from compactla import oracle
from compactla.cpu import geqrf, matrix, orgqr, ormqr
from rows import all_same, results

pytestmark = pytest.mark.slow

judge = oracle.named("geqrf")


def larfg(x):
    """beta, tau and v of LAPACK, in a wide precision."""
    (x,) = oracle.widen(x)
    if not x[1:].any() and x[0].imag == 0:
        return x[0].real, 0 * x[0], 0 * x[1:]
    largest = np.abs(x).max()
    beta = -np.copysign(largest * np.sqrt((np.abs(x / largest) ** 2).sum()), x[0].real)
    return beta, (beta - x[0]) / beta, x[1:] / (x[0] - beta)


def factors(a, queue=None, vlen=None):
    """A after a call, and tau."""
    A = cla.pack(a, vlen, queue=queue)
    tau = cla.geqrf(A)
    return A.unpack(), tau.unpack()


def columns(rng, dtype):
    """Columns, one for each matrix: graded, zero in places, tiny, subnormal and huge ones, alone and together."""
    limits = np.finfo(dtype)
    tiny, least, huge = (float(x) for x in (limits.tiny, limits.smallest_subnormal, limits.max))
    x = random(rng, (16, 6, 1), dtype)
    scales = [1, tiny, 4 * tiny, least * 16, huge / 8, np.sqrt(tiny), np.sqrt(huge), 1e-3 * np.sqrt(tiny)]
    for q, scale in enumerate(scales):
        x[q] *= scale
    x[8, 1:] = 0
    x[9] = 0
    x[10, 0] = 0
    x[11, 1:] *= tiny
    x[12] = np.array([least, 0, 0, 0, 0, 0])[:, None]
    x[13, :, 0] *= 10.0 ** np.arange(0, -36, -6)
    x[14, :, 0] *= 10.0 ** np.arange(-30, 6, 6)
    x[15] = 0
    x[15, 3] = least
    return x


def test_reflectors_of_numbers_of_any_size(dtype, queue, rng):
    x, eps = columns(rng, dtype), np.finfo(dtype).eps
    after, tau = factors(x, queue)
    for before, a, t in zip(x[:, :, 0], after[:, :, 0], tau[:, 0, 0], strict=True):
        beta, scale, v = larfg(before)
        least = 4 * np.finfo(dtype).smallest_subnormal
        assert a[0].imag == 0
        assert abs(a[0].real - beta) <= 20 * eps * abs(beta) + least
        assert abs(t - scale) <= 20 * eps
        assert np.all(np.abs(a[1:] - v) <= 20 * eps * np.abs(v) + least)


@pytest.mark.parametrize("shape", [(6, 5), (5, 6)], ids=str)
def test_columns_far_from_each_other(shape, queue, rng):
    """Each column of A - Q R is small beside that of A."""
    a = random(rng, (11, *shape), np.float64)
    a[:4] *= 10.0 ** np.array([[-300], [-160], [160], [300]])[..., None]
    a[4] *= 10.0 ** np.array([-300, 160, 0, -160, 290, 5])[: shape[1]]
    a[5] *= 10.0 ** np.linspace(0, -300, shape[0])[:, None]
    a[6] *= 10.0 ** np.linspace(-300, 0, shape[0])[:, None]
    a[7, :, 1] = 0
    a[8] = 0
    a[9, :, 2] = a[9, :, 0]
    after, tau = factors(a, queue)
    scale = np.abs(a).max(1, keepdims=True)
    scale = np.where(scale == 0, 1, scale).astype(np.longdouble)
    qr = after.astype(np.longdouble)
    error = np.abs(a / scale - judge.unitary(qr, tau.astype(np.longdouble)) @ (np.triu(qr) / scale)).max()
    assert error < oracle.THRESHOLD * np.finfo(float).eps * max(shape)
    assert judge.residual((a,), (after, tau))[5:].max() < oracle.THRESHOLD
    assert not tau[8].any() and not after[8].any()


@pytest.mark.parametrize(("n", "dtype"), in_turns([3]), ids=str)
def test_one_matrix_changes_no_other(n, dtype, queue, rng):
    """Whatever it is, and wherever a matrix stands: the packs of a call are worked on side by side."""
    a = random(rng, (67, n, n), dtype)
    expected = factors(a, queue)
    limits, bad, good = np.finfo(dtype), a.copy(), np.arange(67) % 5 != 2
    spoiled = [np.nan, np.inf, limits.max, limits.tiny, limits.smallest_subnormal, 0]
    for i, q in enumerate(np.flatnonzero(~good)):
        bad[q] = spoiled[i % 6]
    assert all_same([x[good] for x in factors(bad, queue)], [x[good] for x in expected])
    assert all_same([x[40:] for x in expected], factors(a[40:], queue))


@pytest.mark.parametrize(("n", "dtype"), in_turns([3, 12]), ids=str)
def test_packs_that_are_given_together(n, dtype, rng):
    @njit(error_model="numpy")
    def both(a, tau):
        geqrf((matrix(a[0], 8, n, n), matrix(a[1], 8, n, n)), (matrix(tau[0], 8, n, 1), matrix(tau[1], 8, n, 1)))

    a = random(rng, (16, n, n), dtype)
    A, tau = cla.pack(a, 8), cla.Pack.empty(16, n, 1, dtype=dtype, vlen=8)
    both(A.data, tau.data)
    assert judge.residual((a,), (A.unpack(), tau.unpack())).max() < oracle.THRESHOLD


def test_the_last_reflector_of_a_square_matrix(queue, rng):
    """Real: there is none, and its tau zero. Complex: it makes the diagonal real."""
    for dtype in (np.float64, np.complex64):
        after, tau = factors(random(rng, (5, 3, 3), dtype), queue)
        assert not np.diagonal(after, axis1=1, axis2=2).imag.any()
        assert tau[:, 2].any() == (np.dtype(dtype).kind == "c")


def test_wide_factors_of_ormqr(queue, rng):
    """The first min(m, n) columns count."""
    a, c = random(rng, (5, 3, 6), np.float64), random(rng, (5, 3, 2), np.float64)
    after, tau = factors(a, queue, 4)
    V, T = (cla.pack(x, 4, queue=queue) for x in (after, tau))
    product = cla.ormqr(V, T, cla.pack(c, 4, queue=queue), "l", "c").unpack()
    narrow = cla.ormqr(V[:, :3], T, cla.pack(c, 4, queue=queue), trans="C").unpack()
    assert same_bits(product, narrow)
    assert oracle.named("ormqr").residual((after[:, :, :3], tau, c), (None, None, product), trans="C").max() < 30


def test_transposes_of_ormqr(queue, rng):
    for dtype in (np.float32, np.complex128):
        v, tau, c = oracle.named("ormqr").operands(lambda m, n, d=dtype: random(rng, (3, m, n), d), 3, 3, 3)
        packs = [cla.pack(x, 4, queue=queue) for x in (v, tau, c)]
        if np.dtype(dtype).kind == "c":
            with pytest.raises(ValueError, match=r"trans is 't', must be 'N' or 'C'"):
                cla.ormqr(*packs, trans="t")
            assert same_bits(packs[2].unpack(), c)
        else:
            found = cla.ormqr(*packs, trans="t").unpack()
            assert same_bits(found, results("ormqr", (v, tau, c), queue=queue, vlen=4, trans="C")[0])


def test_orgqr_of_wide_matrices_is_refused(queue):
    A, tau = cla.Pack.zeros(3, 2, 3, queue=queue), cla.Pack.zeros(3, 3, 1, queue=queue)
    with pytest.raises(ValueError, match="A is 2 x 3, must have no more columns than rows"):
        cla.orgqr(A, tau)


@pytest.mark.parametrize(("V", "dtype"), in_turns([8]), ids=str)
@pytest.mark.parametrize("side", "LR")
def test_in_numba_functions(V, side, dtype, rng):
    m, n = 7, 3

    @njit(error_model="numpy")
    def kernel(a, tau, q, c):
        A, T, Q = matrix(a[0], V), matrix(tau[0], V), matrix(q[0], V)
        geqrf(A, T)
        for i in range(m):
            for j in range(n):
                Q[i, j] = A[i, j]
        orgqr(Q, T)
        ormqr(A, T, matrix(c[0], V), side, "C" if side == "L" else "N")

    a = random(rng, (V, m, n), dtype)
    A, Q, C = cla.pack(a, V), cla.Pack.zeros(V, m, n, dtype=dtype, vlen=V), cla.pack(a, V)
    if side == "R":
        C = cla.pack(a.conj().swapaxes(1, 2), V)
    tau = cla.Pack.zeros(V, n, 1, dtype=dtype, vlen=V)
    kernel(A.data, tau.data, Q.data, C.data)
    after = A.unpack()
    assert judge.residual((a,), (after, tau.unpack())).max() < oracle.THRESHOLD
    Q, eps = Q.unpack(), np.finfo(dtype).eps
    assert np.abs(Q @ np.triu(after)[:, :n] - a).max() < oracle.THRESHOLD * m * eps
    product = C.unpack() if side == "L" else C.unpack().conj().swapaxes(1, 2)
    assert np.abs(product - np.triu(after)).max() < oracle.THRESHOLD * m * eps
