"""Heat spreads in a plate, swept along both axes in turns: ``python -m compactla.examples.heat --plot heat.png``.

A plate is hot at one edge; heat flows around holes, where nearly none is conducted. Peaceman and Rachford's method
is implicit along one axis in the first half of a step and along the other in the second,

    (I + dt/2 X) u* = (I - dt/2 Y) u,    (I + dt/2 Y) u' = (I - dt/2 X) u*

with X and Y the differences along the axes, so that there are tridiagonal systems only: one for each row of the field,
then one for each column. They do not change, and are factored once. `Tridiag` takes the axis, and solves in place.
"""

from functools import partial

import numpy as np

import compactla as cla
from compactla.examples.beside import arguments, compare, drawing


class Plate:
    """A field with a conductivity in every cell, whose edges let no heat through, in steps of length dt."""

    def __init__(self, conductivity, dt):
        self.faces = [dt / 2 * faces(conductivity, axis) for axis in (0, 1)]
        self.systems = [cla.Tridiag(*implicit(k, axis), pivoting=False, axis=axis) for axis, k in enumerate(self.faces)]
        for system in self.systems:
            system.factor()

    def step(self, u):
        """The field after a step."""
        for axis, system in enumerate(self.systems):
            u = explicit(self.faces[1 - axis], 1 - axis, u)
            system.solve(u, axis=axis, out=u)
        return u


def faces(conductivity, axis):
    """Harmonic means of neighbours along an axis."""
    k = np.moveaxis(conductivity, axis, 0)
    return np.moveaxis(2 / (1 / k[1:] + 1 / k[:-1]), 0, axis)


def padded(k, axis):
    """Faces below each cell along an axis, and above; there are none at the edges."""
    low, high = np.zeros((2, 2, 2), int)
    low[axis, 0] = high[axis, 1] = 1
    return np.pad(k, low), np.pad(k, high)


def implicit(k, axis):
    """The diagonals of I + X."""
    return -k, 1 + sum(padded(k, axis)), -k


def explicit(k, axis, u):
    """(I - X) u."""
    below, above = padded(k * np.diff(u, axis=axis), axis)
    return u + above - below


def thomas(lower, diag, upper, u):
    """Thomas' algorithm in NumPy, for all systems along the first axis at once."""
    n, steps, x = len(diag), np.empty_like(upper), u.copy()
    pivot = diag[0]
    for k in range(n - 1):
        x[k] /= pivot
        steps[k] = upper[k] / pivot
        pivot = diag[k + 1] - lower[k] * steps[k]
        x[k + 1] -= lower[k] * x[k]
    x[-1] /= pivot
    for k in reversed(range(n - 1)):
        x[k] -= steps[k] * x[k + 1]
    return x


def holes(nx, ny, count, rng):
    """Conductivities of a plate with round holes."""
    x, y = np.meshgrid(np.arange(nx), np.arange(ny), indexing="ij")
    conductivity = np.ones((nx, ny))
    for i, j, r in rng.uniform([0, 0, 0.01 * nx], [nx, ny, 0.05 * nx], (count, 3)):
        conductivity[(x - i) ** 2 + (y - j) ** 2 < r**2] = 1e-4
    return conductivity


def main(argv=None):
    args = arguments(__doc__, argv, cells=(600, 400), steps=200, dt=50.0)
    conductivity = holes(*args.cells, 30, np.random.default_rng(1955))
    plate = Plate(conductivity, args.dt)
    u = np.exp(-((np.arange(args.cells[0]) * 10 / args.cells[0]) ** 2))[:, None] * np.ones(args.cells)
    heat = u.sum()
    for _ in range(args.steps):
        u = plate.step(u)
    print(f"after {args.steps} steps, heat is kept to {abs(u.sum() / heat - 1):.0e}")
    for axis, system in enumerate(plate.systems):  # Thomas' algorithm gets arrays that are turned already
        turned = [np.moveaxis(a, axis, 0).copy() for a in (*implicit(plate.faces[axis], axis), u)]
        ours = f"sweep along axis {axis}"
        ways = {ours: partial(system.solve, u, axis=axis), "Thomas' algorithm in NumPy": partial(thomas, *turned)}
        x, y = compare(ways)[0].values()
        print(f"they are {abs(np.moveaxis(x, axis, 0) - y).max():.0e} apart")
    if args.plot:
        with drawing(args.plot, columns=1) as (figure, axes):
            field = np.where(conductivity < 1, np.nan, u).T
            colors = axes.imshow(field, cmap="inferno", origin="lower")
            axes.contour(field, levels=12, colors="white", linewidths=0.5)
            figure.colorbar(colors, label="temperature")
            axes.set(title="heat flows around holes")


if __name__ == "__main__":
    main()
