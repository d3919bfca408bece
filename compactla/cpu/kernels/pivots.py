"""LU of blocks with an eye on the pivots, at the pack level, for lines of blocks that ask for it.

Rows are swapped lane by lane: a vector says which row each lane swaps, and lanes are blended. What is watched is in
the rows of a matrix W of `WATCHED` x 1 that `compactla.lines.pivots` names; numbers are real there, with imaginary
parts 0.
"""

import math

import numpy as np
from llvmlite import ir

from compactla.cpu.emit import Number, routine, splat
from compactla.cpu.kernels.getrfnp import report
from compactla.cpu.simd import INDEX, index
from compactla.lines.pivots import FACTOR, LARGEST, NORM, REPLACED, SMALLEST


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
def lu_watched(code, A, S, W, rows, info, first, policy):
    """A <- L\\U, with the reciprocals of the pivots, after what `policy` says is done about each pivot.

    With "pivoting" S[q] is the row that was swapped with row q, for `laswp`. Zero pivots are entered into `info`,
    counted from `first`.
    """
    treatment, *pivoting = policy.split()
    first = first.index(code) if isinstance(first, Number) else first
    one, lanes = code.zero(A.vector).constant(1), used(code, A, rows)
    keep_largest(code, A, W, NORM)
    threshold = threshold_of(code, W[NORM, 0])
    for q in code.each(A.m):
        if pivoting:
            choose(code, A, S, q)
            swap(code, A, S, q)
        pivot = A[q, q]
        size = pivot.absolute()
        raise_to(code, W, SMALLEST, size, lanes, falls=True)
        if treatment == "shift":
            pivot = pivot + threshold.with_sign_of(pivot)
        elif treatment == "perturb":
            small = threshold.exceeds(size)
            pivot = pivot.select(small, threshold.with_sign_of(pivot))
            W[REPLACED, 0] = W[REPLACED, 0].select(code.builder.and_(small, lanes), W[REPLACED, 0] + one)
        zero = pivot.is_zero()
        report(code, [zero], info, code.add(code.add(first, 1), q))
        A[q, q] = pivot
        left = code.sub(code.sub(A.m, q), 1)
        keep_largest(code, A.block(q, q, 1, code.add(left, 1)), W, FACTOR, lanes)
        pivot = pivot.select(zero, one).reciprocal()
        A[q, q] = pivot
        below = code.add(q, 1)
        for i in code.each(left):
            row = code.add(below, i)
            A[row, q] = A[row, q] * pivot
            lip = -A[row, q]
            for j in code.each(left):
                column = code.add(below, j)
                A[row, column] = lip.fma(A[q, column], A[row, column])


@routine
def laswp(code, B, S):
    """Swap the rows of B as `lu_watched` did."""
    for q in code.each(B.m):
        swap(code, B, S, q)


def choose(code, A, S, q):
    """S[q] <- the row, from q on, with the largest element of column q: by |re| + |im|, as in LAPACK."""
    best, place = (code.registers(A.vector, 1) for _ in range(2))
    best[0, 0], place[0, 0] = A[q, q].cabs1(), number(code, A.vector, q)
    for i in code.each(code.sub(code.sub(A.m, q), 1)):
        row = code.add(code.add(q, 1), i)
        size = A[row, q].cabs1()
        larger = size.exceeds(best[0, 0])
        best[0, 0] = best[0, 0].select(larger, size)
        place[0, 0] = place[0, 0].select(larger, number(code, A.vector, row))
    S[q, 0] = place[0, 0]


def swap(code, B, S, q):
    """Swap row q of B with row S[q], which is no earlier one, in each lane."""
    b = code.builder
    place = S[q, 0]
    for i in code.each(code.sub(code.sub(B.m, q), 1)):
        row = code.add(code.add(q, 1), i)
        mask = (place - number(code, B.vector, row)).is_zero()
        some = b.bitcast(mask, ir.IntType(B.vector.lanes))
        with b.if_then(b.icmp_unsigned("!=", some, some.type(0))):
            for j in code.each(B.n):
                upper, lower = B[q, j], B[row, j]
                B[q, j], B[row, j] = upper.select(mask, lower), lower.select(mask, upper)


def threshold_of(code, norm):
    """Below what a pivot is small: sqrt(eps) times the norm of its block, or 1 for a block of zeros."""
    limits = np.finfo("f" if norm.vector.real.bitwidth == 32 else "d")
    norm = norm.select(norm.is_zero(), norm.constant(1))
    threshold, least = norm * norm.constant(math.sqrt(limits.eps)), norm.constant(limits.tiny)
    return threshold.select(least.exceeds(threshold), least)


def keep_largest(code, A, W, row, mask=None):
    largest = code.registers(A.vector, 1)
    largest[0, 0] = code.zero(A.vector)
    for i in code.each(A.m):
        for j in code.each(A.n):
            size = A[i, j].absolute()
            largest[0, 0] = largest[0, 0].select(size.exceeds(largest[0, 0]), size)
    raise_to(code, W, row, largest[0, 0], mask)


def raise_to(code, W, row, x, mask=None, falls=False):
    """W[row] <- max(W[row], x), or the smaller of them, where the mask is set."""
    beyond = W[row, 0].exceeds(x) if falls else x.exceeds(W[row, 0])
    W[row, 0] = W[row, 0].select(beyond if mask is None else code.builder.and_(beyond, mask), x)


def used(code, A, rows):
    """Mask of the lanes whose row is not -1."""
    b, kind = code.builder, ir.VectorType(INDEX, A.vector.lanes)
    numbers = b.load(b.bitcast(rows, kind.as_pointer()), align=8, typ=kind)
    return b.icmp_signed(">=", numbers, ir.Constant(kind, [0] * A.vector.lanes))


def number(code, vector, x):
    """An index in every lane."""
    zero = code.zero(vector)
    if isinstance(x, int):
        return zero.constant(x)
    b = code.builder
    real = splat(b, vector, b.sitofp(index(x), vector.part.element))
    return zero + zero._new(real, *zero.parts[1:])
