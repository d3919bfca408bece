"""gemm on ordinary memory: stacks of matrices as they lie, and sequences of matrices."""

import itertools

import numpy as np
import pytest

import compactla as cla
from cases import laid, random, same_bits

PAIRS = list(itertools.product("NTC", repeat=2))


def applied(x, op):
    return {"N": x, "T": x.swapaxes(-1, -2), "C": x.swapaxes(-1, -2).conj()}[op.upper()]


def shapes(m, k, n, transa, transb):
    return (m, k) if transa == "N" else (k, m), (k, n) if transb == "N" else (n, k)


def expected(a, b, c, alpha, beta, transa="N", transb="N"):
    wide = np.clongdouble if c.dtype.kind == "c" else np.longdouble
    products = np.matmul(applied(a, transa).astype(wide), applied(b, transb).astype(wide))
    return alpha * products + (beta * c if beta else 0)


def check(a, b, c, alpha=1, beta=0, transa="N", transb="N", **options):
    """Compare with NumPy, such that what c holds if it must not be read is NaN."""
    before = c.copy()
    if not beta:
        c[...] = np.nan
    assert cla.gemm(a, b, c, alpha, beta, transa, transb, **options) is c
    found, eps = expected(a, b, before, alpha, beta, transa, transb), np.finfo(c.dtype).eps
    k = applied(a, transa).shape[-1]
    scale = abs(alpha) * (abs(applied(a, transa)) @ abs(applied(b, transb))) + abs(beta * before)
    assert (abs(c - found) <= 4 * (k + 4) * eps * scale).all()


@pytest.mark.parametrize(("transa", "transb"), PAIRS)
def test_all_pairs_of_op(transa, transb, rng):
    for dtype in (np.float64, np.complex64):
        a, b = (random(rng, (5, *shape), dtype) for shape in shapes(3, 5, 4, transa, transb))
        c = random(rng, (5, 3, 4), dtype)
        alpha, beta = (0.5, -2) if dtype == np.float64 else (0.5 + 1j, 1 - 2j)
        check(a, b, c.copy(), 1, 0, transa, transb)
        check(a, b, c, alpha, beta, transa.lower(), transb)


@pytest.mark.parametrize("how", ["columns", "reversed", "lanes", "rows", "gaps"])
@pytest.mark.parametrize("dtype", [np.float64, np.complex64])
def test_memory_between_elements_keeps_its_bits(how, dtype, rng):
    a, b, c = (random(rng, (5, 3, 3), dtype) for _ in range(3))
    written = laid(c, how)
    whole = written if written.base is None else written.base
    kept = whole.copy()
    check(laid(a, how), laid(b, how), written, 1, 0)
    check(laid(a, how), b, written, 2, -1, "T", "N")
    written[...] = c
    assert same_bits(whole, kept)


@pytest.mark.parametrize("size", [(1, 1, 1), (1, 4, 1), (4, 1, 4), (6, 6, 1), (1, 6, 6), (9, 9, 9), (17, 9, 20)])
def test_sizes(size, rng):
    m, k, n = size
    check(random(rng, (3, m, k), np.float64), random(rng, (3, k, n), np.float64), np.zeros((3, m, n)), 1, 0)


def test_larger_matrices_are_numpys(rng):
    for dtype, alpha, beta in ((np.float32, 0.5, 0), (np.complex128, 2 - 1j, 1j)):
        a, b, c = (random(rng, shape, dtype) for shape in ((3, 70, 5), (3, 66, 70), (3, 5, 66)))
        check(a, b, laid(c, "gaps"), alpha, beta, "C", "T")
        check(a, b[0], c, alpha, beta, "T", "C")


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("size", [(2, 2, 2), (3, 3, 3), (8, 8, 8), (16, 16, 16), (32, 32, 32), (5, 33, 7), (64, 3, 40)])
def test_everything(dtype, size, rng):
    hows = ["", "columns", "reversed", "lanes", "rows", "gaps"]
    for i, (transa, transb) in enumerate(PAIRS):
        for j, how in enumerate(hows):
            alpha, beta = [(1, 0), (-1, 1), (0.5, 2)][(i + j) % 3]
            m, k, n = size
            a, b = (random(rng, (7, *shape), dtype) for shape in shapes(m, k, n, transa, transb))
            c = laid(random(rng, (7, m, n), dtype), how)
            check(laid(a, hows[j - 1]), laid(b, hows[j - 2]), c, alpha, beta, transa, transb)


def test_one_matrix_for_all(rng):
    a, b, c = (random(rng, (6, 3, 3), np.float64) for _ in range(3))
    for op in "NT":
        check(a, np.broadcast_to(b[0], a.shape), c.copy(), 2, 1, op, op)
        expected = cla.gemm(a, np.stack([b[0]] * 6), c.copy(), 2, 1, op, op)
        assert same_bits(cla.gemm(a, b[0], c.copy(), 2, 1, op, op), expected)
        assert same_bits(cla.gemm(a, np.asfortranarray(b[0]), c.copy(), 2, 1, op, op), expected)
        expected = cla.gemm(np.stack([a[0]] * 6), b, c.copy(), 2, 1, op, op)
        assert same_bits(cla.gemm(a[0], b, c.copy(), 2, 1, op, op), expected)
    check(a[0], b[0], c)


