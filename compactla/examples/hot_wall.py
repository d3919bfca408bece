"""A gas mixture ignites as it flows along a hot wall: ``python -m compactla.examples.hot_wall --plot hot_wall.png``.

Fuel F and oxidizer O are carried along the wall, diffuse, and burn at the rate w, which heats them:

    dq/dt + u dq/dx = div(D grad q) + (-1, -1, 1) w,    q = (F, O, T)
    w = Da F O exp(beta (T - 1))

The boundary layer at the wall takes cells that are hundreds of times as long as they are high, in which no explicit
method could take steps of a useful length. So every step is implicit: Newton's method, in which GMRES solves the linear
systems, preconditioned along the lines of cells that the matrix couples most strongly, from the wall outwards.

What does not change is done once: the pattern of the matrix, its lines (`find_lines`) and where their blocks are
(`LinePreconditioner`). A step of Newton's method only writes new values and factors them (`P.update`).
"""

from functools import partial

import numpy as np
import scipy.sparse as sp

import compactla as cla
from compactla.examples.beside import arguments, compare, draw_residuals, drawing
from compactla.krylov import gmres

LENGTH, HEIGHT = 4.0, 1.0  # of the channel
STRETCH = 7.0  # the logarithm of how many times as high the highest cells are as the lowest, at the wall
DIFFUSIVITY = np.array([1.0e-3, 1.6e-3, 2.0e-3])  # of F, O and T
INFLOW = np.array([1.0, 1.0, 0.0])
HOT = 1.0  # temperature of the wall past a quarter of its length; before, it is as cold as what flows in
DAMKOEHLER, BETA = 60.0, 6.0


class Channel:
    """The equations on a grid of nx x ny cells, numbered from the wall outwards, column by column."""

    def __init__(self, nx, ny):
        self.x = np.linspace(0, LENGTH, nx + 1)
        self.y = HEIGHT * np.expm1(STRETCH * np.linspace(0, 1, ny + 1)) / np.expm1(STRETCH)
        high = np.diff(self.y)
        center = self.y[1:] - high / 2
        velocity = center * (2 - center)
        hot = self.x[1:] > LENGTH / 4
        wall = np.zeros((nx, ny))
        wall[:, 0] = DIFFUSIVITY[2] / (high[0] * high[0] / 2)
        flow = sp.kron(upwind(self.x), sp.diags_array(velocity))
        spread = sp.kron(diffusion(self.x), sp.eye_array(ny)) + sp.kron(sp.eye_array(nx), diffusion(self.y))
        parts = [(flow + diffusivity * spread).tocsr() for diffusivity in DIFFUSIVITY]
        parts[2] = (parts[2] + sp.diags_array(wall.ravel())).tocsr()
        data = np.stack([part.data for part in parts], axis=1)[:, :, None] * np.eye(3)
        self.transport = sp.bsr_array((data, parts[0].indices, parts[0].indptr))
        row = np.repeat(np.arange(nx * ny), np.diff(parts[0].indptr))
        self.diagonal = np.flatnonzero(parts[0].indices == row)  # places of the diagonal blocks
        source = np.zeros((nx, ny, 3))
        source[0] = velocity[:, None] / (self.x[1] - self.x[0]) * INFLOW
        source[hot, :, 2] += HOT * wall[hot]
        self.source = source.reshape(-1, 3)

    def reaction(self, q):
        """The rate in every cell, and its derivatives by F, O and T."""
        fuel, oxidizer, T = q.T
        speed = DAMKOEHLER * np.exp(np.minimum(BETA * (T - 1), 20))  # also where Newton's method goes astray
        rate = speed * fuel * oxidizer
        return rate, np.stack([speed * oxidizer, speed * fuel, BETA * rate], axis=1)

    def residual(self, q, before, dt):
        rate, _ = self.reaction(q)
        change = (self.transport @ q.ravel()).reshape(-1, 3) - self.source
        return (q - before) / dt + change - rate[:, None] * np.array([-1, -1, 1])

    def jacobian(self, q, dt):
        """The derivatives of the residual: always of the same pattern."""
        _, slope = self.reaction(q)
        M = self.transport.copy()
        M.data[self.diagonal] += np.eye(3) / dt - np.array([-1, -1, 1])[:, None] * slope[:, None, :]
        return M


