"""det: the product of the pivots of Gaussian elimination with row interchanges."""

import math

from compactla.cpu.kernels.determinant import determinant, scaled
from compactla.cpu.kernels.getrf import getrf
from compactla.cpu.kernels.laswp import integers
from compactla.cpu.linalg.stacks import UNSURE


def det(code, vector, A, D, status, factors=()):
    """D <- det(A); `factors` are two more results, as of `product`"""
    number, exponent = product(code, vector, A, status, factors)
    value = scaled(number, exponent)
    W = code.room(vector, 1, 1)
    W[0, 0] = status.flags.select(value.constant(0), value)
    D.write(W)
    status.check(W)


def product(code, vector, A, status, factors=()):
    """The determinants of matrices that are regular, as numbers and exponents of two; none for singular ones.

    `factors` <- the factors of A, and which rows were interchanged, if there are these two.
    """
    n = A.n
    W, ipiv = code.room(vector, n, n), code.room(integers(vector), n, 1)
    A.read(W)
    getrf.emit(code, W, ipiv, status.info, left=bool(factors), ahead=A.following)
    status.doubt(W)
    if factors:
        LU, P = factors
        LU.write(W)
        P.write(ipiv)
    number, exponent = determinant(code, W, ipiv)
    size = number.abs1()
    status.enter(UNSURE, ~(((size > 0.5) & (size < math.inf)) | status.flags))
    return number, exponent
