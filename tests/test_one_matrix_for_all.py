"""One ordinary matrix for the whole batch, where a pack could stand: it makes no difference."""

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import compactla as cla
from cases import exhaustive, random, same_bits
from compactla import oracle
from compactla.routine import named
from rows import BATCH, function, known, operands, residual, unknown, written

pytestmark = pytest.mark.slow

# Each routine with an operand that may be one for all, by its place, and options that change how it is looked at.
CASES = [
    ("gemm", 0, {"transa": "C", "beta": 2}),
    ("gemm", 1, {"transb": "T", "alpha": 0.5}),
    ("trsm", 0, {"uplo": "U"}),
    ("trmm", 0, {"side": "R", "trans": "C", "diag": "U"}),
    ("symm", 0, {"side": "R"}),
    ("hemm", 0, {"uplo": "U"}),
    ("symm", 1, {"beta": 1}),
]
every_case = pytest.mark.parametrize(
    ("name", "place", "letters", "dtype"),
    [
        exhaustive(*case, np.dtype(char)) if i in (4, 6) or turn else (*case, np.dtype(char))
        for i, case in enumerate(CASES)
        for turn, char in enumerate("dFfD" if i % 2 else "FdDf")
    ],
)


def where(a, queue):
    """The array, where packs live."""
    if queue is None:
        return a
    from compactla.gpu.arrays import upload

    return upload(a, queue)


def strided(a, queue):
    """Equal arrays in memory of several kinds."""
    m, n = a.shape
    yield where(a, queue)
    yield where(a.T.copy(), queue).T
    wide = np.full((2 * m + 1, n + 3), np.nan, a.dtype)
    wide[1::2, 1 : n + 1][:m] = a
    yield where(wide, queue)[1 : 2 * m + 1 : 2, 1 : n + 1]
    if queue is not None:
        from pyopencl.array import Array

        backwards, (rs, cs) = where(a[::-1].copy(), queue), a.strides
        yield Array(queue, a.shape, a.dtype, data=backwards.base_data, offset=(m - 1) * rs, strides=(-rs, cs))
        return
    yield a[::-1].copy()[::-1]
    yield a[:, ::-1].copy()[:, ::-1]
    unaligned = np.empty(a.nbytes + 1, np.uint8)[1:].view(a.dtype).reshape(m, n)
    unaligned[...] = a
    unaligned.flags.writeable = False
    yield unaligned


def results(name, arrays, place, given, queue, letters):
    """The results of a call with the array `given` in one place and packs in all others."""
    packs = [given if i == place else cla.pack(a, queue=queue) for i, a in enumerate(arrays)]
    assert function(name)(*packs, **letters) is packs[-1]
    return packs[-1].unpack()


@every_case
def test_any_strides(name, place, letters, queue, dtype, rng):
    row = named(name)
    for sizes in (known(row), unknown(row)):
        arrays = operands(name, rng, sizes, dtype, **letters)
        arrays[place] = np.repeat(arrays[place][:1], BATCH, axis=0)
        expected = results(name, arrays, place, cla.pack(arrays[place], queue=queue), queue, letters)
        kinds = list(strided(arrays[place][0], queue))
        for given in kinds[:1] if queue is not None and sizes == known(row) else kinds:  # each is compiled for
            found = results(name, arrays, place, given, queue, letters)
            assert residual(name, arrays, [*arrays[:-1], found], **letters) < oracle.THRESHOLD
            assert queue is not None or same_bits(found, expected)


def test_both_operands(queue, dtype, rng):
    for m, n, k, nm in ((3, 3, 3, BATCH), (5, 4, 6, 1), (5, 4, 0, 3), (2, 3, 4, 0)):
        a, b = random(rng, (m, k), dtype), random(rng, (k, n), dtype)
        C = cla.Pack.zeros(nm, m, n, dtype, queue=queue)
        cla.gemm(where(a, queue), where(b, queue), C, beta=1)
        repeated = [np.repeat(x[None], nm, axis=0) for x in (a, b)]
        assert residual("gemm", [*repeated, np.zeros((nm, m, n), dtype)], [*repeated, C.unpack()]) < oracle.THRESHOLD


def test_a_number_that_is_repeated(rng):
    C = cla.Pack.zeros(9, 3, 3)
    b = random(rng, (9, 3, 3), np.float64)
    cla.gemm(as_strided(np.array(2.0), (3, 3), (0, 0)), cla.pack(b), C)
    assert np.allclose(C.unpack(), 2 * np.ones((3, 3)) @ b, rtol=1e-14)


def test_what_is_not_read(queue, dtype, rng):
    """The other triangle, and everything where alpha is zero."""
    a, b = operands("trsm", rng, (4, 3), dtype)
    (x,) = written(named("trsm"), [None, results("trsm", (a, b), 0, where(a[0], queue), queue, {})])
    assert np.isfinite(x).all()
    nothing = where(np.full((4, 4), np.nan, dtype), queue)
    assert not results("trsm", (a, b), 0, nothing, queue, {"alpha": 0}).any()
    C = cla.pack(b, queue=queue)
    assert same_bits(cla.gemm(nothing, cla.pack(b, queue=queue), C, 0, 1).unpack(), b)


def test_what_does_not_fit(queue, elsewhere, rng):
    b = random(rng, (5, 3, 4), np.float64)
    B, C = cla.pack(b, queue=queue), cla.Pack.zeros(5, 3, 4, queue=queue)
    for error, message, bad in (
        (TypeError, "A is of float32, must be of float64 as C", where(np.ones((3, 3), np.float32), queue)),
        (TypeError, "A is of complex128, must be of float64 as C", where(np.ones((3, 3), complex), queue)),
        (ValueError, "B. is 3 x 4, must have 2 rows", where(np.ones((3, 2)), queue)),
        (ValueError, "C is 3 x 4, must have 2 rows", where(np.ones((2, 3)), queue)),
        (TypeError, "A is a .*rray, must be a Pack", where(np.ones(3), queue)),
        (TypeError, "A is a .*rray, must be a Pack", where(np.ones((5, 3, 3)), queue)),
        (TypeError, "A is a list, must be a Pack", [[1.0] * 3] * 3),
        ((TypeError, ValueError), "^A ", where(np.ones((3, 3)), elsewhere)),
        (TypeError, "^A is a .*, must", np.ma.ones((3, 3)) if queue is None else np.ones((3, 3))),
    ):
        with pytest.raises(error, match=message):
            cla.gemm(bad, B, C)
    with pytest.raises(TypeError, match=r"C is a .*rray, must be a Pack"):
        cla.gemm(B, C, where(np.zeros((3, 4)), queue))
    with pytest.raises(ValueError, match=r"A is 3 x 4, must be 3 x 3"):
        cla.trsm(where(np.ones((3, 4)), queue), B)
    assert not C.unpack().any() and same_bits(B.unpack(), b)


def test_memory_that_is_written_is_not_read(rng):
    C = cla.pack(random(rng, (8, 4, 4), np.float64), 4)
    before, B = C.unpack(), cla.pack(random(rng, (8, 4, 4), np.float64), 4)
    for within in (C.data[1, :, :, 2], C.data[0, 0], C.data.reshape(-1)[3:19].reshape(4, 4)):
        with pytest.raises(ValueError, match="C shares memory with A, must not"):
            cla.gemm(within, B, C)
        with pytest.raises(ValueError, match="B shares memory with A, must not"):
            cla.trsm(within, C)
    assert same_bits(C.unpack(), before)
