"""Kronecker products and sums, against einsum in extended precision."""

import numpy as np
import pyopencl.array
import pytest

import compactla as cla
from cases import DTYPES, random
from compactla import gpu
from compactla.gpu import launch, override
from compactla.gpu.program import Built
from compactla.gpu.tuning import choices
from drivers import working_devices

DEVICES = working_devices()

SUMS = {1: "pil,pl->pi", 2: "pil,pjm,plm->pij", 3: "pil,pjm,pkn,plmn->pijk", 4: "pil,pjm,pkn,pho,plmno->pijkh"}


def memory(a):
    """The array that owns the memory of another, as one of one axis."""
    while isinstance(a.base, np.ndarray):
        a = a.base
    return a.ravel("K")


def there(a, queue):
    """Arrays where the queue is, in memory that is like theirs."""
    if isinstance(a, list | tuple):
        return [there(part, queue) for part in a]
    if queue is None:
        return a
    whole = memory(a)
    data = pyopencl.array.to_device(queue, whole).base_data
    offset = a.ctypes.data - whole.ctypes.data if a.size else 0
    return pyopencl.array.Array(queue, a.shape, a.dtype, data=data, offset=offset, strides=a.strides)


def here(A):
    """The contents of arrays and packs."""
    return A if isinstance(A, np.ndarray) else A.unpack() if isinstance(A, cla.Pack) else A.get()


def fetch(a, A):
    """Bring home to the memory of `a` what lies in that of A."""
    if a is not A:
        pyopencl.enqueue_copy(A.queue, memory(a), A.base_data, wait_for=A.events)


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
    pytest.param((4, 9), (9, 3), "TC", (), marks=EXHAUSTIVE),
    pytest.param((25,), (13,), "C", (), marks=EXHAUSTIVE),
    pytest.param((3, 4, 5), (6, 2, 7), "NTC", (), marks=EXHAUSTIVE),
    pytest.param((4, 9), (9, 3), "TC", (1,), marks=EXHAUSTIVE),
]


@pytest.mark.parametrize("d, e, trans, own", CASES)
@pytest.mark.parametrize("nm", [1, 19])
def test_product(rng, queue, dtype, d, e, trans, own, nm):
    factors, X = made(rng, d, e, nm, dtype, trans, own)
    expected = exact(factors, X, trans)
    before = random(rng, expected.shape, dtype)
    factors, X, Y = there([factors, X, before.copy()], queue)
    assert_close(here(cla.kron_apply(factors, X, trans=trans.lower())), expected, d)
    assert cla.kron_apply(factors, X, Y, alpha=-2, beta=0.5, trans=trans) is Y
    assert_close(here(Y), 0.5 * before - 2 * expected, d)


@pytest.mark.parametrize(
    "n, m, dtype",
    [(1, 5, "d"), (2, 4, "d"), (2, 9, "F"), (3, 5, "d")]
    + [pytest.param(n, m, dtype, marks=EXHAUSTIVE) for n, m in [(2, 16), (3, 3), (3, 10), (4, 3)] for dtype in "fdFD"],
)
def test_sizes_that_are_compiled_in(rng, monkeypatch, n, m, dtype):
    monkeypatch.setattr("compactla.cpu.kron.apply.FEW", 0)
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
    room = np.full((17, m + 2, *X.shape[2:]), np.nan, dtype)
    cla.kron_apply(factors, np.asfortranarray(X), room[:, 1:-1], trans=trans)
    assert_close(room[:, 1:-1], expected, X.shape)
    assert np.isnan(room[:, [0, -1]]).all()
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
def test_strides(rng, queue, layout):
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
    target = there(Y, queue)
    cla.kron_apply(there(factors, queue), there(X, queue), target)
    fetch(Y, target)
    assert_close(Y, exact(factors, X, "NNN"), d)
    if layout != "F":
        Y[...] = np.nan
        assert np.isnan(room).all()


@pytest.mark.parametrize("vlen", [None, *(pytest.param(vlen, marks=EXHAUSTIVE) for vlen in (3, 16))])
def test_packs(rng, queue, vlen):
    d, e, nm, trans, dtype = (3, 4, 5), (6, 2, 7), 19, "NTC", np.complex64 if vlen is None else np.float64
    factors, X = made(rng, d, e, nm, dtype, trans, (1,))
    expected = exact(factors, X, trans)
    packed = cla.pack(X.reshape(nm, 3, 20), vlen, queue=queue)
    factors = [there(factors[0], queue), cla.pack(factors[1], vlen, queue=queue), there(factors[2], queue)]
    assert_close(here(cla.kron_apply(factors, there(X, queue), trans=trans)), expected, d)
    Y = cla.kron_apply(factors, packed, trans=trans)
    assert_close(Y.unpack().reshape(expected.shape), expected, d)
    cla.kron_apply(factors, packed, Y, alpha=0.5, beta=0.5, trans=trans)
    assert_close(Y.unpack().reshape(expected.shape), expected, d)


