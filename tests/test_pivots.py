"""Lines of blocks whose pivots are watched: what is reported, and what is done about small ones."""

import pickle

import numpy as np
import pytest
import scipy.sparse

import compactla as cla
import reference
from cases import BATCH, in_turns, lines, make_singular, random, same_bits
from compactla.oracle import THRESHOLD
from compactla.pivots import Report
from systems import line_part, scattered

pytestmark = pytest.mark.slow

WATCHING = {
    "diagnose": {"diagnose": True},
    "perturb": {"pivots": "perturb"},
    "shift": {"pivots": "shift"},
    "pivoting": {"pivoting": True},
    "perturb pivoting": {"pivots": "perturb", "pivoting": True},
}
K, B = 4, 3
SIZES = [1, 5, 17, 33]  # kernels are for a size and for each way of watching
watching = pytest.mark.parametrize("options", WATCHING.values(), ids=WATCHING)


def oracle(options):
    return {name: value for name, value in options.items() if name != "diagnose"}


def hard_lines(rng, b, dtype):
    """Lines whose pivots are of all sizes."""
    lower, diag, upper = lines(rng, BATCH, K, b, dtype)
    return lower, diag - ((6 * b - 2) * np.eye(b)).astype(dtype), upper


def zero_pivots(rng, nlines, K, b, dtype):
    """Well conditioned blocks, permuted differently in each line, with zeros on their diagonals."""
    lower, diag, upper = lines(rng, nlines, K, b, dtype)
    lower[:], upper[:] = lower / 4, upper / 4
    for q in range(nlines):
        diag[q] = diag[q][:, rng.permutation(b)]
        for k in range(0, K, 2):
            np.fill_diagonal(diag[q, k], 0)
            if b > 1:
                diag[q, k] += (6 * b * np.roll(np.eye(b), 1 + q % (b - 1), 0)).astype(dtype)
    return lower, diag, upper


def ratio(blocks, x, rhs, good=slice(None)):
    dense = reference.block_tridiagonal(*(a[good] for a in blocks))
    return reference.solve_ratio(dense, x[good], rhs[good])


def check_report(report, matrices, b, options, dtype):
    """Hold a report against the oracle, line by line."""
    expected = [reference.watched_lu(T, b, **oracle(options)) for T in matrices]
    info, smallest, growth, replaced = (np.array(column) for column in zip(*expected, strict=True))
    tolerance = 1e4 * np.finfo(dtype).eps * growth.astype(float)
    assert np.array_equal(report.info, info)
    assert np.array_equal(report.replaced, replaced)
    scale = np.array([np.abs(T).max() for T in matrices])
    assert (np.abs(report.growth / growth - 1) < tolerance).all()
    assert (np.abs(report.smallest - smallest) < tolerance * scale).all()


@watching
@pytest.mark.parametrize(("b", "dtype"), in_turns(SIZES, always=[5, 17]), ids=str)
def test_reports_are_those_of_the_oracle(queue, dtype, rng, options, b):
    blocks = hard_lines(rng, b, dtype)
    T = cla.BlockTridiag(*blocks, queue=queue, **options)
    info = T.factor()
    check_report(T.report, reference.block_tridiagonal(*blocks), b, options, dtype)
    assert info is T.report.info
    assert options.get("pivoting") or b == 1 or T.report.growth.max() > 1.5


@watching
@pytest.mark.parametrize(("b", "dtype"), in_turns(SIZES, always=[5, 17]), ids=str)
def test_watched_lines_are_solved(queue, dtype, rng, options, b):
    blocks, rhs = lines(rng, BATCH, K, b, dtype), random(rng, (BATCH, K, b, 2), dtype)
    T = cla.BlockTridiag(*blocks, queue=queue, **options)
    assert not T.factor().any()
    x = T.solve(rhs)
    error = max(ratio(blocks, x[..., j], rhs[..., j]) for j in range(2))
    shifted = options.get("pivots") == "shift"
    assert error < (1 / np.sqrt(np.finfo(dtype).eps) if shifted else THRESHOLD)


@pytest.mark.parametrize(("b", "dtype"), in_turns([2, 5, 9, 33], always=[2, 33]), ids=str)
def test_row_swaps_within_blocks(queue, dtype, rng, b):
    blocks, rhs = zero_pivots(rng, BATCH, K, b, dtype), random(rng, (BATCH, K, b, 2), dtype)
    assert cla.BlockTridiag(*blocks, queue=queue).factor().all()
    T = cla.BlockTridiag(*blocks, queue=queue, pivoting=True)
    assert not T.factor().any()
    x = T.solve(rhs)
    for j in range(2):
        assert ratio(blocks, x[..., j], rhs[..., j]) < THRESHOLD
    assert same_bits(pickle.loads(pickle.dumps(T)).solve(rhs), x) if queue is None else True


