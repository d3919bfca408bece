"""Sweeps along lines against the same iteration with dense matrices, and adjoints of preconditioners."""

import copy
import pickle
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse import bsr_array
from scipy.sparse.linalg import cg, gmres

import compactla as cla
from cases import here, random, same_bits, there
from systems import shipped

# Matrices at random have chords, which sweeps have to take into account like all that is on no line.
pytestmark = pytest.mark.filterwarnings("ignore:lines have chords")

B, NROW = 3, 11
LINES = [[4, 1, 7], [0, 2], [3], [10, 9, 8, 6, 5]]


def sparse(rng, dtype, symmetric=False, density=0.35):
    """A matrix with dominant diagonal blocks, its blocks in places that differ from those of its transpose."""
    there = rng.random((NROW, NROW)) < density
    there |= np.eye(NROW, dtype=bool)
    dense = np.where(np.kron(there, np.ones((B, B))), random(rng, (NROW * B, NROW * B), dtype), 0)
    if symmetric:
        dense = dense + dense.conj().T
    dense += 3 * NROW * np.eye(NROW * B)
    M = bsr_array(dense.astype(dtype), blocksize=(B, B))
    M.eliminate_zeros()
    return M


def lines_of(dense, periodic=False):
    """The matrix of the lines."""
    kept = np.zeros((NROW, NROW), bool)
    for line in LINES:
        kept[line, line] = True
        kept[line[1:], line[:-1]] = kept[line[:-1], line[1:]] = True
        if periodic and len(line) > 2:
            kept[line[0], line[-1]] = kept[line[-1], line[0]] = True
    return np.where(np.kron(kept, np.ones((B, B), bool)), dense, 0)


def colours(dense):
    """Block rows of the colours: every line has the first that none of those it is coupled to has."""
    coupled = abs(dense).reshape(NROW, B, NROW, B).sum((1, 3)) > 0
    coupled |= coupled.T
    found = []
    for i, line in enumerate(LINES):
        others = {found[j] for j in range(i) if coupled[np.ix_(line, LINES[j])].any()}
        found.append(min(set(range(len(LINES))) - others))
    return [np.concatenate([LINES[i] for i in range(len(LINES)) if found[i] == c]) for c in range(max(found) + 1)]


def sweeps(dense, r, x, scheme, count, damping, periodic=False):
    T = lines_of(dense, periodic)
    turns = [np.arange(NROW)] if scheme == "jacobi" else colours(dense)
    turns = turns + turns[::-1] if scheme == "symmetric" else turns
    for _ in range(count):
        for rows in turns:
            e = (rows[:, None] * B + np.arange(B)).ravel()
            x = x.copy()
            new = np.linalg.solve(T[np.ix_(e, e)], r[e] - (dense - T)[e] @ x)
            x[e] = (1 - damping) * x[e] + damping * new
    return x


@pytest.mark.parametrize("damping", [1, 0.7, 1.2])
@pytest.mark.parametrize("scheme", ["jacobi", "gauss-seidel", "symmetric"])
@pytest.mark.parametrize("count", [1, 3])
def test_sweeps(queue, dtype, rng, scheme, count, damping):
    M = sparse(rng, dtype)
    dense, r, x0 = M.toarray(), random(rng, (NROW * B,), dtype), random(rng, (NROW * B,), dtype)
    wide = np.result_type(dtype, np.float64)
    S = cla.LineRelaxation(M, LINES, queue=queue, scheme=scheme, sweeps=count, damping=damping)
    assert S.ncolours == (1 if scheme == "jacobi" else len(colours(dense))) and not S.info.any()
    for start in (None, x0):
        begin = np.zeros_like(x0) if start is None else start
        expected = sweeps(dense.astype(wide), r.astype(wide), begin.astype(wide), scheme, count, damping)
        x = S.solve(r, start)
        assert x.dtype == dtype and abs(x - expected).max() < 500 * np.finfo(dtype).eps * abs(expected).max()
        on_device = S.solve(there(r, queue), start if start is None else there(start, queue))
        assert same_bits(here(on_device), x)
    assert S.sweeps_made == count


