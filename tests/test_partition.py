"""Lines that are cut into parts, and lines that are rings."""

from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pyopencl.array
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import compactla as cla
import reference
from cases import exhaustive, in_turns, lines, make_singular, random, same_bits, slow
from compactla.cpu.threads import sharing
from compactla.cpu.threads.pool import BOX
from compactla.lines.cutting import BlockFormat, choose_parts
from compactla.lines.in_parts import PartedLines
from compactla.lines.packed import PackedLines
from compactla.oracle import THRESHOLD
from systems import convection_diffusion, line_part

# Matrices at random have chords, which are left out like all that is on no line.
pytestmark = pytest.mark.filterwarnings("ignore:lines have chords")

THREADS = [1, 2, 3, 7]
LANES = [slow(1, np.complex128), (3, np.float32), (8, np.complex128), slow(32, np.float32)]


def rings(rng, nlines, K, b, dtype):
    """`lines` with as many couplings as blocks."""
    lower, _, upper = lines(rng, nlines, K + 1, b, dtype)
    return lower, lines(rng, nlines, K, b, dtype)[1], upper


def check(blocks, rhs, ring=False, **options):
    T = cla.BlockTridiag(*blocks, periodic=ring, **options)
    info = T.factor()
    assert info.shape == rhs.shape[:1] and info.dtype == np.int64 and not info.any()
    x = T.solve(rhs)
    assert x.shape == rhs.shape and x.dtype == rhs.dtype
    assert reference.solve_ratio(reference.block_tridiagonal(*blocks, ring), x, rhs) < THRESHOLD


@pytest.mark.parametrize(("b", "dtype"), in_turns([0, 1, 3, 17], always=[3, 17]), ids=str)
def test_block_sizes(queue, dtype, b, rng):
    for ring in (False, True):
        blocks = (rings if ring else lines)(rng, 5, 9, b, dtype)
        check(blocks, random(rng, (5, 9, b), dtype), ring, parts=3, queue=queue)


@pytest.mark.parametrize(("K", "dtype"), in_turns([1, 2, 3, 4, 5, 17, 40], always=[2, 3, 40]), ids=str)
def test_parts(queue, dtype, K, rng):
    for parts in (1, 2, 3, 7, 19, 1000):
        check(lines(rng, 3, K, 2, dtype), random(rng, (3, K, 2), dtype), parts=parts, queue=queue)
        check(rings(rng, 3, K, 2, dtype), random(rng, (3, K, 2), dtype), True, parts=parts, queue=queue)


@pytest.mark.parametrize(("nrhs", "dtype"), in_turns([0, 1, 5, 17], always=[1, 5]), ids=str)
def test_right_hand_sides(queue, dtype, nrhs, rng):
    for b in (3, 17):
        check(rings(rng, 5, 11, b, dtype), random(rng, (5, 11, b, nrhs), dtype), True, parts=2, queue=queue)


@pytest.mark.slow
@pytest.mark.parametrize(("vlen", "dtype"), LANES)
def test_vector_lengths_and_batches(queue, dtype, vlen, rng):
    for nlines in (0, 1, 4, 33):
        for ring in (False, True):
            blocks = (rings if ring else lines)(rng, nlines, 7, 3, dtype)
            check(blocks, random(rng, (nlines, 7, 3), dtype), ring, parts=2, vlen=vlen, queue=queue)


@pytest.mark.slow
@given(
    nlines=st.integers(0, 9),
    K=st.integers(1, 30),
    b=st.sampled_from([1, 3]),
    parts=st.integers(1, 12),
    nrhs=st.sampled_from([1, 3]),
    seed=st.integers(0, 3),
)
def test_any_shape(queue, nlines, K, b, parts, nrhs, seed):
    rng = np.random.default_rng(seed)
    ring = rng.random(nlines) < [0, 0.5, 0.5, 1][seed]
    blocks = (rings if ring.any() else lines)(rng, nlines, K, b, np.float64)
    check(blocks, random(rng, (nlines, K, b, nrhs), np.float64), ring, parts=parts, queue=queue)


@pytest.mark.parametrize("K", [1, 5])
def test_what_would_close_other_lines_is_not_read(queue, dtype, K, rng):
    lower, diag, upper = rings(rng, 6, K, 3, dtype)
    ring = np.arange(6) % 2 == 0
    rhs = random(rng, (6, K, 3), dtype)
    T = cla.BlockTridiag(lower, diag, upper, queue=queue, periodic=ring)
    T.factor()
    lower[~ring, -1] = upper[~ring, -1] = np.nan
    U = cla.BlockTridiag(lower, diag, upper, queue=queue, periodic=ring)
    assert not U.factor().any()
    assert same_bits(U.solve(rhs), T.solve(rhs))


