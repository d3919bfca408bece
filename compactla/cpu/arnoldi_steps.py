"""Several steps of GMRES for one large system, whose vectors are made orthogonal together.

Each vector is made by A of the one before, as it is: less its part along that, and of some norm 1, but not orthogonal
to others. All are made orthogonal then, by the classical Gram-Schmidt process, so that vectors before are read twice
for several steps. What A would have made of the orthogonal vectors follows, as all are sums of multiples of these, and
A is linear. Hoemmen calls such methods communication-avoiding.
"""

from collections.abc import Callable

import numpy as np
from numba import carray, types

from compactla.cpu.arnoldi import (
    COUNT,
    FIRST,
    MADE,
    OF_COMBINE,
    OF_DOTS,
    OTHER,
    OTHERS,
    SCALE,
    SPANS,
    STRIDE,
    rotate_column,
)
from compactla.cpu.emit.numba_words import pointer
from compactla.cpu.late import part
from compactla.cpu.threads.pool import hand_out
from compactla.types import Array

SOME = 4  # steps at most
# Words of the third kernel.
BEFORE, AFTER, FACTORS, OF_REDUCE = 4, 5, 6, 8


def shift_batch(parts: int) -> Callable:
    """A kernel that takes off a row its part along the one before, and divides it by its norm.

    It begins as `compactla.cpu.arnoldi.arnoldi_batch`, and takes the addresses of sums and factors, the row before, and
    where the product with it and the norm go.
    """
    wide, real, word = types.complex128 if parts == 2 else types.float64, types.float64, types.int64

    def kernel(
        lo, hi, boxes, helpers, server, threads, dots, dots_words, combine, combine_words, sums, factors, row, out
    ):
        D, E = carray(pointer(dots_words), OF_DOTS, word), carray(pointer(combine_words), OF_COMBINE, word)
        D[FIRST], D[STRIDE], D[COUNT], D[OTHER], D[OTHERS] = row, 1, 2, row + 1, 1
        carray(pointer(dots_words), OF_DOTS, real)[SCALE] = 1.0
        hand_out(boxes, helpers, server, threads, dots, hi, 0, dots_words, 0)
        S = carray(pointer(sums), (hi, parts, 2), real)
        along, imaginary, square = 0.0, 0.0, 0.0
        for c in range(hi):
            along, square = along + S[c, 0, 0], square + S[c, 0, 1]
            if parts == 2:
                imaginary += S[c, parts - 1, 0]
        # little is left of a vector that is not worth it
        norm = np.sqrt(max(square - along * along - imaginary * imaginary, 1e-8 * square))
        result, F = carray(pointer(out), 2, wide), carray(pointer(factors), 2, wide)
        if not 0 < norm < np.inf:
            along, imaginary, norm = 0.0, 0.0, 1.0
        result[0] = along if parts == 1 else complex(along, imaginary)
        result[1] = norm
        F[0], F[1] = 1 / norm, -result[0] / norm
        E[MADE] = 1
        span = carray(pointer(E[SPANS]), 4, word)
        span[0], span[1], span[2], span[3] = row + 1, row, 1, 1
        hand_out(boxes, helpers, server, threads, combine, hi, 0, combine_words, 0)

    return kernel


@part
def triangle(G: Array, C: Array, R: Array, eps: float) -> tuple[int, float]:
    """R <- the triangle whose square is G, the products of vectors with what they were made of in the rows of C.

    Returns how many of them are far enough from those before, there is one, and how many times as long as what is left
    of one of them is what was taken off.
    """
    some = len(G)
    worst, far, cancelled = 1.0, eps**-0.25, 0.0
    for s in range(some):
        square = G[s, s].real
        for t in range(s):
            r = G[s, t]
            for q in range(t):
                r -= np.conj(R[q, t]) * R[q, s]
            R[t, s] = r / R[t, t]
            square -= abs(R[t, s]) ** 2
        if s and not (worst < far and square * np.sqrt(far) > G[s, s].real):
            return s, cancelled
        R[s, s] = np.sqrt(square)
        length, within = 0.0, 0.0
        for k in range(C.shape[1]):
            length += abs(C[s, k]) ** 2
        for t in range(s + 1):
            within += abs(R[t, s]) ** 2
        cancelled = max(cancelled, np.sqrt(length) / R[s, s].real)
        worst *= np.sqrt(length + within) / R[s, s].real
    return some, cancelled


