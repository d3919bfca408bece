"""Kronecker products and sums, against einsum in extended precision."""

import numpy as np
import pytest

import compactla as cla
from cases import DTYPES

SUMS = {1: "pil,pl->pi", 2: "pil,pjm,plm->pij", 3: "pil,pjm,pkn,plmn->pijk", 4: "pil,pjm,pkn,pho,plmno->pijkh"}


def random(rng, shape, dtype):
    a = rng.standard_normal(shape)
    return (a + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else a).astype(dtype)


def op(F, letter):
    return F if letter == "N" else F.mT if letter == "T" else F.mT.conj()


def exact(factors, X, trans):
    """The product in extended precision."""
    wide = np.clongdouble if X.dtype.kind == "c" else np.longdouble
    given = [op(F, letter).astype(wide) for F, letter in zip(factors, trans, strict=True)]
    given = [np.broadcast_to(F, (len(X), *F.shape[-2:])) for F in given]
    return np.einsum(SUMS[len(given)], *given, X)


def made(rng, d, e, nm, dtype, trans, own):
    """Factors and items."""
    shapes = [(a, b) if letter == "N" else (b, a) for a, b, letter in zip(e, d, trans, strict=True)]
    factors = [random(rng, (nm,) * (k in own) + shape, dtype) for k, shape in enumerate(shapes)]
    return factors, random(rng, (nm, *d), dtype)


def assert_close(Y, expected, d):
    error = abs(Y - expected).max(initial=0) / abs(expected).max(initial=1e-30)
    assert error <= 8 * sum(d) * np.finfo(Y.dtype).eps


EXHAUSTIVE = pytest.mark.exhaustive
CASES = [
    ((3, 4, 5), (6, 2, 7), "CNT", (0,)),
    ((4, 9), (9, 3), "TC", ()),
    pytest.param((25,), (13,), "C", (), marks=EXHAUSTIVE),
    pytest.param((3, 4, 5), (6, 2, 7), "NTC", (), marks=EXHAUSTIVE),
    pytest.param((4, 9), (9, 3), "TC", (1,), marks=EXHAUSTIVE),
]


@pytest.mark.parametrize("d, e, trans, own", CASES)
@pytest.mark.parametrize("nm", [1, 19])
def test_product(rng, dtype, d, e, trans, own, nm):
    factors, X = made(rng, d, e, nm, dtype, trans, own)
    expected = exact(factors, X, trans)
    assert_close(cla.kron_apply(factors, X, trans=trans.lower()), expected, d)
    Y = random(rng, expected.shape, dtype)
    before = Y.copy()
    assert cla.kron_apply(factors, X, Y, alpha=-2, beta=0.5, trans=trans) is Y
    assert_close(Y, 0.5 * before - 2 * expected, d)


@pytest.mark.parametrize(
    "n, m, dtype",
    [(1, 5, "d"), (2, 4, "d"), (2, 9, "F"), (3, 5, "d")]
    + [pytest.param(n, m, dtype, marks=EXHAUSTIVE) for n, m in [(2, 16), (3, 3), (3, 10), (4, 3)] for dtype in "fdFD"],
)
def test_sizes_that_are_compiled_in(rng, monkeypatch, n, m, dtype):
    monkeypatch.setattr("compactla.cpu.kron.FEW", 0)
    trans = "CNTC"[:n]
    factors, X = made(rng, (m,) * n, (m,) * n, 17, dtype, trans, ())
    expected, room = exact(factors, X, trans), np.full((35, *X.shape[1:]), np.nan, dtype)
    Y = room[1::2]
    cla.kron_apply(factors, X, Y, alpha=2, trans=trans)
    assert_close(Y, 2 * expected, X.shape)
    assert np.isnan(room[::2]).all()
    one = cla.kron_apply(factors, X[3:4], alpha=2, trans=trans)
    np.testing.assert_array_equal(one[0], Y[3])
    cla.kron_apply(factors, X, Y, beta=0.25, trans=trans)
    assert_close(Y, 1.5 * expected, X.shape)
    X[3] = np.nan
    bad = cla.kron_apply(factors, X, alpha=2, trans=trans, threads=1)
    assert np.isnan(bad[3]).all()
    np.testing.assert_array_equal(bad[4:], cla.kron_apply(factors, X[4:], alpha=2, trans=trans))