def test_what_is_multiplied_by_zero_is_not_read(rng):
    for dtype, n in ((np.float64, 3), (np.complex64, 3), (np.float32, 70)):
        c, nothing = random(rng, (4, n, n), dtype), np.full((4, n, n), np.nan, dtype)
        assert same_bits(cla.gemm(nothing, nothing, c.copy(), 0, 1), c)
        assert same_bits(cla.gemm(nothing, nothing, nothing.copy(), 0, 0), np.zeros_like(c))
        assert np.isfinite(cla.gemm(c, c, nothing.copy(), 2, 0, "T", "C")).all()
        for alpha in (1, np.inf):
            empty = c[:, :, :0], c[:, :0]
            assert same_bits(cla.gemm(*empty, c.copy(), alpha, 1), c)
            assert not cla.gemm(*empty, nothing.copy(), alpha, 0).any()


def test_neither_place_nor_threads_nor_neighbours_change_a_bit(rng):
    a, b = (random(rng, (3001, 4, 4), np.float64) for _ in range(2))
    whole = cla.gemm(a, b, np.zeros_like(a), 2, 0)
    assert same_bits(cla.gemm(a, b, np.zeros_like(a), 2, 0, threads=1), whole)
    assert same_bits(cla.gemm(a[7:8], b[7:8], np.zeros((1, 4, 4)), 2, 0), whole[7:8])
    a[3] = np.nan
    others = np.arange(3001) != 3
    assert same_bits(cla.gemm(a, b, np.zeros_like(a), 2, 0)[others], whole[others])


def test_empty_batches():
    for shape in ((0, 3, 3), (4, 0, 3), (4, 3, 0)):
        c = np.ones(shape)
        assert cla.gemm(np.ones((*shape[:2], 3)), np.ones((shape[0], 3, shape[2])), c) is c
    assert cla.gemm([], (), empty := []) is empty


def test_numbers_at_odd_places(rng):
    a, b = (random(rng, (4, 3, 3), np.float64) for _ in range(2))
    for step in (9, 12):
        memory = np.zeros(4 * 9 * step + 1, np.uint8)
        c = np.ndarray((4, 3, 3), np.float64, memory, 1, (9 * step, 3 * step, step))
        check(a, b, c)
        check(c, a, b.copy(), 2, 1)


def test_sequences_of_many_sizes(rng):
    for dtype in (np.float64, np.complex64):
        sizes = [(3, 4, 2), (1, 1, 1), (3, 4, 2), (70, 2, 3), (2, 0, 2), (3, 4, 2), (0, 2, 2)]
        for transa, transb in (("N", "N"), ("C", "T")):
            pairs = [shapes(m, k, n, transa, transb) for m, k, n in sizes]
            a, b = ([random(rng, pair[i], dtype) for pair in pairs] for i in range(2))
            c = [random(rng, (m, n), dtype) for m, _, n in sizes]
            a[2] = np.asfortranarray(a[2])
            before = [x.copy() for x in c]
            assert cla.gemm(a, tuple(b), c, 2, -1, transa, transb) is c
            for x, y, z, old in zip(a, b, c, before, strict=True):
                check(x[None], y[None], old[None], 2, -1, transa, transb)
                np.testing.assert_allclose(z, old, rtol=1e-4, atol=1e-4)


def test_sequences_with_one_matrix_for_all(rng):
    b, c = random(rng, (3, 3), np.float64), [np.zeros((m, 3)) for m in (2, 5, 2)]
    a = [random(rng, x.shape, np.float64) for x in c]
    cla.gemm(a, b, c)
    for x, z in zip(a, c, strict=True):
        np.testing.assert_allclose(z, x @ b, rtol=1e-13, atol=1e-13)


def read_only(x):
    x.flags.writeable = False
    return x


@pytest.mark.parametrize(
    ("error", "message", "changed"),
    [
        (TypeError, "A is of float32, must be of float64 as C", {"A": np.ones((4, 3, 3), np.float32)}),
        (TypeError, "C: dtype is int64", {"C": np.ones((4, 3, 3), int)}),
        (TypeError, "C: dtype is >f8", {"C": np.ones((4, 3, 3), ">f8")}),
        (TypeError, "B is a list, must be a NumPy array", {"B": [[[1.0]]]}),
        (TypeError, "B is a ndarray, must be a Pack", {"A": cla.Pack.zeros(4, 3, 3)}),
        (TypeError, "B is a MaskedArray", {"B": np.ma.ones((4, 3, 3))}),
        (ValueError, "A has 5 matrices, must have 4 as C", {"A": np.ones((5, 3, 3))}),
        (ValueError, r"A has shape \(3,\), must have three axes", {"A": np.ones(3)}),
        (ValueError, r"op\(B\) is 2 x 3, must have 3 rows", {"B": np.ones((4, 2, 3))}),
        (ValueError, "C is read-only", {"C": read_only(np.ones((4, 3, 3)))}),
        (ValueError, "C has strides .* memory of its own", {"C": np.broadcast_to(np.ones((3, 3)), (4, 3, 3))}),
        (ValueError, "transa is 'X'", {"transa": "X"}),
        (TypeError, "alpha is complex", {"alpha": 1j}),
        (TypeError, r"beta is \[1", {"beta": [1.0] * 4}),
        (ValueError, "threads is 0", {"threads": 0}),
        (ValueError, "wait_for is", {"wait_for": []}),
    ],
)
def test_what_is_refused(error, message, changed):
    given = {"A": np.ones((4, 3, 3)), "B": np.ones((4, 3, 3)), "C": np.zeros((4, 3, 3))} | changed
    with pytest.raises(error, match=message):
        cla.gemm(**given)
    assert not np.asarray(given["C"] if "C" not in changed else 0).any()


