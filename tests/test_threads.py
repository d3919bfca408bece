"""Results are the same, bit for bit, from several threads at once and for every number of threads."""

import _thread
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse
from numba import njit

import compactla as cla
from cases import dominant, lines, random, same_bits
from compactla import routine
from compactla.calls.launch import NOW, Launch
from compactla.cpu import arrays, run
from compactla.cpu import lines as cpu_lines
from compactla.cpu.threads import pool, sharing
from compactla.cpu.threads.pool import BOX, TAKEN, THERE
from compactla.lines import packed
from rows import ROUTINES, all_same, function, general, known, operands, results, unknown
from systems import scattered

pytestmark = pytest.mark.optimized
CALLS = 12


def dense(name):
    """A large batch for a routine, of a size that kernels are not compiled for."""

    def run(rng, queue, **how):
        row, dtype = routine.named(name), np.dtype("dFDf"[ROUTINES.index(name) % 4])
        arrays = operands(name, rng, unknown(row), dtype, 5000 if len(row.letters) > 1 else 500)
        return results(name, arrays, queue=queue, **general(row, dtype), **how)

    run.__name__ = name
    return run


def block_tridiagonal(rng, queue, **options):
    T = cla.BlockTridiag(*lines(rng, 2000, 6, 3, np.float32), queue=queue)
    T.factor(**options)
    return [T.solve(random(rng, (2000, 6, 3, 2), np.float32), **options)]


CALLED = [*map(dense, ("gemm", "potrf", "potrs")), block_tridiagonal]


@pytest.fixture
def seven(monkeypatch):
    """Up to seven threads, also for little work."""
    monkeypatch.setattr(sharing, "THREADS", 7)
    monkeypatch.setattr(sharing, "GRAIN", 1)
    monkeypatch.setattr(sharing, "boxes", np.zeros((6, BOX), np.int64))


@pytest.mark.parametrize("called", CALLED, ids=lambda called: called.__name__)
def test_calls_from_several_threads(queue, called, seven):
    def call(seed):
        return called(np.random.default_rng(seed % 3), queue)

    expected = [call(seed) for seed in range(3)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(call, range(CALLS)))
    assert all(all_same(result, expected[i % 3]) for i, result in enumerate(found))


@pytest.mark.parametrize("called", CALLED, ids=lambda called: called.__name__)
def test_number_of_threads(called, seven):
    found = [called(np.random.default_rng(0), None, threads=threads) for threads in (None, 1, 2, 3, 7, 100)]
    assert all(all_same(result, found[0]) for result in found)


def test_number_of_threads_that_pack(dtype, rng, seven):
    a = random(rng, (1001, 5, 3), dtype)
    A = cla.pack(a, threads=1)
    for threads in (None, 2, 7):
        assert same_bits(cla.pack(a, threads=threads).data, A.data)
        assert same_bits(A.unpack(threads=threads), a)


def test_number_of_threads_of_a_preconditioner(rng, seven):
    M, along = scattered(rng, rng.integers(1, 30, 60), 3, np.float64)
    r = random(rng, M.shape[0], np.float64)
    x = cla.LinePreconditioner(M, along, threads=1) @ r
    for threads in (None, 2, 7):
        P = cla.LinePreconditioner(M, along, threads=threads)
        P.update(M, threads=3)
        assert same_bits(P @ r, x)
        assert same_bits(P.solve(r, threads=5), x)