def test_long_lines_are_cut(rng):
    """Down several levels: the separators are lines that are long enough to be cut."""
    lower, diag, upper = rings(rng, 1, 30_000, 2, np.float64)
    assert isinstance(cla.BlockTridiag(lower[:, 1:], diag, upper[:, 1:])._lines, PartedLines)
    assert isinstance(cla.BlockTridiag(lower[:, 1:], diag, upper[:, 1:], parts=1)._lines, PackedLines)
    T = cla.BlockTridiag(lower, diag, upper, parts=9000, periodic=True)
    assert T._lines.separators.lines.separators.lines.separators is not None
    T.factor()
    rhs = random(rng, (1, 30_000, 2, 1), np.float64)
    x = T.solve(rhs)
    r = rhs - diag @ x - np.roll(lower @ x, 1, 1) - upper @ np.roll(x, -1, 1)
    size = abs(diag) @ abs(x) + np.roll(abs(lower) @ abs(x), 1, 1) + abs(upper) @ np.roll(abs(x), -1, 1) + abs(rhs)
    assert (abs(r) / size).max() < 30 * np.finfo(float).eps


def test_how_many_parts(monkeypatch):
    def chosen(length, processors, narrow=True):
        monkeypatch.setitem(vars(numba.config), "NUMBA_DEFAULT_NUM_THREADS", processors)
        return choose_parts(np.array(length), BlockFormat(5, np.dtype(np.float64), 4, None), narrow)

    one_of_many = chosen([5] * 50 + [100_000] + [5] * 50, 2)
    assert one_of_many[50] >= 8 and one_of_many[50] % 4 == 0
    assert (np.delete(one_of_many, 50) == 1).all()
    for few_or_short in ([10_000] * 8, [30] * 2, [1], []):
        assert (chosen(few_or_short, 2) == 1).all()
    assert (chosen([10_000] * 8, 64) >= 32).all()
    assert chosen([100_000], 2) == 1 < chosen([100_000], 64)  # whole, it needs one lane and a quarter of the memory
    assert chosen([100_000], 2, narrow=False) > 1
    expected = chosen([10_000], 2)
    monkeypatch.setattr(sharing, "THREADS", 1)
    assert np.array_equal(chosen([10_000], 2), expected)


def test_new_values(queue, dtype, rng, monkeypatch):
    first, second = (rings(rng, 5, 13, 3, dtype) for _ in range(2))
    rhs = random(rng, (5, 13, 3), dtype)
    T = cla.BlockTridiag(*first, parts=4, periodic=True, queue=queue)
    with pytest.raises(RuntimeError, match="not factored"):
        T.solve(rhs)
    T.factor()
    x = T.solve(rhs)
    for name in ("in_parts.cut", "in_parts.sort_into_packs", "cutting.choose_parts"):
        monkeypatch.delattr(f"compactla.lines.{name}")
    for target, values in zip((T.lower, T.diag, T.upper), second, strict=True):
        target[...] = values if queue is None else pyopencl.array.to_device(queue, values)
    assert not T.refactor().any()
    assert reference.solve_ratio(reference.block_tridiagonal(*second), T.solve(rhs), rhs) < THRESHOLD
    for target, values in zip((T.lower, T.diag, T.upper), first, strict=True):
        target[...] = values if queue is None else pyopencl.array.to_device(queue, values)
    T.refactor()
    assert same_bits(T.solve(rhs), x)


def test_a_singular_line_is_reported_and_stays_alone(queue, dtype, rng):
    """Three parts of 11 block rows: rows 0 to 2, 4 to 6 and 8 to 10; 3 and 7 are separators."""
    K, b, nlines = 11, 3, 6
    blocks, rhs = lines(rng, nlines, K, b, dtype), random(rng, (nlines, K, b), dtype)
    T = cla.BlockTridiag(*blocks, parts=3, queue=queue)
    T.factor()
    expected, others = T.solve(rhs), np.arange(nlines) != 4
    for singular, found in (([(0, 0)], (0, 0)), ([(5, 2)], (5, 2)), ([(3, 1)], (3, 1)), ([(7, 0), (3, 2)], (3, 2)),
                            ([(3, 0), (9, 1)], (9, 1)), ([(9, 1), (5, 0)], (5, 0))):  # fmt: skip
        lower, diag, upper = (a.copy() for a in blocks)
        for k, i in singular:
            make_singular(diag[4, k], i)
            if k > 0:
                lower[4, k - 1, i] = 0
            if k in (3, 7):
                upper[4, k, i] = 0
        T = cla.BlockTridiag(lower, diag, upper, parts=3, queue=queue)
        with np.errstate(all="ignore"):
            info, x = T.factor(), T.solve(rhs)
        assert np.array_equal(info, np.where(others, 0, 1 + found[0] * b + found[1]))
        assert same_bits(x[others], expected[others])


