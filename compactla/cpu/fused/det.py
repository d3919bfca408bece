"""det: the product of the pivots of Gaussian elimination with row interchanges."""

import math

from compactla.cpu.kernels.determinant import determinant, scaled
from compactla.cpu.kernels.getrf import getrf
from compactla.cpu.kernels.laswp import integers
from compactla.cpu.linalg.stacks import UNSURE


def det(code, vector, A, D, status):
    """D <- det(A)"""
    number, exponent = product(code, vector, A, status)
    value = scaled(number, exponent)
    W = code.room(vector, 1, 1)
    W[0, 0] = status.flags.select(value.constant(0), value)
    D.write(W)
    status.check(W)


def product(code, vector, A, status):
    """The determinants of matrices that are regular, as numbers and exponents of two; none for singular ones."""
    n = A.n
    W, ipiv = code.room(vector, n, n), code.room(integers(vector), n, 1)
    A.read(W)
    getrf.emit(code, W, ipiv, status.info, left=False)
    status.doubt(W)
    number, exponent = determinant(code, W, ipiv)
    size = number.abs1()
    status.enter(UNSURE, ~(((size > 0.5) & (size < math.inf)) | status.flags))
    return number, exponent
