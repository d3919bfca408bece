"""One thread makes new factors while others solve: each call has the solution of the old or of the new matrices."""

import contextlib
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse

import compactla as cla
from cases import here, lines, random, same_bits, slow, there
from compactla import krylov, locks
from compactla.bands import systems
from compactla.sparse import csr

# What is waited for never comes, however long it is waited for: a moment is enough where it wrongly would.
MOMENT = 0.1
NM, N = 40, 6


class Case(NamedTuple):
    """Calls that change factors, to those of two matrices in turns, and that solve; and where a thread is held."""

    change: Any  # of 0 or 1
    solve: Any
    changing: str  # file and function
    solving: str


def block_tridiagonal(queue, rng, prepared=False):
    blocks = [lines(rng, NM, 4, 3, np.float64) for _ in range(2)]
    T, *others = (cla.BlockTridiag(*some, queue=queue) for some in (blocks[0], *blocks))
    kept = [[here(a).copy() for a in (U.lower, U.diag, U.upper)] for U in others]
    rhs, x = (there(a, queue) for a in (random(rng, (NM, 4, 3), np.float64), np.empty((NM, 4, 3))))
    T.factor()
    solve, refactor = partial(T.solve, rhs), T.refactor
    changing, solving = "lines:factor_lines", "lines:solve_lines"
    if prepared:
        run, refactor = cla.prepare(T.solve, rhs, out=x), cla.prepare(T.refactor)
        solve, changing, solving = alone(run), "packed:_begin", "blocktridiag:_check_factored"

    def change(k):
        # filling is the user's, who sees to it that nobody solves: here it is a part of the change
        T._lock.write(fill, k)

    def fill(k):
        for a, values in zip((T.lower, T.diag, T.upper), kept[k], strict=True):
            a[...] = there(values, queue)
        refactor()

    return Case(change, lambda: here(solve()), changing, solving)


def alone(run):
    """A call that one thread makes at a time, with a copy of its result, which the next call writes to."""
    lock = threading.Lock()

    def call():
        with lock:
            return here(run()).copy()

    return call


def preconditioner(kind, name, queue, rng):
    grid = scipy.sparse.kron(scipy.sparse.diags_array([-1.0, 4, -1], offsets=[-1, 0, 1], shape=(NM, NM)), np.eye(3))
    M = [(grid + k * scipy.sparse.eye_array(3 * NM)).tobsr(blocksize=(3, 3)) for k in range(2)]
    P, r = kind(M[0], np.arange(NM).reshape(-1, 4), queue=queue), random(rng, 3 * NM, np.float64)
    solves = {
        "@": lambda: P @ r,
        "rmatvec": lambda: P.rmatvec(r),
        "cg": lambda: krylov.cg(M[0], r, M=P, rtol=0, maxiter=2)[0],
    }
    solve, solving = solves.get(name), "lines:solve_lines"
    if name == "prepared":
        run = cla.prepare(P.solve, there(r, queue), out=there(np.empty_like(r), queue))
        solve, solving = alone(run), "block_operator:_check_usable"
    return Case(lambda k: P.update(M[k]), solve, "lines:factor_lines", solving)


def banded(kind, queue, rng):
    matrices = []
    for _ in range(2):
        lower, diag, upper = (rng.random((NM, n)) for n in (N - 1, N, N - 1))
        matrices.append([lower, diag + 9, upper])
        if kind is not cla.Tridiag:
            ab = rng.random((NM, 3 if kind is cla.Banded else 2, N))
            ab[:, 1] += 9
            matrices[-1] = [ab]
    given = [there(a.copy(), queue) for a in matrices[0]]
    T = kind(*([(1, 1)] if kind is cla.Banded else []), *given)
    T.factor()
    rhs = random(rng, (NM, N), np.float64)

    def change(k):
        for a, values in zip(given, matrices[k], strict=True):
            a[...] = there(values, queue)
        T.factor()

    solving = "systems:_solve_on_device" if queue else "systems:_solve"
    return Case(change, lambda: T.solve(rhs), "systems:_factored", solving)


def sparse(name, queue, rng):
    data = [random(rng, (NM, N * N), np.float64) + 9 * np.eye(N).reshape(-1) for _ in range(2)]
    A = cla.BatchCSR((data[0], np.tile(np.arange(N), N), np.arange(N + 1) * N), queue=queue)
    given = [there(values, queue) for values in data]
    b = random(rng, (NM, N), np.float64)
    F = cla.BatchLU(A)
    update, solving = (F if name == "own" else A).update, "sparse:lu_solve"
    if name == "product":
        solve, solving = lambda: A @ b, "sparse:multiply"
    elif name in ("own", "factors"):
        solve = lambda: F.solve(b)  # noqa: E731
    else:
        M = getattr(krylov, name.removeprefix("cg "))(A)
        solve, solving = lambda: M @ b, "sparse:precondition"
        if name.startswith("cg"):
            solve, solving = lambda: krylov.cg(A, b, M=M)[0], "sparse:solve"
    return Case(lambda k: update(given[k]), solve, "csr:packed", solving)


