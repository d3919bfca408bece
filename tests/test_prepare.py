"""Calls that are prepared do what the functions do, and nothing before that."""

import gc
import pickle
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse

import compactla as cla
import rows
from cases import exhaustive, here, lines, random, same_bits, slow, there
from compactla import linalg
from compactla.calls.plans import Plans
from compactla.cpu.threads import sharing
from rows import ROUTINES, all_same, known, ones, operands, own, routine
from systems import scattered


def contents(x):
    return x.unpack() if isinstance(x, cla.Pack) else x


@pytest.mark.parametrize("name", [name if name in rows.MODELS else slow(name) for name in ROUTINES])
def test_routines(name, queue, rng, monkeypatch):
    """Every routine gives the same bits, to the same operands; nothing is written before the first call."""
    row, function = routine.named(name), rows.function

    def prepared(name):
        def call(*args, **how):
            before = [contents(x) for x in args]
            run = cla.prepare(function(name), *args, **how)
            assert all(map(same_bits, map(contents, args), before))
            return run()

        return call

    given = operands(name, rng, known(row), own(name), **ones(row))
    expected = rows.results(name, given, queue=queue, **ones(row))
    monkeypatch.setattr(rows, "function", prepared)
    assert all_same(rows.results(name, given, queue=queue, **ones(row)), expected)


def test_what_is_read_by_each_call(queue, rng):
    """Packs and arrays of matrices; numbers are those that there were."""
    a, b = random(rng, (2, 9, 3, 3), np.float64)
    A, B, C = cla.pack(a, queue=queue), cla.pack(b, queue=queue), cla.Pack.zeros(9, 3, 3, queue=queue)
    alpha = np.full(9, 2.0)
    product, scaled = cla.prepare(cla.gemm, A, B, C, beta=1), cla.prepare(cla.scal, alpha, C)
    for _ in range(3):
        assert product() is C
    alpha[:] = 7
    assert scaled() is C
    assert np.allclose(C.unpack(), 6 * a @ b)
    cla.pack(-b, out=B)
    cla.scal(0, C)
    product()
    assert same_bits(C.unpack(), cla.gemm(A, B, cla.Pack.zeros(9, 3, 3, queue=queue)).unpack())


def test_one_matrix_for_all(rng):
    """One matrix for all can be prepared, even if it has to be copied to be read."""
    a, B, C = random(rng, (6, 6), np.float64), cla.pack(random(rng, (9, 3, 3), np.float64)), cla.Pack.zeros(9, 3, 3)
    for common in (a[:3, :3].copy(), a[::2, ::2]):
        run = cla.prepare(cla.gemm, common, B, C)
        common *= 2
        run()
        assert same_bits(C.unpack(), cla.gemm(common, B, cla.Pack.zeros(9, 3, 3)).unpack())


def test_info(queue, rng):
    """A prepared call has one array for info, or the caller's, which holds that of the last run."""
    a = random(rng, (11, 3, 3), np.float64)
    a[4, 0, 0] = 0
    A = cla.pack(a, queue=queue)
    given = there(np.full(11, 9, np.int64 if queue is None else np.int32), queue)
    run, other = cla.prepare(cla.getrfnp, A), cla.prepare(cla.getrfnp, A, info=given)
    assert (here(given) == 9).all()
    info = run()
    assert info.dtype == np.int64 and np.flatnonzero(info).tolist() == [4]
    cla.pack(np.zeros((11, 3, 3)), out=A)
    assert other() is given and (here(given) == 1).all()
    cla.pack(np.tile(np.eye(3), (11, 1, 1)), out=A)
    assert run() is info and not info.any()
    assert not here(other()).any()


def test_what_is_made_anew(rng):
    """Is made once, and lives as long as the call."""
    A = cla.pack(random(rng, (9, 5, 3), np.float64))
    run = cla.prepare(cla.geqrf, A)
    start, tau = A.unpack(), run()
    found = weakref.ref(tau.data)
    expected = tau.unpack()
    del tau
    gc.collect()
    cla.pack(start, out=A)
    again = run()
    assert again.data is found() and same_bits(again.unpack(), expected)
    del run, again
    gc.collect()
    assert found() is None


def test_arguments_live_as_long(queue, rng):
    a = random(rng, (9, 3, 3), np.float64)
    packs = [cla.pack(x, queue=queue) for x in (a, a, a)]
    alive = [weakref.ref(A.data) for A in packs]
    expected = cla.gemm(*packs).unpack()
    run = cla.prepare(cla.gemm, *packs)
    del packs
    gc.collect()
    assert all(x() is not None for x in alive)
    assert same_bits(run().unpack(), expected)
    del run
    gc.collect()
    assert queue is not None or not any(x() for x in alive)


