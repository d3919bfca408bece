"""Householder reflectors, H = I - tau [1; v] [1; v]^H: made of a column (`reflector`), and applied, one (`reflect`) or
several at once (`Reflectors`, `reflect_all`)."""

from typing import Any

from compactla.cpu.emit.choices import NEWTON, divided
from compactla.cpu.emit.code import Code
from compactla.cpu.emit.index import IntOrIndex
from compactla.cpu.emit.matrices import Elements, tile_size
from compactla.cpu.emit.vectors import Lanes
from compactla.cpu.kernels.norms import add_squares, into_range, is_right

SHORT = 12  # numbers of a column that is kept in registers
FEW = 6  # reflections that are emitted one by one
PAIRS = 4  # the least numbers of a column whose sums are two


def rows(code: Code, m):
    """The rows of a column of m numbers: as Python integers if it is short."""
    return range(m) if isinstance(m, int) and m <= SHORT else code.each(m)


def coefficients(alpha: Lanes, squares: Lanes):
    """beta, tau and 1 / (alpha - beta) of LAPACK's larfg, for the sum of the squares of what is below alpha.

    They are right where the sum of all squares is in range.
    """
    re, im = alpha.real, alpha.imag
    squares = re.fma(re, squares)
    if alpha.vector.is_complex:
        squares = im.fma(im, squares)
    inverse = squares.rsqrt(regular=True)
    many = not divided(1, NEWTON, squares.vector.real.bitwidth)  # beside the multiply-adds for a root
    norm, one = squares * inverse, inverse.constant(1)
    tau, difference = abs(re).fma(inverse, one), re + norm.copysign(re)
    if not alpha.vector.is_complex:
        return -norm.copysign(re), tau, difference.reciprocal(many, regular=True)
    factor = difference.fma(difference, im * im).reciprocal(many, regular=True)
    tau = alpha._new(*tau.parts, *(im * inverse.copysign(re)).parts)
    return -norm.copysign(re), tau, alpha._new(*(difference * factor).parts, *(-(im * factor)).parts)


def reflector(code: Code, alpha: Lanes, x: Elements) -> tuple[Lanes, Lanes]:
    """The reflector that makes [beta; 0] of [alpha; x] by H^H, as LAPACK's larfg: x <- v, and beta and tau.

    Neither overflows nor underflows on the way. `x` is a column, beta is real. Where x is zero, and alpha is real, tau
    is zero.
    """
    reals = x.vector.reals
    alone = isinstance(x.m, int) and x.m == 0
    if alone and not x.vector.is_complex:
        return alpha, code.zero(reals)
    found = code.registers(reals, 1), code.registers(alpha.vector, 1), code.registers(alpha.vector, 1)
    squares = sum_of(code, x, add_squares)
    keep(found, coefficients(alpha, squares))
    norm = add_squares(alpha, squares)
    good = is_right(norm)
    usual = good & (alpha.imag != 0 if alone else squares > 0)
    with code.when(~usual.all(), likely=False):
        none = (sum_of(code, x, lambda x, total: total + x.abs1()) == 0) & (alpha.imag == 0)
        with code.when(~(good | none).all(), likely=False):
            keep(found, scaled(code, alpha, x, norm), ~good)
        zero = code.zero(alpha.vector)
        keep(found, (alpha.real, zero, zero), none)
    beta, tau, inverse = (register[0, 0] for register in found)
    for i in rows(code, x.m):
        x[i, 0] = x[i, 0] * inverse
    return beta, tau


def scaled(code: Code, alpha: Lanes, x: Elements, norm: Lanes):
    """`coefficients` where the sum of squares, `norm`, is out of range; x is multiplied by a power of two there."""
    scale, back = into_range(norm)
    for i in rows(code, x.m):
        x[i, 0] = x[i, 0] * scale
    beta, *others = coefficients(alpha * scale, sum_of(code, x, add_squares))
    return beta * back, *others


def keep(registers, numbers, mask=None):
    """Put lanes into registers, where the mask is set."""
    for register, number in zip(registers, numbers, strict=True):
        register[0, 0] = number if mask is None else mask.select(number, register[0, 0])


def sum_of(code: Code, x: Elements, add):
    """The sum, which is real, of what ``add(x, total)`` adds to a total for every number of a column.

    That of a short one is two sums, for half of its numbers each: the second waits for nothing of the first.
    """
    count = 2 if isinstance(x.m, int) and PAIRS <= x.m <= SHORT else 1
    total = code.registers(x.vector.reals, count)
    for k in range(count):
        total[k, 0] = code.zero(x.vector.reals)
    for i in rows(code, x.m):
        k = i % count if count > 1 else 0
        total[k, 0] = add(x[i, 0], total[k, 0])
    return total[0, 0] if count == 1 else total[0, 0] + total[1, 0]


