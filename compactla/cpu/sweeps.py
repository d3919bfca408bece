"""What the sweeps of `compactla.lines.relaxation` do beside solving along lines."""

import functools

import numpy as np
from numba.np.numpy_support import from_dtype

from compactla.cpu.kernel import INT, INTS, compiled
from compactla.cpu.parallel import share


def residual_batch(b, sign):
    """A kernel for block rows lo to hi of a matrix of b x b blocks in BSR form: rhs - A x, or A x for the sign 1.

    It takes flat arrays: indptr, indices and data of the matrix, x of all block rows, rhs and y of those that A has,
    and the number of right-hand sides. There is no rhs for the sign 1.
    """

    def kernel(lo, hi, indptr, indices, data, x, rhs, y, nrhs):
        size = b * nrhs
        for i in range(lo, hi):
            total = y[i * size : (i + 1) * size]
            for e in range(size):
                total[e] = rhs[i * size + e] if sign < 0 else 0
            if b == 1 and nrhs == 1:
                one = total[0]
                for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):  # no index counts from the end
                    term = data[k] * x[np.uint64(indices[k])]
                    one = one - term if sign < 0 else one + term
                total[0] = one
            elif nrhs == 1:
                for k in range(indptr[i], indptr[i + 1]):
                    block, there = data[k * b * b : (k + 1) * b * b], x[indices[k] * b : indices[k] * b + b]
                    for p in range(b):
                        one = total[p]
                        for q in range(b):
                            term = block[p * b + q] * there[q]
                            one = one - term if sign < 0 else one + term
                        total[p] = one
            else:
                for k in range(indptr[i], indptr[i + 1]):
                    block, there = data[k * b * b : (k + 1) * b * b], x[indices[k] * size : (indices[k] + 1) * size]
                    for p in range(b):
                        for q in range(b):
                            a = -block[p * b + q] if sign < 0 else block[p * b + q]
                            for c in range(nrhs):
                                total[p * nrhs + c] += a * there[q * nrhs + c]

    return kernel


def residual(A, x, rhs, y, threads=None):
    """y <- rhs - A x for block rows A; vectors are (block rows, b, right-hand sides)."""
    launch(A, x, rhs, y, -1, threads)


def product(A, x, y, threads=None):
    """y <- A x."""
    launch(A, x, y, y, 1, threads)


def launch(A, x, rhs, y, sign, threads):
    rows, b, nrhs = y.shape
    arrays = (A.indptr, A.indices, A.data.reshape(-1), x.reshape(-1), rhs.reshape(-1), y.reshape(-1))
    if not rows * b * nrhs:
        return
    kernel = residual_kernel(b, sign, *(a.dtype.char for a in (A.indices, y)))
    share(kernel, A.data.size * nrhs, (0, rows, *arrays, nrhs), threads)


@functools.cache
def residual_kernel(b, sign, index, char):
    numbers = from_dtype(np.dtype(char))[::1]
    arguments = INTS, from_dtype(np.dtype(index))[::1], *[numbers] * 4, INT
    return compiled(residual_batch, arguments, b, sign, reordered=sign > 0 and b > 1)


def damp(z, x, damping, threads=None):
    """x <- (1 - damping) x + damping z; z is lost."""
    x *= 1 - damping
    z *= damping
    x += z


def permute(order, x, y, back, threads=None):
    """Block row i of y <- block row order[i] of x, or the other way round."""
    if back:
        y[order] = x
    else:
        np.take(x, order, 0, out=y, mode="clip")  # the default takes a copy first, in case an index is wrong
