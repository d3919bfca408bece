"""y <- rhs - A x for a block sparse matrix, as the sweeps of `compactla.relaxation` need it."""

import numpy as np


def residual_batch(b, identity):
    """A kernel for block rows lo to hi of a matrix of b x b blocks in BSR form.

    It takes flat arrays: indptr, indices and data of the matrix, x of all block rows, rhs and y of those that A has,
    and the number of right-hand sides.
    """

    def kernel(lo, hi, indptr, indices, data, x, rhs, y, nrhs):
        total = np.empty(b * nrhs, y.dtype)
        for i in range(lo, hi):
            for e in range(b * nrhs):
                total[e] = rhs[i * b * nrhs + e]
            for k in range(indptr[i], indptr[i + 1]):
                block, there = k * b * b, indices[k] * b * nrhs
                for p in range(b):
                    if nrhs == 1:
                        one = total[p]
                        for q in range(b):
                            one -= data[block + p * b + q] * x[there + q]
                        total[p] = one
                    else:
                        for q in range(b):
                            a = data[block + p * b + q]
                            for c in range(nrhs):
                                total[p * nrhs + c] -= a * x[there + q * nrhs + c]
            for e in range(b * nrhs):
                y[i * b * nrhs + e] = total[e]
        return identity

    return kernel
