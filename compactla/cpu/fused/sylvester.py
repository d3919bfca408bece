"""Sylvester's and Lyapunov's equations of triangular matrices, as Bartels and Stewart solve them, in lanes."""

from compactla.cpu.emit.code import Code
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.emit.vectors import Flags, Lanes
from compactla.cpu.fused.complex_schur import ComplexSchur, product
from compactla.cpu.kernels.gesvd import copy
from compactla.cpu.kernels.norms import largest
from compactla.cpu.kernels.schur import unknown
from compactla.cpu.linalg.stacks import UNSURE


class Equation:
    """An equation for Y = U^H X V while code is emitted, with F = U^H Q V in whose place Y is computed."""

    def __init__(self, code: Code, left: ComplexSchur, right: ComplexSchur, Q):
        self.code, self.left, self.right = code, left, right
        self.q = unknown(code.room(Q.vector, Q.m, Q.n))
        Q.read(self.q)
        self.F, self.P = (unknown(code.room(Q.vector.twin, Q.m, Q.n)) for _ in range(2))
        copy(code, self.q, self.F)
        code.shared(product, self.P, left.Z.H, self.F)
        code.shared(product, self.F, self.P, right.Z)

    def write(self, X, status) -> None:
        """X <- U Y V^H"""
        self.code.shared(product, self.P, self.left.Z, self.F)
        self.code.shared(product, self.F, self.P, self.right.Z.H)
        found = self.F
        if self.left.is_real:
            copy(self.code, self.F, self.q, lambda x: x.real)
            found = self.q
        X.write(found)
        status.enter(UNSURE, self.left.failed | self.right.failed)
        status.check(found)


def sylvester(code: Code, R: Elements, S: Elements, F: Elements) -> Flags:
    """F <- Y with R Y + Y S = F, both triangular; returns flags of lanes where pivots are too small."""
    solver = Shifted(code, R, smallest(code, R, S))
    with code.loop(F.n) as k:
        y = F.block(0, k, F.m, 1)
        with code.loop(k) as j:
            s = -S[j, k]
            with code.loop(F.m) as i:
                y[i, 0] = s.fma(F[i, j], y[i, 0])
        solver.solve(code.zero(R.vector).constant(1), S[k, k], y)
    return solver.flags


def stein(code: Code, R: Elements, F: Elements) -> Flags:
    """F <- Y with Y - R Y R^H = F, from the last column to the first; returns flags of lanes of too small pivots."""
    solver = Shifted(code, R, smallest(code, R))
    one, total, w = code.zero(R.vector).constant(1), code.registers(R.vector, 1), code.room(R.vector, R.n)
    with code.loop(F.n) as t:
        k = F.n - 1 - t
        y = F.block(0, k, F.m, 1)
        with code.loop(F.m) as i:
            total[0, 0] = code.zero(R.vector)
            with code.loop(t) as p:
                total[0, 0] = R[k, k + 1 + p].conjugate().fma(F[i, k + 1 + p], total[0, 0])
            w[i, 0] = total[0, 0]
        with code.loop(F.m) as i:
            total[0, 0] = y[i, 0]
            with code.loop(F.m - i) as p:
                total[0, 0] = R[i, i + p].fma(w[i + p, 0], total[0, 0])
            y[i, 0] = total[0, 0]
        solver.solve(-R[k, k].conjugate(), one, y)
    return solver.flags


def smallest(code: Code, *matrices: Elements) -> Lanes:
    """What pivots have to exceed, as in LAPACK's trsyl."""
    bits = matrices[0].vector.real.bitwidth
    sizes = [largest(code, A) for A in matrices]
    size = sizes[0] if len(sizes) == 1 else sizes[0].maximum(sizes[1])
    return (size * size.constant(2.0 ** (-52 if bits == 64 else -23))).maximum(
        size.constant(2.0 ** (-960 if bits == 64 else -100))
    )


class Shifted:
    """Systems of scale R + shift I, of which pivots that are not above `least` become that."""

    def __init__(self, code: Code, R: Elements, least: Lanes):
        self.code, self.R, self.least = code, R, least
        self.small, self.total = code.registers(least.vector, 1), code.registers(R.vector, 1)
        self.small[0, 0] = least.constant(0)

    @property
    def flags(self) -> Flags:
        """Flags of the lanes that had such pivots."""
        return self.small[0, 0] > 0

    def solve(self, scale: Lanes, shift: Lanes, y: Elements) -> None:
        """y <- inv(scale R + shift I) y"""
        code, R, total = self.code, self.R, self.total
        with code.loop(R.n) as t:
            i = R.n - 1 - t
            total[0, 0] = code.zero(R.vector)
            with code.loop(t) as p:
                total[0, 0] = R[i, i + 1 + p].fma(y[i + 1 + p, 0], total[0, 0])
            pivot = R[i, i].fma(scale, shift)
            near = ~(pivot.abs1() > self.least)
            self.small[0, 0] = near.select(self.least.constant(1), self.small[0, 0])
            pivot = near.select(code.zero(R.vector) + self.least, pivot)
            y[i, 0] = (-total[0, 0]).fma(scale, y[i, 0]) * pivot.reciprocal()