def test_row_swaps_are_those_of_lapack(queue, dtype, rng):
    """The pivots of one block are those of partial pivoting."""
    b = 5
    diag = random(rng, (BATCH, 1, b, b), dtype)
    T = cla.BlockTridiag(diag[:, :0], diag, diag[:, :0], queue=queue, pivoting=True)
    assert not T.factor().any()
    check_report(T.report, diag[:, 0], b, {"pivoting": True}, dtype)


each_way = pytest.mark.parametrize(("watched", "dtype"), in_turns(["report", *WATCHING]), ids=str)


@each_way
def test_a_singular_block_stays_on_its_line(queue, dtype, rng, watched):
    options = WATCHING.get(watched, {})
    blocks, rhs = lines(rng, BATCH, K, B, dtype), random(rng, (BATCH, K, B), dtype)
    good = cla.BlockTridiag(*blocks, 4, queue=queue, **options)
    good.factor()
    expected, others = good.solve(rhs), np.arange(BATCH) != 6
    make_singular(blocks[1][6, 2], 1)
    blocks[0][6, 1, 1] = 0
    T = cla.BlockTridiag(*blocks, 4, queue=queue, **options)
    info = T.factor()
    assert same_bits(T.solve(rhs)[others], expected[others])
    if options.get("pivots") in ("perturb", "shift") or options.get("pivoting"):
        assert not info.any()
    else:
        assert np.array_equal(info, np.where(others, 0, 1 + 2 * B + 1))
        assert np.array_equal(T.report.block, np.where(others, -1, 2))
        assert np.array_equal(T.report.pivot, np.where(others, -1, 1))
    if "pivots" in options and not options.get("pivoting"):
        assert np.array_equal(T.report.replaced, np.where(others | (options["pivots"] == "shift"), 0, 1))
        assert T.report.smallest[6] == 0


@each_way
def test_a_block_of_zeros(queue, dtype, rng, watched):
    options = WATCHING.get(watched, {})
    lower, diag, upper = lines(rng, BATCH, K, B, dtype)
    diag[6, 2], lower[6, 1], upper[6, 2] = 0, 0, 0
    T = cla.BlockTridiag(lower, diag, upper, 4, queue=queue, **options)
    replaced = options.get("pivots") in ("perturb", "shift")
    assert np.array_equal(T.factor(), np.where(np.arange(BATCH) == 6, 0 if replaced else 2 * B + 1, 0))
    x = T.solve(np.ones((BATCH, K, B), dtype))
    if options:
        assert np.array_equal(T.report.replaced, (np.arange(BATCH) == 6) * 3 * (options.get("pivots") == "perturb"))
        assert np.isfinite(x).all()


def test_pivots_too_small_to_be_inverted(queue, dtype, rng):
    lower, diag, upper = lines(rng, BATCH, K, B, dtype)
    diag[3, 0] = np.eye(B) * np.finfo(dtype).smallest_subnormal
    diag[3, 0, 1, 1] = 1
    T = cla.BlockTridiag(0 * lower, diag, upper, 4, queue=queue, pivots="perturb")
    assert not T.factor().any()
    assert T.report.replaced.tolist() == [2 if q == 3 else 0 for q in range(BATCH)]
    assert np.isfinite(T.solve(np.ones((BATCH, K, B), dtype))).all()


def test_raise(queue, dtype, rng):
    blocks, rhs = lines(rng, BATCH, K, B, dtype), random(rng, (BATCH, K, B), dtype)
    make_singular(blocks[1][6, 0], 1)
    T = cla.BlockTridiag(*blocks, 4, queue=queue, pivots="raise")
    with pytest.raises(np.linalg.LinAlgError, match="1 of 11 lines: line 6: pivot 1 of block 0") as caught:
        T.factor()
    assert isinstance(caught.value, cla.PivotError) and same_bits(caught.value.report.info, T.info)
    assert same_bits(pickle.loads(pickle.dumps(caught.value)).report.info, T.info)
    assert T.info.tolist() == [2 if q == 6 else 0 for q in range(BATCH)]
    assert ratio(blocks, T.solve(rhs), rhs, np.arange(BATCH) != 6) < THRESHOLD


def test_nobody_who_does_not_ask_is_told_more(rng):
    T = cla.BlockTridiag(*lines(rng, BATCH, K, B, np.float64))
    assert T.report is None
    T.factor()
    assert (T.report.smallest, T.report.growth, T.report.replaced) == (None, None, None)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
