"""The line preconditioner, on every device."""

import copy
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import LinearOperator, bicgstab, cg, gmres

import compactla as cla
import reference
from cases import in_turns, random, same_bits
from compactla.oracle import THRESHOLD
from systems import STORED, convection_diffusion, line_part, scattered

LENGTHS = [1, 7, 3, 3, 12, 1, 5, 7, 2]


def ratio(M, lines, b, x, r):
    """LAPACK's residual of x = P r."""
    return reference.solve_ratio(line_part(M, lines, b)[None], x, r)


@pytest.mark.parametrize(("b", "dtype"), in_turns([1, 3, 5, 17], always=[3, 17]), ids=str)
@pytest.mark.parametrize("form", ["bsr", "csr"])
def test_solves_along_lines(rng, queue, dtype, b, form):
    M, lines = scattered(rng, LENGTHS, b, dtype)
    P = cla.LinePreconditioner(M if form == "bsr" else M.tocsr(), lines, block_size=b, queue=queue)
    assert (P.shape, P.dtype, P.block_size, P.queue) == (M.shape, dtype, b, queue)
    assert P.info.tolist() == [0] * len(lines)
    for shape in (M.shape[:1], (M.shape[0], 1), (M.shape[0], 4)):
        r = random(rng, shape, dtype)
        x = P.solve(r)
        assert x.dtype == dtype
        assert x.flags.c_contiguous
        assert ratio(M, lines, b, x, r) < THRESHOLD
        assert same_bits(P @ r, x)


@pytest.mark.parametrize(("vlen", "dtype"), [(1, np.float32), (3, np.complex128), (32, np.complex128)])
def test_vector_lengths(rng, queue, dtype, vlen):
    M, lines = scattered(rng, LENGTHS, 3, dtype)
    r = random(rng, (M.shape[0], 2), dtype)
    x = cla.LinePreconditioner(M, lines, vlen=vlen, queue=queue).solve(r)
    assert ratio(M, lines, 3, x, r) < THRESHOLD


@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize("form", ["bsr", "csr"])
def test_storage_makes_no_difference(rng, queue, form, stored):
    M, lines = scattered(rng, LENGTHS, 3, np.float64)
    M = stored(M if form == "bsr" else M.tocsr())
    r = random(rng, M.shape[:1], np.float64)
    x = cla.LinePreconditioner(M, lines, 3, queue=queue) @ r
    assert ratio(M, lines, 3, x, r) < THRESHOLD


def test_csr_equals_bsr(rng, queue, dtype):
    M, lines = scattered(rng, LENGTHS, 3, dtype)
    r = random(rng, M.shape[:1], dtype)
    bsr = cla.LinePreconditioner(M, lines, queue=queue)
    csr = cla.LinePreconditioner(M.tocsr(), lines, block_size=3, queue=queue)
    matrix = cla.LinePreconditioner(scipy.sparse.csr_matrix(M), lines, block_size=3, queue=queue)
    assert same_bits(bsr @ r, csr @ r)
    assert same_bits(bsr @ r, matrix @ r)


@pytest.mark.parametrize("make", [cla.LinePreconditioner, cla.LineRelaxation])
@pytest.mark.parametrize("parts", [1, 2])
def test_copies_have_factors_of_their_own(make, parts, rng):
    M, lines = scattered(rng, LENGTHS, 3, np.float64)
    P, r = make(M, lines, parts=parts), random(rng, M.shape[0], np.float64)
    x = P @ r
    Q = copy.copy(P)
    Q.update(2 * M)
    assert same_bits(P @ r, x) and same_bits(Q @ r, x / 2)
    assert same_bits(Q.rmatvec(r), P.rmatvec(r) / 2)


def test_lines_of_one_block_are_block_jacobi(rng, queue):
    M, _ = scattered(rng, LENGTHS, 3, np.float64)
    lines = np.arange(sum(LENGTHS))[:, None]
    r = random(rng, M.shape[:1], np.float64)
    assert ratio(M, lines, 3, cla.LinePreconditioner(M, lines, queue=queue) @ r, r) < THRESHOLD


def test_exact_where_the_matrix_is_one_line(queue):
    M, lines = convection_diffusion(1, 40, 3)
    b = M @ np.ones(M.shape[0])
    np.testing.assert_allclose(cla.LinePreconditioner(M, lines, queue=queue) @ b, 1, rtol=1e-9)