def test_arrays_like_earlier_ones(rng):
    factors, X = made(rng, (3, 3), (3, 3), 5, np.float64, "NN", ())
    Y = np.empty_like(X)
    for _ in range(3):
        factors, X = [random(rng, F.shape, F.dtype) for F in factors], random(rng, X.shape, X.dtype)
        for out in (None, Y):
            assert_close(cla.kron_apply(factors, X, out, trans="TC"), exact(factors, X, "TC"), (3, 3))
    assert (cla.kron_apply(factors, X, Y, alpha=0, trans="TC") == 0).all()
    for bad, error in [({"threads": 0}, ValueError), ({"alpha": 1j}, TypeError), ({"beta": 1}, ValueError)]:
        with pytest.raises(error, match=next(iter(bad))):
            cla.kron_apply(factors, X, trans="TC", **bad)
    with pytest.raises(ValueError, match="shares memory with X"):
        cla.kron_apply(factors, X, X, trans="TC")
    Y.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        cla.kron_apply(factors, X, Y, trans="TC")


@pytest.mark.parametrize(
    "layout", ["reversed", "part", "repeated", *(pytest.param(x, marks=EXHAUSTIVE) for x in ("F", "last"))]
)
def test_strides(rng, layout):
    d, nm = (3, 4, 5), 11
    factors, X = made(rng, d, d, nm, np.float64, "NNN", (1,))
    room = np.full((nm + 1, 4, 6, 9), np.nan)
    Y = room[1:, 1:, ::-1][:, :, 1:5, 2:7]
    if layout == "F":
        X, Y = np.asfortranarray(X), np.full((5, 4, 3, nm), np.nan).T
    elif layout == "reversed":
        X = X[::-1, :, ::-1, ::-1].copy()[::-1, :, ::-1, ::-1]
    elif layout == "part":
        X = np.pad(X, 2, constant_values=np.nan)[2:-2, 2:-2, 2:-2, 2:-2]
    elif layout == "repeated":
        X = np.broadcast_to(X[:1, :, :1], X.shape)
    else:
        X = np.moveaxis(np.moveaxis(X, 0, -1).copy(), -1, 0)
    X.flags.writeable = False
    cla.kron_apply(factors, X, Y)
    assert_close(Y, exact(factors, X, "NNN"), d)
    if layout != "F":
        Y[...] = np.nan
        assert np.isnan(room).all()


@pytest.mark.parametrize("vlen", [None, *(pytest.param(vlen, marks=EXHAUSTIVE) for vlen in (3, 16))])
def test_packs(rng, vlen):
    d, e, nm, trans, dtype = (3, 4, 5), (6, 2, 7), 19, "NTC", np.complex64 if vlen is None else np.float64
    factors, X = made(rng, d, e, nm, dtype, trans, (1,))
    expected = exact(factors, X, trans)
    factors[1] = cla.pack(factors[1], vlen)
    assert_close(cla.kron_apply(factors, X, trans=trans), expected, d)
    packed = cla.pack(X.reshape(nm, 3, 20), vlen)
    Y = cla.kron_apply(factors, packed, trans=trans)
    assert_close(Y.unpack().reshape(expected.shape), expected, d)
    cla.kron_apply(factors, packed, Y, alpha=0.5, beta=0.5, trans=trans)
    assert_close(Y.unpack().reshape(expected.shape), expected, d)


def test_transposed_items(rng):
    factors, X = made(rng, (4, 5), (3, 6), 9, np.float64, "NT", ())
    expected = exact(factors, X, "NT")
    turned = X.mT.copy()
    assert_close(cla.kron_apply(factors, turned, trans="NT", transx="T"), expected, (4, 5))
    Y = cla.kron_apply(factors, cla.pack(turned), trans="NT", transx="T")
    assert_close(Y.unpack(), expected, (4, 5))


