"""posv, getrsnp and ger at the pack level."""

import numpy as np
import pytest
from numba import njit

import compactla as cla
from compactla import oracle
from compactla.cpu import ger, getrsnp, matrix, posv
from rows import operands

V = 4


@njit(error_model="numpy")
def calls(a, b, factors, x, y, info):
    for p in range(len(a)):
        A, B, LU = matrix(a[p], V), matrix(b[p], V), matrix(factors[p], V)
        X, Y = matrix(x[p], V), matrix(y[p], V)
        posv(A, B, info[p], "U")
        getrsnp(LU, X, "C")
        ger(Y, X, LU, 0.5, True)


@pytest.mark.slow
def test_pack_level(rng):
    a, b = operands("posv", rng, (6, 2), np.complex128, 8, uplo="U")
    lu, x = operands("getrsnp", rng, (6, 1), np.complex128, 8)
    y, info = rng.random((8, 6, 1)) + 0j, np.zeros((2, V), np.int64)
    packs = [cla.pack(given, V) for given in (a, b, lu, x, y)]
    calls(*(A.data for A in packs), info)
    A, B, LU, X, _ = (A.unpack() for A in packs)
    assert not info.any()
    assert oracle.named("posv").residual([a, b], [A, B], uplo="U").max() < oracle.THRESHOLD
    assert oracle.named("getrsnp").residual([lu, x], [lu, X], trans="C").max() < oracle.THRESHOLD
    assert oracle.named("ger").residual([y, X, lu], [y, X, LU], 0.5, True).max() < oracle.THRESHOLD