def test_what_overlaps_is_refused(rng):
    memory, b = random(rng, (4, 6, 6), np.float64), random(rng, (4, 3, 3), np.float64)
    a = memory[:, :3, :3]
    before = memory.copy()
    for c in (a, memory[:, 2:5, 2:5], memory[::-1, :3, :3], memory[:, :5:2, :5:2]):
        with pytest.raises(ValueError, match="C shares memory with A"):
            cla.gemm(a, b, c)
        with pytest.raises(ValueError, match="C shares memory with B"):
            cla.gemm(b, a, c)
    windows = np.lib.stride_tricks.sliding_window_view(np.zeros((6, 3)), (3, 3), writeable=True)[:, 0]
    with pytest.raises(ValueError, match="C has strides"):
        cla.gemm(a, b, windows)
    assert same_bits(memory, before)
    check(a, b, memory[:, 3:, :3])
    check(memory[:, ::2, ::2], b, memory[:, 1::2, 1::2])


def bad_sequences():
    def case(error, message, **changed):
        return pytest.param(error, message, changed, id=message)

    shared = np.zeros((2, 2))
    return [
        case(ValueError, r"number 2 .*op\(A\)", A=np.ones((2, 5))),
        case(TypeError, r"B\[2\] is of float32", B=np.ones((2, 2), np.float32)),
        case(TypeError, r"C\[2\] is a list, must be a NumPy array", C=[[0.0]]),
        case(ValueError, r"A\[2\] has shape \(2,\)", A=np.ones(2)),
        case(ValueError, r"C\[2\] is read-only", C=read_only(np.zeros((2, 2)))),
        case(ValueError, r"C\[2\] has strides", C=np.lib.stride_tricks.as_strided(shared, (2, 2), (8, 8))),
        case(ValueError, r"C\[2\] shares memory with A\[2\]", A=shared, C=shared.T),
        case(ValueError, r"C\[2\] shares memory with B\[2\]", B=shared, C=shared),
    ]


@pytest.mark.parametrize(("error", "message", "changed"), bad_sequences())
def test_an_error_in_the_last_of_a_sequence_leaves_the_first_unwritten(error, message, changed):
    given = {name: [np.ones((2, 2)) for _ in range(3)] for name in "ABC"}
    for name, x in changed.items():
        given[name][2] = x
    with pytest.raises(error, match=message):
        cla.gemm(**given)
    assert all((c == 1).all() for c in given["C"][:2])


def test_sequences_that_overlap(rng):
    memory, a = np.zeros((6, 12)), [random(rng, (3, 3), np.float64) for _ in range(4)]
    blocks = [memory[:3, 3 * i : 3 * i + 3] for i in range(4)]
    cla.gemm(a, a, blocks)
    np.testing.assert_allclose(np.array(blocks), np.array(a) @ np.array(a), rtol=1e-12, atol=1e-12)
    before = memory.copy()
    with pytest.raises(ValueError, match=r"C\[1\] shares memory with C\[0\]"):
        cla.gemm(a[:2], a[:2], [memory[:3, :3], memory[:3, 2:5]])
    with pytest.raises(ValueError, match=r"C\[0\] shares memory with A\[1\]"):
        cla.gemm([a[0], memory[2:5, 1:4]], a[:2], [memory[:3, :3], memory[3:, 6:9]])
    assert same_bits(memory, before)
    for bad in ("abc", 3.0, np.ones((3, 3, 3))):
        with pytest.raises(TypeError, match="A is a "):
            cla.gemm(bad, a, a)
    with pytest.raises(ValueError, match="A has 2 matrices, must have 4 as C"):
        cla.gemm(a[:2], a, blocks)


@pytest.mark.parametrize("size", [(3, 3, 3), (9, 9, 1)])
def test_what_is_fetched_ahead_changes_no_bit(size, rng, monkeypatch):
    m, k, n = size
    for dtype in (np.float64, np.complex64):
        a, b = random(rng, (50, m, k), dtype), random(rng, (50, k, n), dtype)
        near = cla.gemm(a, b, np.zeros((50, m, n), dtype))
        with monkeypatch.context() as patch:
            patch.setattr("compactla.cpu.linalg.products.FAR", 0)
            assert same_bits(cla.gemm(a, b, np.zeros((50, m, n), dtype)), near)
