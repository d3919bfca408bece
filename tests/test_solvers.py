"""Tests of all solvers in the table of solvers.py: results, `out=`, types, copies, and systems that stay alone."""

import copy
import gc
import inspect
import pickle
import tracemalloc
from functools import partial

import numpy as np
import pyopencl
import pyopencl.array
import pytest
import scipy.sparse
from numpy.lib.stride_tricks import as_strided

import compactla as cla
from cases import BATCH, here, random, same_bits, there
from compactla import pickling
from compactla.cpu.threads import sharing
from compactla.dtypes import COMPLEX
from compactla.gpu.devices import new_queue
from compactla.oracle import THRESHOLD
from conftest import DEVICES
from solvers import (
    TABLE,
    N,
    argument,
    block_diagonal,
    each,
    has_out,
    make,
    matrices,
    ratio,
    shaped,
    sides,
    solving,
    systems,
    with_types,
)

NRHS = (), (1,), (3,), (0,)
CONTIGUOUS = cla.BlockTridiag, cla.LinePreconditioner, cla.LineRelaxation  # their vectors on devices


def solved(name, a, rhs, queue=None):
    return solving(make(name, a, queue)[0])(rhs)


@with_types()
def test_results(name, queue, dtype, rng):
    """Results are right for one right-hand side of each system, several and none; for a batch, one system and none."""
    for nm in (BATCH, 1, 0):
        a = matrices(name, rng, dtype, nm)
        S, _ = make(name, a, queue)
        for nrhs in NRHS if nm else NRHS[:1]:
            rhs = sides(name, rng, dtype, nm, nrhs)
            x = solving(S)(rhs)
            assert type(x) is np.ndarray and x.shape == rhs.shape and x.dtype == dtype
            assert ratio(name, a, x, rhs) < THRESHOLD
            if hasattr(S, "__matmul__"):
                assert same_bits(S @ rhs, x)
        info, _ = TABLE[name].info(S, 0)
        assert info is None or (info.dtype == np.int64 and not info.any() and info.shape == (nm,))


@each()
def test_wrong_results_are_seen(name, dtype, rng):
    """Residuals show an error in any element of the results, and in any element of the matrices."""
    a, rhs, eps = matrices(name, rng, dtype, 3), random(rng, (3, N, 1), dtype), np.finfo(dtype).eps
    row, wide = TABLE[name], np.result_type(dtype, np.float64)
    matrix = row.matrix(a).astype(wide)
    right = (matrix @ rhs if row.product else np.linalg.solve(matrix, rhs)).astype(dtype)
    assert ratio(name, a, shaped(name, right), shaped(name, rhs)) < THRESHOLD
    for i in range(N):
        for error in (1e6 * eps * abs(right).max(), np.nan):
            wrong = right.copy()
            wrong[1, i] += error
            assert ratio(name, a, shaped(name, wrong), shaped(name, rhs)) > THRESHOLD
    for i, j in zip(*np.nonzero(row.matrix(a)[1]), strict=True):
        other = row.matrix(a)
        other[1, i, j] += 1e6 * eps * abs(other).max()
        assert ratio(name, a, shaped(name, right), shaped(name, rhs), other) > THRESHOLD, (i, j)


def frozen(a):
    a.flags.writeable = False
    return a


def backwards(a):
    """An equal array that cannot be written, from the end of its memory to its beginning."""
    turn = (slice(None, None, -1),) * a.ndim
    return frozen(a[turn].copy()[turn])


@each()
def test_strides_and_memory_that_is_only_read(name, queue, dtype, rng):
    a, rhs = matrices(name, rng, dtype), sides(name, rng, dtype, nrhs=(2,))
    expected, kept = solved(name, a, rhs, queue), rhs.copy()
    S, _ = make(name, a, queue, backwards)
    wide = np.repeat(rhs, 2, axis=-1)
    lists = [rhs.tolist()] if dtype.char in "dD" else []
    for given in (frozen(rhs), np.asfortranarray(rhs), backwards(rhs), wide[..., ::2], *lists):
        assert same_bits(solving(S)(given), expected)
    assert same_bits(rhs, kept)


