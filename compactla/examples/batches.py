"""Batches of sparse matrices of one pattern, to try solvers on: of chemistry, and of grids in two dimensions.

Each is returned as ``(data, indices, indptr)``, which `compactla.BatchCSR` takes; `data` is (nm, nnz). The same seed
makes the same batch.

Examples
--------
>>> import compactla as cla
>>> from compactla.examples import batches
>>> cla.BatchCSR(batches.hydrogen(1000))
BatchCSR(1000 x 12 x 12, nnz=129, float64, vlen=8, device=cpu)
"""

import numpy as np
from scipy.integrate import solve_ivp

from compactla.examples.chemistry import HYDROGEN, made_up, stoichiometric

FIVE = {(0, 1): 1, (1, 0): 1, (0, -1): 1, (-1, 0): 1}
NINE = {(i, j): 2 / 3 if i * j == 0 else 1 / 6 for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j}


def hydrogen(nm, dt=1e-6, temperature=1100.0, seed=0):
    """I - dt J of hydrogen that burns in air: 12 unknowns, 129 values.

    Parameters
    ----------
    nm : int
        Number of matrices.
    dt : float
        Length of an implicit step, in seconds.
    temperature : float
        Temperature before the ignition, in K.
    seed : int
        Seed of the moments of the ignition that matrices are from.
    """
    return jacobians(HYDROGEN, stoichiometric(temperature), nm, dt, seed=seed)


def larger(nm, dt=1e-6, species=53, reactions=300, seed=0):
    """I - dt J of a made-up mechanism, by default of the size and density of GRI-Mech 3.0: 54 unknowns.

    Systems are as hard to solve as those of real mechanisms: rates are up to 10^10 apart, in equilibria that agree with
    each other.
    """
    mechanism = made_up(species, reactions, seed=seed)
    fresh = np.append(np.where(np.arange(species) < 6, 2.0, 1e-3), 1.0)
    return jacobians(mechanism, fresh, nm, dt, seed=seed)


def jacobians(mechanism, fresh, nm, dt, seconds=3e-4, seed=0):
    """I - dt J of a gas at nm moments while it reacts, most of them where it changes fast.

    Parameters
    ----------
    mechanism : Mechanism
        The reactions.
    fresh : (n,) array_like
        The gas before, as `Mechanism` has it.
    """
    return implicit(mechanism, moments(mechanism, fresh, nm, seconds, seed), dt)


def implicit(mechanism, y, dt):
    """I - dt J of gases y, (nm, n)."""
    rows, columns = np.nonzero(mechanism.pattern())
    data = -dt * mechanism.jacobian(y)[:, rows, columns]
    data[:, rows == columns] += 1
    return data, columns, np.searchsorted(rows, np.arange(mechanism.n + 1))


def moments(mechanism, fresh, nm, seconds=3e-4, seed=0):
    """A gas at nm moments while it reacts, (nm, n): as many in each step of an integrator."""
    slope = {"fun": lambda t, y: mechanism(y), "jac": lambda t, y: mechanism.jacobian(y)}
    found = solve_ivp(**slope, t_span=(0, seconds), y0=fresh, method="BDF", rtol=1e-5, atol=1e-9, dense_output=True)
    step = np.sort(np.random.default_rng(seed).uniform(0, len(found.t) - 1, nm))
    return np.maximum(found.sol(np.interp(step, np.arange(len(found.t)), found.t)).T, 0)


def five_point(nm, nx, ny, convection=0.0, spread=0.5, seed=0):
    """Diffusion and convection on grids of nx x ny cells, with the five-point stencil.

    Parameters
    ----------
    nm, nx, ny : int
        Number of matrices, and size of their grids. Cell (i, j) is unknown ``i * ny + j``.
    convection : float
        How fast what diffuses is carried along, upwind differences, in a direction by chance for each matrix: a cell's
        Peclet number. Without, matrices are symmetric and positive definite.
    spread : float
        Standard deviation of the logarithm of the coefficient of diffusion, by chance for each cell.
    seed : int
        Seed of these random numbers.
    """
    return grid(FIVE, nm, nx, ny, convection, spread, seed)


def nine_point(nm, nx, ny, convection=0.0, spread=0.5, seed=0):
    """The matrices of `five_point`, with the nine-point stencil: corners count a quarter of the others."""
    return grid(NINE, nm, nx, ny, convection, spread, seed)


def grid(stencil, nm, nx, ny, convection, spread, seed):
    """Diffusion and convection with a stencil {(i, j): weight}. Beyond the edges of the grid is zero."""
    rng = np.random.default_rng(seed)
    k = np.exp(spread * rng.standard_normal((nm, nx, ny))).reshape(nm, -1)
    angle = rng.uniform(0, 2 * np.pi, nm)
    velocity = convection * np.stack([np.cos(angle), np.sin(angle)])
    cells = np.arange(nx * ny)
    i, j = np.divmod(cells, ny)
    rows, columns, data = [cells], [cells], [np.zeros((nm, nx * ny))]
    for (di, dj), weight in stencil.items():
        inside = (0 <= i + di) & (i + di < nx) & (0 <= j + dj) & (j + dj < ny)
        there = np.where(inside, cells + di * ny + dj, cells)
        upwind = np.maximum(-(velocity[0] * di + velocity[1] * dj), 0)[:, None]
        coupling = weight * (2 / (1 / k + 1 / k[:, there]) + upwind)
        data[0] += coupling
        rows.append(cells[inside])
        columns.append(there[inside])
        data.append(-coupling[:, inside])
    rows, columns = np.concatenate(rows), np.concatenate(columns)
    order = np.lexsort((columns, rows))
    return np.concatenate(data, axis=1)[:, order], columns[order], np.searchsorted(rows[order], np.arange(nx * ny + 1))
