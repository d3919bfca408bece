"""Tests of the block rows that form lines, and of the places of their blocks in a sparse matrix."""

import numpy as np
import pytest
import scipy.sparse

import compactla as cla
from cases import slow
from compactla.lines.cutting import BlockFormat
from compactla.lines.extraction import Extraction, check_matrix, check_paths
from compactla.lines.in_parts import part_matrix
from compactla.lines.options import Options
from systems import STORED, convection_diffusion, pack_lines, scattered

LENGTHS = [1, 7, 3, 3, 12, 1, 5, 7]


def test_pack_lines_example():
    slots = pack_lines([[0], [4, 3, 2], [5, 1]], nrow=6, vlen=2)
    assert len(slots.order) == 3
    np.testing.assert_array_equal(slots.order, [1, 2, 0])
    np.testing.assert_array_equal(slots.offset, [0, 3, 4])
    np.testing.assert_array_equal(slots.rows, [[4, 5], [3, 1], [2, -1], [0, -1]])


@pytest.mark.parametrize("vlen", [1, 3, 4, 16])
def test_pack_lines(rng, vlen):
    lines = np.split(rng.permutation(sum(LENGTHS)), np.cumsum(LENGTHS)[:-1])
    slots = pack_lines(lines, sum(LENGTHS), vlen)
    lengths = np.array(LENGTHS)[slots.order]
    assert (np.diff(lengths) <= 0).all()
    np.testing.assert_array_equal(np.diff(slots.offset), lengths[::vlen])
    for place, line in enumerate(slots.order):
        pack, lane = divmod(place, vlen)
        column = slots.rows[slots.offset[pack] : slots.offset[pack + 1], lane]
        np.testing.assert_array_equal(column[: len(lines[line])], lines[line])
        assert (column[len(lines[line]) :] == -1).all()
    assert (slots.rows >= 0).sum() == sum(LENGTHS)


def test_pack_lines_of_equal_length_stay_in_order():
    np.testing.assert_array_equal(pack_lines(np.arange(12).reshape(6, 2), 12, 4).order, np.arange(6))


@pytest.mark.parametrize(
    "lines",
    [
        ((0, 1), (2,)),
        [np.array([0, 1]), [2]],
        [range(2), np.array([2], np.uint8)],
        [np.array([0, 1], np.uint64), np.array([2])],
        iter([[0, 1], [2]]),
    ],
)
def test_any_sequences_are_lines(lines):
    np.testing.assert_array_equal(pack_lines(lines, 3, 2).rows, [[0, 2], [1, -1]])


@pytest.mark.parametrize(("lines", "nrow"), [([], 0), (np.zeros((0, 5), int), 0)])
def test_no_lines(lines, nrow):
    slots = pack_lines(lines, nrow, 4)
    assert len(slots.order) == 0
    assert slots.rows.shape == (0, 4)
    np.testing.assert_array_equal(slots.offset, [0])


@pytest.mark.parametrize(
    ("lines", "error", "message"),
    [
        ([[0, 1], [3]], ValueError, "block row 2 is on no line"),
        ([[0, 1], [2, 1, 3]], ValueError, r"block row 1 is on lines\[0\] and lines\[1\]"),
        ([[0, 1], [2, 3, 3]], ValueError, r"block row 3 is on lines\[1\] and lines\[1\]"),
        ([[0, 1], [2, 4, 3]], ValueError, r"lines\[1\] holds block row 4, must be one of 0 to 3"),
        ([[0, 1], [-1, 2, 3]], ValueError, r"lines\[1\] holds block row -1"),
        ([[0, 1], [], [2, 3]], ValueError, r"lines\[1\] is empty"),
        (np.zeros((3, 0), int), ValueError, r"lines\[0\] is empty"),
        ([], ValueError, "block row 0 is on no line"),
        ([[0.0, 1.0], [2.0, 3.0]], TypeError, "float64"),
        (np.array([[0.0, 1], [2, 3]]), TypeError, "float64"),
        (np.array([[True, False]]), TypeError, "bool"),
        ([[True, False], [2, 3]], TypeError, "bool"),
        ([[0, 1], np.array([2, 2**63 + 3], np.uint64)], ValueError, "lines holds block row 9223372036854775811"),
        (["01", "23"], TypeError, "lines"),
        (np.ma.array([[0, 1], [2, 3]], mask=[[0, 0], [0, 1]]), TypeError, "mask"),
        ([[0, 1], np.ma.array([2, 3], mask=[0, 1])], TypeError, "mask"),
        ([0, 1, 2, 3], TypeError, "lines"),
        (np.arange(4).reshape(1, 2, 2), TypeError, "dimensions"),
        (None, TypeError, "lines"),
        (4, TypeError, "lines"),
    ],
)
def test_wrong_lines(lines, error, message):
    with pytest.raises(error, match=message):
        pack_lines(lines, 4, 2)