@each()
def test_types_of_right_hand_sides(name, queue, dtype, rng):
    """Right-hand sides of other types give the bits of their conversions, or are refused."""
    row, (S, _) = TABLE[name], make(name, matrices(name, rng, dtype), queue)
    for char in "?iefdFD":
        rhs = (10 * sides(name, rng, np.complex128)).astype(char) if char in "FD" else sides(name, rng, np.float64)
        rhs = (10 * rhs).astype(char)
        work = COMPLEX[dtype] if char in "FD" and dtype.kind == "f" else dtype
        if row.casts is None or np.can_cast(char, dtype, row.casts):
            result = np.result_type(dtype, char) if row.casts is None else dtype
            assert same_bits(solving(S)(rhs), solving(S)(rhs.astype(work)).astype(result))
        else:
            with pytest.raises(TypeError, match=f"^{argument(S)}: dtype is {rhs.dtype}, must"):
                solving(S)(rhs)
    for bad in ([["a"] * N] * BATCH, np.zeros(rhs.shape, object), np.ma.zeros(rhs.shape)):
        with pytest.raises((TypeError, ValueError), match=rf"^{argument(S)}\b"):
            solving(S)(bad)


@each()
def test_right_hand_sides_that_do_not_fit(name, queue, elsewhere, dtype, rng):
    S, _ = make(name, matrices(name, rng, dtype), queue)
    rhs = sides(name, rng, dtype)
    for bad in (rhs[:-1], rhs[None], rhs[..., None, None], rhs.reshape(-1)[1:], rhs.reshape(-1)[0]):
        with pytest.raises(ValueError, match=f"^{argument(S)} has shape"):
            solving(S)(bad)
    with pytest.raises((TypeError, ValueError), match=f"^{argument(S)} "):
        solving(S)(there(rhs, elsewhere))


def of_torch(a):
    return pytest.importorskip("torch").from_numpy(a)


def of_jax(a):
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        return jax.device_put(a, jax.devices("cpu")[0])


@each()
@pytest.mark.parametrize("put", [of_torch, of_jax])
def test_arrays_of_other_libraries(name, put, dtype, rng):
    """Arrays of PyTorch and JAX on the host give such, in the place of right-hand sides and of all else."""
    a, rhs = matrices(name, rng, dtype), sides(name, rng, dtype, nrhs=(2,))
    expected, given = solved(name, a, rhs), put(rhs)
    S, _ = make(name, a, put=lambda x: put(x.copy()) if isinstance(x, np.ndarray) else x)
    uses = [solving(S)]
    if hasattr(S, "__matmul__"):
        uses.append(lambda x: S @ x)
    for use in uses:
        found = use(given)
        assert type(found) is type(given)
        assert same_bits(np.asarray(found), expected if found.dtype == given.dtype else expected.astype(found.dtype))
    if put is of_torch:
        if has_out(S):
            out = put(np.zeros_like(expected))
            assert solving(S)(given, out=out) is out and same_bits(out.numpy(), expected)
        with pytest.raises(TypeError, match=f"^{argument(S)} is a Tensor, must be an array"):
            solving(S)(given.clone().requires_grad_())
    assert same_bits(np.asarray(given), rhs)


@each()
def test_arrays_on_devices(name, queue, dtype, rng):
    """Results stay on the device, and have the bits of those that are copied there and back."""
    S, _ = make(name, matrices(name, rng, dtype), queue)
    for nrhs in NRHS:
        rhs = sides(name, rng, dtype, nrhs=nrhs)
        given = there(rhs, queue)
        x = solving(S)(given)
        assert type(x) is type(given) and same_bits(here(x), solving(S)(rhs)) and same_bits(here(given), rhs)
    if queue is not None:
        rhs = sides(name, rng, dtype)
        shifted = there(random(rng, rhs.size + 7, dtype), queue)[7:].reshape(rhs.shape)
        assert same_bits(here(solving(S)(shifted)), solving(S)(here(shifted)))
        strided = there(np.stack([rhs, rhs], -1), queue)[..., 0]
        if isinstance(S, CONTIGUOUS):
            with pytest.raises(ValueError, match=rf"^{argument(S)} .*C-contiguous"):
                solving(S)(strided)
        else:
            assert same_bits(here(solving(S)(strided)), solving(S)(rhs))


