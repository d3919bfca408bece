"""Factors stored in a smaller type than they are computed in, and iterative refinement."""

import pickle
from importlib.resources import files
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import LinearOperator, gmres

import compactla as cla
import reference
from cases import BATCH, exhaustive, lines, random, same_bits
from compactla.cpu import storage as cpu_storage
from compactla.gpu import arrays
from compactla.oracle import THRESHOLD
from systems import line_part, scattered

pytestmark = pytest.mark.slow

K, B = 4, 3
EPS = {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
LARGE = {"float32": 17, "float16": 9, "bfloat16": 9}  # blocks, for which devices take long to compile
PAIRS = [
    (np.dtype(kind), storage)
    for kind in (np.float32, np.float64, np.complex128)
    for storage in EPS
    if EPS[storage] > np.finfo(kind).eps
]
# Each smaller type with real and complex numbers, and with both precisions where it can be.
SELDOM = {("f", "float16"), ("D", "float32"), ("D", "bfloat16")}
stored = pytest.mark.parametrize(
    ("dtype", "storage"), [exhaustive(*pair) if (pair[0].char, pair[1]) in SELDOM else pair for pair in PAIRS]
)


def ratio(blocks, x, rhs, eps=None):
    """LAPACK's residual, in units of another machine epsilon."""
    found = reference.solve_ratio(reference.block_tridiagonal(*blocks), x, rhs)
    return found * np.finfo(x.dtype).eps / eps if eps else found


def rounded(a, storage):
    """The array as it is stored: rounded to nearest, ties to even."""
    single = a.astype(np.float32)
    if storage == "bfloat16":
        bits = single.view(np.uint32)
        lower, halfway = bits & 0xFFFF, 0x8000
        up = (lower > halfway) | ((lower == halfway) & (bits >> 16 & 1).astype(bool))
        return ((bits >> 16) + up).astype(np.uint16)
    return single.astype(storage)


@stored
def test_solves(queue, dtype, rng, storage):
    for b, nrhs in ((3, 2), (LARGE[storage], 1)):
        blocks, rhs = lines(rng, BATCH, K, b, dtype), random(rng, (BATCH, K, b, nrhs), dtype)
        T = cla.BlockTridiag(*blocks, queue=queue, storage=storage)
        assert not T.factor().any()
        x = T.solve(rhs)
        assert x.dtype == dtype
        assert 3 < ratio(blocks, x, rhs) < THRESHOLD * EPS[storage] / np.finfo(dtype).eps


def test_no_right_hand_sides(queue, dtype, rng):
    T = cla.BlockTridiag(*lines(rng, BATCH, K, B, dtype), queue=queue, storage="bfloat16")
    T.factor()
    assert T.solve(np.empty((BATCH, K, B, 0), dtype)).shape == (BATCH, K, B, 0)


@stored
def test_factors_are_rounded_to_nearest(queue, dtype, rng, storage):
    T = cla.BlockTridiag(*lines(rng, BATCH, K, B, dtype), 5, queue=queue, storage=storage)
    for a in (T.lower, T.upper):  # with halves, which go to even, and subnormal numbers
        steps = np.arange(a.size).reshape(a.shape).astype(a.dtype)
        ties = (1 + steps % 8 * EPS[storage] / 2) * 2.0 ** -(steps % 20)
        if queue is None:
            a[...] = ties
        else:
            a.set(ties.astype(a.dtype))
    T.factor()
    for full, small in zip((T.lower, T.diag, T.upper), T._lines.stored.blocks, strict=True):
        full, small = (a if queue is None else a.get() for a in (full, small))
        assert same_bits(small, rounded(full, storage))


@pytest.mark.parametrize("vlen", [1, 3, 32])
def test_vector_lengths(queue, rng, vlen):
    for nlines in (0, 1, 33):
        blocks, rhs = lines(rng, nlines, K, B, np.float64), random(rng, (nlines, K, B), np.float64)
        T = cla.BlockTridiag(*blocks, vlen=vlen, queue=queue, storage="float32")
        assert not T.factor().any()
        assert ratio(blocks, T.solve(rhs), rhs, EPS["float32"]) < THRESHOLD


@stored
def test_refinement_makes_up_for_storage(queue, dtype, rng, storage):
    for b, nrhs in ((B, 2), (LARGE[storage], 1)):
        blocks, rhs = lines(rng, BATCH, K, b, dtype), random(rng, (BATCH, K, b, nrhs), dtype)
        T = cla.BlockTridiag(*blocks, queue=queue, storage=storage, refine=8)
        T.factor()
        for _ in range(2):
            assert ratio(blocks, T.solve(rhs), rhs) < THRESHOLD


def test_each_step_of_refinement_helps(queue, rng):
    blocks, rhs = lines(rng, BATCH, K, B, np.float64), random(rng, (BATCH, K, B), np.float64)
    found = []
    for refine in range(4):
        T = cla.BlockTridiag(*blocks, queue=queue, storage="bfloat16", refine=refine)
        T.factor()
        found.append(ratio(blocks, T.solve(rhs), rhs))
    assert all(after < before / 20 for before, after in pairwise(found))


@pytest.mark.parametrize("storage", [None, "bfloat16"])
def test_refinement_makes_up_for_perturbed_pivots(queue, rng, storage):
    lower, diag, upper = lines(rng, BATCH, K, B, np.float64)
    diag[:] = diag[..., ::-1]
    diag[:, 0, 0, 0] = 0
    options = {"queue": queue, "pivots": "perturb", "pivoting": storage is not None, "storage": storage}
    T = cla.BlockTridiag(lower, diag, upper, **options, refine=8)
    assert not T.factor().any()
    assert T.report.replaced.any() == (storage is None)
    rhs = random(rng, (BATCH, K, B), np.float64)
    assert ratio((lower, diag, upper), T.solve(rhs), rhs) < THRESHOLD
    plain = cla.BlockTridiag(lower, diag, upper, **options)
    plain.factor()
    assert ratio((lower, diag, upper), plain.solve(rhs), rhs) > THRESHOLD


def test_too_large_for_float16(queue, dtype, rng):
    blocks, rhs = lines(rng, BATCH, K, B, dtype), random(rng, (BATCH, K, B), dtype)
    scale = np.where(np.arange(BATCH) == 6, 1e6, 1).astype(dtype)[:, None, None, None]
    large = [a * scale for a in blocks]
    T = cla.BlockTridiag(*large, queue=queue, storage="float16")
    with pytest.raises(OverflowError, match=r"factors of 1 lines, among them line 6.*float16 holds no more than 65504"):
        T.factor()
    others = np.arange(BATCH) != 6
    with np.errstate(all="ignore"):
        x = T.solve(rhs)[others]
    assert ratio([a[others] for a in blocks], x, rhs[others], EPS["float16"]) < THRESHOLD
    T = cla.BlockTridiag(*large, queue=queue, storage="bfloat16")
    assert not T.factor().any()
    assert ratio(large, T.solve(rhs), rhs, EPS["bfloat16"]) < THRESHOLD


def test_same_type_is_no_storage(queue, dtype, rng):
    blocks, rhs = lines(rng, BATCH, K, B, dtype), random(rng, (BATCH, K, B), dtype)
    T, same = (cla.BlockTridiag(*blocks, queue=queue, storage=name) for name in (None, np.finfo(dtype).dtype.name))
    assert np.array_equal(T.factor(), same.factor())
    assert same_bits(T.solve(rhs), same.solve(rhs))


def test_copies_where_there_are_no_conversions(monkeypatch, rng):
    """Factors from a processor that has them are refused."""
    T = cla.BlockTridiag(*lines(rng, 7, K, B, np.float64), storage="float16")
    pickled = pickle.dumps(T)
    monkeypatch.setattr(cpu_storage, "has_half", lambda: False)
    with pytest.raises(ValueError, match="storage is 'float16', must be another: the processor has no instructions"):
        pickle.loads(pickled)


@pytest.mark.parametrize("storage", EPS)
@pytest.mark.parametrize("refine", [0, 8])
def test_preconditioner(queue, rng, storage, refine):
    """Lines of several lengths, vectors of several sizes, and new values."""
    M, rows = scattered(rng, [1, 7, 3, 3, 12, 1, 5, 7, 2], 3, np.float64)
    P = cla.LinePreconditioner(2 * M, rows, queue=queue, storage=storage, refine=refine)
    P.update(M)
    for shape in (M.shape[:1], (M.shape[0], 3), M.shape[:1]):
        r = random(rng, shape, np.float64)
        x = P @ r
        found = reference.solve_ratio(line_part(M, rows, 3)[None], x, r)
        assert found < (THRESHOLD if refine else THRESHOLD * EPS[storage] / 2.0**-52)
        assert same_bits(P @ r, x)


def test_rows_on_no_line_are_left_alone(queue, rng):
    blocks = lines(rng, 4, 2, B, np.float64)
    packed = cla.BlockTridiag(*blocks, vlen=4, queue=queue)
    where = np.array([0, 2]), np.arange(8).reshape(4, 2).T + 1, 4
    options = {"queue": queue, "storage": "float32", "refine": 2}
    T = cla.BlockTridiag.from_packed(packed.lower, packed.diag, packed.upper, *where, **options)
    T.factor()
    for rows in (11, 9):
        rhs, x = random(rng, (rows, B, 1), np.float64), np.full((rows, B, 1), 7.0)
        device = [a if queue is None else arrays.upload(a, queue) for a in (rhs, x)]
        T.solve_rows(*device)
        x = x if queue is None else device[1].get()
        dense = reference.block_tridiagonal(*blocks)
        assert reference.solve_ratio(dense, x[1:9], rhs[1:9]) < THRESHOLD
        assert (x[0] == 7).all() and (x[9:] == 7).all()


@pytest.mark.parametrize(("storage", "most"), [("float32", 138), ("bfloat16", 140)])
def test_gmres_on_sherman5(queue, storage, most):
    with np.load(files("compactla") / "data" / "sherman5_b3.npz") as file:
        M = scipy.sparse.bsr_array((file["data"], file["indices"], file["indptr"]))
        P = cla.LinePreconditioner(M, file["lines"], queue=queue, storage=storage)
        A, history = LinearOperator(M.shape, lambda y: M @ (P @ y), dtype=float), []
        options = {"callback": history.append, "callback_type": "pr_norm"}
        y, _ = gmres(A, file["rhs"], rtol=1e-8, restart=50, maxiter=30, **options)
        assert np.linalg.norm(file["rhs"] - M @ (P @ y)) <= 1e-8 * np.linalg.norm(file["rhs"])
    assert 132 <= len(history) <= most


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"storage": "int8"}, ValueError, "storage is 'int8', must be None or one of 'float32', 'float16', 'bfloat16'"),
        ({"storage": np.float32}, TypeError, "storage is <class 'numpy.float32'>"),
        ({"storage": "float64"}, ValueError, "smaller than float32"),
        ({"refine": -1}, ValueError, "refine is -1"),
        ({"refine": 1.0}, TypeError, "refine is 1.0"),
    ],
)
def test_wrong_options(queue, rng, options, error, message):
    M, rows = scattered(rng, [3, 2], 3, np.float32)
    with pytest.raises(error, match=message):
        cla.BlockTridiag(*lines(rng, 5, 4, 3, np.float32), queue=queue, **options)
    with pytest.raises(error, match=message):
        cla.LinePreconditioner(M, rows, queue=queue, **options)


