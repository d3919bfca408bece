"""Hydrogen ignites around a hot spot: ``python -m compactla.examples.ignition --plot ignition.png``.

A code for flames takes turns: gases flow and diffuse, then they react, each cell for itself. Reactions are stiff, so
their step is implicit. RODAS3, a method of Rosenbrock's kind [1]_, has four stages with one matrix,

    (I - g dt J) k_i = g (dt f(y + sum_j a_ij k_j) + sum_j c_ij k_j),    y <- y + sum_i m_i k_i

so each cell's matrix is factored once a step and solved with four times. All cells have matrices of one pattern. They
are solved by NumPy, and by compactla: as stacks of dense matrices, by sparse LU, and by BiCGSTAB.

References
----------
.. [1] Sandu et al., "Benchmarking stiff ODE solvers for atmospheric chemistry problems II: Rosenbrock solvers", Atmos.
   Environ. 31 (1997).
"""

from functools import partial

import numpy as np

import compactla as cla
from compactla import linalg
from compactla.examples.beside import arguments, compare, drawing
from compactla.examples.chemistry import HYDROGEN, KILO, stoichiometric

G, A = 0.5, np.array([[0, 0, 0, 0], [0, 0, 0, 0], [2, 0, 0, 0], [2, 0, 1, 0]])
C, M = np.array([[0, 0, 0, 0], [4, 0, 0, 0], [1, -1, 0, 0], [1, -1, -8 / 3, 0]]), np.array([2, 0, 1, 1])
ROWS, COLUMNS = np.nonzero(HYDROGEN.pattern())


def numpys(a, data):
    """NumPy's solve, which keeps no factors."""
    return lambda b: np.linalg.solve(a, b[..., None])[..., 0]


def stacks(a, data):
    """Factors with row interchanges, of compactla.linalg."""
    factors = linalg.lu_factor(a)
    return lambda b: linalg.lu_solve(factors, b[..., None])[..., 0]


def sparse(F, a, data):
    """Sparse factors without interchanges; the pattern is analyzed once."""
    F.update(data)
    if F.factor().any():
        raise SystemExit("a pivot is zero: try a smaller --dt")
    return F.solve


def iterations(A, preconditioner, counts, a, data):
    """BiCGSTAB; how many steps it takes is added to `counts`."""

    def solve(b):
        x, report = cla.krylov.bicgstab(A, b, rtol=1e-8, M=preconditioner)
        counts.append(report.iterations)
        return x

    A.update(data)
    return solve


def in_parts(function, y, cells=500):
    """The function of as many cells at a time as caches hold."""
    return np.concatenate([function(part) for part in np.split(y, range(cells, len(y), cells))])


def matrices(y, dt):
    """I - g dt J of all cells, (cells, n, n), and its values in the pattern, (cells, nnz)."""
    a = np.eye(HYDROGEN.n) - G * dt * in_parts(HYDROGEN.jacobian, y)
    return a, a[:, ROWS, COLUMNS]


def step(y, dt, factor, system):
    """The gases in all cells after a step, and the right-hand sides of its stages."""
    k, sides, solve = np.zeros((4, *y.shape)), [], factor(*system)
    for stage in range(4):
        f = in_parts(HYDROGEN, y + np.tensordot(A[stage], k, 1))
        sides.append(G * (dt * f + np.tensordot(C[stage], k, 1)))
        k[stage] = solve(sides[-1])
    return y + np.tensordot(M, k, 1), sides


def solutions(factor, system, sides):
    """What a step takes of a solver: factors of one matrix, and solutions for the right-hand sides."""
    return np.array([*map(factor(*system), sides)])


def hot_spot(side, coldest, hottest):
    """Fresh gas on side x side cells, hot in the middle."""
    x = np.linspace(-2, 2, side)
    T = coldest + (hottest - coldest) * np.exp(-(x[:, None] ** 2) - x**2)
    return stoichiometric(T.reshape(-1))


def main(argv=None):
    args = arguments(__doc__, argv, side=100, steps=30, dt=1e-6)
    y = hot_spot(args.side, 1050, 1450)
    pattern = np.searchsorted(ROWS, np.arange(HYDROGEN.n + 1))
    batch = cla.BatchCSR((matrices(y, args.dt)[1], COLUMNS, pattern))
    print(f"{batch.nm} cells of {HYDROGEN.n} unknowns, {batch.nnz} of {HYDROGEN.n**2} values are not always zero")
    solvers, counts = {"BatchLU": partial(sparse, cla.BatchLU(batch))}, {"ILU0": [], "Jacobi": []}
    for name, number in counts.items():
        preconditioner = getattr(cla.krylov, name)(batch)
        solvers[f"bicgstab, {name}"] = partial(iterations, batch, preconditioner, number)
    solvers |= {"compactla.linalg": stacks, "numpy.linalg.solve": numpys}
    for _ in range(args.steps):
        system = matrices(y, args.dt)
        y, sides = step(y, args.dt, solvers["BatchLU"], system)
    found, seconds = compare({name: partial(solutions, solver, system, sides) for name, solver in solvers.items()})
    for name, x in found.items():
        print(f"{name}: {abs(x - found['numpy.linalg.solve']).max():.0e} apart")
    for name, number in counts.items():
        print(f"{name}: {np.mean(number):.2f} iterations in the mean, {np.max(number)} at most")
    T, microseconds = KILO * y[:, -1].reshape(args.side, -1), 1e6 * args.steps * args.dt
    print(f"after {microseconds:.3g} us: hottest {T.max():.0f} K, {(T > 2000).mean():.0%} of the cells have ignited")
    if args.plot:
        with drawing(args.plot, width_ratios=(2, 3)) as (figure, left, right):
            figure.colorbar(left.imshow(T, cmap="inferno", extent=(-2, 2, -2, 2)), label="K")
            left.set(title=f"temperature after {microseconds:.3g} us")
            ratios = [spent / seconds["BatchLU"] for spent in seconds.values()]
            right.bar_label(right.barh([*seconds], ratios), fmt="%.2g", padding=3)
            right.invert_yaxis()
            right.margins(x=0.1)
            right.set(title="linear systems of a step", xlabel="time: one matrix, four right-hand sides; BatchLU = 1")


if __name__ == "__main__":
    main()
