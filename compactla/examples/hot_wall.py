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

import argparse
import time

import numpy as np
import scipy.sparse as sp

import compactla as cla
from compactla.examples.beside import drawing
from compactla.krylov import gmres

LENGTH, HEIGHT, LOWEST = 4.0, 1.0, 1e-4  # of the channel, and of the cells at the wall
DIFFUSIVITY = np.array([1.0e-3, 1.6e-3, 2.0e-3])  # of F, O and T
INFLOW = np.array([1.0, 1.0, 0.0])
HOT = 1.0  # temperature of the wall past a quarter of its length; before, it is as cold as what flows in
DAMKOEHLER, BETA = 60.0, 6.0


class Channel:
    """The equations on a grid of nx x ny cells, numbered from the wall outwards, column by column."""

    def __init__(self, nx, ny):
        self.x = np.linspace(0, LENGTH, nx + 1)
        self.y = stretched(HEIGHT, LOWEST, ny)
        high = np.diff(self.y)
        center = self.y[1:] - high / 2
        velocity = center * (2 - center)
        hot = self.x[1:] > LENGTH / 4
        flow = sp.kron(upwind(self.x), sp.diags_array(velocity))
        spread = sp.kron(diffusion(self.x), sp.eye_array(ny)) + sp.kron(sp.eye_array(nx), diffusion(self.y))
        wall = np.zeros((nx, ny))
        wall[:, 0] = DIFFUSIVITY[2] / (high[0] * high[0] / 2)
        parts = [(flow + diffusivity * spread).tocsr() for diffusivity in DIFFUSIVITY]
        parts[2] = (parts[2] + sp.diags_array(wall.ravel())).tocsr()
        pattern = parts[0]
        self.transport = sp.bsr_array((np.zeros((pattern.nnz, 3, 3)), pattern.indices, pattern.indptr))
        for k, part in enumerate(parts):
            self.transport.data[:, k, k] = part.data
        row = np.repeat(np.arange(nx * ny), np.diff(pattern.indptr))
        self.diagonal = np.flatnonzero(pattern.indices == row)  # places of the diagonal blocks
        self.source = np.zeros((nx, ny, 3))
        self.source[0] = velocity[:, None] / (self.x[1] - self.x[0]) * INFLOW
        self.source[hot, :, 2] += HOT * wall[hot]
        self.source = self.source.reshape(-1, 3)

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


def stretched(height, lowest, n):
    """Faces of n cells whose heights grow by the same factor, from `lowest` on."""
    low, high = 1.0, 10.0
    while high - low > 1e-12:
        growth = (low + high) / 2
        low, high = (growth, high) if lowest * (growth**n - 1) < height * (growth - 1) else (low, growth)
    return np.append(0, lowest * np.cumsum(growth ** np.arange(n)))


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


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m compactla.examples.hot_wall", description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, nargs=2, default=(96, 64), metavar="N", help="along the wall and outwards")
    parser.add_argument("--steps", type=int, default=40, help="in time (default: 40)")
    parser.add_argument("--dt", type=float, default=0.1, help="length of a step (default: 0.1)")
    parser.add_argument("--plot", metavar="FILE.png", help="draw the temperature, and how GMRES converges")
    args = parser.parse_args(argv)
    channel = Channel(*args.cells)
    q = np.tile(INFLOW, (args.cells[0] * args.cells[1], 1))
    M = channel.jacobian(q, args.dt)
    start = time.perf_counter()
    lines = cla.find_lines(M)
    P = cla.LinePreconditioner(M, lines)
    set_up = time.perf_counter() - start
    longest = max(map(len, lines))
    print(f"{M.shape[0]} unknowns; {len(lines)} lines of up to {longest} cells")
    print(f"found and set up in {set_up:.2g} s, which is done once (and compiles or loads kernels)")
    seconds = {"update": 0.0, "solve": 0.0}
    solves = []
    for step in range(1, args.steps + 1):
        q, M, r, iterations = newton(channel, q, args.dt, P, seconds)
        solves += iterations
        if step % max(args.steps // 10, 1) == 0:
            print(f"t = {step * args.dt:<6.3g} hottest {q[:, 2].max():.3f}   iterations of GMRES: {iterations}")
    each = {name: 1e3 * total / len(solves) for name, total in seconds.items()}
    print(f"{len(solves)} Newton steps: update {each['update']:.2g} ms, GMRES {each['solve']:.3g} ms each")
    jacobi = cla.LinePreconditioner(M, np.arange(len(q))[:, None])
    histories = {name: solve(M, -r.ravel(), p, 1e-8)[1] for name, p in (("line", P), ("block Jacobi", jacobi))}
    print("iterations of GMRES to 1e-8:", ", ".join(f"{name} {len(h)}" for name, h in histories.items()))
    if args.plot:
        plot(args.plot, channel, q, histories)


def newton(channel, before, dt, P, seconds):
    """A step in time: what is after it, the last linear system, and how many iterations GMRES took for each."""
    q, iterations = before, []
    r = channel.residual(q, before, dt)
    norm = first = np.linalg.norm(r)
    while norm > 1e-6 * first:
        if len(iterations) == 20 or norm > 1e6 * first:
            raise SystemExit("Newton's method does not converge: try a smaller --dt")
        M = channel.jacobian(q, dt)
        start = time.perf_counter()
        P.update(M)
        seconds["update"] += time.perf_counter() - start
        start = time.perf_counter()
        correction, history = solve(M, -r.ravel(), P, rtol=1e-3)
        seconds["solve"] += time.perf_counter() - start
        iterations.append(len(history))
        system = M, r
        q = q + correction.reshape(-1, 3)
        r = channel.residual(q, before, dt)
        norm = np.linalg.norm(r)
    return q, *system, iterations


def solve(M, rhs, P, rtol):
    """GMRES; the residual after every step."""
    x, report = gmres(M, rhs, M=P, rtol=rtol, restart=50, maxiter=500, history=True)
    return x, report.history[1:] / report.history[0]


def plot(path, channel, q, histories):
    shape = len(channel.x) - 1, len(channel.y) - 1
    centers = (channel.x[1:] + channel.x[:-1]) / 2, (channel.y[1:] + channel.y[:-1]) / 2
    with drawing(path, width_ratios=(3, 2)) as (figure, left, right):
        colors = left.pcolormesh(channel.x, channel.y, q[:, 2].reshape(shape).T, cmap="inferno")
        figure.colorbar(colors, label="T")
        left.contour(*centers, q[:, 0].reshape(shape).T, [0.5], colors="white")  # where half of the fuel is burnt
        left.set(title="temperature, and where half of the fuel is burnt", xlabel="along the wall")
        left.set_ylabel("from the wall")
        left.set_yscale("symlog", linthresh=LOWEST * 10)
        for name, history in histories.items():
            right.semilogy(history, label=f"{name}: {len(history)} iterations")
        right.set(title="the last linear system", xlabel="iterations of GMRES(50)", ylabel="relative residual")
        right.grid(alpha=0.3)
        right.legend()


if __name__ == "__main__":
    main()
