"""Routines on ordinary arrays where packs could stand: of any strides, on the CPU and on devices."""

import numpy as np
import pyopencl.array
import pytest

import compactla as cla
from cases import exhaustive, laid, random, same_bits, slow, there
from compactla import oracle
from compactla.routine import named
from rows import function, general, known, masks, operands, options, own, rectangles, residual, unknown

NAMES = "gemv", "ger", "hemm", "herk", "symm", "syrk", "trmm", "trsm"
HOWS = "columns", "reversed", "lanes", "rows", "gaps"
every_routine = pytest.mark.parametrize("name", NAMES)
NM = 11


def placed(a, how, queue):
    """A copy of matrices that lies in memory in some way, and all memory that it is in."""
    x = laid(a, how)
    whole = x if x.base is None else x.base
    if queue is None:
        return x, whole
    memory = there(whole, queue)
    how = {"data": memory.base_data, "offset": x.ctypes.data - whole.ctypes.data, "strides": x.strides}
    return pyopencl.array.Array(queue, x.shape, x.dtype, **how), memory


def back(x, memory):
    """The matrices in memory, as an array of NumPy."""
    if isinstance(memory, np.ndarray):
        return x.copy()
    memory.events[:] = x.events
    return np.ndarray(x.shape, x.dtype, memory.get().ravel("K").tobytes(), x.offset, x.strides).copy()


