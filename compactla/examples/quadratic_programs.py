"""Quadratic programs: ``python -m compactla.examples.quadratic_programs --plot quadratic_programs.png``.

Each of many investors holds a portfolio x that weighs risk against return, fully invested and without debts:

    minimize  1/2 x^T Q x - r^T x    where    A x = b,  x >= 0

The interior-point method is Mehrotra's, with a barrier and a step length for each problem. Newton's method meets saddle
point (KKT) systems, which are symmetric and indefinite. They are solved twice, for a predictor and for a corrector.

    | Q + Z / X   A^T | |  dx |   | r - Q x + A^T y + mu / x |
    | A            0  | | -dy | = | b - A x                  |
"""

from functools import partial

import numpy as np

from compactla import linalg
from compactla.examples import pictures
from compactla.examples.beside import arguments, compare, symmetric_by_loop


def portfolios(count, assets, groups, rng):
    """Risks Q, returns r, and constraints A x = b: the sum, and the mean of some groups of assets."""
    F = rng.standard_normal((count, assets, assets))
    Q = F @ F.swapaxes(1, 2) / assets + 0.1 * np.eye(assets)
    A = np.concatenate([np.ones((count, 1, assets)), rng.uniform(0, 1, (count, groups - 1, assets))], axis=1)
    return Q, rng.uniform(0, 1, (count, assets)), A, A.mean(axis=2)


def step_to(x, dx):
    """The largest step of at most 1 that keeps x positive, for each problem."""
    return np.minimum(1, 1 / np.max(-dx / x, axis=1, initial=1e-300))[:, None]


def interior_point(solve, Q, r, A, b, iterations):
    """Solutions, and how far each problem is from optimal: residuals, and the gap."""
    count, m, n = A.shape
    x, z, y = np.ones((count, n)), np.ones((count, n)), np.zeros((count, m))
    K, diagonal = np.zeros((count, n + m, n + m)), np.arange(n)
    K[:, :n, n:] = A.swapaxes(1, 2)  # the upper triangle
    for _ in range(iterations):
        gap = (x * z).mean(axis=1, keepdims=True)
        dual = r - np.einsum("qij,qj->qi", Q, x) + np.einsum("qij,qi->qj", A, y) + z
        primal = b - np.einsum("qij,qj->qi", A, x)
        K[:, :n, :n] = Q
        K[:, diagonal, diagonal] += z / x

        def direction(centre, K=K, x=x, z=z, dual=dual, primal=primal):
            f = np.concatenate([dual + (centre - x * z) / x, primal], axis=1)
            d = solve(K, f[:, :, None])[:, :, 0]
            return d[:, :n], -d[:, n:], (centre - x * z - z * d[:, :n]) / x

        dx, _, dz = direction(0)
        after = ((x + step_to(x, dx) * dx) * (z + step_to(z, dz) * dz)).mean(axis=1, keepdims=True)
        dx, dy, dz = direction((after / gap) ** 3 * gap - dx * dz)
        step = 0.99 * np.minimum(step_to(x, dx), step_to(z, dz))
        x, y, z = x + step * dx, y + step * dy, z + step * dz
    return x, np.maximum(abs(dual).max(axis=1), abs(primal).max(axis=1)), (x * z).mean(axis=1)


def main(argv=None):
    args = arguments(__doc__, argv, problems=5000, assets=12, constraints=4, iterations=12)
    Q, r, A, b = portfolios(args.problems, args.assets, args.constraints, np.random.default_rng(1992))
    solvers = {"compactla.linalg": partial(linalg.solve, assume_a="sym"), "scipy.linalg": symmetric_by_loop}
    ways = {name: partial(interior_point, solve, Q, r, A, b, args.iterations) for name, solve in solvers.items()}
    (x, residual, gap), (theirs, *_) = compare(ways, rounds=2).values()
    print(f"residuals are {residual.max():.1e} at most, gaps {gap.max():.1e}")
    print(f"portfolios differ by {abs(x - theirs).max():.1e} at most")
    pictures.quadratic_programs(args.plot, x, Q, r)


if __name__ == "__main__":
    main()
