"""Tests specific to trmm: B <- alpha op(A) B or alpha B op(A)."""

import functools
import itertools
import re

import numpy as np
import pytest
from numba import njit

import compactla as cla
from cases import exhaustive, same_bits
from compactla import oracle
from compactla.cpu import matrix, trmm
from rows import operands, results

pytestmark = pytest.mark.slow


def test_a_unit_diagonal_is_not_read(queue, dtype, rng):
    a, b = operands("trmm", rng, (5, 3), dtype, diag="U")
    other = a.copy()
    other[:, range(5), range(5)] = 0
    b[4, 1] = np.inf
    (x,), (y,) = (results("trmm", (given, b), diag="U", queue=queue) for given in (a, other))
    assert same_bits(x, y) and same_bits(x[:, 0], b[:, 0])
    assert np.isfinite(np.delete(x, 4, axis=0)).all()


@pytest.mark.parametrize("uplo", "LU")
def test_rows_that_do_not_count_are_not_multiplied(queue, dtype, uplo, rng):
    """Infinities reach only the rows that a triangle has elements for."""
    for n in (3, 7):
        a, b = operands("trmm", rng, (n, 3), dtype, uplo=uplo)
        b[:, 2] = np.inf
        (x,) = results("trmm", (a, b), uplo=uplo, queue=queue)
        finite = np.arange(n) < 2 if uplo == "L" else np.arange(n) > 2
        assert np.isfinite(x[:, finite]).all() and not np.isfinite(x[:, ~finite]).any()


@functools.cache
def kernel(V, side, uplo, trans, diag, n=None):
    @njit(error_model="numpy")
    def multiply(a, b, alpha):
        for p in range(len(a)):
            trmm(matrix(a[p], V, n, n), matrix(b[p], V, n, n), side, uplo, trans, diag, alpha)

    return multiply


@pytest.mark.parametrize("n", [5, exhaustive(None)])
def test_packs(n, dtype, rng):
    every = list(itertools.product("LR", "LU", "NTC", "NU"))
    for options in every[:: 5 if n else 3]:
        letters = dict(zip(("side", "uplo", "trans", "diag"), options, strict=True))
        before = operands("trmm", rng, (5, 5), dtype, 16, **letters)
        A, B = (cla.pack(a, 8) for a in before)
        kernel(8, *options, n=n)(A.data, B.data, 0.5)
        after = before[0], B.unpack()
        assert oracle.named("trmm").residual(before, after, **letters, alpha=0.5).max() < oracle.THRESHOLD


@pytest.mark.parametrize(
    ("shapes", "side", "message"),
    [
        (((3, 4), (3, 5)), "L", "A is 3 x 4, must be 3 x 3: B is 3 x 5 and side is 'L'"),
        (((3, 3), (3, 5)), "R", "A is 3 x 3, must be 5 x 5: B is 3 x 5 and side is 'R'"),
    ],
)
def test_which_size_does_not_fit(shapes, side, message):
    A, B = (cla.Pack.identity(2, *shape) for shape in shapes)
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        cla.trmm(A, B, side)