def check(name, rng, sizes, dtype, how, queue, **letters):
    """A call is right, and leaves alone what it does not write, between the elements too."""
    row = named(name)
    before = operands(name, rng, sizes, dtype, NM, **letters)
    given, memory = zip(*(placed(a, how, queue) for a in before), strict=True)
    kept = [x.copy() if queue is None else x.get() for x in memory]
    assert function(name)(*given, **letters) is given[-1]
    after = [back(x, m) for x, m in zip(given, memory, strict=True)]
    assert residual(name, before, after, **letters) < oracle.THRESHOLD
    for A, a, b, mask in zip(row.operands, before, after, masks(row, before, letters), strict=True):
        left = mask if A.written else np.ones_like(mask)
        assert same_bits(b[:, left], a[:, left])
    for x, a, m, whole in zip(given, before, memory, kept, strict=True):
        if queue is None:
            x[...] = a
            assert same_bits(m, whole)
        else:
            written, item = m.get().ravel("K"), x.dtype.itemsize
            places = sum(i * (stride // item) for i, stride in zip(np.indices(x.shape), x.strides, strict=True))
            written[(x.offset // item + places).ravel()] = a.ravel()
            assert same_bits(written, whole.ravel("K"))


def cases(name, dtype):
    """Sizes, and options with scalars, that take turns."""
    row = named(name)
    every = options(row, dtype)
    shapes = [known(row), unknown(row), *rectangles(row)[-2:], (1,) * len(row.letters)]
    for i, sizes in enumerate(shapes):
        for letters in every[i % 3 :: max(len(every) // 3, 1)]:
            yield sizes, letters | (general(row, dtype) if i else {})


# What has the same operands as one of the first is tried seldom.
TIERS = dict.fromkeys(["trsm", "syrk"], pytest.param) | dict.fromkeys(["trmm", "herk", "hemm"], exhaustive)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *[TIERS.get(name, slow)(name, own(name)) for name in NAMES],
        *[exhaustive(name, np.dtype(char)) for name in NAMES for char in "fdFD" if char != own(name).char],
    ],
)
def test_arrays_of_any_strides(name, queue, dtype, rng):
    few = name in ("trsm", "syrk") and dtype == own(name)
    for i, (sizes, letters) in enumerate([*cases(name, dtype)][:: 4 if few else 1]):
        how = HOWS[i % len(HOWS)]
        check(name, rng, sizes, dtype, "gaps" if how == "reversed" and queue is not None else how, queue, **letters)


@pytest.mark.slow
@every_routine
def test_numbers_at_odd_places(name, rng):
    before = operands(name, rng, unknown(named(name)), np.float64, NM)
    given = []
    for a in before:
        _, m, n = a.shape
        x = np.ndarray(a.shape, a.dtype, np.zeros(9 * a.size + 1, np.uint8), 1, (9 * m * n, 9 * n, 9))
        x[...] = a
        given.append(x)
    function(name)(*given)
    assert residual(name, before, given) < oracle.THRESHOLD


@pytest.mark.slow
@pytest.mark.parametrize("name", ["trsm", "symm"])
def test_one_matrix_for_all(name, queue, rng):
    """As an array of two axes, or with a stride of zero."""
    before = operands(name, rng, unknown(named(name)), np.float64, NM)
    before[0][:] = before[0][0]
    expected = [there(a, queue) for a in before]
    function(name)(*expected)
    result = expected[-1] if queue is None else expected[-1].get()
    one = there(before[0][0], queue)
    zero = one[None] if queue is None else one.reshape(1, *one.shape)
    if queue is None:
        zero = np.broadcast_to(one, before[0].shape)
    else:
        zero = pyopencl.array.Array(queue, before[0].shape, one.dtype, data=one.base_data, strides=(0, *one.strides))
    for a in (one, zero):
        others = [there(x, queue) for x in before[1:]]
        function(name)(a, *others)
        found = others[-1] if queue is None else others[-1].get()
        np.testing.assert_allclose(found, result, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
def test_neither_place_nor_threads_nor_neighbours_change_a_bit(rng):
    a, b = random(rng, (3001, 4, 4), np.float64) + 4 * np.eye(4), random(rng, (3001, 4, 4), np.float64)
    whole = cla.trsm(a, b.copy())
    assert same_bits(cla.trsm(a, b.copy(), threads=1), whole)
    assert same_bits(cla.trsm(a[7:8], b[7:8].copy()), whole[7:8])
    B = cla.pack(b)
    cla.trsm(cla.pack(a), B)
    assert same_bits(B.unpack(), whole)
    a[3] = np.nan
    others = np.arange(3001) != 3
    assert same_bits(cla.trsm(a, b.copy())[others], whole[others])


def read_only(x):
    x.flags.writeable = False
    return x


@pytest.mark.parametrize(
    ("error", "message", "changed"),
    [
        (TypeError, "A is of float32, must be of float64 as B", {"A": np.ones((4, 3, 3), np.float32)}),
        (TypeError, "B: dtype is int64", {"B": np.ones((4, 3, 2), int)}),
        (TypeError, "A is a list, must be a NumPy array", {"A": [[[1.0]]]}),
        (TypeError, "B is a ndarray, must be a Pack", {"A": cla.Pack.identity(4, 3, 3)}),
        (TypeError, "A is a ndarray, must be a Pack", {"B": np.ones((3, 2))}),
        (TypeError, "A is a MaskedArray", {"A": np.ma.ones((4, 3, 3))}),
        (ValueError, "A has 5 matrices, must have 4 as B", {"A": np.ones((5, 3, 3))}),
        (ValueError, r"A has shape \(3,\), must have three axes", {"A": np.ones(3)}),
        (ValueError, "A is 2 x 3, must be 3 x 3", {"A": np.ones((4, 2, 3))}),
        (ValueError, "B is read-only", {"B": read_only(np.ones((4, 3, 2)))}),
        (ValueError, "B has strides .* memory of its own", {"B": np.broadcast_to(np.ones((3, 2)), (4, 3, 2))}),
        (ValueError, "side is 'X'", {"side": "X"}),
        (TypeError, "alpha is complex", {"alpha": 1j}),
        (ValueError, "threads is 0", {"threads": 0}),
        (ValueError, "wait_for is", {"wait_for": []}),
    ],
)
def test_what_is_refused(error, message, changed):
    given = {"A": np.ones((4, 3, 3)), "B": np.ones((4, 3, 2))} | changed
    with pytest.raises(error, match=message):
        cla.trsm(**given)
    assert "B" in changed or (given["B"] == 1).all()


def test_what_overlaps_is_refused(rng):
    memory = random(rng, (4, 6, 6), np.float64)
    before = memory.copy()
    for b in (memory[:, :3, :3], memory[:, 2:5, 2:5], memory[::-1, :3, :3]):
        with pytest.raises(ValueError, match="B shares memory with A"):
            cla.trsm(memory[:, :3, :3], b)
    assert same_bits(memory, before)
    cla.trsm(memory[:, :3, :3] + 0, memory[:, :3, 3:])  # side by side


@pytest.mark.slow
def test_empty_and_prepared(queue, rng):
    for shape in ((0, 3, 3), (4, 0, 0)):
        a = there(np.ones(shape), queue)
        assert cla.trmm(a, b := there(np.ones(shape), queue)) is b
    if queue is None:
        y = cla.gemv(np.ones((3, 2, 0)), np.ones((3, 0, 1)), np.full((3, 2, 1), np.nan))
        assert not y.any()
    a, b = random(rng, (NM, 3, 3), np.float64) + 3 * np.eye(3), random(rng, (NM, 3, 2), np.float64)
    A, B = there(a, queue), there(b, queue)
    run = cla.prepare(cla.trsm, A, B)
    for _ in range(2):
        assert run() is B
    x = B if queue is None else B.get()
    L = np.tril(a)
    np.testing.assert_allclose(L @ L @ x, b, rtol=1e-10, atol=1e-10)