def test_scalars_that_spare_reading(rng):
    factors, X = made(rng, (3, 4), (3, 4), 5, np.complex64, "NN", ())
    nothing = [np.full_like(F, np.nan) for F in factors]
    Y = random(rng, X.shape, X.dtype)
    expected = 2j * Y
    cla.kron_apply(nothing, X * np.nan, Y, alpha=0, beta=2j)
    np.testing.assert_allclose(Y, expected, rtol=1e-6)
    P = cla.pack(Y)
    cla.kron_apply(nothing, cla.pack(X * np.nan), P, alpha=0, beta=2j)
    np.testing.assert_allclose(P.unpack(), 2j * expected, rtol=1e-6)
    Y[...] = np.nan
    assert (cla.kron_apply(nothing, X, Y, alpha=0) == 0).all()
    assert cla.kron_apply(factors, X[:0]).shape == (0, 3, 4)
    assert (cla.kron_apply([np.ones((3, 0)), np.ones((4, 2))], np.ones((5, 0, 2))) == 0).all()


def test_one_bad_item_changes_no_other(rng):
    factors, X = made(rng, (3, 4), (3, 4), 19, np.float64, "NN", ())
    good = cla.kron_apply(factors, X)
    X[7, 1, 2] = np.nan
    bad = cla.kron_apply(factors, X, threads=1)
    np.testing.assert_array_equal(np.delete(bad, 7, 0), np.delete(good, 7, 0))


def test_work_space(rng):
    factors, X = made(rng, (3, 4), (3, 4), 19, np.float64, "NN", ())
    work = cla.kron_work(factors, X, threads=1)
    expected = cla.kron_apply(factors, X)
    np.testing.assert_array_equal(cla.kron_apply(factors, X, work=work), expected)
    for bad, error in [(work[:10], ValueError), (work[::2], TypeError), (work.astype("f"), TypeError), (3, TypeError)]:
        with pytest.raises(error, match="work"):
            cla.kron_apply(factors, X, work=bad)


@pytest.mark.parametrize(
    "d, own, dtype",
    [
        ((3, 4, 5), False, np.float64),
        ((3, 4), True, np.complex64),
        pytest.param((3, 4, 5), False, np.complex64, marks=EXHAUSTIVE),
        pytest.param((3, 4), True, np.float64, marks=EXHAUSTIVE),
        pytest.param((4,), False, np.float64, marks=EXHAUSTIVE),
    ],
)
def test_sums(rng, dtype, d, own):
    nm, n = 11, len(d)
    factors = [random(rng, (nm, m, m) if own else (m, m), dtype) for m in d]
    factors = [F @ F.conj().mT + np.eye(F.shape[-1], dtype=F.dtype) for F in factors]
    X, Y = random(rng, (nm, *d), dtype), random(rng, (nm, *d), dtype)
    ones = [np.eye(m, dtype=dtype) for m in d]
    parts = [exact([*ones[:k], factors[k], *ones[k + 1 :]], X, "N" * n) for k in range(n)]
    expected = sum(parts)
    assert_close(cla.kron_sum_apply(factors, X), expected, d)
    before = Y.copy()
    cla.kron_sum_apply(factors, X, Y, alpha=2, beta=-1)
    assert_close(Y, 2 * expected - before, d)
    values, vectors = zip(*map(np.linalg.eigh, factors), strict=True)
    right = expected.astype(dtype)
    scale = max(np.linalg.cond(F).max() for F in factors)
    solved = cla.kron_sum_solve(vectors, values, right)
    assert abs(solved - X).max() <= 20 * scale * abs(X).max() * np.finfo(dtype).eps
    Y = before.copy()
    cla.kron_sum_solve(vectors, values, right, Y, alpha=2, beta=1, inverses=[op(S, "C").copy() for S in vectors])
    assert_close(Y, before + 2 * solved, [scale])