@each([name for name, row in TABLE.items() if row.casts == "safe"])
def test_packs(name, queue, dtype, rng):
    """A pack has a pack as its result, and is left alone."""
    S, _ = make(name, matrices(name, rng, dtype), queue)
    rhs = sides(name, rng, dtype, nrhs=(3,))
    given = cla.pack(rhs, S.vlen, queue=queue)
    x = solving(S)(given)
    assert isinstance(x, cla.Pack) and same_bits(x.unpack(), solving(S)(rhs)) and same_bits(given.unpack(), rhs)


def not_written(x, rhs, queue):
    """Arrays that the solution for `rhs` cannot be written to: error, message, array."""
    dtype, where = x.dtype, None if isinstance(x, np.ndarray) else queue
    apart = there(np.zeros(x.shape, dtype), where)
    other = np.dtype({"d": "f", "F": "D"}[dtype.char])
    yield TypeError, f"out: dtype is {other}, must be {dtype}", apart.astype(other)
    yield ValueError, "out has shape", apart.reshape(-1)[1:]
    if where is None:
        yield ValueError, "out is read-only, must be writeable", frozen(apart.copy())
        yield ValueError, "out has ", as_strided(apart, strides=(dtype.itemsize * (x.ndim > 1),) * x.ndim)
        yield TypeError, "out is a list, must be a NumPy array", apart.tolist()
        yield TypeError, "out is a MaskedArray", np.ma.zeros(x.shape, dtype)
        for device in DEVICES[:1]:
            yield TypeError, "out is a.* Array", pyopencl.array.empty(new_queue(device), x.shape, dtype)
    else:
        foreign = new_queue(queue.device)
        yield ValueError, "another OpenCL context", pyopencl.array.empty(foreign, x.shape, dtype)
        yield TypeError, "out is a ndarray, must be an array on the device", np.empty(x.shape, dtype)


@each()
def test_solutions_in_arrays_that_are_given(name, queue, dtype, rng):
    """The array may be that of the right-hand sides; it may not overlap them, be read-only or of another kind."""
    S, _ = make(name, matrices(name, rng, dtype), queue)
    if not has_out(S):
        return
    for nrhs in ((), (2,)):
        rhs = sides(name, rng, dtype, nrhs=nrhs)
        x = S.solve(rhs)
        for where in {None, queue}:
            given, out = there(rhs, where), there(0 * rhs, where)
            assert S.solve(given, out=out) is out and same_bits(here(out), x) and same_bits(here(given), rhs)
            assert S.solve(given, out=given) is given and same_bits(here(given), x)
            given = there(rhs, where)
            for error, message, bad in not_written(out, given, queue):
                with pytest.raises(error, match=message):
                    S.solve(given, out=bad)
            assert same_bits(here(given), rhs)
            long = there(np.zeros(x.size + 1, dtype), where)
            inside, beside = long[:-1].reshape(x.shape), long[1:].reshape(x.shape)
            with pytest.raises(ValueError, match="out shares memory with rhs, must"):
                S.solve(inside, out=beside)
            assert not here(long).any()
    rhs = sides(name, rng, np.float32)
    result = np.result_type(dtype, np.float32) if TABLE[name].casts is None else dtype
    out = np.zeros(rhs.shape, result)
    assert S.solve(rhs, out=out) is out and same_bits(out, S.solve(rhs))


@each([name for name, row in TABLE.items() if row.casts != "safe"])
def test_nothing_is_allocated(name, dtype, rng):
    """A call with `out=` makes views alone: work arrays are left from the call before."""
    S, _ = make(name, matrices(name, rng, dtype, 1000))
    rhs = sides(name, rng, dtype, 1000)
    out = S.solve(rhs)
    S.solve(rhs, out=out)
    tracemalloc.start()
    S.solve(rhs, out=out)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < rhs.nbytes / 2


def updated(name, S, a, queue):
    """The argument of `update` for these matrices; None if there is no such method, or it takes none."""
    if isinstance(S, cla.LinePreconditioner | cla.LineRelaxation):
        return block_diagonal(a)
    return there(a[:, TABLE[name].pattern], queue) if isinstance(S, cla.BatchCSR | cla.BatchLU) else None