CASES = {
    "BlockTridiag": block_tridiagonal,
    "BlockTridiag prepared": partial(block_tridiagonal, prepared=True),
    **{f"LinePreconditioner {name}": partial(preconditioner, cla.LinePreconditioner, name)
       for name in ("@", "rmatvec", "prepared", "cg")},
    "LineRelaxation": partial(preconditioner, cla.LineRelaxation, "@"),
    **{kind.__name__: partial(banded, kind) for kind in (cla.Tridiag, cla.Banded, cla.BandedSPD)},
    **{f"BatchCSR {name}": partial(sparse, name)
       for name in ("product", "factors", "own", "Jacobi", "ILU0", "ISAI", "cg Jacobi", "cg ILU0")},
}  # fmt: skip
SLOW = "ISAI", "cg ILU0", "Banded", "LineRelaxation"
cases = pytest.mark.parametrize("name", [slow(name) if name.endswith(SLOW) else name for name in CASES])


class Held:
    """A call in a thread of its own, which stays where a function begins until it is let go."""

    def __init__(self, pool, where, call):
        self.file, self.name = where.split(":")
        self.there, self.free = threading.Event(), threading.Event()
        self.result = pool.submit(self.run, call).result

    def run(self, call):
        sys.settrace(self.trace)
        try:
            return call()
        finally:
            sys.settrace(None)

    def trace(self, frame, event, _):
        code = frame.f_code
        if code.co_name == self.name and Path(code.co_filename).stem == self.file:
            sys.settrace(None)
            self.there.set()
            self.free.wait()

    @classmethod
    @contextlib.contextmanager
    def at(cls, *args):
        held = cls(*args)
        try:
            assert held.there.wait(60)
            yield held
        finally:
            held.free.set()


@pytest.fixture
def pool():
    with ThreadPoolExecutor(4) as pool:
        yield pool


def is_late(call) -> bool:
    with contextlib.suppress(Late):
        call.result(MOMENT)
        return False
    return True


def solutions(change, solve):
    """Solutions with both matrices."""
    found = []
    for k in range(2):
        change(k)
        solve()  # the next time some keep what they make
        found.append(solve())
    return found


@cases
def test_calls_wait_for_each_other(name, queue, rng, pool):
    change, solve, changing, solving = CASES[name](queue, rng)
    old, new = solutions(change, solve)
    assert not same_bits(old, new)
    change(0)
    with Held.at(pool, changing, partial(change, 1)) as first:
        found = pool.submit(solve)
        assert is_late(found)
    first.result()
    assert same_bits(found.result(), new)
    with Held.at(pool, solving, solve) as first:
        if "prepared" not in name:
            assert same_bits(pool.submit(solve).result(), new)  # several solve at once
        changed = pool.submit(change, 0)
        assert is_late(changed)
        next_one = pool.submit(solve)  # which does not overtake
        assert is_late(next_one) or "prepared" in name
    assert same_bits(first.result(), new)
    changed.result()
    assert same_bits(next_one.result(), old) or "prepared" in name


@cases
def test_many_changes(name, queue, rng, pool):
    change, solve, *_ = CASES[name](queue, rng)
    expected = solutions(change, solve)
    over = threading.Event()

    def work():
        count = 0
        while not over.is_set() or not count:
            x = solve()
            assert any(same_bits(x, one) for one in expected)
            count += 1
        return count

    workers = [pool.submit(work) for _ in range(2)]
    for k in range(20):
        change(k % 2)
    over.set()
    assert all(worker.result() for worker in workers)


def test_calls_within_calls(rng, pool):
    """A callback may solve, also while another thread waits to change the factors, but not change them itself."""
    M = scipy.sparse.eye_array(12, format="bsr") * 4.0
    P, r = cla.LinePreconditioner(M, np.arange(12).reshape(3, 4)), np.ones(12)
    found = []

    def callback(_):
        found.append(pool.submit(P.update, 2 * M))
        assert is_late(found[0])
        assert same_bits(P @ r, r / 4)
        with pytest.raises(RuntimeError, match="within a call"):
            P.update(M)

    krylov.cg(M, r, M=P, callback=callback)
    assert not found[0].result().any()
    assert same_bits(P @ r, r / 8)


def interrupted(*_, **__):
    raise KeyboardInterrupt


def test_what_an_interrupt_leaves(rng, monkeypatch):
    """Factors that were made, or a sentence that says what must be done; and nothing stays locked."""
    T = cla.BlockTridiag(*lines(rng, 9, 4, 3, np.float64))
    T.factor()
    rhs = random(rng, (9, 4, 3), np.float64)
    solve = cla.prepare(T.solve, rhs)
    with monkeypatch.context() as patch:
        patch.setattr(T._lines._kernels, "factor_lines", interrupted)
        with pytest.raises(KeyboardInterrupt):
            T.refactor()
    for call in (solve, T.factor, partial(T.solve, rhs), partial(T.solve_rows, *np.zeros((2, 36, 3, 1)))):
        with pytest.raises(RuntimeError, match="fill the blocks again"):
            call()
    T.refactor()
    assert same_bits(solve(), T.solve(rhs))