@pytest.mark.parametrize("threads", [None, 1, 2])
def test_how_many_threads_are_at_work(threads, rng, seven, monkeypatch):
    """Calls use the number of threads that they, or the preconditioner that makes them, are called with."""
    limits = []

    def share(kernel, cost, args, launch=NOW, offset=None, work=None):
        limits.append(launch.threads)
        return sharing.share(kernel, cost, args, launch, offset, work)

    for module in (run, arrays, cpu_lines):
        monkeypatch.setattr(module, "share", share)
    a, M = dominant(rng, 20, 3, 3, np.float64), scipy.sparse.eye_array(6, format="bsr")
    cla.pack(a, threads=threads).unpack(threads=threads)
    for name in ("gemm", "potrf", "potrs"):
        row = routine.named(name)
        given = operands(name, rng, known(row), np.float64, 20)
        function(name)(*(cla.pack(x, threads=threads) for x in given), threads=threads)
    P = cla.LinePreconditioner(M, [[0, 1], [2, 3], [4, 5]], threads=threads)
    P @ np.ones(6)
    P.update(M)
    assert set(limits) == {threads}
    T = cla.BlockTridiag(np.ones((3, 1, 1, 1)), 4 * np.ones((3, 2, 1, 1)), np.ones((3, 1, 1, 1)))
    limits.clear()
    P.update(M, threads=4)
    P.solve(np.ones(6), threads=4)
    T.refactor(threads=4)
    T.solve_rows(np.ones((6, 1, 1)), np.ones((6, 1, 1)), threads=4)
    assert set(limits) == {4}


@pytest.mark.parametrize(("n", "dtype"), [(3, np.float32), (7, np.complex128)])
def test_place_in_the_batch(queue, dtype, n, rng):
    """A line gives the same bits wherever in the batch it stands."""
    T = cla.BlockTridiag(*(np.repeat(x, 45, axis=0) for x in lines(rng, 1, 4, n, dtype)), queue=queue)
    T.factor()
    x = T.solve(np.repeat(random(rng, (1, 4, n), dtype), 45, axis=0))
    assert same_bits(x, np.repeat(x[:1], 45, axis=0))


def test_one_factorization_serves_several_threads(queue, rng):
    T = cla.BlockTridiag(*lines(rng, 2000, 6, 3, np.float64), queue=queue)
    T.factor()
    rhs = random(rng, (CALLS, 2000, 6, 3), np.float64)
    expected = [T.solve(b) for b in rhs]
    with ThreadPoolExecutor(4) as pool:
        assert all(map(same_bits, pool.map(T.solve, rhs), expected))


def test_factored_once_by_several_threads(queue, rng):
    blocks, rhs = lines(rng, 2000, 6, 3, np.float64), random(rng, (2000, 6, 3), np.float64)
    expected = cla.BlockTridiag(*blocks, queue=queue)
    expected.factor()
    T = cla.BlockTridiag(*blocks, queue=queue)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: T.factor(), range(8)))
    assert same_bits(T.solve(rhs), expected.solve(rhs))


@pytest.fixture(scope="module")
def count():
    """A kernel that counts how often each item is done, and what each thread was given."""

    @njit("int64(int64, int64, int64[::1], complex128, int64)", nogil=True)
    def count(lo, hi, done, z, row):
        for i in range(lo, hi):
            done[i] += 1
        done[10 + row] += z.real * z.imag
        return 0

    count.entry = count
    return count


@pytest.mark.parametrize("offset", [None, np.array([0, 1, 2, 50, 51, 52, 53, 54, 60, 61, 100])])
def test_every_item_is_shared_out_once(offset, count, seven):
    for threads in (None, 1, 2, 3, 50):
        done = np.zeros(17, np.int64)
        sharing.share(count, 1e9, (0, 10, done, 2 + 3j), Launch(threads), offset, list(range(7)))
        items, rows = np.split(done, [10])
        busy = rows[: threads or 7] == 6
        assert (items == 1).all()
        assert rows.sum() == 6 * busy.sum()
        assert busy.any() if offset is not None else busy.all()  # where items differ, some threads get none


@pytest.fixture(scope="module")
def work():
    """A kernel that takes as long as it is told."""

    @njit("int64(int64, int64, int64, int64[::1])", nogil=True)
    def work(lo, hi, rounds, done):
        for i in range(lo, hi):
            for k in range(rounds):
                done[i] += k & 1
        return 0

    work.entry = work
    return work


