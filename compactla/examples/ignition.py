"""Hydrogen ignites around a hot spot: ``python -m compactla.examples.ignition --plot ignition.png``.

A code for flames takes turns: gases flow and diffuse, then they react, each cell for itself. Reactions are stiff, so
their step is implicit. RODAS3, a method of Rosenbrock's kind (Sandu et al., Atmos. Environ. 31, 1997), has four stages,

    (I - g dt J) k_i = g (dt f(y + sum_j a_ij k_j) + sum_j c_ij k_j),    y <- y + sum_i m_i k_i

so each cell's matrix is factored once a step and solved with four times. All matrices have one pattern. Sparse LU
solves with them, and in the last step also BiCGSTAB, dense stacks, and NumPy.
"""

from functools import partial

import numpy as np

import compactla as cla
from compactla import linalg
from compactla.examples import pictures
from compactla.examples.batches import implicit
from compactla.examples.beside import arguments, compare, solve_vectors
from compactla.examples.chemistry import HYDROGEN, KILO, SPECIES, stoichiometric

G, A = 0.5, np.array([[0, 0, 0, 0], [0, 0, 0, 0], [2, 0, 0, 0], [2, 0, 1, 0]])
C, M = np.array([[0, 0, 0, 0], [4, 0, 0, 0], [1, -1, 0, 0], [1, -1, -8 / 3, 0]]), np.array([2, 0, 1, 1])


def hot_spot(side, coldest, hottest):
    """Fresh gas on side x side cells, hot in the middle."""
    x = np.linspace(-2, 2, side)
    T = coldest + (hottest - coldest) * np.exp(-(x[:, None] ** 2) - x**2)
    return stoichiometric(T.reshape(-1))


def sparse(F, data):
    """Factors without row interchanges; the pattern is analyzed once."""
    F.update(data)
    if F.factor().any():
        raise SystemExit("a pivot is zero: try a smaller --dt")
    return F.solve


def iterations(batch, preconditioner, data):
    """BiCGSTAB, which is preconditioned by the matrices that `batch` has."""
    batch.update(data)
    return lambda b: cla.krylov.bicgstab(batch, b, rtol=1e-8, M=preconditioner)[0]


def stacks(a):
    """Factors with row interchanges, of dense matrices."""
    factors = linalg.lu_factor(a)
    return lambda b: linalg.lu_solve(factors, b[..., None])[..., 0]


def step(y, dt, F):
    """The gases in all cells after a step; values of its matrices, and right-hand sides of its stages."""
    data, *_ = implicit(HYDROGEN, y, G * dt)
    k, sides, solve = np.zeros((4, *y.shape)), [], sparse(F, data)
    for stage in range(4):
        f = HYDROGEN(y + np.tensordot(A[stage], k, 1))
        sides.append(G * (dt * f + np.tensordot(C[stage], k, 1)))
        k[stage] = solve(sides[-1])
    return y + np.tensordot(M, k, 1), data, sides


def main(argv=None):
    args = arguments(__doc__, argv, side=100, steps=30, dt=1e-6)
    y = hot_spot(args.side, 1050, 1450)
    batch = cla.BatchCSR(implicit(HYDROGEN, y, G * args.dt))
    print(f"{batch.nm} cells of {HYDROGEN.n} unknowns, {batch.nnz} of {HYDROGEN.n**2} values are not always zero")
    F = cla.BatchLU(batch)
    for _ in range(args.steps):
        y, data, sides = step(y, args.dt, F)
    batch.update(data)
    a, preconditioners = batch.toarray(), {M.__name__: M(batch) for M in (cla.krylov.ILU0, cla.krylov.Jacobi)}
    ways = {"BatchLU": partial(sparse, F, data)}
    ways |= {f"bicgstab, {name}": partial(iterations, batch, P, data) for name, P in preconditioners.items()}
    ways |= {"compactla.linalg": partial(stacks, a), "numpy.linalg.solve": lambda: partial(solve_vectors, a)}
    found = compare({name: lambda way=way: np.array([*map(way(), sides)]) for name, way in ways.items()})
    for name, x in found.items():
        print(f"{name}: {abs(x - found['numpy.linalg.solve']).max():.0e} apart")
    for name, P in preconditioners.items():
        counts = [cla.krylov.bicgstab(batch, b, rtol=1e-8, M=P)[1].iterations for b in sides]
        print(f"{name}: {np.mean(counts):.2f} iterations in the mean, {np.max(counts)} at most")
    T, OH = KILO * y[:, -1], y[:, [*SPECIES].index("OH")]
    microseconds = f"{1e6 * args.steps * args.dt:.3g} us"
    print(f"after {microseconds}: hottest {T.max():.0f} K, {(T > 2000).mean():.0%} of the cells have ignited")
    pictures.ignition(args.plot, T.reshape(args.side, -1), OH.reshape(args.side, -1), microseconds)


if __name__ == "__main__":
    main()