def reflect(code: Code, v: Elements, tau: Lanes, top: Elements, C: Elements, see: Any = None) -> None:
    """[top; C] <- H [top; C], where `top` is a row; with the conjugate of tau, H^H.

    If it is given, ``see(j, squares)`` gets the sum of the squares of every column j of C.
    """
    is_short = isinstance(C.m, int) and C.m <= SHORT
    # v, and what it is applied to, stay in registers where they are short
    widest = 1 if is_short else tile_size(C.vector, C.m, C.n)[1]
    halves = 2 if is_short and PAIRS <= C.m else 1
    for j, n in code.tiles(C.n, widest):
        columns = range(n)
        w = code.registers(C.vector, halves, n)
        for k in columns:
            w[0, k] = top[0, j + k]
        for i in rows(code, C.m):
            x = v[i, 0].conjugate()
            for k in columns:
                if halves == 1 or i % 2:
                    w[0, k] = x.fma(C[i, j + k], w[0, k])
                else:
                    w[1, k] = x.fma(C[i, j + k], w[1, k]) if i else x * C[i, j + k]
        for k in columns:
            w[0, k] = -(tau * (w[0, k] if halves == 1 else w[0, k] + w[1, k]))
            top[0, j + k] = top[0, j + k] + w[0, k]
        squares = code.registers(C.vector.reals, n if see else 0)
        for k, _ in squares.slots:
            squares[k, 0] = code.zero(C.vector.reals)
        for i in rows(code, C.m):
            x = v[i, 0]
            for k in columns:
                c = C[i, j + k] = x.fma(w[0, k], C[i, j + k])
                if see:
                    squares[k, 0] = add_squares(c, squares[k, 0])
        for k, _ in squares.slots:
            see(j + k, squares[k, 0])


class Reflectors:
    """Register level: H_1 .. H_t, whose vectors are the columns of a matrix V below its diagonal; t is known.

    Applied to the columns of a tile at once, C <- C - V Y, where Y = V^H C but for what the reflectors do to each other
    (`products`): that takes C twice from memory, not 2 t times.
    """

    def __init__(self, code: Code, V: Elements, tau: Elements):
        self.code, self.V, self.tau, self.count = code, V, tau, range(V.n)
        self.products = code.registers(V.vector, V.n, V.n)
        for p in self.count:
            for q in self.count[p + 1 :]:
                self.products[p, q] = V[q, p].conjugate()
                for i in self.count[q + 1 :]:
                    self.products[p, q] = V[i, p].conjugate().fma(V[i, q], self.products[p, q])
        for i in self._below():
            row = [V[i, q] for q in self.count]
            for p in self.count:
                for q in self.count[p + 1 :]:
                    self.products[p, q] = row[p].conjugate().fma(row[q], self.products[p, q])

    def _below(self):
        """The rows of V below its triangle."""
        for i in self.code.each(self.V.m - self.V.n):
            yield i + self.V.n

    def apply(self, C: Elements, adjoint):
        """C <- H_1 .. H_t C, or, for the adjoint, H_t^H .. H_1^H C, for a C of as many columns as a tile has."""
        code, V, t, columns = self.code, self.V, self.count, range(C.n)
        # y <- V^H C: the unit triangle of V, then the rows below it.
        y = code.registers(C.vector, V.n, C.n)
        for i in t:
            for j in columns:
                y[i, j] = C[i, j]
                for q in t[:i]:
                    y[q, j] = V[i, q].conjugate().fma(y[i, j], y[q, j])
        for i in self._below():
            row = [C[i, j] for j in columns]
            for q in t:
                v = V[i, q].conjugate()
                for j in columns:
                    y[q, j] = v.fma(row[j], y[q, j])
        # y <- T y, or T^H y, in place.
        for q in t if adjoint else reversed(t):
            tau = self.tau[q, 0].conjugate() if adjoint else self.tau[q, 0]
            for j in columns:
                for p in t[:q] if adjoint else t[q + 1 :]:
                    product = self.products[p, q].conjugate() if adjoint else self.products[q, p]
                    y[q, j] = (-product).fma(y[p, j], y[q, j])
                y[q, j] = tau * y[q, j]
        # C <- C - V y
        for i in t:
            for j in columns:
                c = C[i, j] - y[i, j]
                for q in t[:i]:
                    c = (-V[i, q]).fma(y[q, j], c)
                C[i, j] = c
        for i in self._below():
            row = [C[i, j] for j in columns]
            for q in t:
                v = -V[i, q]
                for j in columns:
                    row[j] = v.fma(y[q, j], row[j])
            for j in columns:
                C[i, j] = row[j]