@pytest.mark.parametrize("form", ["bsr", "csr"])
def test_update_does_no_symbolic_work(rng, queue, dtype, form, monkeypatch):
    M, lines = scattered(rng, LENGTHS, 3, dtype)
    if form == "csr":
        M = M.tocsr()
    P = cla.LinePreconditioner(M, lines, 3, queue=queue)
    r = random(rng, M.shape[:1], dtype)
    before = P @ r
    for name in ("block_operator.check_paths", "block_operator.Extraction", "precond.part_matrix"):
        monkeypatch.delattr(f"compactla.lines.{name}")
    monkeypatch.delattr("compactla.lines.extraction._find_blocks")
    N = M.copy()
    N.data = random(rng, N.data.shape, dtype) + N.data
    info = P.update(N)
    assert info is P.info
    assert ratio(N, lines, 3, P @ r, r) < THRESHOLD
    P.update(M)
    assert same_bits(P @ r, before)


def test_update_refuses_another_matrix(rng, queue):
    M, lines = scattered(rng, LENGTHS, 3, np.float64)
    P = cla.LinePreconditioner(M, lines, queue=queue)
    r = random(rng, M.shape[:1], np.float64)
    before = P @ r
    other = scattered(rng, LENGTHS, 3, np.float64)[0]
    larger = scattered(rng, [*LENGTHS, 3], 3, np.float64)[0]
    for N, error, message in (
        (other, ValueError, "pattern"),
        (larger, ValueError, "must be bsr"),
        (M.tocsr(), ValueError, "csr"),
        (M.astype(np.float32), TypeError, "float32"),
        (M.toarray(), TypeError, "ndarray"),
    ):
        with pytest.raises(error, match=message):
            P.update(N)
    assert same_bits(P @ r, before)


def test_zero_pivot_is_reported_and_stays_on_its_line(rng, queue, dtype):
    b = 3
    M, lines = scattered(rng, LENGTHS, b, dtype)
    r = random(rng, M.shape[:1], dtype)
    good = cla.LinePreconditioner(M, lines, queue=queue)
    N = M.copy()
    row = lines[4][0]
    place = N.indptr[row] + np.flatnonzero(N.indices[N.indptr[row] : N.indptr[row + 1]] == row)[0]
    N.data[place, 1, : b - 1] = 0
    bad = cla.LinePreconditioner(N, lines, queue=queue)
    assert bad.info.tolist() == [0, 0, 0, 0, 2, 0, 0, 0, 0]
    others = np.delete(np.arange(sum(LENGTHS)), lines[4])
    with np.errstate(all="ignore"):
        assert same_bits(blocks(bad @ r, b)[others], blocks(good @ r, b)[others])
    bad.update(M)
    assert not bad.info.any()
    assert same_bits(bad @ r, good @ r)


def blocks(x, b):
    return x.reshape(-1, b)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"M": np.eye(12)}, TypeError, "M is a ndarray"),
        ({"M": scipy.sparse.eye_array(12, dtype=int, format="csr")}, TypeError, "M: dtype is int64"),
        ({"block_size": 5}, ValueError, "block_size is 5"),
        ({"block_size": None}, ValueError, "block_size"),
        ({"lines": [[0, 1, 2, 3, 4]]}, ValueError, "block row 5 is on no line"),
        ({"vlen": 0}, ValueError, "vlen is 0"),
        ({"vlen": 2.0}, TypeError, "vlen is 2.0"),
        ({"queue": "gpu"}, TypeError, "queue is 'gpu'"),
    ],
)
def test_wrong_arguments(change, error, message):
    arguments = {"M": scipy.sparse.eye_array(12, format="csr"), "lines": [range(6)], "block_size": 2}
    with pytest.raises(error, match=message):
        cla.LinePreconditioner(**(arguments | change))


