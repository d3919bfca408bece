"""slogdet: the product of the pivots of Gaussian elimination as its sign and the logarithm of its modulus."""

import math

from compactla.cpu.fused.det import product
from compactla.cpu.kernels.determinant import log


def slogdet(code, vector, A, S, D, status, factors=()):
    """S, D <- sign(det(A)), log(|det(A)|); `factors` are two more results, as of `product`"""
    number, exponent = product(code, vector, A, status, factors)
    modulus = abs(number)
    sign = number / modulus if vector.is_complex else modulus.constant(1).copysign(number)
    sign, modulus = status.flags.select(sign.constant(0), sign), log(modulus, exponent)
    for X, value in (S, sign), (D, status.flags.select(modulus.constant(-math.inf), modulus)):
        W = code.room(value.vector, 1, 1)
        W[0, 0] = value
        X.write(W)