@watching
def test_preconditioner(queue, rng, options, scale):
    """The report leaves out padding, which is made of ones, and has lines in the user's order."""
    M, rows = scattered(rng, [1, 7, 3, 3, 12, 1, 5, 7, 2], 3, np.float64)
    M.data *= scale
    P = cla.LinePreconditioner(M, rows, vlen=4, queue=queue, **options)
    dense, order = line_part(M, rows, 3), [np.add.outer(3 * line, np.arange(3)).ravel() for line in rows]
    check_report(P.report, [dense[np.ix_(line, line)] for line in order], 3, options, np.float64)


def test_preconditioner_with_a_bad_line(queue, rng):
    M, rows = scattered(rng, [1, 7, 3, 3, 12], 3, np.float64)
    r, good = random(rng, M.shape[:1], np.float64), M.copy()
    P = cla.LinePreconditioner(M, rows, queue=queue, pivots="raise")
    expected = P @ r
    place = M.indptr[rows[3][0]] + np.flatnonzero(M.indices[M.indptr[rows[3][0]] :] == rows[3][0])[0]
    M.data[place] = 0
    with pytest.raises(cla.PivotError, match="line 3: pivot 0 of block 0"):
        P.update(M)
    assert P.report.block.tolist() == [-1, -1, -1, 0, -1]
    others = np.concatenate([rows[q] for q in (0, 1, 2, 4)])
    with np.errstate(all="ignore"):
        assert same_bits((P @ r).reshape(-1, 3)[others], expected.reshape(-1, 3)[others])
    P.update(good)
    assert same_bits(P @ r, expected)
    with pytest.raises(cla.PivotError, match="line 3"):
        cla.LinePreconditioner(M, rows, queue=queue, pivots="raise")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"pivots": "swap"}, ValueError, "pivots is 'swap', must be one of 'report', 'raise'"),
        ({"pivots": None}, ValueError, "pivots is None"),
        ({"pivoting": "yes"}, TypeError, "pivoting is 'yes'"),
        ({"diagnose": 1}, TypeError, "diagnose is 1"),
    ],
)
def test_wrong_options(rng, options, error, message):
    M, rows = scattered(rng, [3, 2], 3, np.float64)
    with pytest.raises(error, match=message):
        cla.BlockTridiag(*lines(rng, 5, 4, 3, np.float64), **options)
    with pytest.raises(error, match=message):
        cla.LinePreconditioner(M, rows, **options)


def test_reports_of_no_lines():
    M = scipy.sparse.csr_array((0, 0))
    made = (make(M, [], 2, diagnose=True).report for make in (cla.LinePreconditioner, cla.LineRelaxation))
    for report in (Report.of(np.zeros(0, np.int64), 3), *made):
        assert report.info.shape == report.block.shape == report.pivot.shape == (0,)


def test_no_lines(queue):
    diag = np.ones((0, 4, 3, 3))
    for options in ({"diagnose": True}, {"pivoting": True}, {"pivots": "perturb"}):
        T = cla.BlockTridiag(diag[:, :3], diag, diag[:, :3], queue=queue, **options)
        assert T.factor().shape == T.report.smallest.shape == (0,)


def moved(T, tiny):
    """A matrix whose pivots are those of T moved away from zero by so much."""
    (U,), T = reference.widen(T), T.copy()
    for k in range(len(T)):
        away = -tiny if U[k, k].real < 0 else tiny
        T[k, k] += away
        U[k, k] += away
        U[k + 1 :, k] /= U[k, k]
        U[k + 1 :, k + 1 :] -= np.outer(U[k + 1 :, k], U[k, k + 1 :])
    return T


@pytest.mark.parametrize("more", [{}, {"parts": 1, "storage": "float16"}, {"pivots": "raise"}], ids=str)
def test_pivots_that_move_by_a_fixed_amount(queue, dtype, rng, more):
    blocks, rhs = lines(rng, BATCH, K, B, dtype), random(rng, (BATCH, K, B), dtype)
    make_singular(blocks[1][4, 0], 1)
    blocks[1][6, 3], blocks[0][6, 2] = 0, 0
    T = cla.BlockTridiag(*blocks, queue=queue, tiny=0.5, **more)
    assert not T.factor().any() and T.report.smallest[6] == 0
    dense = np.array([moved(A, 0.5) for A in reference.block_tridiagonal(*blocks)])
    assert reference.solve_ratio(dense, T.solve(rhs), rhs) < (1e14 if "storage" in more else THRESHOLD)


def test_amounts_that_are_refused(rng):
    blocks = lines(rng, 2, K, B, np.float64)
    wrong = (
        {"tiny": -1},
        {"tiny": np.nan},
        {"tiny": 1j},
        {"tiny": 1, "pivots": "shift"},
        {"tiny": 1, "pivots": "perturb"},
    )
    for options in wrong:
        with pytest.raises((ValueError, TypeError), match="tiny is"):
            cla.BlockTridiag(*blocks, **options)
