"""Lines that several queues share."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyopencl.array
import pytest
import scipy.sparse

import compactla as cla
from cases import random, same_bits
from compactla.calls.launch import NOW
from compactla.gpu.devices import new_queue
from compactla.lines import host_copies, several_devices
from drivers import working_devices
from systems import convection_diffusion, scattered

LENGTHS = [1, 7, 3, 3, 12, 1, 5, 7, 2]


@pytest.fixture(scope="module")
def queues():
    """Queues of several contexts, for devices of one kind, which have the same bits."""
    devices = working_devices()
    alike = [device for device in devices if device.name == devices[0].name]
    return [new_queue(device) for device in (alike * 2)[: max(2, len(alike))]]


@pytest.mark.parametrize("form", ["bsr", "csr"])
def test_as_with_one_queue(rng, queues, dtype, form):
    M, lines = scattered(rng, LENGTHS, 3, dtype)
    M = M if form == "bsr" else M.tocsr()
    one = cla.LinePreconditioner(M, lines, 3, queue=queues[:1])
    P = cla.LinePreconditioner(M, lines, 3, queue=queues)
    assert one.queue is queues[0]
    assert P.queue == queues
    assert same_bits(P.info, one.info)
    for shape in (M.shape[:1], (M.shape[0], 4), (M.shape[0], 0)):
        r = random(rng, shape, dtype)
        x = one @ r
        assert same_bits(P @ r, x)
        out = np.empty_like(r)
        assert P.solve(r, out=out) is out
        assert same_bits(out, x)
        assert same_bits(P.solve(out := r.copy(), out=out), x)
    r = random(rng, (M.shape[0], 6), dtype)
    for strided in (r[:, ::-2], r.astype(np.complex128), r.T.copy().T):
        assert same_bits(P @ strided, one @ strided)
    assert same_bits(P.H @ r, one.H @ r)
    M.data[:] = random(rng, M.data.shape, dtype)
    assert same_bits(P.update(M), one.update(M))
    assert same_bits(P @ r, one @ r)


@pytest.mark.parametrize(
    "options",
    [
        {"parts": 2}, {"periodic": True}, {"pivoting": True, "pivots": "shift"}, {"diagnose": True, "vlen": 2},
        {"storage": "float32"}, {"refine": 1},
    ],
    ids=str,
)  # fmt: skip
def test_options(rng, queues, options):
    M, lines = scattered(rng, LENGTHS, 2, np.float64)
    one, P = (cla.LinePreconditioner(M, lines, queue=queue, **options) for queue in (queues[0], queues))
    r = random(rng, M.shape[:1], np.float64)
    assert same_bits(P @ r, one @ r)
    for found, expected in zip(P.report, one.report, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_block_rows_of_a_run_are_not_gathered(rng, queues):
    M, lines = convection_diffusion(12, 8, 3)
    one, P = (cla.LinePreconditioner(M, lines, queue=queue) for queue in (queues[0], queues))
    assert all(len(share._values.first) == 1 for share in P._lines._shares)
    r = random(rng, M.shape[:1], np.float64)
    assert same_bits(P @ r, one @ r)


@pytest.mark.parametrize(("long", "staged"), [(1, 1), (10**9, 1), (10**9, 200), (10**9, 10**6)])
def test_transfers_in_pieces(rng, queues, long, staged, monkeypatch):
    """Runs that are copied as they are, and gathered row by row, some at a time and all at once."""
    monkeypatch.setattr(host_copies, "LONG", long)
    monkeypatch.setattr(host_copies, "STAGED", staged)
    rows = np.array([0, 1, 4, 6, 7, 8, 11])
    there = host_copies.Transfers(np.dtype(np.float32), queues[0], host_copies.Runs.of(rows))
    r, x = random(rng, (12, 3, 2), np.float32), np.zeros((12, 3, 2), np.float32)

    def work(b, y, launch):
        assert same_bits(b.get(), r[rows])

    there.apply(work, r, x, NOW)
    expected = np.zeros_like(r)
    expected[rows] = r[rows]
    assert same_bits(x, expected)
    runs = host_copies.Runs(np.array([2, 3, 3, 7]), np.array([3, 3, 5, 8]))
    np.testing.assert_array_equal(runs.numbered(np.array([[2, 3], [-2, 4], [7, -1]])), [[0, 1], [-2, 2], [3, -1]])


@pytest.mark.parametrize("count", [2, 3, 9])
def test_a_queue_more_than_once(rng, queues, count):
    M, lines = scattered(rng, [4, 2, 5], 3, np.float64)
    r = random(rng, M.shape[:1], np.float64)
    one, P = (cla.LinePreconditioner(M, lines, queue=queue) for queue in (queues[0], queues[:1] * count))
    assert same_bits(P @ r, one @ r)


def test_without_rows(queues):
    P = cla.LinePreconditioner(scipy.sparse.csr_array((0, 0)), [], 2, queue=queues)
    assert P.info.shape == (0,)
    assert (P @ np.zeros(0)).shape == (0,)


def test_bad_lines_change_no_others(rng, queues):
    M, lines = scattered(rng, LENGTHS, 2, np.float64)
    P = cla.LinePreconditioner(M, lines, queue=queues)
    r = random(rng, M.shape[:1], np.float64)
    expected = (P @ r).reshape(-1, 2)
    row = np.repeat(np.arange(len(M.indptr) - 1), np.diff(M.indptr))
    bad = M.copy()
    bad.data[(row == lines[4][3]) & (M.indices == row)] = np.nan
    bad.data[np.isin(row, lines[2])] = 0
    info = P.update(bad)
    assert info[2] == 1
    assert not np.delete(info, [2, 4]).any()
    poisoned = r.reshape(-1, 2).copy()
    poisoned[lines[7][0]] = np.nan
    x = (P @ poisoned.ravel()).reshape(-1, 2)
    for line in np.delete(np.arange(len(lines)), [2, 4, 7]):
        assert same_bits(x[lines[line]], expected[lines[line]])
    with pytest.raises(cla.PivotError) as caught:
        cla.LinePreconditioner(bad, lines, queue=queues, pivots="raise")
    assert caught.value.report.info[2] == 1


def test_several_threads_prepared_calls_and_solvers(rng, queues):
    M, lines = convection_diffusion(20, 16, 3)
    P = cla.LinePreconditioner(M, lines, queue=queues)
    vectors = [random(rng, (M.shape[0], 1 + i % 3), np.float64) for i in range(12)]
    expected = [P @ r for r in vectors]
    with ThreadPoolExecutor(4) as pool:
        for x, alone in zip(pool.map(P.solve, vectors), expected, strict=True):
            assert same_bits(x, alone)
    one, x = cla.LinePreconditioner(M, lines, queue=queues[0]), np.empty_like(vectors[0])
    for run in (cla.prepare(P.solve, vectors[0], out=x), cla.prepare(one.solve, vectors[0], out=x)):
        x[:] = 0
        run()
        assert same_bits(x, expected[0])
    x, report = cla.krylov.gmres(M, vectors[0][:, 0], M=P, threads=1)
    assert report.converged
    np.testing.assert_allclose(M @ x, vectors[0][:, 0], atol=1e-6)


def test_nothing_is_written_after_an_interrupt(rng, queues, monkeypatch):
    M, lines = scattered(rng, LENGTHS, 2, np.float64)
    P = cla.LinePreconditioner(M, lines, queue=queues)
    r = random(rng, M.shape[:1], np.float64)
    expected, x, solve = P @ r, np.zeros_like(r), P._lines._shares[1].lines.solve

    def interrupted(_):
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(several_devices, "wait", interrupted)
    monkeypatch.setattr(P._lines._shares[1].lines, "solve", lambda *args: (time.sleep(0.1), solve(*args)))
    with pytest.raises(KeyboardInterrupt):
        P.solve(r, out=x)
    assert same_bits(x, expected)
    assert same_bits(P @ r, expected)


def test_a_forked_process_is_told(rng, queues, monkeypatch):
    M, lines = scattered(rng, LENGTHS, 2, np.float64)
    P = cla.LinePreconditioner(M, lines, queue=queues)
    monkeypatch.setattr(several_devices.os, "getpid", lambda: 0)
    for call in (lambda: P @ np.ones(M.shape[0]), lambda: P.update(M)):
        with pytest.raises(RuntimeError, match="forked process"):
            call()


def test_wrong_arguments(rng, queues):
    M, lines = scattered(rng, LENGTHS, 2, np.float64)
    for queue, error, message in (
        ([], ValueError, "queue is empty"),
        ([queues[0], "gpu"], TypeError, r"queue\[1\] is 'gpu'"),
        ((None, queues[0]), TypeError, r"queue\[0\] is None"),
    ):
        with pytest.raises(error, match=message):
            cla.LinePreconditioner(M, lines, queue=queue)
    with pytest.raises(TypeError, match="queue is \\["):
        cla.LineRelaxation(M, lines, queue=queues)
    with pytest.raises(ValueError, match="threads is 2"):
        cla.LinePreconditioner(M, lines, queue=queues, threads=2)
    P = cla.LinePreconditioner(M, lines, queue=queues)
    r = np.ones(len(M.indptr) * 2 - 2)
    on_device = pyopencl.array.to_device(queues[0], r)
    for call in (lambda: P @ on_device, lambda: P.solve(r, out=on_device)):
        with pytest.raises(TypeError, match=r"(must be a NumPy array)"):
            call()
    with pytest.raises(TypeError, match="P lives on several devices"):
        P.update(pyopencl.array.to_device(queues[0], M.data))
    with pytest.raises(TypeError, match="M lives on"):
        cla.krylov.gmres(M, on_device, M=P)
    with pytest.raises(ValueError, match="wait_for is"):
        P.solve(r, wait_for=[])
    with pytest.raises(ValueError, match="threads is 2"):
        P.solve(r, threads=2)