@pytest.mark.parametrize("solver", [cg, gmres, bicgstab])
def test_scipy_solvers(queue, solver):
    M, lines = convection_diffusion(20, 16, 3, wind=0 if solver is cg else 0.5)
    P = cla.LinePreconditioner(M, lines, queue=queue)
    solution = np.linspace(-1, 1, M.shape[0])
    steps = {}
    for name, preconditioner in (("none", None), ("line", P)):
        calls = []
        options = {"rtol": 1e-12, "maxiter": 3000, "callback": calls.append}
        if solver is gmres:
            options["callback_type"] = "pr_norm"
        x, status = solver(M, M @ solution, M=preconditioner, **options)
        steps[name] = len(calls)
        assert status == 0
    np.testing.assert_allclose(x, solution, atol=1e-8)
    assert steps["line"] < steps["none"] / 3


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_gmres_on_sherman5(queue, dtype):
    with np.load(files("compactla") / "data" / "sherman5_b3.npz") as file:
        M = scipy.sparse.bsr_array((file["data"].astype(dtype), file["indices"], file["indptr"]))
        lines, rhs = file["lines"], file["rhs"]
    for kind, expected in ((lines, 136), (lines.reshape(-1, 1), 251)):
        P = cla.LinePreconditioner(M, kind, queue=queue)
        A = LinearOperator(M.shape, lambda y, P=P: M @ (P @ y), dtype=dtype)
        history = []
        options = {"callback": history.append, "callback_type": "pr_norm"}
        y, _ = gmres(A, rhs, rtol=1e-8, restart=50, maxiter=30, **options)
        assert abs(len(history) - expected) <= 1
        assert np.linalg.norm(rhs - M @ (P @ y)) <= 1e-8 * np.linalg.norm(rhs)


def test_several_threads_at_once(rng, queue):
    M, lines = convection_diffusion(30, 20, 3)
    P = cla.LinePreconditioner(M, lines, queue=queue)
    vectors = [random(rng, (M.shape[0], 1 + i % 3), np.float64) for i in range(24)]
    expected = [P @ r for r in vectors]
    with ThreadPoolExecutor(6) as pool:
        for x, alone in zip(pool.map(P.solve, vectors), expected, strict=True):
            assert same_bits(x, alone)


def test_several_preconditioners_at_once(rng, queue):
    systems = [scattered(rng, LENGTHS, b, np.float64) for b in (1, 3, 5)]
    vectors = [random(rng, M.shape[:1], np.float64) for M, _ in systems]

    def build_and_apply(system, r):
        return cla.LinePreconditioner(*system, queue=queue) @ r

    expected = list(map(build_and_apply, systems, vectors))
    with ThreadPoolExecutor(4) as pool:
        for x, alone in zip(pool.map(build_and_apply, systems, vectors), expected, strict=True):
            assert same_bits(x, alone)


def with_chords(b=2, value=1e6):
    """A matrix of which rows 0 and 4, 1 and 3 (one way), and 6 and 8 are coupled by this value, and two lines."""
    M, lines = convection_diffusion(2, 5, b)
    M = M.tolil()
    for row, column in ((0, 4), (4, 0), (1, 3), (6, 8), (8, 6)):
        M[row * b, column * b] = value
    return M.tocsr(), lines


@pytest.mark.parametrize("make", [cla.LinePreconditioner, cla.LineRelaxation])
@pytest.mark.parametrize("form", ["bsr", "csr"])
def test_chords_are_counted_once(make, form):
    M, lines = with_chords()
    M = M.tobsr((2, 2)) if form == "bsr" else M
    with pytest.warns(UserWarning, match=r"lines have chords \(3\): .* rows 0 and 4 of lines\[0\]") as warned:
        P = make(M, lines, 2)
        P.update(M)
        P.rmatvec(np.ones(20))
        make(M, [[row] for row in range(10)], 2)
    assert len(warned) == 1
    assert warned[0].filename == __file__


def test_no_warning_of_chords_that_are_weaker_than_links():
    M, lines = with_chords(value=-0.5)
    assert not cla.LinePreconditioner(M, lines, 2).info.any()


def test_chords_are_left_out():
    M, lines = with_chords()
    with pytest.warns(UserWarning, match="chords"):
        P = cla.LinePreconditioner(M, lines, 2)
    r = np.sin(np.arange(20))
    assert ratio(M, lines, 2, P @ r, r) < THRESHOLD


@pytest.mark.parametrize("make", [cla.LinePreconditioner, cla.LineRelaxation])
def test_neighbours_and_zeros_are_no_chords(make):
    M, lines = with_chords()
    ring = M.copy()
    ring[2:4, 6:8] = 0
    ring[12:14, 16:18] = ring[16:18, 12:14] = 0
    make(ring, lines, 2, periodic=[True, False])
    M.data[M.data == 1e6] = 0
    make(M, lines, 2)
