"""Results are the same, bit for bit, from several threads at once and for every number of threads."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import compactla as cla
from cases import dominant, lines, random, same_bits
from compactla.cpu import parallel, run

CALLS = 12


def gemm(rng, queue):
    a, b, c = random(rng, (3, 5000, 7, 7), np.float64)
    return cla.gemm(*(cla.pack(x, queue=queue) for x in (a, b, c)), 0.5, 2).unpack()


def trsm(rng, queue):
    a, b = dominant(rng, 5000, 7, 7, np.complex64) / 7, random(rng, (5000, 7, 3), np.complex64)
    return cla.trsm(cla.pack(a.astype(np.complex64), queue=queue), cla.pack(b, queue=queue), uplo="U").unpack()


def getrfnp(rng, queue):
    A = cla.pack(dominant(rng, 5000, 7, 5, np.complex128), queue=queue)
    cla.getrfnp(A)
    return A.unpack()


def block_tridiagonal(rng, queue):
    T = cla.BlockTridiag(*lines(rng, 2000, 6, 3, np.float32), queue=queue)
    T.factor()
    return T.solve(random(rng, (2000, 6, 3, 2), np.float32))


ROUTINES = [gemm, trsm, getrfnp, block_tridiagonal]


@pytest.mark.parametrize("routine", ROUTINES)
def test_calls_from_several_threads(queue, routine):
    def call(seed):
        return routine(np.random.default_rng(seed % 3), queue)

    expected = [call(seed) for seed in range(3)]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(call, range(CALLS)))
    assert all(same_bits(result, expected[i % 3]) for i, result in enumerate(results))


@pytest.mark.parametrize("routine", ROUTINES)
def test_number_of_threads(routine, monkeypatch):
    results = []
    for count in (1, 2, 3, 7):
        monkeypatch.setattr(parallel, "THREADS", count)
        results.append(routine(np.random.default_rng(0), None))
    assert all(same_bits(result, results[0]) for result in results)


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


def test_a_mixed_up_cache_is_noticed(monkeypatch, rng):
    """Numba may load another kernel than it was asked for: here, one that says it is somebody else."""
    real, loads = run.njit, []

    def mixed_up(signature, cache=False, **options):
        def decorate(kernel):
            loads.append(cache)
            return (lambda *args: -1) if cache else real(signature, **options)(kernel)

        return decorate

    monkeypatch.setattr(run, "njit", mixed_up)
    run.gemm_kernel.cache_clear()
    run.gemm_choice.cache_clear()
    a, b = random(rng, (2, 9, 3, 3), np.float64)
    C = cla.gemm(cla.pack(a), cla.pack(b), cla.Pack.zeros(9, 3, 3))
    run.gemm_kernel.cache_clear()
    run.gemm_choice.cache_clear()
    assert loads == [True, False]
    assert np.allclose(C.unpack(), a @ b)
