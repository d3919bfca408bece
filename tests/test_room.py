"""Work arrays are kept from call to call, and no more of them than the largest call needed."""

import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from pyopencl.tools import ImmediateAllocator, MemoryPool

import compactla as cla
from cases import random, same_bits
from compactla.gpu import arrays
from systems import scattered

MADE = {
    "plain": lambda M, along, queue: cla.LinePreconditioner(M, along, queue=queue),
    "refine": lambda M, along, queue: cla.LinePreconditioner(M, along, queue=queue, refine=1),
    "parts": lambda M, along, queue: cla.LinePreconditioner(M, along, queue=queue, parts=3),
    "sweeps": lambda M, along, queue: cla.LineRelaxation(M, along, queue=queue, scheme="gauss-seidel"),
}


@pytest.fixture
def in_use(queue, monkeypatch, collect):
    """Tells how many bytes of arrays have been made since it was first asked, where the queue is."""
    if queue is None:

        def traced():
            tracemalloc.start()  # once: while it traces, compiling takes three times as long
            return (collect(), tracemalloc.get_traced_memory()[0])[1]

        yield traced
        tracemalloc.stop()
        return
    unset, pool = arrays.unset, MemoryPool(ImmediateAllocator(queue))
    monkeypatch.setattr(
        arrays, "unset", lambda shape, dtype, queue, allocator, strides: unset(shape, dtype, queue, pool, strides)
    )
    yield lambda: (collect(), pool.active_bytes)[1]


@pytest.mark.slow
@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_what_is_kept_is_for_the_largest_call(make, queue, in_use, rng):
    M, along = scattered(rng, [30, 20, 25, 40, 300], 3, np.float64)
    R = random(rng, (M.shape[0], 3), np.float64)
    compiled, one, several = (make(M, along, queue) for _ in range(3))
    for k in (1, 3):
        compiled @ R[:, :k]
    start = in_use()
    one @ R
    kept = in_use() - start
    for k in (1, 3, 1, 3):
        several @ R[:, :k]
    assert in_use() - start - kept <= 1.3 * kept + 10_000


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_calls_of_several_sizes_at_once(make, queue, rng):
    M, along = scattered(rng, [30, 20, 25, 40, 300], 3, np.float64)
    P, R = make(M, along, queue), random(rng, (M.shape[0], 3), np.float64)
    vectors = [np.ascontiguousarray(R[:, : 1 + 2 * (i % 2)]) for i in range(24)]
    expected = [make(M, along, queue) @ r for r in vectors[:2]]
    assert all(same_bits(P @ r, x) for r, x in zip(vectors, 12 * expected, strict=True))
    with ThreadPoolExecutor(4) as pool:
        assert all(map(same_bits, pool.map(P.solve, vectors), 12 * expected))