def first_system(nx, ny, dt=0.1):
    """Matrix and right-hand side of the first step of Newton's method."""
    channel, q = Channel(nx, ny), np.tile(INFLOW, (nx * ny, 1))
    return channel.jacobian(q, dt), -channel.residual(q, q, dt).ravel()


def diffusion(faces):
    """- d2/dx2 on cells between these faces, without a flux at the ends."""
    size = np.diff(faces)
    flux = 1 / ((size[1:] + size[:-1]) / 2)
    inner = np.append(flux, 0) + np.append(0, flux)
    return sp.diags_array([-flux / size[1:], inner / size, -flux / size[:-1]], offsets=[-1, 0, 1])


def upwind(faces):
    """d/dx on cells between these faces, for a flow to the right."""
    size = np.diff(faces)
    return sp.diags_array([-1 / size[1:], 1 / size], offsets=[-1, 0])


def newton(channel, before, dt, P):
    """A step in time: what is after it, the last linear system, and how many iterations GMRES took for each."""
    q, iterations, r = before, [], channel.residual(before, before, dt)
    first = np.linalg.norm(r)
    while (norm := np.linalg.norm(r)) > 1e-6 * first:
        if len(iterations) == 20 or norm > 1e6 * first:
            raise SystemExit("Newton's method does not converge: try a smaller --dt")
        system = channel.jacobian(q, dt), -r.ravel()
        P.update(system[0])
        correction, report = gmres(*system, M=P, rtol=1e-3, restart=50)
        iterations.append(report.iterations)
        q = q + correction.reshape(-1, 3)
        r = channel.residual(q, before, dt)
    return q, system, iterations


def main(argv=None):
    args = arguments(__doc__, argv, cells=(96, 64), steps=40, dt=0.1)
    channel, q = Channel(*args.cells), np.tile(INFLOW, (args.cells[0] * args.cells[1], 1))
    M = channel.jacobian(q, args.dt)
    lines = cla.find_lines(M)
    P = cla.LinePreconditioner(M, lines)
    print(f"{M.shape[0]} unknowns; {len(lines)} lines of up to {max(map(len, lines))} cells")
    for step in range(1, args.steps + 1):
        q, system, iterations = newton(channel, q, args.dt, P)
        if step % max(args.steps // 10, 1) == 0:
            print(f"t = {step * args.dt:<6.3g} hottest {q[:, 2].max():.3f}   iterations of GMRES: {iterations}")
    jacobi = cla.LinePreconditioner(system[0], np.arange(len(q))[:, None])
    solve = partial(gmres, *system, rtol=1e-8, restart=50, maxiter=500, history=True)
    found, _ = compare({"line": partial(solve, M=P), "block Jacobi": partial(solve, M=jacobi)}, rounds=3)
    histories = {name: report.history for name, (_, report) in found.items()}
    print("iterations of GMRES to 1e-8:", ", ".join(f"{name} {len(h) - 1}" for name, h in histories.items()))
    if args.plot:
        with drawing(args.plot, width_ratios=(3, 2)) as (figure, left, right):
            field = q.reshape(*args.cells, 3).T
            figure.colorbar(left.pcolormesh(channel.x, channel.y, field[2], cmap="inferno"), label="T")
            x, y = ((faces[1:] + faces[:-1]) / 2 for faces in (channel.x, channel.y))
            left.contour(x, y, field[0], [0.5], colors="white")
            left.set(title="temperature, and where half of the fuel is burnt", xlabel="along the wall")
            left.set_ylabel("from the wall")
            left.set_yscale("symlog", linthresh=10 * channel.y[1])
            draw_residuals(right, histories, "the last linear system")


if __name__ == "__main__":
    main()