@pytest.mark.parametrize("form", ["csr", "bsr"])
def test_vectors_of_all_kinds(queue, rng, form):
    M, scheme = sparse(rng, np.float64).asformat(form), {"scheme": "gauss-seidel", "sweeps": 2}
    S = cla.LineRelaxation(M, LINES, B, queue=queue, **scheme)
    r = random(rng, (NROW * B, 4), np.complex128)
    expected = sweeps(M.toarray(), r, np.zeros_like(r), "gauss-seidel", 2, 1)
    assert np.allclose(S.solve(r), expected, rtol=1e-12, atol=1e-14)
    assert np.allclose(S.solve(r, r), sweeps(M.toarray(), r, r, "gauss-seidel", 2, 1), rtol=1e-12, atol=1e-14)
    assert same_bits(S @ r[:, 0].real, S.solve(r[:, 0].real.copy()))
    assert S.solve(r[:, :0]).shape == (NROW * B, 0)
    assert same_bits(S.solve(r[:, 1].real.astype(np.float32)), S.solve(r[:, 1].real.astype(np.float32).astype(float)))


def test_rings(queue, rng):
    M, r = sparse(rng, np.float64, density=1), random(rng, (NROW * B,), np.float64)
    S = cla.LineRelaxation(M, LINES, queue=queue, scheme="gauss-seidel", sweeps=2, periodic=True)
    expected = sweeps(M.toarray(), r, np.zeros_like(r), "gauss-seidel", 2, 1, periodic=True)
    assert np.allclose(S.solve(r), expected, rtol=1e-12, atol=1e-14)


def test_new_values(queue, rng):
    M, r = sparse(rng, np.float64), random(rng, (NROW * B,), np.float64)
    options = {"queue": queue, "scheme": "symmetric", "tol": 1e-3, "sweeps": 4}
    S = cla.LineRelaxation(M, LINES, **options)
    S.rmatvec(r)
    M.data *= rng.uniform(0.5, 1, M.data.shape)
    M.data[0, 0] += 100
    assert not S.update(M).any()
    fresh = cla.LineRelaxation(M, LINES, **options)
    assert same_bits(S.solve(r), fresh.solve(r)) and same_bits(S.rmatvec(r), fresh.rmatvec(r))
    other = sparse(rng, np.float64, density=1)
    with pytest.raises(ValueError, match="another sparsity pattern"):
        S.update(other)
    with pytest.raises(TypeError, match="dtype is float32"):
        S.update(M.astype(np.float32))
    assert same_bits(S.solve(r), fresh.solve(r))


def test_info_in_the_order_of_lines(queue, rng):
    M = sparse(rng, np.float64)
    M.data[np.flatnonzero((np.repeat(np.arange(NROW), np.diff(M.indptr)) == 3) & (M.indices == 3))] = 0
    S = cla.LineRelaxation(M, LINES, queue=queue, scheme="gauss-seidel")
    assert S.info.tolist() == [0, 0, 1, 0]


def test_stops_on_the_norm(queue, rng):
    M, r = sparse(rng, np.float64), random(rng, (NROW * B, 2), np.float64)
    for scheme in ("jacobi", "gauss-seidel"):
        S = cla.LineRelaxation(M, LINES, queue=queue, scheme=scheme, sweeps=100, tol=1e-9)
        x = S.solve(r)
        made = S.sweeps_made
        residual = np.linalg.norm(r - M @ x, axis=0) / np.linalg.norm(r, axis=0)
        assert 2 < made < 100 and (residual <= 1.01e-9).all()
        fewer = cla.LineRelaxation(M, LINES, queue=queue, scheme=scheme, sweeps=made - 1)
        residual = np.linalg.norm(r - M @ fewer.solve(r), axis=0) / np.linalg.norm(r, axis=0)
        assert residual.max() > 1e-9
    S = cla.LineRelaxation(M, LINES, queue=queue, sweeps=5, tol=1e-9)
    assert not S.solve(0 * r).any() and S.sweeps_made == 1


