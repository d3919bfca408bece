"""Tests specific to syr and her: alpha of many kinds, what is not touched, and the pack level."""

import numpy as np
import pyopencl.array
import pytest
from numba import njit

import compactla as cla
from cases import random, same_bits
from compactla import cpu, oracle
from compactla.cpu import matrix

pytestmark = pytest.mark.slow

NM = 19
both = pytest.mark.parametrize("name", ["syr", "her"])


def given(rng, dtype, n=5):
    return random(rng, (NM, n, 1), dtype), random(rng, (NM, n, n), dtype)


def expected(name, alpha, x, a, uplo):
    """The result, of which the other triangle and what alpha is zero for are as they were."""
    row = x.swapaxes(1, 2).conj() if name == "her" else x.swapaxes(1, 2)
    whole, factors = a.copy(), np.broadcast_to(np.asarray(alpha).reshape(-1, 1, 1), (NM, 1, 1))
    if name == "her":
        np.einsum("qii->qi", whole)[...] = np.einsum("qii->qi", whole).real
    some = factors[:, 0, 0] != 0
    with np.errstate(all="ignore"):
        whole[some] += factors[some] * (x[some] @ row[some])
    whole[~some] = a[~some]
    mask = np.tril(np.ones(a.shape[1:], bool)) if uplo == "L" else np.triu(np.ones(a.shape[1:], bool))
    return np.where(mask, whole, a)


@both
@pytest.mark.parametrize("uplo", "LU")
def test_one_alpha_for_each_matrix(name, uplo, queue, dtype, rng):
    x, a = given(rng, dtype)
    alpha = random(rng, NM, np.zeros(0, dtype).real.dtype)
    alpha[[0, 7, 18]] = 0
    clean, x = x, x.copy()
    x[7], x[18] = np.nan, np.inf
    there = alpha if queue is None else pyopencl.array.to_device(queue, alpha.astype(dtype) if name == "syr" else alpha)
    for factor, value in ((there, alpha), (2, 2), (np.float32(-0.5), -0.5), (0, 0)):
        given_x = x if np.ndim(value) or value == 0 else clean
        X, A = cla.pack(given_x, queue=queue), cla.pack(a, queue=queue)
        assert getattr(cla, name)(factor, X, A, uplo=uplo.lower()) is A
        found, wanted = A.unpack(), expected(name, value, given_x, a, uplo)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=32 * np.finfo(dtype).eps)
        zero = np.broadcast_to(value == 0, NM)
        assert same_bits(found[zero], a[zero])
        other = ~np.tril(np.ones((5, 5), bool)) if uplo == "L" else ~np.triu(np.ones((5, 5), bool))
        assert same_bits(found[:, other], a[:, other])


def test_the_diagonal_of_a_hermitian_matrix_is_real(queue, rng):
    x, a = given(rng, np.complex128)
    np.einsum("qii->qi", a).imag = np.nan
    for alpha in (1.5, 2 + 0j, np.full(NM, -1.0)):
        A = cla.her(alpha, cla.pack(x, queue=queue), cla.pack(a, queue=queue))
        assert not np.einsum("qii->qi", A.unpack()).imag.any()


def test_an_alpha_that_does_not_fit(queue, rng):
    x, a = given(rng, np.complex64)
    X, A = cla.pack(x, queue=queue), cla.pack(a, queue=queue)
    wrong = [(TypeError, 1j), (TypeError, np.full(NM, 1j)), (ValueError, np.ones(NM - 1)), (TypeError, "1")]
    if queue is not None:
        wrong.append((TypeError, pyopencl.array.to_device(queue, np.ones(NM, np.complex64))))
    for error, alpha in wrong:
        with pytest.raises(error, match="alpha"):
            cla.her(alpha, X, A)
    with pytest.raises(ValueError, match="uplo is 'X'"):
        cla.syr(1, X, A, "X")
    with pytest.raises(ValueError, match="A shares memory with x"):
        cla.syr(1, A[:, :1], A)
    assert same_bits(A.unpack(), a)


@both
@pytest.mark.parametrize("V", [8, 3])
def test_pack_level(name, V, rng):
    routine = getattr(cpu, name)

    @njit(error_model="numpy")
    def update(x, a, alpha):
        for p in range(len(a)):
            routine(alpha, matrix(x[p], V), matrix(a[p], V), "U")
            routine(-1, matrix(x[p], V), matrix(a[p], V), "L")

    for n in (1, 6, 11):
        x, a = given(rng, np.complex128, n)
        X, A = cla.pack(x, V), cla.pack(a, V)
        update(X.data, A.data, 0.5)
        first = expected(name, 0.5, x, a, "U")
        alpha = np.full((NM, 1, 1), -1, complex)
        wanted = expected(name, -1, x, first, "L")
        assert oracle.named(name).residual((alpha, x, first), (alpha, x, A.unpack())).max() < oracle.THRESHOLD
        np.testing.assert_allclose(A.unpack(), wanted, rtol=1e-13, atol=1e-13)
