"""Heat spreads in a plate, swept along both axes in turns: ``python -m compactla.examples.heat --plot heat.png``.

A plate is hot at one edge; heat flows around holes, where nearly none is conducted. Peaceman and Rachford's method
is implicit along one axis in the first half of a step and along the other in the second,

    (I + dt/2 X) u* = (I - dt/2 Y) u,    (I + dt/2 Y) u' = (I - dt/2 X) u*

with X and Y the differences along the axes: tridiagonal systems for each row of the field, then for each column. They
do not change, and are factored once. `Tridiag` takes the axis, and solves in place: the second half of a step is the
first one on the transposed view of the field.
"""

from functools import partial

import numpy as np

import compactla as cla
from compactla.examples import pictures
from compactla.examples.beside import arguments, compare, thomas


def plate(nx, ny, rng, count=30):
    """Conductivities of a plate with round holes."""
    x, y, conductivity = np.arange(nx)[:, None], np.arange(ny), np.ones((nx, ny))
    for i, j, r in rng.uniform([0, 0, 0.01 * nx], [nx, ny, 0.05 * nx], (count, 3)):
        conductivity[(x - i) ** 2 + (y - j) ** 2 < r**2] = 1e-4
    return conductivity


def half_steps(conductivity, dt):
    """For each axis, k = dt/2 times conductivities between neighbours, I + dt/2 X as diagonals, and this factored."""
    for c in (conductivity, conductivity.T):
        k = dt / 2 * np.minimum(c[1:], c[:-1])
        flows = np.pad(k, ((1, 1), (0, 0)))  # nothing leaves the edges
        diagonals = -k, 1 + flows[1:] + flows[:-1], -k
        system = cla.Tridiag(*diagonals, pivoting=False, axis=0)
        system.factor()
        yield k, diagonals, system


def explicit(k, u):
    """(I - dt/2 X) u."""
    return u + np.diff(k * np.diff(u, axis=0), axis=0, prepend=0, append=0)


def step(u, parts):
    for (k, *_), (*_, system) in (parts[::-1], parts):
        u = explicit(k, u.T).T
        u = system.solve(u, axis=0, out=u).T
    return u


def main(argv=None):
    args = arguments(__doc__, argv, cells=(600, 400), steps=200, dt=50.0)
    conductivity = plate(*args.cells, np.random.default_rng(1955))
    parts = [*half_steps(conductivity, args.dt)]
    u = np.exp(-((np.arange(args.cells[0]) * 10 / args.cells[0]) ** 2))[:, None] * np.ones(args.cells)
    heat = u.sum()
    for _ in range(args.steps):
        u = step(u, parts)
    print(f"after {args.steps} steps, heat is kept to {abs(u.sum() / heat - 1):.0e}")
    for axis, (field, (_, diagonals, system)) in enumerate(zip((u, u.T), parts, strict=True)):
        turned = [a.copy() for a in (*diagonals, field)]  # Thomas' algorithm gets arrays in the order that suits it
        ways = {f"sweep along axis {axis}": partial(system.solve, field, axis=0)}
        x, y = compare(ways | {"Thomas' algorithm in NumPy": partial(thomas, *turned)}).values()
        print(f"they are {abs(x - y).max():.0e} apart")
    pictures.heat(args.plot, conductivity, u)


if __name__ == "__main__":
    main()