@pytest.mark.parametrize("scheme", ["jacobi", "gauss-seidel", "symmetric"])
def test_adjoint_of_sweeps(queue, dtype, rng, scheme):
    M = sparse(rng, dtype)
    S = cla.LineRelaxation(M, LINES, queue=queue, scheme=scheme, sweeps=2, damping=0.9)
    eye = np.eye(NROW * B, dtype=dtype)
    operator, scale = S.matmat(eye), 500 * np.finfo(dtype).eps
    assert abs(S.H.matmat(eye) - operator.conj().T).max() < scale * abs(operator).max()
    r = random(rng, (NROW * B,), dtype)
    assert np.allclose(S.rmatvec(r), operator.conj().T @ r, rtol=scale, atol=scale)
    assert np.allclose(S.T.matvec(r), operator.T @ r, rtol=scale, atol=scale)
    assert np.allclose(S.H.H.matvec(r), operator @ r, rtol=scale, atol=scale)
    hermitian = cla.LineRelaxation(sparse(rng, dtype, symmetric=True), LINES, queue=queue, scheme=scheme, sweeps=2)
    operator = hermitian.matmat(eye)
    if scheme != "gauss-seidel":
        assert abs(operator - operator.conj().T).max() < scale * abs(operator).max()


@pytest.mark.parametrize("form", ["csr", "bsr"])
def test_adjoint_of_lines(queue, dtype, rng, form):
    M = sparse(rng, dtype).asformat(form)
    P, r = cla.LinePreconditioner(M, LINES, B, queue=queue), random(rng, (NROW * B, 3), dtype)
    expected = np.linalg.solve(lines_of(M.toarray()).conj().T, r)
    scale = 500 * np.finfo(dtype).eps
    assert abs(P.rmatmat(r) - expected).max() < scale * abs(expected).max()
    assert abs(P.rmatvec(r[:, 0]) - expected[:, 0]).max() < scale * abs(expected).max()
    M.data = M.data + np.asarray(0.5 * rng.random(M.data.shape), dtype)
    P.update(M if queue is None else there(M.data, queue))
    expected = np.linalg.solve(lines_of(M.toarray()).conj().T, r)
    assert abs(P.rmatmat(r) - expected).max() < scale * abs(expected).max()


def test_as_preconditioners(queue):
    M, rhs, lines = shipped()
    counts = []
    for scheme, count in (("jacobi", 1), ("jacobi", 2), ("gauss-seidel", 1), ("symmetric", 1)):
        S = cla.LineRelaxation(M, lines, queue=queue, scheme=scheme, sweeps=count)
        norms = []
        history = {"callback": norms.append, "callback_type": "pr_norm"}
        x, status = gmres(M, rhs, M=S, restart=50, maxiter=10, rtol=1e-8, **history)
        assert status == 0 and np.linalg.norm(rhs - M @ x) < 1e-7 * np.linalg.norm(rhs)
        counts.append(len(norms))
    assert counts[0] > counts[2] > counts[3] and counts[0] > counts[1]


def test_conjugate_gradients(queue, rng):
    M, r = sparse(rng, np.float64, symmetric=True), random(rng, (NROW * B,), np.float64)
    S = cla.LineRelaxation(M, LINES, queue=queue, scheme="symmetric", damping=1.1)
    x, status = cg(M, r, M=S, rtol=1e-10, maxiter=40)
    assert status == 0 and np.allclose(M @ x, r)


def test_bad_arguments(queue, rng):
    M = sparse(rng, np.float64)

    def refuse(error, message, **options):
        with pytest.raises(error, match=message):
            cla.LineRelaxation(M, LINES, queue=queue, **options)

    refuse(ValueError, "scheme is 'sor', must be one of 'jacobi'", scheme="sor")
    refuse(ValueError, "sweeps is 0, must be at least 1", sweeps=0)
    refuse(TypeError, "sweeps is 1.5, must be an integer", sweeps=1.5)
    refuse(ValueError, "damping is 0, must be positive", damping=0)
    refuse(ValueError, "damping is nan, must be positive", damping=np.nan)
    refuse(ValueError, "damping is 1(0*), must be positive and in the range of float64", damping=10**400)
    refuse(ValueError, "tol is 1(0*), must be positive and in the range of float64", tol=10**400)
    with pytest.raises(ValueError, match=r"damping is 1e\+39, must be positive and in the range of float32"):
        cla.LineRelaxation(sparse(rng, np.float32), LINES, queue=queue, damping=1e39)
    refuse(TypeError, "damping is '1', must be a real number", damping="1")
    refuse(TypeError, "tol is 1j, must be a real number", tol=1j)
    refuse(TypeError, "unexpected keyword argument 'sweep'", sweep=2)
    with pytest.raises(ValueError, match="block row 10 is on no line"):
        cla.LineRelaxation(M, [[*range(10)]], queue=queue)
    S, r = cla.LineRelaxation(M, LINES, queue=queue), random(rng, (NROW * B,), np.float64)
    with pytest.raises(ValueError, match=r"x0 has shape \(32,\), must be \(33,\)"):
        S.solve(r, r[1:])
    with pytest.raises(ValueError, match=r"x0 is a ndarray .*, must be of the kind and shape of rhs"):
        S.solve(r, r[:, None])
    with pytest.raises(TypeError, match="x0: dtype is <U1, must be numeric"):
        S.solve(r, np.full(NROW * B, "a"))