def test_refusals(queue, rng):
    """Errors come before anything is done, as from the function."""
    A = cla.pack(random(rng, (9, 3, 3), np.float64), queue=queue)
    B, before = cla.pack(random(rng, (9, 4, 3), np.float64), queue=queue), A.unpack()
    C = cla.Pack.zeros(9, 4, 3, queue=queue)
    T = cla.BlockTridiag(*lines(rng, 5, 4, 3, np.float64), queue=queue)
    rhs = there(random(rng, (5, 4, 3), np.float64), queue)
    for error, message, function, *args in [
        (TypeError, "A is a list", cla.getrfnp, [1]),
        (ValueError, r"op\(B\) is 4 x 3", cla.gemm, A, B, C),
        (ValueError, "shares memory", cla.gemm, A, A, A),
        (TypeError, "beta", cla.gemm, B, A, C, 1, "x"),
        (ValueError, "uplo", cla.potrf, A, "X"),
        (TypeError, "argument", cla.gemm, A),
        (RuntimeError, "not factored", T.solve, rhs),
        (ValueError, "rhs has shape", T.solve, rhs[:2]),
        (TypeError, "function", np.add, 1, 2),
        (TypeError, "function", None),
        (TypeError, "function", scipy.sparse.eye_array, 3),
    ]:
        with pytest.raises(error, match=message):
            cla.prepare(function, *args)
    with pytest.raises(ValueError, match="threads"):
        cla.prepare(cla.getrfnp, A, threads=0)
    assert same_bits(A.unpack(), before)


@pytest.mark.parametrize(
    "how", [{}, slow({"parts": 2}), exhaustive({"refine": 1}), exhaustive({"storage": "float32"})], ids=str
)
def test_lines(how, queue, rng):
    """Factors and solutions are those of the calls, whatever was solved or factored in between."""
    T = cla.BlockTridiag(*lines(rng, 9, 6, 3, np.float64), queue=queue, **how)
    r = random(rng, (9, 6, 3), np.float64)
    rhs, x = there(r, queue), there(np.zeros_like(r), queue)
    blocks = [a.copy() for a in (T.lower, T.diag, T.upper)]
    factor = cla.prepare(T.refactor)
    assert T.info is None
    assert not factor().any() and not T.info.any()
    expected = here(T.solve(rhs))
    run, new = cla.prepare(T.solve, rhs, out=x), cla.prepare(T.solve, rhs)
    assert not here(x).any()
    assert run() is x
    assert same_bits(here(x), expected) and same_bits(here(new()), expected)
    for a, b in zip((T.lower, T.diag, T.upper), blocks, strict=True):
        a[...] = 2 * b
    factor()
    T.solve(there(r[..., None].repeat(2, -1), queue))
    assert np.allclose(here(run()), expected / 2)
    assert same_bits(here(x), here(T.solve(rhs)))


@pytest.mark.parametrize("how", [{}, slow({"parts": 2}), exhaustive({"storage": "float32"})], ids=str)
def test_info_of_lines(how, queue, rng):
    """info is written to the caller's array, which stays on a device."""
    blocks = lines(rng, 9, 6, 3, np.float64)
    blocks[1][4] = blocks[0][4] = 0
    T = cla.BlockTridiag(*blocks, queue=queue, **how)
    start = [a.copy() for a in (T.lower, T.diag, T.upper)]
    info = there(np.full(9, 7, np.int64 if queue is None else np.int32), queue)
    run = cla.prepare(T.refactor, info=info)
    assert (here(info) == 7).all()
    assert T.factor(info=info) is info and np.flatnonzero(here(info)).tolist() == [4]
    expected = here(info).copy()
    info.fill(7)
    assert T.factor(info=info) is info and np.array_equal(here(info), expected)
    for again in (run, lambda: T.refactor(info=info), cla.prepare(T.refactor)):
        for a, b in zip((T.lower, T.diag, T.upper), start, strict=True):
            a[...] = b
        info.fill(7)
        assert np.array_equal(here(again()), expected)
        info.fill(7)
        assert T.info.dtype == np.int64 and np.array_equal(T.info, expected)
    with pytest.raises((TypeError, ValueError), match="info"):
        T.refactor(info=info[1:])


def test_factors_that_are_lost(rng):
    T = cla.BlockTridiag(*lines(rng, 9, 6, 3, np.float64))
    T.factor()
    run = cla.prepare(T.solve, random(rng, (9, 6, 3), np.float64))
    T.info = None  # as an interrupt leaves it
    with pytest.raises(RuntimeError, match="not factored"):
        run()


def test_info_that_is_kept(queue, rng):
    """The info of the lines is kept, while a prepared call returns the same array each time."""
    T = cla.BlockTridiag(*lines(rng, 9, 2, 3, np.float64), queue=queue)
    regular, refactor = [here(a).copy() for a in (T.lower, T.diag, T.upper)], cla.prepare(T.refactor)
    found = []
    for factor in (0, 1):
        for a, values in zip((T.lower, T.diag, T.upper), regular, strict=True):
            a[...] = there(factor * values, queue)
        result = refactor()
        found.append((T.info, T.report.info))
        assert same_bits(here(result).astype(np.int64), T.info)
    assert all((info == 1).all() for info in found[0]) and not any(info.any() for info in found[1])