def test_transposed_items(rng, queue):
    factors, X = made(rng, (4, 5), (3, 6), 9, np.float64, "NT", ())
    expected = exact(factors, X, "NT")
    turned, factors = X.mT.copy(), there(factors, queue)
    Y = cla.kron_apply(factors, there(turned, queue), trans="NT", transx="T")
    assert_close(here(Y), expected, (4, 5))
    Y = cla.kron_apply(factors, cla.pack(turned, queue=queue), trans="NT", transx="T")
    assert_close(Y.unpack(), expected, (4, 5))


def test_scalars_that_spare_reading(rng, queue):
    factors, X = made(rng, (3, 4), (3, 4), 5, np.complex64, "NN", ())
    before = random(rng, X.shape, X.dtype)
    nothing, none, Y = there([[np.full_like(F, np.nan) for F in factors], X * np.nan, before.copy()], queue)
    cla.kron_apply(nothing, none, Y, alpha=0, beta=2j)
    np.testing.assert_allclose(here(Y), 2j * before, rtol=1e-6)
    P = cla.pack(before, queue=queue)
    cla.kron_apply(nothing, cla.pack(X * np.nan, queue=queue), P, alpha=0, beta=2j)
    np.testing.assert_allclose(P.unpack(), 2j * before, rtol=1e-6)
    Y = there(before * np.nan, queue)
    assert (here(cla.kron_apply(nothing, none, Y, alpha=0)) == 0).all()
    factors, X = there([factors, X], queue)
    assert cla.kron_apply(factors, X[:0]).shape == (0, 3, 4)
    empty = there([np.ones((3, 0)), np.ones((4, 2)), np.ones((5, 0, 2))], queue)
    assert (here(cla.kron_apply(empty[:2], empty[2])) == 0).all()


def test_one_bad_item_changes_no_other(rng, queue):
    factors, X = made(rng, (3, 4), (3, 4), 19, np.float64, "NN", ())
    factors = there(factors, queue)
    good = here(cla.kron_apply(factors, there(X, queue)))
    X[7, 1, 2] = np.nan
    bad = here(cla.kron_apply(factors, there(X, queue), threads=1 if queue is None else None))
    np.testing.assert_array_equal(np.delete(bad, 7, 0), np.delete(good, 7, 0))


@pytest.mark.parametrize("d", [(3, 4), (9, 9)])
def test_work_space(rng, queue, d):
    factors, X = there(made(rng, d, d, 19, np.float64, "NN", ()), queue)
    work = cla.kron_work(factors, X)
    expected = here(cla.kron_apply(factors, X))
    np.testing.assert_array_equal(here(cla.kron_apply(factors, X, work=work)), expected)
    wrong = [(work[:10], ValueError), (work[::2], TypeError), (work.view("f"), TypeError), (3, TypeError)]
    for bad, error in wrong if work.size else wrong[3:]:  # one pass on a GPU needs none
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
def test_sums(rng, queue, dtype, d, own):
    nm, n = 11, len(d)
    factors = [random(rng, (nm, m, m) if own else (m, m), dtype) for m in d]
    factors = [F @ F.conj().mT + np.eye(F.shape[-1], dtype=F.dtype) for F in factors]
    X, Y = random(rng, (nm, *d), dtype), random(rng, (nm, *d), dtype)
    ones = [np.eye(m, dtype=dtype) for m in d]
    parts = [exact([*ones[:k], factors[k], *ones[k + 1 :]], X, "N" * n) for k in range(n)]
    expected = sum(parts)
    before, items = Y.copy(), there(X, queue)
    assert_close(here(cla.kron_sum_apply(there(factors, queue), items)), expected, d)
    Y = there(before.copy(), queue)
    cla.kron_sum_apply(there(factors, queue), items, Y, alpha=2, beta=-1)
    assert_close(here(Y), 2 * expected - before, d)
    values, vectors = zip(*map(np.linalg.eigh, factors), strict=True)
    inverses = [op(S, "C").copy() for S in vectors]
    values, vectors, inverses, right = there([values, vectors, inverses, expected.astype(dtype)], queue)
    scale = max(np.linalg.cond(F).max() for F in factors)
    solved = here(cla.kron_sum_solve(vectors, values, right))
    assert abs(solved - X).max() <= 20 * scale * abs(X).max() * np.finfo(dtype).eps
    Y = there(before.copy(), queue)
    cla.kron_sum_solve(vectors, values, right, Y, alpha=2, beta=1, inverses=inverses)
    assert_close(here(Y), before + 2 * solved, [scale])


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