@each()
def test_threads_and_events(name, queue, dtype, rng, monkeypatch):
    monkeypatch.setattr(sharing, "GRAIN", 1)
    a = matrices(name, rng, dtype, 150)
    S, _ = make(name, a, queue)
    rhs = sides(name, rng, dtype, 150)
    expected = solving(S)(rhs)
    calls = [partial(solving(S), rhs), *([S.factor] if hasattr(S, "factor") else [])]
    new = updated(name, S, a, queue)
    calls += [] if new is None else [partial(S.update, new)]
    events = [] if queue is None else [pyopencl.enqueue_marker(queue)]
    for call in calls:
        for error, wrong in ((ValueError, 0), (ValueError, -2), (TypeError, 2.0), (TypeError, "2"), (TypeError, True)):
            with pytest.raises(error if queue is None else ValueError, match=r"^threads is"):
                call(threads=wrong)
        with pytest.raises(ValueError if queue is None else TypeError, match=r"^wait_for is"):
            call(wait_for=events if queue is None else [None])
        if queue is None:
            for threads in (1, np.int64(2), 1000):
                call(threads=threads)
                assert same_bits(solving(S)(rhs, threads=threads), expected)
        else:
            call(wait_for=events)
            assert same_bits(solving(S)(rhs, wait_for=events), expected)


@with_types()
def test_a_system_that_fails_stays_alone(name, queue, dtype, rng):
    """A system that is singular, or has NaN, changes no bit of the others, and `info` names it."""
    a, rhs, bad = matrices(name, rng, dtype), random(rng, (BATCH, N, 2), dtype), 6
    others = np.arange(BATCH) != bad
    expected = systems(solved(name, a, shaped(name, rhs), queue), BATCH)
    for k in (0, 4, N - 1):
        singular = a.copy()
        singular[bad, k] = singular[bad, :, k] = 0
        S, _ = make(name, singular, queue)
        x = systems(solving(S)(shaped(name, rhs)), BATCH)
        assert same_bits(x[others], expected[others])
        info, index = TABLE[name].info(S, k)
        assert info is None or np.array_equal(info, np.where(others, 0, index))
    poisoned = a.copy()
    poisoned[bad, 1, 1] = np.nan
    S, _ = make(name, poisoned, queue)
    assert same_bits(systems(solving(S)(shaped(name, rhs)), BATCH)[others], expected[others])
    info, _ = TABLE[name].info(S, 1)
    assert info is None or not info[others].any()
    for value in (np.nan, np.inf):
        poisoned = rhs.copy()
        poisoned[bad, 7] = value
        x = systems(solved(name, a, shaped(name, poisoned), queue), BATCH)
        assert same_bits(x[others], expected[others]) and not np.isfinite(x[bad]).all()


@with_types()
def test_results_depend_on_nothing_but_the_system(name, queue, dtype, rng):
    """Results have the same bits whatever else is in the batch, and wherever in it the system is."""
    a, rhs = matrices(name, rng, dtype, 150), random(rng, (150, N, 3), dtype)
    whole = systems(solved(name, a, shaped(name, rhs), queue), 150)
    for part in (slice(0, 1), slice(5, 42), slice(149, 150), slice(None, None, -1)):
        x = solved(name, a[part], shaped(name, rhs[part].copy()), queue)
        assert same_bits(systems(x, len(a[part])), whole[part].copy())


@with_types()
def test_other_matrices(name, queue, dtype, rng):
    """Factors of new values are those of a new object."""
    a, other, rhs = matrices(name, rng, dtype), matrices(name, rng, dtype), sides(name, rng, dtype, nrhs=(2,))
    S, renew = make(name, a, queue)
    before = solving(S)(rhs)
    renew(other)
    assert same_bits(solving(S)(rhs), solved(name, other, rhs, queue))
    renew(a)
    assert same_bits(solving(S)(rhs), before)


def pickled(S):
    return pickle.loads(pickle.dumps(S))


