"""Kernels for data that is far from the caches: the results are those of the others, bit for bit."""

import numpy as np
import pytest
from numba import njit

import compactla as cla
from cases import exhaustive, random, same_bits
from compactla import oracle, routine
from compactla.cpu import run
from compactla.cpu.emit import choices, numba_matrices, prefetch
from rows import ROUTINES, all_same, ones, operands, options, results

pytestmark = [pytest.mark.slow, pytest.mark.optimized]
NM = 19


def near_and_far(monkeypatch, call):
    """Results of `call` with the kernels for data in the caches, and with the others."""
    both = []
    for threshold in (2**62, 0):
        monkeypatch.setattr(run, "FAR", threshold)
        both.append(call())
    return both


SIZES = [((3, None), np.dtype("d"))]
SIZES += [exhaustive(size, np.dtype("F")) for size in ((9, 32), (6, 3), (17, None), (32, None))]


@pytest.mark.parametrize(("size", "dtype"), SIZES, ids=str)
@pytest.mark.parametrize("name", ROUTINES)
def test_routines(name, size, dtype, rng, monkeypatch):
    """All scalars that kernels are compiled for, with options in turns; a failed pivot among them."""
    row, (n, vlen) = routine.named(name), size
    every, fixed = options(row, dtype), sorted(row.fixed)
    calls = [dict(zip(row.scalars, values, strict=True)) for values in fixed] or [ones(row)]
    for i, scalars in enumerate(calls):
        letters = every[5 * (n + i) % len(every)] | scalars
        arrays = operands(name, rng, (n,) * len(row.letters), dtype, NM, **letters)
        if "info" in row.outputs:
            failed = oracle.named(name).spoil(7, 1, *arrays, **letters)
        near, far = near_and_far(monkeypatch, lambda a=arrays, how=letters: results(name, a, vlen=vlen, **how))
        assert all_same(near, far)
        if "info" in row.outputs:
            assert np.array_equal(far[-1], np.where(np.arange(NM) == 7, failed, 0))


def test_products_that_cannot_be_streamed(rng, monkeypatch):
    """Results that are not aligned to a register are written as usual."""
    A, B = (cla.pack(random(rng, (NM, 4, 4), np.float64), 8) for _ in range(2))
    memory = np.zeros(A.data.size + 1)
    C = cla.Pack(memory[1:].reshape(A.data.shape), NM)
    near, far = near_and_far(monkeypatch, lambda: cla.gemm(A, B, C).unpack())
    assert same_bits(near, far) and memory[0] == 0


@pytest.mark.parametrize(("b", "options"), [(3, {"pivoting": True}), (10, {}), exhaustive(16, {})])
def test_lines(b, options, rng, monkeypatch):
    lower, upper = (random(rng, (NM, 4, b, b), np.float64) for _ in range(2))
    diag = random(rng, (NM, 5, b, b), np.float64) + 4 * b * np.eye(b)
    rhs = random(rng, (NM, 5, b), np.float64)

    def solve():
        T = cla.BlockTridiag(lower, diag, upper, **options)
        return T.factor(), T.solve(rhs)

    near, far = near_and_far(monkeypatch, solve)
    assert all_same(near, far)


@pytest.mark.parametrize("uplo", "LU")
def test_loops_of_users_fetch_what_lies_behind(uplo, rng, monkeypatch):
    """Of large arrays only, which matrices find by themselves: parts of them, and what Numba has made, work as well."""
    from compactla.cpu import gemm, matrix, potrf

    n, V = 12, 8
    A = cla.pack(random(rng, (NM, n, n), np.float64) + 4 * n * np.eye(n), vlen=V).data
    found = []
    for large in (2**62, 0):
        monkeypatch.setattr(numba_matrices, "LARGE", large)

        @njit
        def work(A, C, info):
            for p in range(len(A)):
                gemm(matrix(A[p], V, n, n), matrix(A[p], V, n, n).T, matrix(C[p], V, n, n))
                potrf(matrix(C[p], V, n, n), info[p], uplo)

        @njit
        def alone(A, info):
            C = np.zeros_like(A)
            work(A[::-1], C, info)
            return C

        info = np.zeros((len(A), V), np.int64)
        C = np.zeros_like(A)
        work(A[::-1], C, info)
        assert not info.any() and same_bits(C, alone(A, info))
        found.append(C)
    assert same_bits(*found)


@pytest.mark.parametrize("ahead", [False, True])
def test_how_often_a_line_is_asked_for(ahead, rng, monkeypatch):
    """Once, or for as many packs as fit the second cache; again half a pack later where no others are known."""
    from compactla.cpu import matrix, potrf

    n, V, found = 12, 8, []
    A = cla.pack(random(rng, (NM, n, n), np.float64) + 4 * n * np.eye(n), vlen=V).data
    monkeypatch.setattr(numba_matrices, "LARGE", 0)
    for packs, cache in ((1, 1 << 20), (3, 1 << 20), (3, 32 << 10), (3, 16 << 10)):
        chosen = choices.usual()._replace(packs=packs, first=False)
        monkeypatch.setattr(prefetch, "choices", lambda chosen=chosen: chosen)
        monkeypatch.setattr(prefetch, "second_cache", lambda cache=cache: cache)

        @njit
        def work(A, info):
            for p in range(len(A)):
                X = matrix(A[p], V, n, n)
                if ahead:
                    potrf(X, info[p], "L", 0, (matrix(A[min(p + 1, len(A) - 1)], V, n, n),))
                else:
                    potrf(X, info[p])

        C, info = A.copy(), np.zeros((len(A), V), np.int64)
        work(C, info)
        (code,) = work.inspect_llvm().values()
        found.append((code.count("call void @llvm.prefetch"), C))
    once, *others = (count for count, _ in found)
    assert once and others == [2 * once] * 3 if ahead else others == [3 * once, 2 * once, 2 * once]
    assert all(same_bits(C, found[0][1]) for _, C in found)
