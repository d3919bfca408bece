"""Kronecker products and sums of V items, whose numbers stand side by side, while an item is in cache.

The first axis is contracted first. What comes of an item of more than two axes is taken apart along that one: each of
its parts is contracted along all other axes, and written, before the next one is.
"""

import math
from collections.abc import Sequence
from typing import Any

from compactla.cpu.emit.code import Code, check_fit, routine
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.emit.vectors import Lanes
from compactla.cpu.kernels.gemm import tile_of, update
from compactla.cpu.kron.items import Packed, made, reshaped


@routine
def kron_apply(code, factors, X, Y, alpha=1, beta=0):
    """Y <- alpha (A x B x ...) X + beta Y for the V items of a pack, in a Numba function.

    Parameters
    ----------
    factors : tuple of matrices
        A, B, ..., one for each axis, from `matrix`; ``A.T`` and ``A.H`` are views.
    X, Y : matrix
        Items: rows along the first axis, columns along all others, of which the last one is the fastest. They have one
        column if there are no others.
    alpha, beta : number
        If beta is zero Y is not read.
    """
    d, e = tuple(A.n for A in factors), tuple(A.m for A in factors)
    check_fit("X", (X.m, X.n), (d[0], math.prod(d[1:])))
    check_fit("Y", (Y.m, Y.n), (e[0], math.prod(e[1:])))
    if alpha != 1:
        A = factors[0]
        factors = [code.room(A.vector, A.m, A.n), *factors[1:]]
        scaled(code, factors[0], A, code.broadcast(alpha, A.vector))
    factor = None
    if beta != 0:
        factor = code.room(X.vector, 1)
        factor[0, 0] = code.broadcast(beta, X.vector)
    if len(factors) == 1:
        X, Y, d, e = X.T, Y.T, (1, *d), (1, *e)
    rooms = [code.room(X.vector, m, n) for m, n in made(d, e)]
    apply(code, factors, Packed(X, d[1:]), Packed(Y, e[1:]), [None, None, *rooms], factor)


def product(code, C, A, B):
    """C <- A B"""
    add_product(code, C, A, B, 0)


def accumulated(code, C, A, B):
    """C <- A B + C"""
    add_product(code, C, A, B, 1)


def add_product(code, C, A, B, beta):
    rows, columns = tile_of(C)
    for i, m in code.tiles(C.m, rows):
        for j, n in code.tiles(C.n, columns):
            update(code, [(A.block(i, 0, m, A.n), B.block(0, j, A.n, n))], C.block(i, j, m, n), 1, beta)


def scaled(code, C, A, alpha):
    """C <- alpha A"""
    with code.loop(C.m) as i, code.loop(C.n) as j:
        C[i, j] = alpha * A[i, j]


def prepared(code, C, beta):
    """C <- beta C, with the number in a matrix: zero, whatever C held, if that is zero."""
    with code.either(code.is_zero(beta[0, 0])) as (zero, nonzero):
        with zero:
            scaled_by_zero(code, C)
        with nonzero:
            scaled(code, C, C, beta[0, 0])


def scaled_by_zero(code, C):
    with code.loop(C.m) as i, code.loop(C.n) as j:
        C[i, j] = code.zero(C.vector)


def plus(code, C, A):
    """C <- A + C"""
    with code.loop(C.m) as i, code.loop(C.n) as j:
        C[i, j] = A[i, j] + C[i, j]


def copied(code, C, A):
    """C <- A"""
    with code.loop(C.m) as i, code.loop(C.n) as j:
        C[i, j] = A[i, j]


def apply(
    code: Code, factors: Sequence[Elements], X: Any, Y: Any, work: Sequence, beta: Elements | None = None
) -> None:
    """Y <- (A x B x ...) X + beta Y, with the number in a matrix, if there is one.

    `work` is where matrices are meanwhile: what is read of X, what is written to Y, and what factors have made.
    """
    read, written, *rooms = work
    if len(factors) == 1:  # the items have an axis of one element before that
        expand(code, factors, X.read(read), Y, written, rooms, beta)
        return
    T, *rooms = rooms
    for j, n, panel in X.panels():
        code.shared(product, T.block(0, j, T.m, n), factors[0], panel.read(read))
    expand(code, factors[1:], T, Y, written, rooms, beta)


def expand(code, factors, T, Y, written, rooms, beta):
    """Y <- T contracted along all axes but the first; beta as of `apply`."""
    first, *others = factors
    if not others:
        for i, m, band in Y.bands():
            S = old(code, band, written, beta)
            code.shared(product if beta is None else accumulated, S.T, first, T.block(i, 0, m, T.n).T)
            band.write(S)
        return
    U, *rooms = rooms
    with code.loop(T.m) as i:
        code.shared(product, U, first, reshaped(T.block(i, 0, 1, T.n), first.n, U.n))
        expand(code, others, U, Y.at(i), written, rooms, beta)


def old(code, band, written, beta):
    """A matrix for a band of Y, with beta times what is there, if there is a beta."""
    S = band.old(written, beta is not None)
    if beta is not None:
        code.shared(prepared, S, beta)
    return S


def apply_sum(
    code: Code, factors: Sequence[Elements], X: Any, Y: Any, work: Sequence, beta: Elements | None = None
) -> None:
    """Y <- (A x I x ... + I x B x ... + ...) X, as `apply`; all of the items are kept in `read`."""
    if len(factors) == 1:
        apply(code, factors, X, Y, work, beta)
        return
    read, written, T = work[:3]
    for j, n, panel in X.panels():
        code.shared(product, T.block(0, j, T.m, n), factors[0], panel.read(read.block(0, j, read.m, n)))
    accumulate(code, factors[1:], X.kept(read), T, Y, written, beta)


def accumulate(code, factors, X, T, Y, written, beta):
    """Y <- T + X multiplied along each axis but the first; beta as of `apply`."""
    first, *others = factors
    if others:
        n = math.prod([factor.m for factor in others])
        with code.loop(T.m) as i:
            x, t = (reshaped(A.block(i, 0, 1, A.n), first.m, n) for A in (X, T))
            code.shared(accumulated, t, first, x)
            accumulate(code, others, x, t, Y.at(i), written, beta)
        return
    code.shared(accumulated, T.T, first, X.T)
    for i, m, band in Y.bands():
        S = old(code, band, written, beta)
        code.shared(copied if beta is None else plus, S, T.block(i, 0, m, T.n))
        band.write(S)


def solve_sum(
    code: Code, inverses: Sequence[Elements], vectors: Sequence[Elements], D: Elements, X: Any, Y: Any, work: Sequence,
    beta: Elements | None = None,
) -> None:  # fmt: skip
    """Y <- (A x B x ...) D (A^-1 x B^-1 x ...) X, as `apply`, with a diagonal D; items are in the last of `work`."""
    *work, W = work
    sizes = tuple(A.m for A in vectors[1:]) if len(vectors) > 1 else (W.n,)
    apply(code, inverses, X, Packed(W, sizes), work)
    with code.loop(W.m) as i, code.loop(W.n) as j:
        W[i, j] = D[0, i * W.n + j] * W[i, j]
    apply(code, vectors, Packed(W, sizes), Y, work, beta)


def invert(code: Code, values: Sequence[Elements], D: Elements, total: Lanes, alpha: Lanes) -> None:
    """D <- alpha / (total + a sum of one of the values of each axis), row by row."""
    first, *others = values
    with code.loop(first.m) as i:
        here = total + first[i, 0]
        if others:
            n = math.prod([value.m for value in others])
            invert(code, others, D.block(0, i * n, 1, n), here, alpha)
        else:
            D[0, i] = alpha / here