@pytest.mark.parametrize("options", [{"parts": 2}, {"periodic": True}, {"parts": 3, "pivots": "perturb"}])
@pytest.mark.parametrize("storage", ["float32", "bfloat16"])
def test_parts_and_rings(queue, rng, options, storage):
    (lower, diag, upper), rhs = lines(rng, 5, 20, 3, np.float64), random(rng, (5, 20, 3, 2), np.float64)
    closing = np.zeros((5, 1, 3, 3))
    if "periodic" in options:
        lower, upper = (np.concatenate([a, closing + 0.1], 1) for a in (lower, upper))
    exact = cla.BlockTridiag(lower, diag, upper, queue=queue, **options)
    small = cla.BlockTridiag(lower, diag, upper, queue=queue, storage=storage, **options)
    assert not exact.factor().any() and not small.factor().any()
    x = exact.solve(rhs)
    assert abs(small.solve(rhs) - x).max() < 20 * EPS[storage] * abs(x).max()


@pytest.mark.parametrize("options", [{}, {"parts": 2}])
def test_overflow_leaves_the_other_lines(queue, rng, options):
    (lower, diag, upper), rhs = lines(rng, 3, 12, 2, np.float64), random(rng, (3, 12, 2), np.float64)
    where = np.arange(36).reshape(3, 12)

    def matrix(scale):
        dense = np.zeros((36, 2, 36, 2))
        for q, k in np.ndindex(3, 12):
            dense[where[q, k], :, where[q, k]] = diag[q, k] * (scale if q == 0 else 1)
            if k < 11:
                dense[where[q, k + 1], :, where[q, k]] = lower[q, k]
                dense[where[q, k], :, where[q, k + 1]] = upper[q, k]
        return scipy.sparse.bsr_array(dense.reshape(72, 72), blocksize=(2, 2))

    P, M = cla.LinePreconditioner(matrix(1), where, queue=queue, storage="float16", **options), matrix(1e-9)
    with pytest.raises(OverflowError, match="factors of 1 lines, among them line 0, are"):
        P.update(M)
    x = P.solve(rhs.reshape(72)).reshape(3, 24)
    for q in (1, 2):
        expected = np.linalg.solve(M.toarray()[24 * q : 24 * q + 24, 24 * q : 24 * q + 24], rhs[q].reshape(24))
        assert abs(x[q] - expected).max() < 0.01 * abs(expected).max()
    assert not P.info.any() and P.report.info.tolist() == P.info.tolist()