@pytest.mark.parametrize("scheme", ["jacobi", "gauss-seidel"])
def test_failures_are_told_in_the_order_of_lines(queue, rng, scheme):
    M = sparse(rng, np.float64)
    bad = M.copy()
    diagonal = np.repeat(np.arange(NROW), np.diff(M.indptr)) == M.indices
    bad.data[diagonal & (M.indices == 3)] = 0
    S = cla.LineRelaxation(M, LINES, queue=queue, scheme=scheme, sweeps=2, pivots="raise", diagnose=True)
    with pytest.raises(cla.PivotError, match="zero pivots on 1 of 4 lines: line 2: pivot 0 of block 0") as raised:
        S.update(bad)
    assert raised.value.report.info.tolist() == S.info.tolist() == S.report.info.tolist() == [0, 0, 1, 0]
    assert (S.report.growth[[0, 1, 3]] > 0).all()
    anyway = cla.LineRelaxation(bad, LINES, queue=queue, scheme=scheme, sweeps=2, diagnose=True)
    r = random(rng, (NROW * B,), np.float64)
    assert same_bits(S.solve(r), anyway.solve(r))
    with pytest.raises(cla.PivotError, match="line 2: pivot 0"):
        cla.LineRelaxation(bad, LINES, queue=queue, scheme=scheme, pivots="raise")
    assert not S.update(M).any()


@pytest.mark.parametrize("scheme", ["jacobi", "gauss-seidel"])
def test_overflow_is_told_in_the_order_of_lines(queue, rng, scheme):
    M = sparse(rng, np.float64)
    large = M.copy()
    large.data[np.repeat(np.arange(NROW), np.diff(M.indptr)) == 2] *= 1e-9  # and its inverse is large
    with pytest.raises(OverflowError, match="factors of 1 lines, among them line 1, are as large"):
        cla.LineRelaxation(large, LINES, queue=queue, scheme=scheme, storage="float16")


def test_norms_of_any_size(queue):
    n = 24
    M = np.kron(np.diag(np.ones(11), 1) + np.diag(np.ones(11), -1) + 4 * np.eye(12), np.eye(2))
    lines = [[i, i + 1] for i in range(0, 12, 2)]
    for dtype, scales in ((np.float32, (1e-24, 1, 1e20)), (np.float64, (1e-200, 1, 1e200))):
        A = bsr_array(M.astype(dtype), blocksize=(2, 2))
        made = set()
        for scale in scales:
            S = cla.LineRelaxation(A, lines, queue=queue, scheme="gauss-seidel", sweeps=100, tol=1e-5)
            x = S.solve((M @ np.ones(n) * scale).astype(dtype)) / scale
            assert np.allclose(x, 1, rtol=1e-4)
            made.add(S.sweeps_made)
        assert len(made) == 1 and 2 < made.pop() < 20