def reflect_all(code: Code, V: Elements, tau: Elements, C: Elements, adjoint: bool) -> None:
    """C <- H_1 .. H_k C, or, for the adjoint, H_k^H .. H_1^H C; V has as many rows as C, and k columns."""
    tallest, _ = tile_size(C.vector, C.m, C.n)
    for i, t in panels(code, V.n, tallest, backwards=not adjoint):
        m = C.m - i
        reflect_panel(code, V.block(i, i, m, t), tau.block(i, 0, t, 1), C.block(i, 0, m, C.n), adjoint)


def reflect_panel(code: Code, V: Elements, tau: Elements, C: Elements, adjoint):
    """`reflect_all` for one of the `panels` of V: all of its reflectors at once, or, if they are few, one by one."""
    tallest, widest = tile_size(C.vector, C.m, C.n)

    def at_once(t):
        group = Reflectors(code, V.block(0, 0, V.m, t), tau)
        for j, n in code.tiles(C.n, widest):
            group.apply(C.block(0, j, C.m, n), adjoint)

    if isinstance(V.n, int):
        at_once(V.n)
        return
    with code.either(V.n == tallest) as (whole, part):
        with whole:
            at_once(tallest)
        with part, code.loop(V.n) as p:
            q = p if adjoint else V.n - p - 1
            after = q + 1
            below, scale = V.m - after, tau[q, 0].conjugate() if adjoint else tau[q, 0]
            parts = C.block(q, 0, 1, C.n), C.block(after, 0, below, C.n)
            reflect(code, V.block(after, q, below, 1), scale, *parts)


def panels(code: Code, count, largest, backwards=False):
    """Cut `count` columns into panels: yields (start, extent). Of unknown ones all but the last have the largest."""
    if isinstance(count, int):
        for start, extent, _ in code.blocks(count, largest):
            yield count - start - extent if backwards else start, extent
        return
    number = (count + (largest - 1)) // largest
    with code.loop(number) as p:
        start = (number - p - 1 if backwards else p) * largest
        yield start, code.min(largest, count - start)


def steps(code: Code, count: IntOrIndex) -> Any:
    """0 to count - 1: as Python integers if they are few, for code is long that is emitted for each."""
    if isinstance(count, int) and count <= FEW:
        yield from range(count)
    else:
        with code.loop(count) as k:
            yield k


def identity(code: Code, V: Elements) -> None:
    """V <- I"""
    zero = code.zero(V.vector)
    for i in code.each(V.m):
        for j in code.each(V.n):
            V[i, j] = zero
    for i in code.each(V.n):
        V[i, i] = zero.constant(1)


def expand(code: Code, A: Elements, tau: Elements, Q: Elements, offset: int) -> None:
    """Q <- the product of reflectors, which are below the diagonal of A that is `offset` below the main one."""
    identity(code, Q)
    count = (A.n if offset == 0 else A.m) - offset
    together, width = tile_size(Q.vector, Q.m, Q.n)
    known = all(isinstance(size, int) for size in (count, Q.m, Q.n))
    whole = count // together if known and count > 2 * FEW else 0
    for t in steps(code, count - whole * together):
        k = count - 1 - t
        top = k + offset
        rest = top + 1
        below, after = Q.m - rest, Q.n - top
        v = A.block(rest, k, below, 1)
        reflect(code, v, tau[k, 0], Q.block(top, top, 1, after), Q.block(rest, top, below, after))
    if not whole:
        return
    # Columns from a multiple of the width before the first that a panel changes; those in front of it are zero.
    left = Q.n % width
    with code.loop(whole) as t:
        k = (whole - 1 - t) * together
        top = k + offset
        m = Q.m - top
        group = Reflectors(code, A.block(top, k, m, together), tau.block(k, 0, together, 1))
        count = code.min((Q.n - top + (width - 1)) // width, Q.n // width)
        with code.loop(count) as j:
            group.apply(Q.block(top, Q.n - (j + 1) * width, m, width), False)
        if left:
            with code.when(top < left):
                group.apply(Q.block(top, 0, m, left), False)
