"""Kernels for data that is far from the caches: the results are those of the others, bit for bit."""

import numpy as np
import pytest

import compactla as cla
from cases import dominant, in_turns, random, same_bits
from compactla.cpu import run

pytestmark = pytest.mark.optimized
NM = 19


def results(monkeypatch, call):
    """What `call` returns with the kernels for data in the caches, and with the others."""
    both = []
    for threshold in (2**62, 0):
        monkeypatch.setattr(run, "FAR", threshold)
        both.append(call())
    return both


@pytest.mark.parametrize(("size", "dtype"), in_turns([(3, None), (8, None), (32, None), (5, 32), (6, 3)]), ids=str)
def test_products(size, dtype, rng, monkeypatch):
    n, vlen = size
    a, b, c = random(rng, (3, NM, n, n), dtype)
    A, B = cla.pack(a, vlen), cla.pack(b, vlen)
    for options in ((1, 0, "N"), (1, 0, "T"), (1, 1, "N")):
        near, far = results(monkeypatch, lambda options=options: cla.gemm(A, B, cla.pack(c, vlen), *options).unpack())
        assert same_bits(near, far)


def test_products_that_cannot_be_streamed(rng, monkeypatch):
    """Results that are not aligned to a register are written as usual."""
    A, B = (cla.pack(random(rng, (NM, 4, 4), np.float64), 8) for _ in range(2))
    memory = np.zeros(A.data.size + 1)
    C = cla.Pack(memory[1:].reshape(A.data.shape), NM)
    near, far = results(monkeypatch, lambda: cla.gemm(A, B, C).unpack())
    assert same_bits(near, far) and memory[0] == 0


@pytest.mark.parametrize("n", [3, 17])
def test_triangular_solves(dtype, n, rng, monkeypatch):
    A, b = cla.pack(dominant(rng, NM, n, n, dtype)), random(rng, (NM, n, n), dtype)
    for options in ("LLN", "RUC"):
        near, far = results(monkeypatch, lambda options=options: cla.trsm(A, cla.pack(b), *options).unpack())
        assert same_bits(near, far)


@pytest.mark.parametrize(("n", "vlen"), [(3, None), (17, None), (9, 32)])
def test_factorizations(dtype, n, vlen, rng, monkeypatch):
    a = dominant(rng, NM, n, n, dtype)
    a[7, 0, 0] = 0

    def factored():
        A = cla.pack(a, vlen)
        info = cla.getrfnp(A)
        assert info[7] == 1 and not np.delete(info, 7).any()
        return A.unpack()

    assert same_bits(*results(monkeypatch, factored))