ONE_PASS = [  # sizes, transposes, own factors, types, what is computed, and whether of packs
    ((2, 4), (4, 4), "NN", (), "f", "kron", False),
    pytest.param((3, 2, 3), (3, 2, 3), "NNN", (1,), "D", "sum", True, marks=pytest.mark.slow),
    pytest.param((5,), (3,), "C", (0,), "F", "kron", False, marks=EXHAUSTIVE),
    pytest.param((4, 2, 3), (2, 3, 5), "NTC", (0,), "F", "kron", False, marks=EXHAUSTIVE),
    pytest.param((4, 2, 4), (2, 3, 8), "NTN", (), "f", "kron", False, marks=EXHAUSTIVE),
    pytest.param((3, 7), (6, 5), "CT", (1,), "d", "kron", True, marks=EXHAUSTIVE),
    pytest.param((8, 8), (8, 8), "NN", (), "d", "kron", False, marks=EXHAUSTIVE),
    pytest.param((3, 4), (3, 4), "NT", (1,), "d", "sum", False, marks=EXHAUSTIVE),
    pytest.param((3, 2, 3), (3, 2, 3), "NNN", (1,), "d", "solve", False, marks=EXHAUSTIVE),
    pytest.param((3, 4), (3, 4), "NN", (), "F", "solve", True, marks=EXHAUSTIVE),
    pytest.param((5,), (5,), "N", (0,), "d", "solve", False, marks=EXHAUSTIVE),
]


@pytest.mark.parametrize("queue", DEVICES, indirect=True)
@pytest.mark.parametrize("d, e, trans, own, dtype, name, packed", ONE_PASS)
def test_one_pass_of_gpus(rng, monkeypatch, unoptimized, queue, d, e, trans, own, dtype, name, packed):
    """Kernels that take items to local memory, which CPUs have no use for, and the others are of one result."""
    nm = 9
    factors, X = made(rng, d, e, nm, dtype, trans, own)
    values = [1 + rng.random((nm,) * (k in own) + (m,)).astype(dtype) for k, m in enumerate(d)]
    before = random(rng, (nm, *e), dtype)
    results = []
    for is_cpu in (lambda device: True, lambda device: False):
        monkeypatch.setattr("compactla.gpu.kron_team.is_cpu", is_cpu)
        fresh = pyopencl.CommandQueue(queue.context)
        monkeypatch.setattr(fresh, "_compactla", Built(), raising=False)
        given, items, Y = there([factors, X, before.copy()], fresh)
        if packed:
            items, Y = (cla.pack(a.reshape(nm, len(a[0]), -1), 4, queue=fresh) for a in (X, before))
        for scalars in ({"alpha": 2, "beta": -1}, {"beta": 0}):
            if name == "solve":
                Y = cla.kron_sum_solve(given, there(values, fresh), items, Y, **scalars)
            else:
                Y = (cla.kron_apply if name == "kron" else cla.kron_sum_apply)(given, items, Y, trans=trans, **scalars)
            results.append(here(Y))
    for first, second in zip(results[:2], results[2:], strict=True):
        assert_close(second, first, d)


@pytest.mark.exhaustive
@pytest.mark.parametrize("queue", DEVICES, indirect=True)
@pytest.mark.parametrize("n", [2, 3])
def test_candidates_of_the_tuner(rng, monkeypatch, queue, n):
    monkeypatch.setattr("compactla.gpu.kron_team.is_cpu", lambda device: False)
    monkeypatch.setattr("compactla.gpu.kron_team.FILL", 0)
    dtype, d, seen = np.dtype(np.float32), (4,) * n, set()
    factors, X = made(rng, d, d, 300, dtype, "N" * n, ())
    expected, (factors, X) = exact(factors, X, "N" * n), there([factors, X], queue)
    search = choices.searches()[f"kron{n}"]
    for choice in search.candidates((4,), dtype, []):
        switches = choice["ROUNDS"] > 1, *(choice[name] for name in ("WIDE", "DIRECT", "WHOLE", "AHEAD"))
        if switches not in seen:
            seen.add(switches)
            assert search.knows(choice, (4,))
            with override(queue, search.name, choice):
                assert_close(here(cla.kron_apply(factors, X)), expected, d)
                assert [plan.choice for plan in launch.plans(queue).known.values()] == [choice]
    assert len(seen) > 10


