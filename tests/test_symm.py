"""Tests specific to symm and hemm: C <- alpha A B + beta C or alpha B A + beta C."""

import functools
import itertools
import re

import numpy as np
import pytest
from numba import njit

import compactla as cla
from cases import exhaustive, random, same_bits
from compactla import cpu, oracle
from compactla.cpu import matrix
from compactla.routine import named
from rows import operands, results, unknown

pytestmark = pytest.mark.slow

both = pytest.mark.parametrize("name", ["symm", "hemm"])


@pytest.mark.parametrize("letters", [{}, {"side": "R", "uplo": "U"}], ids=str)
def test_imaginary_parts_of_a_hermitian_diagonal_are_not_read(queue, letters, rng):
    for size in (3, 9):
        arrays = operands("hemm", rng, (size, size), np.complex128, **letters)
        a = arrays[0].copy()
        a.imag[:, range(size), range(size)] = np.nan
        (expected,) = results("hemm", arrays, queue=queue, **letters)
        (found,) = results("hemm", (a, *arrays[1:]), queue=queue, **letters)
        assert same_bits(found, expected)


def test_real_matrices_are_hermitian_if_they_are_symmetric(queue, rng):
    arrays = operands("symm", rng, unknown(named("symm")), np.float32, uplo="U")
    expected, found = (results(name, arrays, queue=queue, uplo="U", alpha=0.5, beta=2) for name in ("symm", "hemm"))
    assert same_bits(found[0], expected[0])


def test_one_pack_for_both_operands(queue, dtype, rng):
    a = random(rng, (21, 4, 4), dtype)
    a = a + a.swapaxes(1, 2)
    A, C = cla.pack(a, queue=queue), cla.Pack.zeros(21, 4, 4, dtype, queue=queue)
    found = cla.symm(A, A, C, uplo="U").unpack()
    assert oracle.named("symm").residual((a, a, 0 * a), (a, a, found), uplo="U").max() < oracle.THRESHOLD


@functools.cache
def kernel(name, V, side, uplo, n=None):
    routine = getattr(cpu, name)

    @njit(error_model="numpy")
    def multiply(a, b, c, alpha, beta):
        for p in range(len(a)):
            routine(matrix(a[p], V, n, n), matrix(b[p], V, n, n), matrix(c[p], V, n, n), side, uplo, alpha, beta)

    return multiply


@both
@pytest.mark.parametrize("n", [5, exhaustive(None)])
def test_packs(name, n, dtype, rng):
    for side, uplo in itertools.product("LR", "LU"):
        letters = {"side": side, "uplo": uplo}
        before = operands(name, rng, (5, 5), dtype, 16, **letters)
        A, B, C = (cla.pack(a, 8) for a in before)
        kernel(name, 8, side, uplo, n)(A.data, B.data, C.data, 0.5, -2)
        after = *before[:2], C.unpack()
        ratio = oracle.named(name).residual(before, after, **letters, alpha=0.5, beta=-2).max()
        assert ratio < oracle.THRESHOLD


@pytest.mark.parametrize(
    ("shapes", "side", "message"),
    [
        (((3, 4), (3, 5), (3, 5)), "L", "A is 3 x 4, must be 3 x 3: C is 3 x 5 and side is 'L'"),
        (((3, 3), (3, 5), (3, 5)), "R", "A is 3 x 3, must be 5 x 5: C is 3 x 5 and side is 'R'"),
        (((3, 3), (3, 4), (3, 5)), "L", "B is 3 x 4, must be 3 x 5 as C"),
    ],
)
@both
def test_which_size_does_not_fit(name, shapes, side, message):
    A, B, C = (cla.Pack.zeros(2, *shape) for shape in shapes)
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        getattr(cla, name)(A, B, C, side)