@pytest.mark.parametrize("n", [3, slow(70)])
def test_ordinary_arrays(n, queue, rng):
    """Arrays of three axes are prepared; all other calls stay ordinary ones."""
    a, b, c = random(rng, (3, 4, n, n), np.float64)
    A, B, C = (there(x, queue) for x in (a, b, c))
    run = cla.prepare(cla.gemm, A, B, C, beta=1)
    assert same_bits(here(C), c)
    run()
    assert run() is C and np.allclose(here(C), 2 * a @ b + c)
    sequence = [x.copy() for x in c]
    cla.prepare(cla.gemm, list(a), list(b), sequence)()
    assert np.allclose(sequence, a @ b)
    solve = cla.prepare(linalg.solve, a, b)
    x = solve()
    a[:] = np.eye(n)
    assert same_bits(solve(), b) and not same_bits(x, b)
    assert same_bits(cla.prepare(cla.pack(c).unpack)(), c)
    assert "gemm" in repr(run) and "solve" in repr(solve)


def test_several_threads(queue, rng, monkeypatch):
    """A call may be made by several threads, which share its work space."""
    monkeypatch.setattr(sharing, "GRAIN", 1)
    T = cla.BlockTridiag(*lines(rng, 40, 6, 3, np.float64), queue=queue)
    T.factor()
    rhs = there(random(rng, (40, 6, 3), np.float64), queue)
    x = there(random(rng, (40, 6, 3), np.float64), queue)
    expected, run = here(T.solve(rhs)), cla.prepare(T.solve, rhs, out=x)
    A = cla.pack(random(rng, (99, 3, 3), np.float64), queue=queue)
    C = cla.Pack.zeros(99, 3, 3, queue=queue)
    product = cla.gemm(A, A, cla.Pack.zeros(99, 3, 3, queue=queue)).unpack()
    multiply = cla.prepare(cla.gemm, A, A, C)

    def call(_):
        return run() is x and multiply() is C

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(call, range(40)))
    assert same_bits(here(x), expected) and same_bits(C.unpack(), product)


def test_it_is_no_object_to_be_stored(rng):
    with pytest.raises(TypeError, match="prepare"):
        pickle.dumps(cla.prepare(cla.getrfnp, cla.pack(random(rng, (9, 3, 3), np.float64))))


def test_calls_that_are_remembered(rng):
    """Remembered calls check what can change, and tell numbers apart by their bits."""
    A, C = cla.pack(random(rng, (9, 3, 3), np.float64)), cla.Pack.zeros(9, 3, 3)
    for _ in range(2):
        cla.gemm(A, A, C)
    C.data.flags.writeable = False
    with pytest.raises(ValueError, match="C is read-only"):
        cla.gemm(A, A, C)
    C.data.flags.writeable = True
    for _ in range(2):
        with pytest.raises(TypeError, match="threads"):
            cla.gemm(A, A, C, threads=True)
        cla.gemm(A, A, C, threads=1)
    ordinary = random(rng, (9, 3, 3), np.float64)
    for dtype in (np.float64, np.complex128):
        x = ordinary.astype(dtype)
        for alpha in (0.0, -0.0, 0.5) * 2:
            fresh, again = cla.pack(x), C if dtype is np.float64 else cla.pack(x)
            for P in (fresh, cla.pack(x, out=again)):
                cla.trsm(cla.pack(x), P, alpha=alpha)
            assert same_bits(fresh.unpack(), again.unpack())
    assert len(C.view.calls.known) <= 16


@pytest.mark.parametrize("nm", [0, 9])
def test_what_remembered_calls_make_is_new(queue, nm, rng):
    """Calls on other numbers in the same packs leave alone what earlier calls returned."""

    def results(a, P):
        ipiv, info = cla.getrf(cla.pack(a, out=P))
        factors = P.unpack()
        return ipiv, info, factors, cla.geqrf(cla.pack(a, out=P)), P, cla.dot(P, P)

    def found(results):
        return [np.asarray(here(contents(x))) for x in results]

    batches = [random(rng, (nm, 3, 3), np.float64) for _ in range(2)] * 2
    A = cla.pack(batches[0], queue=queue)
    kept = [[contents(x) if x is A else x for x in results(a, A)] for a in batches]
    for a, remembered in zip(batches, kept, strict=True):
        assert all(map(same_bits, found(remembered), found(results(a, cla.pack(a, queue=queue)))))


def test_a_beginning_is_copied_by_each_call(rng):
    """Nothing is written before the first call, and each begins with x0 again."""
    M, along = scattered(rng, rng.integers(2, 9, 12), 3, np.float64)
    S = cla.LineRelaxation(M, along)
    rhs, x0 = random(rng, (2, M.shape[0]), np.float64)
    out = np.zeros_like(rhs)
    run = cla.prepare(S.solve, rhs, x0, out=out)
    assert not out.any()
    for _ in range(2):
        assert same_bits(run(), S.solve(rhs, x0))


def test_so_many_plans():
    plans = Plans(3)
    for k in range(7):
        assert plans.add(k, -k) == -k
        assert plans.known[k] == -k and len(plans.known) <= 3