def test_a_singular_ring(queue, rng):
    """A singular ring is reported if its last separator has no pivot left, and if a part has none."""
    K, b = 7, 2
    rhs = random(rng, (3, K, b), np.float64)
    for k, i in ((K - 1, 1), (2, 0)):
        lower, diag, upper = rings(rng, 3, K, b, np.float64)
        make_singular(diag[1, k], i)
        lower[1, k - 1, i] = 0
        if k == K - 1:
            upper[1, k, i] = 0
        good = cla.BlockTridiag(*(a[::2] for a in (lower, diag, upper)), periodic=True, queue=queue)
        T = cla.BlockTridiag(lower, diag, upper, periodic=True, queue=queue)
        good.factor()
        with np.errstate(all="ignore"):
            assert T.factor().tolist() == [0, 1 + k * b + i, 0]
            assert same_bits(T.solve(rhs)[::2].copy(), good.solve(rhs[::2]))


def test_results_do_not_depend_on_threads(rng, monkeypatch):
    monkeypatch.setattr(sharing, "THREADS", 7)
    monkeypatch.setattr(sharing, "GRAIN", 1)
    monkeypatch.setattr(sharing, "boxes", np.zeros((6, BOX), np.int64))
    blocks, rhs = rings(rng, 2, 600, 3, np.float64), random(rng, (2, 600, 3, 2), np.float64)
    results = []
    for threads in THREADS:
        T = cla.BlockTridiag(*blocks, parts=24, periodic=True)
        T.factor(threads=threads)
        results.append(T.solve(rhs, threads=threads))
    assert all(same_bits(x, results[0]) for x in results)


def test_several_threads_at_once(queue, rng):
    T = cla.BlockTridiag(*rings(rng, 2, 500, 3, np.float64), parts=16, periodic=True, queue=queue)
    T.factor()
    vectors = [random(rng, (2, 500, 3, 1 + i % 3), np.float64) for i in range(12)]
    expected = [T.solve(rhs) for rhs in vectors]
    with ThreadPoolExecutor(4) as pool:
        assert all(map(same_bits, pool.map(T.solve, vectors), expected))


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{"parts": 1}, exhaustive({"pivoting": True}), exhaustive({"refine": 1}), {"parts": 2}], ids=str
)
def test_memory_of_few_long_lines(options, queue, rng):
    """Lanes that would hold nothing but padding are left away, which changes no bit of the results."""
    blocks, rhs = lines(rng, 1, 3000, 3, np.float64), random(rng, (1, 3000, 3), np.float64)
    T, padded = (cla.BlockTridiag(*blocks, queue=queue, vlen=vlen, **options) for vlen in (None, 4))
    assert not T.factor().any() and not padded.factor().any()
    assert same_bits(T.solve(rhs), padded.solve(rhs))
    M = scipy.sparse.bsr_array(scipy.sparse.kron(scipy.sparse.eye_array(3000), blocks[1][0, 0]), blocksize=(3, 3))
    P = cla.LinePreconditioner(M, [np.arange(3000)], queue=queue, **options)
    for of_lines in (T._lines, P._lines):
        assert getattr(of_lines, "parts", of_lines).diag.nbytes < 1.1 * blocks[1].nbytes
    x = P @ rhs.reshape(-1)
    np.testing.assert_allclose(M @ x, rhs.reshape(-1), rtol=1e-10)
    np.testing.assert_allclose(M.T @ P.rmatvec(rhs.reshape(-1)), rhs.reshape(-1), rtol=1e-10)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"parts": 0}, ValueError, "parts is 0, must be at least 1"),
        ({"parts": 2.0}, TypeError, "parts is 2.0, must be an integer"),
        ({"periodic": "yes"}, TypeError, "periodic is of <U3"),
        ({"periodic": [True, False, True]}, ValueError, r"periodic has shape \(3,\), must be .* \(2,\)"),
        ({"periodic": True}, ValueError, r"lower has shape \(2, 3, 3, 3\), must be \(2, 4, 3, 3\)"),
    ],
)
def test_wrong_arguments(change, error, message, rng):
    with pytest.raises(error, match=message):
        cla.BlockTridiag(*lines(rng, 2, 4, 3, np.float64), **change)
    if "lower" not in message:
        with pytest.raises(error, match=message):
            cla.LinePreconditioner(scipy.sparse.eye_array(16, format="csr"), np.arange(8).reshape(2, 4), 2, **change)