def mapped(S):
    """A pickle, and its arrays apart in memory that cannot be written, as joblib maps them from files; twice."""
    buffers = []
    state = pickle.dumps(S, protocol=5, buffer_callback=buffers.append)
    return state, [bytes(buffer.raw()) for buffer in buffers], [bytes(buffer.raw()) for buffer in buffers]


@each()
def test_copies(name, queue, dtype, rng):
    """Copies have factors of their own; those on devices stay there, and cannot be pickled."""
    a, other, rhs = matrices(name, rng, dtype), matrices(name, rng, dtype), sides(name, rng, dtype, nrhs=(2,))
    S, renew = make(name, a, queue)
    expected, after = solving(S)(rhs), solved(name, other, rhs, queue)
    made = [copy.copy(S), copy.deepcopy(S), copy.deepcopy({"S": S})["S"]]
    if queue is None:
        state, buffers, frozen = mapped(S)
        made += [pickled(S), *(pickle.loads(state, buffers=frozen) for _ in range(2))]
    else:
        with pytest.raises(TypeError, match=r"\w+ lives on .* to be pickled: "):
            pickle.dumps(S)
    renew(other)
    assert same_bits(solving(S)(rhs), after)
    for T in made:
        assert type(T) is type(S) and T.queue == queue
        assert same_bits(solving(T)(rhs), expected)
        new = updated(name, T, other, queue)
        if new is not None:
            T.update(new)
            assert same_bits(solving(T)(rhs), after)
    if queue is None:
        del made, T
        gc.collect()
        assert frozen == buffers and not pickling._writeable


def test_operators_that_hold_modules_are_pickled(rng):
    """As SciPy's have, since SciPy 1.18: those that are made by arithmetic too."""
    T = scipy.sparse.diags_array([-1.0, 4.0, -1.0], offsets=[-1, 0, 1], shape=(6, 6)).tocsr()
    P = cla.LinePreconditioner(scipy.sparse.kron(T, np.eye(2)).tobsr(blocksize=(2, 2)), [[0, 1, 2, 3], [4, 5]])
    x = rng.random(12)
    for S in (P, P.T, 2 * P, P @ P - P):
        S._xp = getattr(S, "_xp", np)
        for made in (pickled(S), copy.copy(S), copy.deepcopy(S)):
            assert made._xp is S._xp and same_bits(made @ x, S @ x)


@each()
def test_prepared_calls(name, queue, dtype, rng):
    """Prepared calls do as the methods, with current factors and vectors, and nothing before they are run."""
    a, other = matrices(name, rng, dtype), matrices(name, rng, dtype)
    S, renew = make(name, a, queue)
    one, two = (sides(name, rng, dtype) for _ in range(2))
    rhs, x = there(one, queue), there(0 * one, queue)
    run = cla.prepare(solving(S), rhs, **({"out": x} if has_out(S) else {}))
    assert not here(x).any()
    for values, right in ((a, one), (a, two), (other, two)):
        if values is other:
            renew(other)
        rhs[...] = there(right, queue)
        found = run()
        assert found is x or not has_out(S)
        assert same_bits(here(found), solving(S)(right))
    expected, new = solving(S)(two), updated(name, S, a, queue)
    if new is not None:
        run = cla.prepare(S.update, new)
        assert same_bits(solving(S)(two), expected)
        run()
        expected = solved(name, a, two, queue)
        assert same_bits(solving(S)(two), expected)
    if hasattr(S, "factor"):
        info, run = S.info, cla.prepare(S.factor)
        assert same_bits(solving(S)(two), expected) and same_bits(run(), info)
        assert same_bits(solving(S)(two), expected)


METHODS = "__init__", "from_packed", "factor", "refactor", "update", "solve", "solve_rows", "multiply"


@each()
def test_arguments_by_keyword(name, dtype, rng):
    S, _ = make(name, matrices(name, rng, dtype))
    methods = [getattr(S, method, None) for method in METHODS]
    for method in filter(callable, methods):
        parameters = inspect.signature(method).parameters
        for option in {"threads", "wait_for", "queue", "out", "parts", "storage"}.intersection(parameters):
            assert parameters[option].kind is inspect.Parameter.KEYWORD_ONLY, option
