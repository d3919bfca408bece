"""Rates and diffusivities from profiles along rods, in JAX: ``python -m compactla.examples.jax_rods --plot rods.png``.

In each rod A flows in at one end, diffuses, and becomes B at a rate k. From noisy profiles at the end, both
diffusivities and k of every rod are fitted by the method of Levenberg and Marquardt. Its derivatives go through all
implicit steps, which are block tridiagonal systems.
"""

import argparse
import time

import jax
import numpy as np
from jax import numpy as jnp

import compactla.jax as cj
from compactla.examples.beside import drawing

CELLS, STEPS, DT = 40, 10, 0.02
EYE = jnp.eye(2)


def profiles(logarithms):
    """A and B in all cells at the end, (CELLS, 2), of the logarithms of two diffusivities and a rate."""
    *diffusivities, rate = jnp.exp(logarithms)
    flow = DT * CELLS**2 * jnp.diag(jnp.stack(diffusivities))
    decay = DT * rate * jnp.array([[1.0, 0.0], [-1.0, 0.0]])
    ends = jnp.full(CELLS, 2.0).at[-1].set(1.0)  # the first cell touches the inflow, the last one a wall
    diag = EYE + decay + ends[:, None, None] * flow
    side = jnp.broadcast_to(-flow, (CELLS - 1, 2, 2))
    inflow = jnp.zeros((CELLS, 2)).at[0].set(flow @ jnp.array([1.0, 0.0]))

    def step(u, _):
        return cj.block_tridiagonal_solve(side, diag, side, u + inflow), None

    return jax.lax.scan(step, jnp.zeros((CELLS, 2)), length=STEPS)[0]


def improve(logarithms, measured, damping):
    """A step of the method of Levenberg and Marquardt for one rod; its sum of squares before."""
    misfit = profiles(logarithms) - measured
    J = jax.jacfwd(profiles)(logarithms).reshape(-1, 3)
    H = J.T @ J
    return logarithms - cj.solve(H + damping * jnp.diag(H.diagonal()), J.T @ misfit.ravel()), (misfit**2).sum()


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m compactla.examples.jax_rods", description=__doc__.splitlines()[0])
    parser.add_argument("--rods", type=int, default=1000)
    parser.add_argument("--plot", metavar="FILE.png", help="draw the rates that were found over the true ones")
    args = parser.parse_args(argv)
    rng = np.random.default_rng(0)
    true = np.log([0.5, 0.2, 3.0]) + 0.3 * rng.standard_normal((args.rods, 3))
    measured = jax.jit(jax.vmap(profiles))(true) + 1e-3 * rng.standard_normal((args.rods, CELLS, 2))
    fit, found = jax.jit(jax.vmap(improve, (0, 0, None))), jnp.zeros((args.rods, 3))
    jax.block_until_ready(fit(found, measured, 1.0))  # kernels are compiled, or loaded
    start = time.perf_counter()
    for k in range(12):
        found, squares = fit(found, measured, 10.0**-k)
        print(f"step {k:2}: largest sum of squares {squares.max():.2e}")
    jax.block_until_ready(found)
    apart = np.exp(abs(found - true)).max(0) - 1
    print(f"{args.rods} rods in {time.perf_counter() - start:.3g} s: within {', '.join(f'{x:.1%}' for x in apart)}")
    if args.plot:
        plot(args.plot, np.exp(true), np.exp(found))


def plot(path, true, found):
    with drawing(path, columns=3) as (_, *grid):
        names = "diffusivity of A", "diffusivity of B", "rate"
        for axes, name, x, y in zip(grid, names, true.T, found.T, strict=True):
            axes.loglog(x, y, ".", markersize=2)
            axes.set(title=name, xlabel="true", ylabel="found")
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_minor_formatter("")


if __name__ == "__main__":
    main()