LENGTHS = [1, 7, 2, 3, 12, 1, 25, 4]


def closed(rng, lengths, b, dtype):
    """A matrix (BSR) and lines that wander through its block rows, with all couplings of their neighbours and ends."""
    order = rng.permutation(sum(lengths))
    along = np.split(order, np.cumsum(lengths)[:-1])
    wanted = rng.random((len(order),) * 2) < 0.1
    for line in along:
        wanted[line, np.roll(line, 1)] = wanted[np.roll(line, 1), line] = True
    wanted[np.diag_indices(len(order))] = True
    pattern = scipy.sparse.csr_array(wanted)
    data = random(rng, (pattern.nnz, b, b), dtype)
    row = np.repeat(np.arange(len(order)), np.diff(pattern.indptr))
    data[pattern.indices == row] += 8 * b * np.eye(b, dtype=dtype)
    return scipy.sparse.bsr_array((data, pattern.indices, pattern.indptr)), along


def ring_part(M, along, b, ring):
    """`line_part` with the couplings between the ends of lines that are rings."""
    T, full = line_part(M, along, b), M.toarray()
    for line, closes in zip(along, ring, strict=True):
        for ends in ((line[0], line[-1]), (line[-1], line[0])) if closes else ():
            row, column = (slice(end * b, end * b + b) for end in ends)
            T[row, column] = full[row, column]
    return T


@pytest.mark.parametrize(
    ("b", "dtype"), [(1, np.dtype("F")), (3, np.dtype("d")), exhaustive(3, np.dtype("F"))], ids=str
)
@pytest.mark.parametrize("form", ["bsr", "csr"])
def test_preconditioner(queue, dtype, b, form, rng):
    M, along = closed(rng, LENGTHS, b, dtype)
    ring = np.arange(len(along)) % 2 == 0
    N = M.copy()
    N.data = N.data + random(rng, N.data.shape, dtype)
    for parts in (None, 1, 2, 4):
        for periodic in (False, True, ring):
            P = cla.LinePreconditioner(M if form == "bsr" else M.tocsr(), along, b, queue=queue, parts=parts,
                                       periodic=periodic)  # fmt: skip
            for A in (M, N):
                if A is N:
                    P.update(N if form == "bsr" else N.tocsr())
                assert P.info.tolist() == [0] * len(along)
                r = random(rng, (M.shape[0], 2), dtype)
                T = ring_part(A, along, b, np.broadcast_to(periodic, len(along)))
                for rhs in (r, r[:, 1:]):
                    assert reference.solve_ratio(T[None], (P @ rhs)[None], rhs[None]) < THRESHOLD
                assert same_bits(P @ r[:, 1], (P @ r[:, 1:])[:, 0])


def test_one_long_line_of_a_matrix_is_cut(queue, rng):
    """One long line is cut, and solved for exactly, as the matrix has nothing else."""
    M, line = convection_diffusion(1, 6000, 3)
    P = cla.LinePreconditioner(M, line, queue=queue)
    assert P._lines.separators is not None and P._lines.parts.nlines > 1
    r = random(rng, (M.shape[0],), np.float64)
    x = P @ r
    error = np.linalg.norm(r - M @ x, np.inf) / (np.linalg.norm(x, np.inf) * abs(M).sum(1).max())
    assert error < THRESHOLD * np.finfo(float).eps


def test_preconditioner_reports_lines_in_order(queue, rng):
    M, along = closed(rng, LENGTHS, 2, np.float64)
    row = along[4][6]  # in the second part: positions 0 to 3, 5 to 7, 9 to 11
    first = M.indptr[row]
    columns = M.indices[first : M.indptr[row + 1]]
    M.data[first + np.flatnonzero(np.isin(columns, along[4][[5, 6]])), 1] = 0
    P = cla.LinePreconditioner(M, along, queue=queue, parts=3)
    assert P.info.tolist() == [0, 0, 0, 0, 1 + 6 * 2 + 1, 0, 0, 0]
