"""CG, BiCGSTAB and GMRES for one large sparse system, on the CPU or a device.

Each takes a `compactla.krylov.system.System`, and how it is to be done; the system has the solution in the end.
"""

import math

import numpy as np

from compactla.cpu.compile import compiled_once
from compactla.krylov.system import span


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
    no more, as what it subtracts is the solution of a triangular system of these products.

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
        vectors = Hessenberg(m, below, system.dtype)
        for j in range(m):
            if left:
                system.product(j, z)
                system.precondition(z, j + 1)
            else:
                system.product(system.precondition(j, z), j + 1)
            before, scale = range(j + 1), 1 / below  # of vector j and its product
            for _ in range(max(ortho, 1)):
                found = system.dots(before, range(j, j + 2), scale)
                square, _ = system.combine((j + 1, 1, before, vectors.subtracted(found, ortho == 0)))
                below, scale = math.sqrt(square), 1.0
            estimate = vectors.rotate(below, system.eps)
            if not system.step(share * estimate) or vectors.exhausted:
                break
        y = vectors.solution()
        system.combine((u, 0, range(len(y)), y), measured=False)
        x = u if left else system.precondition(u, z)
        system.combine((x, 1, span(system.x), [1]), measured=False)
        system.advance(x)


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
        self.rotations, self.rhs = np.zeros((m, 2), wide), np.zeros(m + 1, wide)
        self.rhs[0] = norm
        self.j, self.exhausted = 0, False

    def subtracted(self, found, modified):
        """The coefficients of the vectors to add to a new one, by its products with them; adds to the column."""
        return _subtract(self.products, self.columns[self.j], self.j, found, modified)

    def rotate(self, below, eps) -> float:
        """Finish the column, with what is below the diagonal; returns the norm of the residual.

        A vector of which nothing is left but what is rounded is the last: there are no others to be had.
        """
        kept, residual = _rotate(self.columns, self.rotations, self.rhs, self.j, below, eps)
        self.exhausted = kept < 2
        self.j += kept > 0
        return residual

    def solution(self):
        return _substitute(self.columns, self.rhs[: self.j])


@compiled_once
def _subtract(products, column, j, found, modified):
    """Add products with vector j + 1 to a column, and return them, negative: as they were found, or modified.

    Modified Gram-Schmidt takes the products of vector j with those before, `found[0]`, too.
    """
    h = found[1].copy()
    if modified:
        for k in range(j):
            products[j, k] = np.conj(found[0, k])
        for k in range(1, j + 1):
            for i in range(k):
                h[k] -= products[k, i] * h[i]
    for k in range(j + 1):
        column[k] += h[k]
        h[k] = -h[k]
    return h


@compiled_once
def _rotate(columns, rotations, rhs, j, below, eps):
    """Make column j triangular. Returns 2, or 1 if the vectors end here, or 0 if this column is zero; the residual."""
    h, size = columns[j], below
    for k in range(j + 1):
        size = np.hypot(size, abs(h[k]))
    size *= eps
    is_last = below <= size
    if is_last:
        below = 0.0
    for k in range(j):
        c, s = rotations[k, 0], rotations[k, 1]
        above = c * h[k] + s * h[k + 1]
        h[k + 1] = c * h[k + 1] - np.conj(s) * h[k]
        h[k] = above
    length = np.hypot(abs(h[j]), below)
    if is_last and abs(h[j]) <= size:
        return 0, abs(rhs[j])
    if h[j] == 0:
        c, s = h[j], h[j] + 1
    else:
        c, s = 0 * h[j] + abs(h[j]) / length, h[j] / abs(h[j]) * (below / length)
    h[j] = c * h[j] + s * below
    rotations[j, 0], rotations[j, 1] = c, s
    rhs[j + 1] = -np.conj(s) * rhs[j]
    rhs[j] = c * rhs[j]
    return (1 if is_last else 2), abs(rhs[j + 1])


@compiled_once
def _substitute(columns, rhs):
    """The solution with the upper triangle of which these are the columns; no diagonal is zero."""
    y = rhs.copy()
    for k in range(len(y) - 1, -1, -1):
        y[k] = y[k] / columns[k, k]
        for i in range(k):
            y[i] -= columns[k, i] * y[k]
    return y


METHODS = {"cg": cg, "bicgstab": bicgstab, "gmres": gmres}


def solve(method, system, history, restart, ortho, left):
    """x and the report."""
    METHODS[method](system, restart, ortho, left)
    return system.result(history)