@pytest.mark.slow
@pytest.mark.parametrize("queue", DEVICES, indirect=True)
@pytest.mark.parametrize(
    ("d", "tunables"), [((9, 9), (0, 1, 8)), ((12,) * 3, (1, 2, 1)), ((5,) * 3, (1, 1, 2))], ids=str
)
def test_matrix_units(rng, monkeypatch, queue, d, tunables):
    monkeypatch.setattr("compactla.gpu.kron_team.is_cpu", lambda device: False)
    monkeypatch.setattr("compactla.gpu.kron_team.FILL", 0)
    choice = dict(zip(("TALL", "WIDE", "ITEMS"), tunables, strict=True))
    choice |= {"kernel": "kron_mma", "GROUP": 64, "SLICES": 2, "ROUNDS": 2, "AHEAD": 0}
    name, trans, dtype = f"kron{len(d)}", "N" * len(d), np.dtype(np.float64)
    assert choices.searches()[name].knows(choice, d[:1])
    factors, X = made(rng, d, d, 21, dtype, trans, ())
    expected, Y = exact(factors, X, trans), rng.standard_normal(X.shape)
    given, items, result = *there([factors, X], queue), there(Y, queue)
    with override(queue, name, choice):
        cla.kron_apply(given, items, result, alpha=-0.5, beta=2)
        assert_close(here(result), -0.5 * expected + 2 * Y, d)
        X[3] = np.nan
        found = here(cla.kron_apply(given, there(X, queue)))
        ran = [plan and plan.choice for plan in launch.plans(queue).known.values()]
    assert np.isnan(found[3]).all()
    assert_close(np.delete(found, 3, 0), np.delete(expected, 3, 0), d)
    assert set(map(bool, ran)) == {"NVIDIA" in queue.device.platform.name}  # others refuse it


@pytest.mark.parametrize("queue", DEVICES, indirect=True)
def test_what_is_elsewhere_is_refused(rng, queue, elsewhere):
    factors, X = made(rng, (3, 4), (3, 4), 5, np.float64, "NN", ())
    given, items = there([factors, X], queue)
    cases = [
        ((factors, items), {}, TypeError, r"factors\[0\] lives on the CPU"),
        ((given, X), {}, TypeError, r"factors\[0\] lives on a device"),
        ((given, items, X), {}, TypeError, "out is a ndarray"),
        ((given, items), {"threads": 2}, ValueError, "threads"),
        ((there(factors, elsewhere), items), {}, ValueError, r"factors\[0\] lives in another"),
        ((given, items, items), {}, ValueError, "out shares memory with X"),
        ((given, items), {"work": X.ravel()}, TypeError, "work"),
    ]
    for args, options, error, message in cases:
        with pytest.raises(error, match=message):
            cla.kron_apply(*args, **options)


KERNEL = """
#include "kron.cl"

/* Y <- 2 (A x B^T x C) X - Y for items of 3 x 2 x 4 */
__kernel void product(__global CLA_REAL *A, __global CLA_REAL *B, __global CLA_REAL *C, __global CLA_REAL *X,
                      __global CLA_REAL *Y, __global CLA_REAL *W, __global CLA_REAL *Z)
{
    const long q = get_global_id(0);
    cla_kron3(2, 3, 3, 2, 1, 4, cla_lane_real(2), cla_matrix_of_batch(A, q, 2, 3),
              cla_transposed(cla_matrix_of_batch(B, q, 2, 3)), cla_matrix_of_batch(C, q, 1, 4),
              cla_matrix_of_batch(X, q, 3, 8), cla_lane_real(-1), cla_matrix_of_batch(Y, q, 2, 3),
              cla_matrix_of_batch(W, q, 2, 8), cla_matrix_of_batch(Z, q, 3, 4));
}
"""


@pytest.mark.parametrize("queue", DEVICES, indirect=True)
def test_user_kernel(rng, queue):
    factors, X = made(rng, (3, 2, 4), (2, 3, 1), 5, np.complex64, "NTN", (0, 1, 2))
    Y = random(rng, (5, 2, 3), X.dtype)
    room = [cla.Pack.zeros(5, *shape, X.dtype, 4, queue=queue) for shape in ((2, 8), (3, 4))]
    packs = [cla.pack(a, 4, queue=queue) for a in (*factors, X.reshape(5, 3, 8), Y)]
    built = gpu.build(queue.context, KERNEL, X.dtype, 4)
    built.product(queue, (8,), None, *(P.data.data for P in (*packs, *room)))
    assert_close(packs[-1].unpack(), 2 * exact(factors, X, "NTN")[..., 0] - Y, X.shape[1:])


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
