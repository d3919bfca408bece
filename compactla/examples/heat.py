"""Heat spreads in a plate, swept along both axes in turns: ``python -m compactla.examples.heat --plot heat.png``.

A plate is hot at one edge; heat flows around holes, where nearly none is conducted. Peaceman and Rachford's method
is implicit along one axis in the first half of a step and along the other in the second,

    (I + dt/2 X) u* = (I - dt/2 Y) u,    (I + dt/2 Y) u' = (I - dt/2 X) u*

with X and Y the differences along the axes, so that there are tridiagonal systems only: one for each row of the field,
then one for each column. They do not change, and are factored once. `Tridiag` takes the axis, and solves in place: the
second half of a step is the first one on the transposed view of the field.
"""

from functools import partial

import numpy as np

import compactla as cla
from compactla.examples.beside import arguments, compare, drawing


def plate(nx, ny, rng, count=30):
    """Conductivities of a plate with round holes."""
    x, y, conductivity = np.arange(nx)[:, None], np.arange(ny), np.ones((nx, ny))
    for i, j, r in rng.uniform([0, 0, 0.01 * nx], [nx, ny, 0.05 * nx], (count, 3)):
        conductivity[(x - i) ** 2 + (y - j) ** 2 < r**2] = 1e-4
    return conductivity


def implicit(k):
    """The diagonals of I + X along the first axis, of conductivities between neighbours: nothing leaves the edges."""
    flows = np.pad(k, ((1, 1), (0, 0)))
    return -k, 1 + flows[1:] + flows[:-1], -k


def explicit(k, u):
    """(I - X) u."""
    return u + np.diff(k * np.diff(u, axis=0), axis=0, prepend=0, append=0)


def half_steps(conductivity, dt):
    """For each axis, dt/2 times the lesser conductivity of neighbours along it, and the system, factored."""
    parts = []
    for c in (conductivity, conductivity.T):
        k = dt / 2 * np.minimum(c[1:], c[:-1])
        parts.append((k, cla.Tridiag(*implicit(k), pivoting=False, axis=0)))
        parts[-1][1].factor()
    return parts


def step(u, parts):
    for (k, _), (_, system) in (parts[::-1], parts):
        u = explicit(k, u.T).T
        u = system.solve(u, axis=0, out=u).T
    return u


def thomas(lower, diag, upper, u):
    """Thomas' algorithm in NumPy, for all systems along the first axis at once."""
    pivot, x = diag.copy(), u.copy()
    for k in range(1, len(u)):
        factor = lower[k - 1] / pivot[k - 1]
        pivot[k] -= factor * upper[k - 1]
        x[k] -= factor * x[k - 1]
    x[-1] /= pivot[-1]
    for k in reversed(range(len(u) - 1)):
        x[k] = (x[k] - upper[k] * x[k + 1]) / pivot[k]
    return x


def main(argv=None):
    args = arguments(__doc__, argv, cells=(600, 400), steps=200, dt=50.0)
    conductivity = plate(*args.cells, np.random.default_rng(1955))
    parts = half_steps(conductivity, args.dt)
    u = np.exp(-((np.arange(args.cells[0]) * 10 / args.cells[0]) ** 2))[:, None] * np.ones(args.cells)
    heat = u.sum()
    for _ in range(args.steps):
        u = step(u, parts)
    print(f"after {args.steps} steps, heat is kept to {abs(u.sum() / heat - 1):.0e}")
    for axis, (field, (k, system)) in enumerate(zip((u, u.T), parts, strict=True)):
        turned = [a.copy() for a in (*implicit(k), field)]  # Thomas' algorithm gets arrays in the order that suits it
        ways = {f"sweep along axis {axis}": partial(system.solve, field, axis=0)}
        x, y = compare(ways | {"Thomas' algorithm in NumPy": partial(thomas, *turned)})[0].values()
        print(f"they are {abs(x - y).max():.0e} apart")
    if args.plot:
        with drawing(args.plot, columns=1) as (figure, axes):
            field = np.where(conductivity < 1, np.nan, u).T
            figure.colorbar(axes.imshow(field, cmap="inferno", origin="lower"), label="temperature")
            axes.contour(field, levels=12, colors="white", linewidths=0.5)
            axes.set(title="heat flows around holes")


if __name__ == "__main__":
    main()
