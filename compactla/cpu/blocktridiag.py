"""Block tridiagonal lines: pack-level calls in a loop over the blocks of a line, one pack of lines at a time.

Slot ``offset[p] + k`` of `diag` is block k of the lines of pack p; `lower` and `upper` have one slot less a pack.
"""

import numpy as np

from compactla.cpu.gemm import gemm
from compactla.cpu.getrf import getrfnp
from compactla.cpu.lanes import KINDS, at, peek, poke
from compactla.cpu.trsm import trsm


def factor_batch(block, width, fetch, identity):
    """Kernel that factors packs lo to hi in place; `block` is the form of a b x b block.

    diag[k] <- L\\U with the reciprocals of the pivots, upper[k] <- inv(L) upper[k], lower[k] <- lower[k] inv(U),
    diag[k + 1] <- diag[k + 1] - lower[k] upper[k].
    """

    def kernel(lo, hi, V, b, size, rs, cs, lower, diag, upper, offset, info):
        for p in range(lo, hi):
            first, last = offset[p], offset[p + 1] - 1
            for v in range(0, V, width):
                pivots = info[p * V + v :]
                for s in range(first, last + 1):
                    D = at(diag, s * size + v, b, b, rs, cs, V, block)
                    F = at(upper, (s - p) * size + v, b, b, rs, cs, V, block)
                    if s > first:
                        before = (s - p - 1) * size + v
                        E = at(lower, before, b, b, rs, cs, V, block)
                        G = at(upper, before, b, b, rs, cs, V, block)
                        gemm(E, G, D, -1, 1, (at(lower, before + size, b, b, rs, cs, V, block), F, at(diag, (s + 1) * size + v, b, b, rs, cs, V, block)) if fetch else ())
                    getrfnp(D, pivots, (s - first) * b, "R")
                    if s < last:
                        trsm(D, F, "L", "L", "N", "U")
                        trsm(D, F, "L", "U", "N", "R")
        return identity

    return kernel


def solve_batch(real, block, column, width, fetch, identity):
    """Kernel that solves with the factors of packs lo to hi; `column` is the form of a b x nrhs block of x.

    `rows` says which block row of `rhs` and `x` a slot's lane is, -1 for an unused lane. `work` has room for the
    x of one pack.
    """
    item, zero = KINDS[real].bitwidth // 8, np.dtype(real).type(0)

    def kernel(lo, hi, V, b, size, rs, cs, nrhs, parts, lower, diag, upper, offset, rows, rhs, x, work):
        length = b * nrhs
        step = length * parts * width
        row, element = nrhs * parts * width, parts * width
        for p in range(lo, hi):
            first, last = offset[p], offset[p + 1] - 1
            for v in range(0, V, width):
                for s in range(first, last + 1):
                    X = work + (s - first) * step * item
                    for lane in range(width):
                        r = rows[s * V + v + lane]
                        for e in range(length * parts):
                            number = peek(rhs + (r * length * parts + e) * item, real) if r >= 0 else zero
                            poke(X + (e * width + lane) * item, number)
                for s in range(first, last + 1):
                    X = at(work, (s - first) * step, b, nrhs, row, element, width, column)
                    if s > first:
                        E = at(lower, (s - p - 1) * size + v, b, b, rs, cs, V, block)
                        ahead = at(lower, (s - p) * size + v, b, b, rs, cs, V, block), at(diag, (s + 1) * size + v, b, b, rs, cs, V, block)
                        gemm(E, at(work, (s - first - 1) * step, b, nrhs, row, element, width, column), X, -1, 1, ahead if fetch else ())
                    D = at(diag, s * size + v, b, b, rs, cs, V, block)
                    trsm(D, X, "L", "L", "N", "U")
                    trsm(D, X, "L", "U", "N", "R")
                for s in range(last, first - 1, -1):
                    X = at(work, (s - first) * step, b, nrhs, row, element, width, column)
                    if s < last:
                        F = at(upper, (s - p) * size + v, b, b, rs, cs, V, block)
                        ahead = (at(upper, (s - p - 1) * size + v, b, b, rs, cs, V, block),)
                        gemm(F, at(work, (s - first + 1) * step, b, nrhs, row, element, width, column), X, -1, 1, ahead if fetch else ())
                for s in range(first, last + 1):
                    X = work + (s - first) * step * item
                    for lane in range(width):
                        r = rows[s * V + v + lane]
                        if r >= 0:
                            for e in range(length * parts):
                                poke(x + (r * length * parts + e) * item, peek(X + (e * width + lane) * item, real))
        return identity

    return kernel