@part
def column(
    whole: Array, C: Array, R: Array, shifts: Array, j: int, i: int, h: Array
) -> float:  # fmt: skip
    """h <- column j + i, from the first and the last but one of its vectors; what is below the diagonal."""
    count = j + 1
    for k in range(count):
        h[k] = shifts[i, 1] * C[i, k]
    for t in range(i + 1):
        h[count + t] = shifts[i, 1] * R[t, i]
    if i == 0:
        h[j] += shifts[0, 0]
        return h[count].real
    # what A has made of a sum of multiples of vectors, less what it makes of all but the last of these
    last = R[i - 1, i - 1].real
    for k in range(count):
        h[k] += shifts[i, 0] * C[i - 1, k]
    for t in range(i):
        h[count + t] += shifts[i, 0] * R[t, i - 1]
    for k in range(j + i):
        factor = C[i - 1, k] if k < count else R[k - count, i - 1]
        for q in range(k + 2):
            h[q] -= factor * whole[k, q]
    for k in range(count + i + 1):
        h[k] = h[k] / last
    return h[count + i].real


def steps_batch(parts: int) -> Callable:
    """A kernel that makes vectors j + 1 to j + some orthonormal, and columns of a triangle from j on.

    It begins as `compactla.cpu.arnoldi.arnoldi_batch`, with a third kernel; takes the addresses of sums and factors,
    those of the arrays of a `Hessenberg` of m columns, and of its shifts; the numbers j and `some`; how often vectors
    are made orthogonal, at least; eps; where the largest product of two vectors is, as far as is known, which decides
    whether that is done again; and where norms of residuals go, and behind them how many steps there are, and what
    `rotate_column` returns.
    """
    wide, real, word = types.complex128 if parts == 2 else types.float64, types.float64, types.int64
    number = np.complex128 if parts == 2 else np.float64

    @part
    def add_up(pieces, sums):
        """Sums <- those of all pieces."""
        for s in range(pieces.shape[1]):
            for i in range(pieces.shape[3]):
                sums[s, i] = 0
        for c in range(len(pieces)):
            for s in range(pieces.shape[1]):
                for i in range(pieces.shape[3]):
                    x = pieces[c, s, 0, i]
                    sums[s, i] += x if parts == 1 else complex(x, pieces[c, s, parts - 1, i])

    def kernel(
        lo, hi, boxes, helpers, server, threads, dots, dots_words, combine, combine_words, reduce, reduce_words, sums,
        factors, columns, whole, rotations, rhs, shifts, m, j, some, passes, eps, loss, out
    ):  # fmt: skip
        D, E = carray(pointer(dots_words), OF_DOTS, word), carray(pointer(combine_words), OF_COMBINE, word)
        K, count = carray(pointer(reduce_words), OF_REDUCE, word), j + 1
        T, L = carray(pointer(columns), (m, m), wide), carray(pointer(shifts), (SOME, 2), wide)
        U, worst = carray(pointer(whole), (m, m + 1), wide), carray(pointer(loss), 1, real)
        A, b = carray(pointer(rotations), (m, 2), wide), carray(pointer(rhs), m + 1, wide)
        result = carray(pointer(out), SOME + 2, real)
        C, G, R = np.empty((some, count), number), np.empty((some, some), number), np.empty((some, some), number)
        carray(pointer(dots_words), OF_DOTS, real)[SCALE] = 1.0
        D[FIRST], D[STRIDE], D[COUNT], D[OTHER], D[OTHERS] = 0, 1, count, count, some
        K[BEFORE], K[AFTER] = count, some
        F, steps, further = carray(pointer(factors), (some, count), wide), 0, 0.0
        for turn in range(2):
            hand_out(boxes, helpers, server, threads, dots, hi, 0, dots_words, 0)
            S = carray(pointer(sums), (hi, some, parts, count), real)
            add_up(S, F)
            for s in range(some):
                for i in range(count):
                    C[s, i] = C[s, i] + F[s, i] if turn else F[s, i]
                    F[s, i] = -F[s, i]
            hand_out(boxes, helpers, server, threads, reduce, hi, 0, reduce_words, 0)
            Q = carray(pointer(sums), (hi, some, parts, some), real)
            add_up(Q, G)
            steps, cancelled = triangle(G, C, R, eps)
            further = cancelled * max(worst[0], eps)
            if turn + 1 >= passes and (turn or further <= eps**0.25):
                break
            further = eps
        worst[0] = max(worst[0], min(further, 1.0))
        kept = 2
        # the vectors
        H, spans, place = carray(pointer(factors), some * count, wide), carray(pointer(E[SPANS]), (SOME, 4), word), 0
        for s in range(steps):
            spans[s, 0], spans[s, 1], spans[s, 2], spans[s, 3] = count + s, count, 1, s
            H[place] = 1 / R[s, s]
            for t in range(s):
                H[place + 1 + t] = -R[t, s] / R[s, s]
            place += s + 1
        E[MADE] = steps
        hand_out(boxes, helpers, server, threads, combine, hi, 0, combine_words, 0)
        # the columns
        h = np.empty(m + 1, number)
        for s in range(steps):
            below = column(U, C, R, L, j, s, h)
            for k in range(count + s):
                T[j + s, k] = h[k]
            kept, result[s] = rotate_column(T, U, A, b, j + s, below, eps)
            if kept < 2:
                steps = s + 1
                break
        result[SOME], result[SOME + 1] = steps, kept

    return kernel
