"""The small least-squares problem of GMRES for one large system, and a step of the method as one call.

A step makes a new vector orthogonal to those before. In between are sums over pieces of vectors, and some arithmetic
with columns of a triangle, which Python would take longer for than a small system takes for its vectors.
"""

from collections.abc import Callable

import numpy as np
from numba import carray, types

from compactla.cpu.emit.numba_words import pointer
from compactla.cpu.late import CompiledLate, part
from compactla.cpu.threads.pool import hand_out
from compactla.types import Array

# Words of the kernels of `compactla.cpu.krylov` that a step changes.
FIRST, STRIDE, COUNT, OTHER, OTHERS, SCALE, OF_DOTS = 4, 5, 6, 7, 8, 9, 11
MADE, SPANS, OF_COMBINE = 4, 5, 9


@part
def subtract_products(products: Array, columns: Array, j: int, found: Array, h: Array, modified: bool) -> None:
    """Add products with vector j + 1 to column j; h <- these, negative: as they were found, or modified.

    Modified Gram-Schmidt takes the products of vector j with those before, ``found[0]``, too.
    """
    for k in range(j + 1):
        h[k] = found[1, k]
    if modified:
        for k in range(j):
            products[j, k] = np.conj(found[0, k])
        for k in range(1, j + 1):
            for i in range(k):
                h[k] -= products[k, i] * h[i]
    for k in range(j + 1):
        columns[j, k] += h[k]
        h[k] = -h[k]


@part
def rotate_column(
    columns: Array, whole: Array, rotations: Array, rhs: Array, j: int, below: float, eps: float
) -> tuple[int, float]:  # fmt: skip
    """Make column j triangular; it is kept in `whole` as it was.

    Returns 2, or 1 if the vectors end here, or 0 if this column is zero; the residual.
    """
    size = below
    for k in range(j + 1):
        whole[j, k] = columns[j, k]
    whole[j, j + 1] = below
    for k in range(j + 1):
        size = np.hypot(size, abs(columns[j, k]))
    size *= eps
    is_last = below <= size
    if is_last:
        below = 0.0
    for k in range(j):
        c, s = rotations[k, 0], rotations[k, 1]
        first, second = columns[j, k], columns[j, k + 1]
        columns[j, k] = c * first + s * second
        columns[j, k + 1] = c * second - np.conj(s) * first
    last = columns[j, j]
    length = np.hypot(abs(last), below)
    if is_last and abs(last) <= size:
        return 0, abs(rhs[j])
    if last == 0:
        c, s = last, last + 1
    else:
        c, s = 0 * last + abs(last) / length, last / abs(last) * (below / length)
    columns[j, j] = c * last + s * below
    rotations[j, 0], rotations[j, 1] = c, s
    rhs[j + 1] = -np.conj(s) * rhs[j]
    rhs[j] = c * rhs[j]
    return (1 if is_last else 2), abs(rhs[j + 1])


@CompiledLate
def substitute(columns: Array, y: Array) -> None:
    """Solve with the upper triangle of which these are the columns, in place; no diagonal is zero."""
    for k in range(len(y) - 1, -1, -1):
        y[k] = y[k] / columns[k, k]
        for i in range(k):
            y[i] -= columns[k, i] * y[k]


subtract, rotate = CompiledLate(subtract_products), CompiledLate(rotate_column)  # for who calls them from Python


def arnoldi_batch(parts: int) -> Callable:
    """A kernel for a step of GMRES with vectors of so many pieces, of real numbers or of complex ones of two `parts`.

    It takes where the boxes of helpers are, how many there are, and their function; how many threads share the work;
    the functions that call the kernels of `compactla.cpu.krylov`, and the words for these; the addresses of their sums
    and factors; those of the arrays of a `Hessenberg` of m columns; the number j of the step; how often vector j + 1 is
    made orthogonal, zero for the modified process; what both vectors are multiplied by before; eps of their type; and
    where the norm of what is left goes, that of the residual, and what `rotate_column` returns.
    """
    wide, real, word = types.complex128 if parts == 2 else types.float64, types.float64, types.int64
    number = np.complex128 if parts == 2 else np.float64

    def kernel(
        lo, hi, boxes, helpers, server, threads, dots, dots_words, combine, combine_words, sums, factors, products,
        columns, whole, rotations, rhs, m, j, passes, scale, eps, out
    ):  # fmt: skip
        D, E = carray(pointer(dots_words), OF_DOTS, word), carray(pointer(combine_words), OF_COMBINE, word)
        P, C = carray(pointer(products), (m, m), wide), carray(pointer(columns), (m, m), wide)
        U = carray(pointer(whole), (m, m + 1), wide)
        R, b = carray(pointer(rotations), (m, 2), wide), carray(pointer(rhs), m + 1, wide)
        count, square = j + 1, 0.0
        F, found = carray(pointer(factors), count + 1, wide), np.empty((2, count), number)
        S, T = carray(pointer(sums), (hi, 2, parts, count), real), carray(pointer(sums), (hi, 2 * parts), real)
        D[FIRST], D[STRIDE], D[COUNT], D[OTHER], D[OTHERS] = 0, 1, count, j, 2
        E[MADE] = 1
        span = carray(pointer(E[SPANS]), 4, word)
        span[0], span[1], span[2], span[3] = count, 0, 1, count
        for _ in range(max(passes, 1)):
            carray(pointer(dots_words), OF_DOTS, real)[SCALE] = scale
            hand_out(boxes, helpers, server, threads, dots, hi, 0, dots_words, 0)
            for k in range(2):
                for i in range(count):
                    found[k, i] = 0
            for c in range(hi):
                for k in range(2):
                    for i in range(count):
                        found[k, i] += S[c, k, 0, i] if parts == 1 else complex(S[c, k, 0, i], S[c, k, parts - 1, i])
            F[0] = 1
            subtract_products(P, C, j, found, F[1:], passes == 0)
            hand_out(boxes, helpers, server, threads, combine, hi, 0, combine_words, 0)
            square, scale = 0.0, 1.0
            for c in range(hi):
                square += T[c, 0]
        norm = np.sqrt(square)
        kept, residual = rotate_column(C, U, R, b, j, norm, eps)
        result = carray(pointer(out), 3, real)
        result[0], result[1], result[2] = norm, residual, kept

    return kernel
