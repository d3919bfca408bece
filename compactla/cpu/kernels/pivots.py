"""LU of blocks with an eye on the pivots, at the pack level, for lines of blocks that ask for it.

Rows are swapped as in `getrf`. What is watched is in the rows of a matrix W of `WATCHED` x 1 that
`compactla.pivots` names; numbers are real there, with imaginary parts 0.
"""

import math

import numpy as np
from llvmlite import ir

from compactla.cpu.emit.code import Number, routine
from compactla.cpu.emit.failures import report
from compactla.cpu.emit.index import INDEX
from compactla.cpu.emit.vectors import Flags
from compactla.cpu.kernels.getrf import search, swap_where_wanted
from compactla.cpu.kernels.getrfnp import away_from_zero, reciprocal
from compactla.pivots import FACTOR, LARGEST, NORM, REPLACED, SMALLEST


@routine
def start_block(code, D, W, rows):
    """Watch a block of the diagonal as it is in the matrix, in the lanes whose `rows` are not -1."""
    W[NORM, 0] = code.zero(D.vector)
    keep_largest(code, D, W, NORM)
    raise_to(code, W, LARGEST, W[NORM, 0], used(code, D, rows))


@routine
def watch(code, A, W, rows, row):
    """W[row] <- the largest |element| of A and of what W[row] is, in the lanes whose `rows` are not -1."""
    keep_largest(code, A, W, row, used(code, A, rows))


@routine
def lu_watched(code, A, S, W, rows, info, first, policy, tiny):
    """A <- L\\U, with the reciprocals of the pivots, after what `policy` says is done about each pivot.

    The amount of a "shift" is `tiny`, if that is not zero. With "pivoting" S[q] is the row that was swapped with row q,
    for `laswp`. Zero pivots are entered into `info`, counted from `first`.
    """
    treatment, *pivoting = policy.split()
    first = first.index(code) if isinstance(first, Number) else first
    lanes = used(code, A, rows)
    keep_largest(code, A, W, NORM)
    threshold = threshold_of(code, W[NORM, 0].real)
    if treatment == "shift":
        tiny = code.broadcast(tiny, threshold.vector)
        threshold = (tiny > 0).select(tiny, threshold)
    for q in code.each(A.m):
        # The row with the largest pivot, if rows are swapped.
        if pivoting:
            place = search(code, A, q, 0, 1)
            S[q, 0] = place.astype(S.vector.dtype)
            swap_where_wanted(code, A, q, place)
        # The pivot as the policy wants it.
        pivot = A[q, q]
        size = abs(pivot)
        raise_to(code, W, SMALLEST, size, lanes, falls=True)
        if treatment == "shift":
            pivot = away_from_zero(pivot, threshold)
        elif treatment == "perturb":
            small, replaced = threshold > size, W[REPLACED, 0]
            pivot = small.select(threshold.copysign(pivot.real), pivot)
            W[REPLACED, 0] = (small & lanes).select(replaced + replaced.constant(1), replaced)
        zero, inverse = reciprocal(pivot)
        report(code, [zero], info, first + 1 + q)
        A[q, q] = pivot
        # Note the size of the row of U, then eliminate the column.
        left = A.m - q - 1
        keep_largest(code, A.block(q, q, 1, left + 1), W, FACTOR, lanes)
        A[q, q] = inverse
        below = q + 1
        for i in code.each(left):
            row = below + i
            A[row, q] = A[row, q] * inverse
            lip = -A[row, q]
            for j in code.each(left):
                column = below + j
                A[row, column] = lip.fma(A[q, column], A[row, column])


def threshold_of(code, norm):
    """Below what a pivot is small: sqrt(eps) times the norm of its block, or 1 for a block of zeros."""
    limits = np.finfo("f" if norm.vector.real.bitwidth == 32 else "d")
    norm = (norm == 0).select(norm.constant(1), norm)
    threshold, least = norm * norm.constant(math.sqrt(limits.eps)), norm.constant(limits.tiny)
    return (least > threshold).select(least, threshold)


def keep_largest(code, A, W, row, mask=None):
    largest = code.registers(A.vector.reals, 1)
    largest[0, 0] = code.zero(A.vector.reals)
    for i in code.each(A.m):
        for j in code.each(A.n):
            size = abs(A[i, j])
            largest[0, 0] = (size > largest[0, 0]).select(size, largest[0, 0])
    raise_to(code, W, row, largest[0, 0], mask)


def raise_to(code, W, row, x, mask=None, falls=False):
    """W[row] <- max(W[row], x), or the smaller of them, where the mask is set."""
    before, x = W[row, 0].real, x.real
    beyond = x < before if falls else x > before
    W[row, 0] = (beyond if mask is None else beyond & mask).select(x, before)


def used(code, A, rows):
    """Mask of the lanes whose row is not -1."""
    b, kind = code.builder, ir.VectorType(INDEX, A.vector.lanes)
    numbers = b.load(b.bitcast(rows, kind.as_pointer()), align=8, typ=kind)
    return Flags(b, b.icmp_signed(">=", numbers, ir.Constant(kind, [0] * A.vector.lanes)))