def test_what_an_interrupt_leaves_of_bands(rng, monkeypatch):
    lower, diag, upper = (rng.random((9, n)) + 6 * (n == N) for n in (N - 1, N, N - 1))
    T, rhs = cla.Tridiag(lower, diag, upper), random(rng, (9, N), np.float64)
    T.factor()
    x, solve = T.solve(rhs), cla.prepare(T.solve, rhs)
    with monkeypatch.context() as patch:
        patch.setattr(systems.cpu.BandPlan, "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            T.factor()
    with pytest.raises(RuntimeError, match="factor must be called again"):
        solve()
    assert np.allclose(T.solve(rhs), x)  # which factors on the way
    T.factor()
    assert same_bits(solve(), x) and same_bits(T.solve(rhs), x)


def test_what_an_interrupt_leaves_of_batches(queue, rng, monkeypatch):
    data = random(rng, (9, N * N), np.float64) + 9 * np.eye(N).reshape(-1)
    A = cla.BatchCSR((data, np.tile(np.arange(N), N), np.arange(N + 1) * N), queue=queue)
    F, b, given = cla.BatchLU(A), random(rng, (9, N), np.float64), there(data, queue)
    F.update(given)
    uses = {A: [lambda: A @ b, A.toarray, lambda: krylov.cg(A, b), lambda: krylov.Jacobi(A) @ b]}
    uses[F] = [lambda: F.solve(b), F.factor, F.report]
    for x in (F, A):
        with monkeypatch.context() as patch:
            patch.setattr(csr, "pack_padded", interrupted)
            with pytest.raises(KeyboardInterrupt):
                x.update(given)
        for use in uses[x]:
            with pytest.raises(RuntimeError, match="update must be called again"):
                use()
        with pytest.raises(ValueError, match="shape"):
            x.update(given[:, :-1])
        x.update(given)
        for use in uses[x]:
            use()


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs signals to threads")
def test_interrupts_of_what_waits(rng, pool):
    """A thread that waits for others can be interrupted, and does nothing then."""
    change, solve, changing, solving = block_tridiagonal(None, rng)
    old = solve()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for where, held, waiting in ((solving, solve, change), (changing, partial(change, 0), lambda _: solve())):
            with Held.at(pool, where, held) as first:
                with pytest.raises(KeyboardInterrupt):
                    waits(waiting)
            first.result()
            assert same_bits(pool.submit(solve).result(), old)
            pool.submit(change, 0).result()
    finally:
        signal.signal(signal.SIGINT, before)


def waits(call):
    """Make a call that waits, and interrupt it."""
    timer = threading.Timer(MOMENT, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
    timer.start()
    try:
        call(1)
    finally:
        timer.join()


def test_what_is_gone(collect):
    """Nothing is kept of threads that have ended, nor of prepared calls."""
    lock = locks.read_write_lock()
    with ThreadPoolExecutor(3) as pool:
        for reader in [pool.submit(lock.__getattribute__, "here") for _ in range(9)]:
            reader.result()
    call = lock.for_calls()
    assert len(lock.shared.calls) == 1
    del call, reader
    collect()
    assert len(lock.shared.readers) == 1 and not lock.shared.calls


def test_many_prepared_calls(rng):
    """More of them than Python's stack has frames."""
    T = cla.BlockTridiag(*lines(rng, 3, 3, 2, np.float64))
    T.factor()
    rhs = random(rng, (3, 3, 2), np.float64)
    calls = [cla.prepare(T.solve, rhs) for _ in range(sys.getrecursionlimit() + 100)]
    assert not T.refactor().any() and len(calls) > sys.getrecursionlimit()


def test_matrices_are_locked_in_one_order(rng, pool):
    """A solve locks its two batches in one order, whichever is the matrix and whichever the preconditioner's."""
    data = random(rng, (9, N * N), np.float64) + 9 * np.eye(N).reshape(-1)
    A, B = (cla.BatchCSR((data, np.tile(np.arange(N), N), np.arange(N + 1) * N)) for _ in range(2))
    b, of_a, of_b = random(rng, (9, N), np.float64), krylov.Jacobi(A), krylov.Jacobi(B)

    def solve(A, M):
        return krylov.cg(A, b, M=M)[0]

    expected = solve(A, of_b)
    with Held.at(pool, "sparse:solve", partial(solve, A, of_b)) as first:
        changes = [pool.submit(matrices.update, data) for matrices in (A, B)]
        assert all(map(is_late, changes))
        second = pool.submit(solve, B, of_a)
        assert is_late(second)
    assert all(same_bits(found.result(), expected) for found in (first, second))
    assert all(change.result() is None for change in changes)