@pytest.mark.parametrize("scheme", ["jacobi", "gauss-seidel"])
def test_starts_and_arrays_for_solutions(queue, rng, scheme):
    M = sparse(rng, np.float64)
    S = cla.LineRelaxation(M, LINES, queue=queue, scheme=scheme, sweeps=2)
    rhs, x0 = random(rng, (2, M.shape[0]), np.float64)
    x = S.solve(rhs, x0)
    for where in {None, queue}:
        r, start, out = (there(a, where) for a in (rhs, x0, x0))
        assert S.solve(r, start, out=out) is out and same_bits(here(out), x)
        assert same_bits(here(r), rhs) and same_bits(here(start), x0)
        assert S.solve(r, start, out=start) is start and same_bits(here(start), x)
        start = there(x0, where)
        assert S.solve(r, start, out=r) is r and same_bits(here(r), x) and same_bits(here(start), x0)
        long = there(np.zeros(len(rhs) + 1), where)
        with pytest.raises(ValueError, match="out shares memory with x0, must be the same or apart from it"):
            S.solve(there(rhs, where), long[1:], out=long[:-1])
        assert not here(long).any()


def test_complex_starts(queue, rng):
    M, r, x0 = sparse(rng, np.float64), random(rng, (NROW * B,), np.float64), random(rng, (NROW * B,), np.complex128)
    x = cla.LineRelaxation(M, LINES, queue=queue, sweeps=2).solve(r, x0)
    assert np.allclose(x, sweeps(M.toarray(), r, x0, "jacobi", 2, 1), rtol=1e-12, atol=1e-14)


def test_lines_of_all_kinds(rng):
    M, r = sparse(rng, np.float64), random(rng, (NROW * B,), np.float64)
    for make in (cla.LinePreconditioner, cla.LineRelaxation):
        mine = [np.array(line) for line in LINES]
        expected = make(M, LINES).rmatvec(r)
        P = make(M, (line for line in mine))
        for line in mine:
            line[:] = 0
        assert same_bits(P.rmatvec(r), expected)
    for periodic, error in (("a", TypeError), (1, TypeError), ([True, False], ValueError)):
        with pytest.raises(error, match="periodic"):
            cla.LineRelaxation(M, LINES, periodic=periodic)


def test_adjoint_of_a_changed_matrix(rng):
    M, r = sparse(rng, np.float64), random(rng, (NROW * B,), np.float64)
    P = cla.LinePreconditioner(M, LINES)
    S = cla.LineRelaxation(M, LINES)
    expected = S.rmatvec(r)
    fresh = cla.LineRelaxation(M, LINES)
    M.data *= 2
    with pytest.raises(ValueError, match="the matrix was changed since it was given, update must be called"):
        P.rmatvec(r)
    assert same_bits(fresh.rmatvec(r), expected)  # which has copies
    P.update(M)
    assert np.allclose(P.rmatvec(r), expected / 2)


@pytest.mark.parametrize("damping", [1, 0.7])
def test_work_arrays_are_not_copied(rng, damping):
    """A pickle is as large after a solve as before."""
    M, r = sparse(rng, np.float64), random(rng, (NROW * B, 50), np.float64)
    S = cla.LineRelaxation(M, LINES, scheme="gauss-seidel", damping=damping)
    size = len(pickle.dumps(S, 5))
    expected = S @ r
    data = pickle.dumps(S, 5)
    assert len(data) == size
    assert same_bits(pickle.loads(data) @ r, expected)
    assert same_bits(copy.deepcopy(S) @ r, expected)


def test_sweeps_allocate_no_vectors(rng):
    """NumPy allocates nothing but the result while there is work space."""
    M = scipy.sparse.eye_array(30000, format="csr").tobsr((3, 3))
    S = cla.LineRelaxation(M, np.arange(10000).reshape(-1, 10), sweeps=3, damping=0.7)
    x = S @ np.ones(30000)
    tracemalloc.start()
    S @ x
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.5 * x.nbytes


def test_adjoint_from_several_threads(queue, rng):
    M, r = sparse(rng, np.float64), random(rng, (NROW * B,), np.float64)
    P = cla.LinePreconditioner(M, LINES, queue=queue)
    with ThreadPoolExecutor(4) as pool:
        for scale in (1, 2, 4):
            P.update(bsr_array((M.data * scale, M.indices, M.indptr)))
            found = list(pool.map(P.rmatvec, [r] * 8))
            assert all(same_bits(x, found[0]) for x in found)
            assert np.allclose(found[0] * scale, np.linalg.solve(lines_of(M.toarray()).T, r))