def places_of(extraction, lines, vlen):
    """The places of `lower`, `diag` and `upper` of lines in the values of a matrix."""
    paths, b, dtype = check_paths(lines, extraction.nrow, False), extraction.block_size, extraction.dtype
    made = part_matrix(extraction, paths, paths.rows, 1, BlockFormat(b, dtype, vlen, None), Options(dtype), True)
    return [wanted.place for wanted in made._inner]


def blocks_of(M, extraction, places):
    """The blocks at these places, (slots, b, b, V)."""
    b = extraction.block_size
    values = extraction.values(M)
    if M.format == "csr":
        values = np.append(values, [1, 0])
        return [values[place] for place in places]
    values = np.concatenate([values, [np.eye(b), np.zeros((b, b))]])
    return [np.moveaxis(values[place], 1, -1) for place in places]


def blocks_by_hand(M, slots, b):
    dense = M.toarray().reshape(M.shape[0] // b, b, -1, b)
    diag = np.zeros((len(slots.rows), b, b, slots.rows.shape[1]), M.dtype)
    coupled = np.delete(np.arange(len(diag)), slots.offset[1:] - 1)
    lower, upper = np.zeros_like(diag), np.zeros_like(diag)
    for (s, v), r in np.ndenumerate(slots.rows):
        diag[s, :, :, v] = np.eye(b) if r < 0 else dense[r, :, r]
        if s in coupled and r >= 0 and slots.rows[s + 1, v] >= 0:
            lower[s, :, :, v] = dense[slots.rows[s + 1, v], :, r]
            upper[s, :, :, v] = dense[r, :, slots.rows[s + 1, v]]
    return lower[coupled], diag, upper[coupled]


@pytest.mark.parametrize("b", [1, 2, 5])
@pytest.mark.parametrize("vlen", [1, 3, 8])
@pytest.mark.parametrize("form", ["bsr", "csr"])
@pytest.mark.parametrize("stored", STORED)
def test_extraction(rng, b, vlen, form, stored):
    M, lines = scattered(rng, LENGTHS, b, np.float64)
    slots = pack_lines(lines, sum(LENGTHS), vlen)
    expected = blocks_by_hand(M, slots, b)
    M = stored(M if form == "bsr" else M.tocsr())
    before = M.data.copy(), M.indices.copy()
    extraction = Extraction(M, b)
    for block, by_hand in zip(blocks_of(M, extraction, places_of(extraction, lines, vlen)), expected, strict=True):
        np.testing.assert_allclose(block, by_hand, rtol=1e-14)
    for now, then in zip((M.data, M.indices), before, strict=True):
        np.testing.assert_array_equal(now, then)


def test_places_of_missing_blocks_and_rows():
    M = scipy.sparse.bsr_array(np.array([[1.0, 2, 0], [0, 3, 0], [0, 0, 4]])).tocsr().tobsr(blocksize=(1, 1))
    lower, diag, upper = places_of(Extraction(M, 1), [[0, 1], [2]], 2)
    np.testing.assert_array_equal(diag, [[0, 3], [2, -2]])
    np.testing.assert_array_equal(upper, [[1, -1]])
    np.testing.assert_array_equal(lower, [[-1, -1]])


@pytest.mark.parametrize("first", STORED)
@pytest.mark.parametrize("second", STORED)
def test_values_in_another_order(rng, first, second):
    M, lines = scattered(rng, LENGTHS, 2, np.float64)
    slots = pack_lines(lines, sum(LENGTHS), 4)
    extraction = Extraction(first(M), 2)
    blocks = blocks_of(second(3 * M), extraction, places_of(extraction, lines, 4))
    for block, by_hand in zip(blocks, blocks_by_hand(3 * M, slots, 2), strict=True):
        np.testing.assert_allclose(block, by_hand, rtol=1e-14)


def test_values_with_unused_memory_behind_them(rng):
    M, _ = scattered(rng, LENGTHS, 2, np.float64)
    extraction = Extraction(M, 2)
    loose = M.copy()
    loose.data = np.concatenate([M.data, np.full((3, 2, 2), np.nan)])
    loose.indices = np.append(M.indices, [0, 0, 0]).astype(M.indices.dtype)
    np.testing.assert_array_equal(extraction.values(loose), M.data)


def test_values_of_another_matrix(rng):
    M, _ = convection_diffusion(4, 5, 3)
    extraction = Extraction(M, 3)
    more, less = M.tolil(), M.tolil()
    more[0, 59] = 1
    less[:3, 3:6] = 0
    for other, message in (
        (more.tobsr((3, 3)), r"pattern than at first: block \(0, 19\) is new"),
        (less.tobsr((3, 3)), r"pattern than at first: block \(0, 1\) is missing"),
        (M.tocsr(), "csr"),
        (convection_diffusion(4, 6, 3)[0], r"\(72, 72\)"),
        (M.tocsr().tobsr((1, 1)), "block_size is 3"),
    ):
        with pytest.raises(ValueError, match=message):
            extraction.values(other)


@pytest.mark.parametrize(
    ("M", "block_size", "error", "message"),
    [
        (np.eye(4), 2, TypeError, "ndarray"),
        (scipy.sparse.eye_array(4, format="csc"), 2, TypeError, r"CSC .* M.tocsr\(\)"),
        (scipy.sparse.eye_array(4, 6, format="csr"), 2, ValueError, r"\(4, 6\)"),
        (scipy.sparse.eye_array(4, format="csr"), None, ValueError, "block_size"),
        (scipy.sparse.eye_array(4, format="csr"), 3, ValueError, "divide the 4 rows"),
        (scipy.sparse.eye_array(4, format="csr"), 0, ValueError, "block_size is 0"),
        (scipy.sparse.eye_array(4, format="csr"), -2, ValueError, "block_size is -2"),
        (scipy.sparse.eye_array(4, format="csr"), 2.0, TypeError, "block_size is 2.0"),
        (scipy.sparse.eye_array(4, format="csr").tobsr((2, 2)), 4, ValueError, "block_size is 4"),
        (scipy.sparse.eye_array(4, format="csr").tobsr((2, 1)), None, ValueError, "blocks of 2 x 1"),
    ],
)
def test_wrong_matrix(M, block_size, error, message):
    with pytest.raises(error, match=message):
        check_matrix(M, block_size)


def test_no_lines_on_both_sides():
    M = scipy.sparse.csr_array((0, 0))
    for P in (cla.LinePreconditioner(M, [], 2), cla.LineRelaxation(M, [], 2)):
        assert (P @ np.zeros(0)).shape == P.rmatvec(np.zeros(0)).shape == (0,)


def find(M, lines):
    cla.find_lines(M, 3)


def find_from_coordinates(M, lines):
    cla.find_lines(M, 3, coordinates=np.zeros((20, 2)))


def precondition(M, lines):
    return cla.LinePreconditioner(M, lines, 3)


def relax(M, lines):
    return cla.LineRelaxation(M, lines, 3, scheme="gauss-seidel")


def put(array, where, value):
    """A change of one entry of an index array."""
    return lambda M: getattr(M, array).__setitem__(where, value)


def becomes(array, make):
    """A change of a whole array."""
    return lambda M: setattr(M, array, make(getattr(M, array)))


MALFORMED = [
    (put("indptr", 2, 10**8), r"M.indptr\[3\] is \d+, must be at least 100000000"),
    (put("indptr", 2, -(10**8)), r"M.indptr\[2\] is -100000000, must be at least"),
    (put("indptr", slice(1, 3), [9, 2]), r"M.indptr\[2\] is 2, must be at least 9"),
    (put("indptr", 0, 1), "M.indptr goes from 1 to .*, must go from 0"),
    (put("indptr", -1, 10**8), "M.indptr goes from 0 to 100000000, must go from 0 to at most"),
    (put("indices", 0, 10**8), r"M.indices\[0\] is 100000000, must be one of 0 to "),
    (put("indices", 5, -1), r"M.indices\[5\] is -1, must be one of 0 to "),
    (becomes("indptr", lambda a: a[:-3]), r"M.indptr has \d+ entries, must have "),
    (becomes("indices", lambda a: a[:-3]), "M.indptr goes from 0 to "),
    (becomes("indices", lambda a: a + 0.5), "M.indices is an array of float64, must be one of integers"),
    (becomes("indices", lambda a: a.astype(str)), "M.indices is an array of <U11"),
    (becomes("indices", lambda a: a[:, None]), r"M.indices is a ndarray \(\d+, 1\), must be a 1-D array"),
    (becomes("data", lambda a: a[:-5]), "M.indptr goes from 0 to .*, must go from 0 to at most"),
    (becomes("data", lambda a: np.zeros((0, 0, 0))), r"M has blocks of 0 x 0|M.data is a ndarray \(0, 0, 0\)"),
    (becomes("data", lambda a: a.tolist()), "M.data is a list"),
    (becomes("data", np.ma.array), "M.data is a MaskedArray"),
    (becomes("indptr", lambda a: np.ma.array(a, mask=a > 2)), "M.indptr is a MaskedArray"),
    (becomes("indices", lambda a: a[0, ...]), r"M.indices is a \w+ \(\), must be a 1-D array"),
]


@pytest.mark.parametrize("form", ["bsr", "csr"])
@pytest.mark.parametrize(("change", "message"), MALFORMED)
def test_malformed_matrix(form, change, message):
    """Indices that compiled code would follow out of the arrays are an error wherever a matrix comes in."""
    good, lines = convection_diffusion(4, 5, 3)
    good = good.asformat(form)
    bad = good.copy()
    change(bad)
    for call in (find, find_from_coordinates, precondition, relax):
        with pytest.raises(ValueError, match=message):
            call(bad, lines)
    for make in (precondition, relax):
        P, r = make(good, lines), np.linspace(1, 2, 60)
        before = P @ r
        with pytest.raises(ValueError, match=message):
            P.update(bad)
        assert np.array_equal(P @ r, before)


def test_matrix_that_is_malformed_before_the_adjoint_is_made():
    M, lines = convection_diffusion(4, 5, 3)
    for change, message in MALFORMED[5], MALFORMED[14]:
        N = M.copy()
        P = cla.LinePreconditioner(N, lines)
        change(N)
        with pytest.raises(ValueError, match=message):
            P.rmatvec(np.ones(60))


@pytest.mark.parametrize("array", ["indptr", "indices"])
def test_indices_that_scipy_does_not_take(array):
    M, lines = convection_diffusion(4, 5, 3)
    setattr(M, array, getattr(M, array).astype(np.uint64))
    for call in (find, find_from_coordinates, precondition, relax):
        with pytest.raises(ValueError, match=f"M.{array} is an array of uint64, must be one of integers that fit into"):
            call(M, lines)


@pytest.mark.parametrize("kind", [np.int64, slow(np.uint32), np.int16])
def test_indices_of_other_types(kind):
    M, lines = convection_diffusion(4, 5, 3)
    expected = cla.LinePreconditioner(M, lines) @ np.ones(60)
    M.indices = M.indices.astype(kind)
    assert [line.tolist() for line in cla.find_lines(M)] == lines.tolist()
    assert np.array_equal(cla.LinePreconditioner(M, lines) @ np.ones(60), expected)
