"""CG, BiCGSTAB and GMRES for one large sparse system, on the CPU or a device.

Each takes a `compactla.krylov.system.System`, and how it is to be done; the system has the solution in the end.
"""

import math

import numpy as np

from compactla.cpu.arnoldi import rotate, substitute, subtract
from compactla.cpu.arnoldi_steps import SOME
from compactla.krylov.system import span
from compactla.overlap import address

TRUSTED = 2  # times its estimate, the residual of a cycle in which steps were taken together


def cg(system, restart, ortho, left):
    r, p, q, z = range(4)
    system.place(4)
    while system.goes_on():
        x, _ = system.spare
        moved = system.precondition(r, z)
        rho = system.dots(span(r), span(moved))[0, 0].real
        system.combine((x, 0, span(system.x), [1]), (p, 0, span(moved), [1]), measured=False)
        while True:
            system.product(p, q)
            sigma = system.dots(span(p), span(q))[0, 0].real
            alpha = rho / sigma if sigma else 0.0
            if alpha == 0 or not np.isfinite(alpha):
                break
            square, _ = system.combine((r, 1, span(q), [-alpha]))
            if not system.step(math.sqrt(square)):
                system.combine((x, 1, span(p), [alpha]), measured=False)
                break
            moved = system.precondition(r, z)
            rho, before = system.dots(span(r), span(moved))[0, 0].real, rho
            system.combine((x, 1, span(p), [alpha]), (p, rho / before, span(moved), [1]), measured=False)
        system.advance(x)


def bicgstab(system, restart, ortho, left):
    r, v, t, p, y, z, shadow = range(7)
    system.place(7)
    while system.goes_on():
        # a new start: from the true residual r of x
        x, _ = system.spare
        for row, start in ((shadow, r), (p, r), (x, system.x)):
            system.combine((row, 0, span(start), [1]), measured=False)
        rho = system.norm**2
        while True:
            moved = system.precondition(p, y)
            system.product(moved, v)
            sigma = system.dots(span(shadow), span(v))[0, 0]
            if sigma == 0 or not np.isfinite(sigma):
                break
            alpha = rho / sigma
            # the first half of a step, which may be enough
            half = math.sqrt(system.combine((r, 1, span(v), [-alpha]))[0])
            if half <= system.goal:
                system.combine((x, 1, span(moved), [alpha]), measured=False)
                system.step(half)
                break
            # the second half: the least residual along t
            after = system.precondition(r, z)
            system.product(after, t)
            both, square = system.dots(span(r, t), span(t))[0]
            omega = np.conj(both) / square if square else 0.0
            moves = x, 1, span(moved, after), [alpha, omega]
            square, rho_next = system.combine(moves, (r, 1, span(t), [-omega]), against=shadow)
            if not system.step(math.sqrt(square)) or omega == 0 or rho_next == 0:
                break
            beta = rho_next / rho * (alpha / omega)
            system.combine((p, beta, span(r, v), [1, -beta * omega]), measured=False)
            rho = rho_next
        system.advance(x)


def gmres(system, restart, ortho, left):
    """Vectors before are read once for all products with them, and once to subtract them: modified Gram-Schmidt takes
    no more, as what it subtracts is the solution of a triangular system of these products. Where A and M are known to
    be linear, this is done for several steps together.

    Preconditioned from the left, residuals are taken to fall in each cycle as what M makes of them does.
    """
    m = max(min(restart, system.most, system.n), 1)
    system.place(m + 1)
    left = left and system.M is not None
    if left:
        system.take_as_they_are()
    while system.goes_on():
        z, u = system.spare
        below, share = system.norm, 1.0
        if left:
            moved = system.precondition(0, z)
            below = math.sqrt(system.combine((0, 0, span(moved), [1]))[0])
            if not 0 < below < math.inf:
                break
            share = system.norm / below

        def product(j, z=z):
            if left:
                system.product(j, z)
                system.precondition(z, j + 1)
            else:
                system.product(system.precondition(j, z), j + 1)

        vectors, goes_on = Hessenberg(m, below, system.dtype), True
        while goes_on and not vectors.exhausted and vectors.j < m:
            j = vectors.j
            some = system.at_once(m - j)
            if some == 1 and vectors.known == j:
                product(j)
                below, estimate = system.orthogonalize(vectors, j, 1 / below, ortho)
                estimates, vectors.known = [estimate], j + 1
            else:
                estimates = system.orthogonalize_some(vectors, j, some, product, 1 / below, ortho)
                below = 1.0
            for k, estimate in enumerate(estimates, 1):
                goes_on = system.step(share * estimate)
                if not goes_on:
                    vectors.j = min(vectors.j, j + k)
                    break
        y = vectors.solution()
        system.combine((u, 0, range(len(y)), y), measured=False)
        x = u if left else system.precondition(u, z)
        system.combine((x, 1, span(system.x), [1]), measured=False)
        estimate = system.history[-1]
        if not system.advance(x) <= TRUSTED * estimate and vectors.known < vectors.j:
            system.one_by_one()


class Hessenberg:
    """The small least-squares problem of GMRES, of which every step adds a column.

    Parameters
    ----------
    m : int
        Maximum number of columns.
    norm : float
        Norm of the residual that a cycle begins with.
    """

    def __init__(self, m, norm, dtype):
        wide = np.complex128 if dtype.kind == "c" else np.float64
        self.products = np.empty((m, m), wide)  # below the diagonal, of the vectors with those before
        self.columns = np.zeros((m, m), wide)  # the transpose of R
        self.whole = np.zeros((m, m + 1), wide)  # that of the matrix itself
        self.shifts = np.empty((SOME, 2), wide)  # of the vectors of several steps: what was taken off, and their norm
        self.rotations, self.rhs = np.zeros((m, 2), wide), np.zeros(m + 1, wide)
        self.rhs[0] = norm
        self.j, self.exhausted = 0, False
        self.known = 0  # vectors of which products with those before are known
        self.loss = np.zeros(1)  # the largest product of vectors that may be, as far as it is estimated
        arrays = self.products, self.columns, self.whole, self.rotations, self.rhs, self.shifts, self.loss
        self.places = [address(x) for x in arrays]

    def subtracted(self, found, modified):
        """The coefficients of the vectors to add to a new one, by its products with them; adds to the column."""
        h = np.empty_like(found[1])
        subtract(self.products, self.columns, self.j, found, h, modified)
        return h

    def rotate(self, below, eps) -> float:
        """Finish the column, with what is below the diagonal; returns the norm of the residual.

        A vector of which nothing is left but what is rounded is the last: there are no others to be had.
        """
        kept, residual = rotate(self.columns, self.whole, self.rotations, self.rhs, self.j, below, eps)
        self.count(kept)
        return residual

    def count(self, kept, columns=1) -> None:
        """Take note of finished columns: of 2, or 1 if there are no more, or 0 if the last of them is none."""
        self.exhausted = kept < 2
        self.j += columns - (kept == 0)

    def solution(self):
        y = self.rhs[: self.j].copy()
        substitute(self.columns, y)
        return y


METHODS = {"cg": cg, "bicgstab": bicgstab, "gmres": gmres}


def solve(method, system, history, restart, ortho, left):
    """x and the report."""
    METHODS[method](system, restart, ortho, left)
    return system.result(history)