def test_shift(rng):
    (A,), X = made(rng, (4,), (4,), 5, np.float64, "N", ())
    A = A @ A.T
    a, S = np.linalg.eigh(A)
    assert_close(cla.kron_sum_solve([S], [a], X, shift=2.0), np.linalg.solve(A + 2 * np.eye(4), X.T).T, (100,))
    assert cla.kron_work([S], X, solve=True).size >= 4


BAD = {
    "factors": ({"factors": np.ones((2, 3, 3))}, TypeError),
    "factors is empty": ({"factors": ()}, ValueError),
    r"factors\[1\] is of float32": ({"factors": (np.ones((3, 3)), np.ones((4, 4), "f"))}, TypeError),
    r"factors\[0\] has shape": ({"factors": (np.ones(3), np.ones((4, 4)))}, ValueError),
    r"factors\[0\] has 4 matrices": ({"factors": (np.ones((4, 3, 3)), np.ones((4, 4)))}, ValueError),
    "X has items": ({"X": np.ones((5, 4, 3))}, ValueError),
    "X has 4 axes": ({"X": np.ones((5, 4, 3, 1))}, ValueError),
    "X: dtype": ({"X": np.ones((5, 3, 4), int)}, TypeError),
    "trans ": ({"trans": "NX"}, ValueError),
    "trans is 'N'": ({"trans": "N"}, ValueError),
    "transx": ({"transx": "C"}, ValueError),
    "alpha": ({"alpha": 1j}, TypeError),
    "beta": ({"beta": [1, 2]}, TypeError),
    "out is None": ({"beta": 1}, ValueError),
    "out has shape": ({"out": np.ones((5, 4, 3))}, ValueError),
    "out is of": ({"out": np.ones((5, 3, 4), "f")}, TypeError),
    "out is a list": ({"out": [1]}, TypeError),
    "out has strides": ({"out": np.lib.stride_tricks.as_strided(np.ones(60), (5, 3, 4), (0, 32, 8))}, ValueError),
    "threads": ({"threads": 0}, ValueError),
}


@pytest.mark.parametrize("message", BAD)
def test_what_is_refused(message):
    changed, error = BAD[message]
    given = {"factors": (np.ones((3, 3)), np.ones((4, 4))), "X": np.ones((5, 3, 4))} | changed
    with pytest.raises(error, match=message):
        cla.kron_apply(**given)


def test_shared_memory_is_refused(rng):
    factors, X = made(rng, (3, 3), (3, 3), 5, np.float64, "NN", (0,))
    for out, name in ((X, "X"), (factors[0], r"factors\[0\]")):
        with pytest.raises(ValueError, match=f"shares memory with {name}"):
            cla.kron_apply(factors, X, out)
    out = np.ones((5, 3, 3))
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        cla.kron_apply(factors, X, out)


@EXHAUSTIVE
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_many_products(rng, dtype):
    for n in (1, 2, 3, 4):
        for _ in range(20):
            d, e = (tuple(int(x) for x in rng.integers(1, [40, 20, 12, 6][n - 1], n)) for _ in "de")
            trans = "".join(rng.choice(list("NTC"), n))
            own = {k for k in range(n) if rng.random() < 0.3}
            factors, X = made(rng, d, e, int(rng.integers(1, 40)), dtype, trans, own)
            Y = np.full((len(X), *e), np.nan, dtype)
            cla.kron_apply(factors, X, Y, trans=trans)
            assert_close(Y, exact(factors, X, trans), d)


def test_pack_level(rng):
    from numba import njit

    from compactla.cpu import kron_apply, matrix

    (A, B), X = made(rng, (3, 3), (3, 3), 8, np.float64, "NN", (0, 1))
    packs = [cla.pack(a, 8) for a in (A, B, X, X)]

    @njit
    def kernel(a, b, x, y):
        A, B = matrix(a[0], 8, 3, 3), matrix(b[0], 8, 3, 3)
        kron_apply((A, B.T), matrix(x[0], 8, 3, 3), matrix(y[0], 8, 3, 3), 2.0, 0.5)

    kernel(*[P.data for P in packs])
    assert_close(packs[3].unpack(), 2 * exact([A, B], X, "NT") + 0.5 * X, (3, 3))