@pytest.fixture
def interruptible():
    """Interrupts raise KeyboardInterrupt, also where tests run in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_call_ends_when_all_its_threads_have(seven, interruptible, work):
    """An interrupt comes out of the call, and not before the threads are done with its arrays."""
    rounds, done = 1000, np.zeros(3, np.int64)
    start = time.perf_counter()
    while time.perf_counter() - start < 0.5:  # until one thread is that long at it
        rounds, start = 2 * rounds, time.perf_counter()
        work(0, 1, rounds, done)
    sharing.share(work, 1e9, (0, 3, 1, done))  # what hands it over is compiled
    done[:] = 0
    timer = threading.Timer(0.1, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        sharing.share(work, 1e9, (0, 3, rounds, done))
        timer.join()
    assert np.array_equal(done, [rounds // 2] * 3)
    assert np.array_equal(sharing.boxes[:, THERE // 8], [1, 1, 0, 0, 0, 0])
    assert not sharing.boxes[:, TAKEN // 8].any()


def test_helpers_are_lent_to_one_call_at_a_time(seven, work):
    """Calls at the same time get what is left of the helpers, and never wait for one."""
    done = np.zeros((5, 40), np.int64)

    def call(i):
        for _ in range(50):
            sharing.share(work, 1e9, (0, 40, 1000, done[i]))

    with ThreadPoolExecutor(5) as users:
        list(users.map(call, range(5)))
    assert (done == 50 * 500).all()
    assert not sharing.boxes[:, TAKEN // 8].any()


@pytest.mark.parametrize("done", [np.zeros(6, np.int32), np.zeros(12, np.int64)[::2], np.zeros(6)])
def test_arrays_that_a_kernel_does_not_take(seven, work, done):
    """Arrays that do not fit are refused before threads write beyond their ends."""
    with pytest.raises(TypeError, match=r"an array for .*work.* is of .*, must be of int64 and C-contiguous"):
        sharing.share(work, 1e9, (0, 3, 1, done))
    assert not done.any()


def threads_at_work(count):
    """The number of threads of a call that could use seven."""
    done = np.zeros(17, np.int64)
    sharing.share(count, 1e9, (0, 10, done, 2 + 3j), work=list(range(7)))
    return np.count_nonzero(done[10:])


def interrupted(call, step, *modules):
    """Whether a KeyboardInterrupt came out of a call: it is raised before an instruction of these modules."""
    files = {module.__file__ for module in modules}
    left = step

    def trace(frame, event, _):
        nonlocal left
        if frame.f_code.co_filename not in files:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            left -= 1
            if left < 0:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys._getframe().f_trace_opcodes = True  # without which Python 3.12 has no such events
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def test_interrupts_at_every_instruction(seven, count, work):
    """No helper is lost, wherever an interrupt comes, and none is at work any more."""
    done = np.zeros(7, np.int64)
    assert threads_at_work(count) == 7
    steps = 0
    while interrupted(lambda: sharing.share(work, 1e9, (0, 7, 10, done)), steps, sharing, pool):
        steps += 1
        assert threads_at_work(count) == 7, steps
    assert steps > 100
    assert (done == done[0]).all()  # all of a call was done, or nothing


def test_interrupts_while_locks_are_held(rng):
    """No lock stays with a call that was interrupted."""
    T = cla.BlockTridiag(*lines(rng, 9, 2, 3, np.float64))
    T.factor()
    P = cla.LinePreconditioner(scipy.sparse.eye_array(6, format="bsr"), [[0, 1, 2], [3, 4, 5]])
    run, rhs = cla.prepare(T.refactor), random(rng, (9, 2, 3), np.float64)
    with ThreadPoolExecutor(1) as other:
        for call, lock in ((lambda: T.solve(rhs), T._lock), (run, T._lock), (lambda: P.rmatvec(np.ones(6)), P._lock)):
            steps = 0
            while interrupted(call, steps, packed):
                assert other.submit(lock.write, int).result(60) == 0
                steps += 1
            assert steps
    with P._making:
        pass
