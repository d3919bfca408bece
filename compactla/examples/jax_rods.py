"""Rates and diffusivities from profiles along rods, in JAX: ``python -m compactla.examples.jax_rods --plot rods.png``.

In each rod A flows in at one end, diffuses, and becomes B at a rate k. From noisy profiles at the end, both
diffusivities and k of every rod are fitted by the method of Levenberg and Marquardt. Its derivatives go through all
implicit steps, which are block tridiagonal systems. The same is done with dense matrices, by JAX alone.
"""

from functools import partial

import jax
import numpy as np
from jax import numpy as jnp

import compactla.jax as cj
from compactla.examples import pictures
from compactla.examples.beside import arguments, compare

CELLS, STEPS, DT = 40, 10, 0.02


def dense_solve(lower, diag, upper, b):
    """What `block_tridiagonal_solve` does, by JAX's solve."""
    k = jnp.arange(CELLS)
    a = jnp.zeros((CELLS, CELLS, 2, 2)).at[k, k].set(diag).at[k[1:], k[:-1]].set(lower).at[k[:-1], k[1:]].set(upper)
    return jnp.linalg.solve(a.swapaxes(1, 2).reshape(2 * CELLS, -1), b.ravel()).reshape(b.shape)


def profiles(logarithms, solve=cj.block_tridiagonal_solve):
    """A and B in all cells at the end, (CELLS, 2), of the logarithms of two diffusivities and a rate."""
    *diffusivities, rate = jnp.exp(logarithms)
    flow = DT * CELLS**2 * jnp.diag(jnp.stack(diffusivities))
    decay = DT * rate * jnp.array([[1.0, 0.0], [-1.0, 0.0]])
    ends = jnp.full(CELLS, 2.0).at[-1].set(1.0)  # the first cell touches the inflow, the last one a wall
    diag = jnp.eye(2) + decay + ends[:, None, None] * flow
    side = jnp.broadcast_to(-flow, (CELLS - 1, 2, 2))
    inflow = jnp.zeros((CELLS, 2)).at[0].set(flow @ jnp.array([1.0, 0.0]))
    return jax.lax.fori_loop(0, STEPS, lambda _, u: solve(side, diag, side, u + inflow), jnp.zeros((CELLS, 2)))


def improve(solve, logarithms, measured, damping):
    """A step of the method of Levenberg and Marquardt for one rod; its sum of squares before."""
    misfit = profiles(logarithms, solve) - measured
    J = jax.jacfwd(profiles)(logarithms, solve).reshape(-1, 3)
    H = J.T @ J
    return logarithms - cj.solve(H + damping * jnp.diag(H.diagonal()), J.T @ misfit.ravel()), (misfit**2).sum()


def fit(step, measured):
    """The logarithms of all rods, in twelve steps that are less and less damped, and the largest sum of squares."""
    found = jnp.zeros((len(measured), 3))
    for k in range(12):
        found, squares = step(found, measured, 10.0**-k)
    return np.asarray(found), squares.max()


def main(argv=None):
    args = arguments(__doc__, argv, rods=1000)
    rng = np.random.default_rng(0)
    true = np.log([0.5, 0.2, 3.0]) + 0.3 * rng.standard_normal((args.rods, 3))
    measured = jax.jit(jax.vmap(profiles))(true) + 1e-3 * rng.standard_normal((args.rods, CELLS, 2))
    ways = {"block_tridiagonal_solve": cj.block_tridiagonal_solve, "jnp.linalg.solve": dense_solve}
    steps = {name: jax.jit(jax.vmap(partial(improve, solve), (0, 0, None))) for name, solve in ways.items()}
    few = {name: partial(fit, step, measured[:50]) for name, step in steps.items()}
    (found, _), (theirs, _) = compare(few, rounds=2).values()
    print(f"fits of {len(found)} rods differ by {abs(found - theirs).max():.0e}")
    found, squares = fit(steps["block_tridiagonal_solve"], measured)
    print(f"largest sum of squares {squares:.2e}")
    print(f"{args.rods} rods within {', '.join(f'{x:.1%}' for x in np.exp(abs(found - true)).max(0) - 1)}")
    pictures.jax_rods(args.plot, true, found)


if __name__ == "__main__":
    main()
