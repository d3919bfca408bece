"""A gas mixture ignites as it flows along a hot wall: ``python -m compactla.examples.hot_wall --plot hot_wall.png``.

The equations are those of `compactla.examples.channel`. No explicit method could take steps of a useful length in its
flat cells. So every step is implicit: Newton's method, in which GMRES solves the linear systems, preconditioned along
the lines of cells that the matrix couples most strongly, from the wall outwards.

What does not change is done once: the pattern of the matrix, its lines (`find_lines`) and where their blocks are
(`LinePreconditioner`). A step of Newton's method only writes new values and factors them (`P.update`).
"""

from functools import partial

import numpy as np

import compactla as cla
from compactla.examples import pictures
from compactla.examples.beside import arguments, compare
from compactla.examples.channel import INFLOW, Channel
from compactla.krylov import gmres


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
    found = compare({"line": partial(solve, M=P), "block Jacobi": partial(solve, M=jacobi)}, rounds=3)
    histories = {name: report.history for name, (_, report) in found.items()}
    print("iterations of GMRES to 1e-8:", ", ".join(f"{name} {len(h) - 1}" for name, h in histories.items()))
    pictures.hot_wall(args.plot, channel, q, histories)


if __name__ == "__main__":
    main()
