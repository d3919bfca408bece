"""Steps of the sweeps of `compactla.lines.relaxation` beside the solves along lines."""

import functools
from typing import Any

import numpy as np
from numba import carray
from numba.np.numpy_support import from_dtype

from compactla.calls.launch import NOW, Launch
from compactla.cpu.compile import INT, compiled
from compactla.cpu.emit.numba_matrices import at, form
from compactla.cpu.emit.numba_words import pointer
from compactla.cpu.kernels.blockrows import blockrowsmv, lanes_of
from compactla.cpu.threads.sharing import share
from compactla.dtypes import REAL
from compactla.overlap import address
from compactla.types import Array


def product_batch(dtype, b):
    """A kernel for A times one vector x, of block rows lo to hi of a matrix of b x b blocks in BSR form.

    It takes addresses: of indptr, indices and data of the matrix, of x of all block rows, and of y of those that A has.
    """
    parts = 2 if dtype.kind == "c" else 1
    size, lanes = b * parts, lanes_of(dtype, b)
    count = -(-size // lanes)
    rows = form(REAL[dtype.char], lanes, n=count, strides=(size, lanes))

    def kernel(lo, hi, indptr, indices, data, x, y):
        A = at(data, 0, 0, count, size, lanes, 0, rows)
        X = at(x, 0, 0, count, size, lanes, 0, rows)
        Y = at(y, 0, 0, count, size, lanes, 0, rows)
        blockrowsmv(lo, hi, indptr, indices, A, X, Y, parts)

    return kernel


def residual_batch(dtype, b, sign):
    """Make the kernel for rhs - A x, or A x for the sign 1, and any number of right-hand sides, the last axis.

    Results for one are the same bits as for several. The arguments that follow are the address of rhs, of which there
    is none for the sign 1, and the number of right-hand sides.
    """
    number, item = from_dtype(dtype), dtype.itemsize

    def kernel(lo, hi, indptr, indices, data, x, y, rhs, nrhs):
        size = b * nrhs
        for i in range(lo, hi):
            first, last = carray(pointer(indptr + 8 * i), 2, np.int64)
            columns = carray(pointer(indices), last, np.int32)
            source = carray(pointer(rhs + item * size * i), size, number)
            total = carray(pointer(y + item * size * i), size, number)
            for e in range(size):
                total[e] = source[e] if sign < 0 else 0
            for k in range(first, last):
                block = carray(pointer(data + item * b * b * k), b * b, number)
                there = carray(pointer(x + item * size * columns[k]), size, number)
                if nrhs == 1:
                    for p in range(b):
                        one = total[p]
                        for q in range(b):
                            term = block[p * b + q] * there[q]
                            one = one - term if sign < 0 else one + term
                        total[p] = one
                else:
                    for p in range(b):
                        for q in range(b):
                            a = -block[p * b + q] if sign < 0 else block[p * b + q]
                            for c in range(nrhs):
                                total[p * nrhs + c] += a * there[q * nrhs + c]

    return kernel


def residual(A: Any, x: Array, rhs: Array, y: Array, launch: Launch = NOW) -> None:
    """y <- rhs - A x for block rows A; vectors are (block rows, b, right-hand sides)."""
    multiply(-1, A, x, y, launch, address(rhs), y.shape[2])


def product(A: Any, x: Array, y: Array, launch: Launch = NOW) -> None:
    """y <- A x."""
    multiply(1, A, x, y, launch, *([] if y.shape[2] == 1 else [0, y.shape[2]]))


def multiply(sign, A, x, y, launch, *others):
    """y <- A x, or rhs - A x for sign -1, of which the others tell: where rhs is, and how many columns there are."""
    if y.size:
        rows, b, nrhs = y.shape
        places = address(A.indptr), address(A.indices), address(A.data), address(x), address(y)
        share(kernel(y.dtype.char, b, sign, len(others)), A.data.size * nrhs, (0, rows, *places, *others), launch)


@functools.cache
def kernel(char, b, sign, others):
    dtype, arguments = np.dtype(char), (INT,) * (5 + others)
    if others:
        return compiled(residual_batch, arguments, dtype, b, sign, reordered=sign > 0)
    return compiled(product_batch, arguments, dtype, b)


def damp(z: Array, x: Array, damping: float, launch: Launch = NOW) -> None:
    """x <- (1 - damping) x + damping z; z is lost."""
    x *= 1 - damping
    z *= damping
    x += z


def permute(order: Array, x: Array, y: Array, back: bool, launch: Launch = NOW) -> None:
    """Block row i of y <- block row order[i] of x, or the other way round."""
    if x.shape[1:] == (1, 1):  # for which NumPy takes longer
        x, y = x[:, 0, 0], y[:, 0, 0]
    if back:
        y[order] = x
    else:
        np.take(x, order, 0, out=y, mode="clip")  # the default takes a copy first, in case an index is wrong
