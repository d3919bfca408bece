"""Tests specific to syrk and herk: C <- alpha op(A) op(A)^T + beta C, or with op(A)^H."""

import functools
import re

import numpy as np
import pytest
from numba import njit
from numba.core.errors import NumbaError

import compactla as cla
from cases import exhaustive, same_bits
from compactla import cpu, oracle
from compactla.cpu import matrix
from compactla.routine import named
from rows import call, masks, operands, options, results

pytestmark = pytest.mark.slow

both = pytest.mark.parametrize("name", ["syrk", "herk"])


@pytest.mark.parametrize("uplo", "LU")
def test_imaginary_parts_of_a_hermitian_diagonal(queue, uplo, rng):
    """Imaginary parts of the diagonal are not read, and become zero."""
    for sizes in ((3, 3), (9, 4)):
        a, c = operands("herk", rng, sizes, np.complex128, uplo=uplo)
        diagonal = np.einsum("qii->qi", c)
        for beta in (0, 1, 0.5):
            found = []
            for imaginary in (3, np.nan, np.inf):
                diagonal.imag = imaginary
                (_, after), _ = call("herk", (a, c), queue=queue, uplo=uplo, beta=beta)
                assert not np.einsum("qii->qi", after).imag.any()
                found.append(after)
            assert same_bits(found[0], found[1]) and same_bits(found[0], found[2])


def test_scalars_of_hermitian_matrices_are_real(queue, rng):
    arrays = operands("herk", rng, (4, 3), np.complex64)
    A, C = (cla.pack(a, queue=queue) for a in arrays)
    for bad in (1j, 0.5 + 1e-9j, np.complex64(1 - 1j), complex(1, np.nan)):
        for name in ("alpha", "beta"):
            with pytest.raises(TypeError, match=f"^{name} is .*, must be real$"):
                cla.herk(A, C, **{name: bad})
    assert same_bits(C.unpack(), arrays[1])
    expected, found = (results("herk", arrays, queue=queue, alpha=two, beta=two) for two in (2, 2 + 0j))
    assert same_bits(found[0], expected[0])


def test_real_matrices_are_hermitian_if_they_are_symmetric(queue, rng):
    for trans in "NTC":
        arrays = operands("syrk", rng, (5, 4), np.float64, trans=trans, uplo="U")
        how = {"uplo": "U", "trans": trans, "alpha": 0.5, "beta": 2, "queue": queue}
        expected, found = (results(name, arrays, **how) for name in ("syrk", "herk"))
        assert same_bits(found[0], expected[0])


@both
def test_an_empty_sum_is_zero_whatever_multiplies_it(name, queue, dtype, rng):
    arrays = operands(name, rng, (5, 0), dtype)
    unread = masks(named(name), arrays, {})[1]
    for alpha in (1, np.inf, np.nan):
        (c,) = results(name, arrays, queue=queue, alpha=alpha)
        assert not c[:, ~unread].any() and same_bits(c[:, unread], arrays[1][:, unread])


@functools.cache
def kernel(name, V, uplo, trans, n=None, k=None):
    routine, rows, columns = getattr(cpu, name), n if trans == "N" else k, k if trans == "N" else n

    @njit(error_model="numpy")
    def multiply(a, c, alpha, beta):
        for p in range(len(a)):
            routine(matrix(a[p], V, rows, columns), matrix(c[p], V, n, n), uplo, trans, alpha, beta)

    return multiply


@both
@pytest.mark.parametrize("known", [(7, 4), exhaustive((None, None))])
def test_packs(name, known, dtype, rng):
    for letters in options(named(name), dtype):
        before = operands(name, rng, (7, 4), dtype, 16, **letters)
        A, C = (cla.pack(a, 8) for a in before)
        kernel(name, 8, **letters, **dict(zip("nk", known, strict=True)))(A.data, C.data, 0.5, -2)
        after = before[0], C.unpack()
        assert oracle.named(name).residual(before, after, **letters, alpha=0.5, beta=-2).max() < oracle.THRESHOLD
        unread = masks(named(name), before, letters)[1]
        assert same_bits(after[1][:, unread], before[1][:, unread])


@pytest.mark.parametrize(("name", "trans", "others"), [("syrk", "C", "NT"), ("herk", "T", "NC")])
def test_letters_for_real_matrices(name, trans, others, queue, rng):
    """Letters for real matrices are refused for complex ones, as in BLAS."""
    arrays = operands(name, rng, (4, 4), np.complex64)
    A, C = (cla.pack(a, queue=queue) for a in arrays)
    message = f"trans is '{trans}', must be '{others[0]}' or '{others[1]}' for complex matrices"
    for letter in trans, trans.lower():
        with pytest.raises(ValueError, match=f"^{message}$"):
            getattr(cla, name)(A, C, trans=letter)
    assert same_bits(C.unpack(), arrays[1])


@pytest.mark.parametrize(("name", "trans"), [("syrk", "C"), ("herk", "T")])
def test_letters_for_real_matrices_in_numba(name, trans):
    a = np.zeros((1, 3, 3, 2, 8))
    with pytest.raises((NumbaError, ValueError), match=rf"\btrans is '{trans}', must be"):
        kernel(name, 8, "L", trans)(a, a.copy(), 1.0, 0.0)


@pytest.mark.parametrize(
    ("shapes", "trans", "message"),
    [
        (((3, 4), (3, 5)), "N", "C is 3 x 5, must be square"),
        (((3, 4), (4, 4)), "N", "A is 3 x 4, must have 4 rows: C is 4 x 4 and trans is 'N'"),
        (((3, 4), (3, 3)), "T", "A is 3 x 4, must have 3 columns: C is 3 x 3 and trans is 'T'"),
    ],
)
@both
def test_which_size_does_not_fit(name, shapes, trans, message):
    A, C = (cla.Pack.zeros(2, *shape) for shape in shapes)
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        getattr(cla, name)(A, C, trans=trans)
