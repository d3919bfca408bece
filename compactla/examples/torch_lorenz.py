"""Filters that learn what they filter, in PyTorch: ``python -m compactla.examples.torch_lorenz --plot lorenz.png``.

Each of some hundred particles moves as Lorenz's equations say (J. Atmos. Sci. 20, 1963), is pushed at random, and two
of its coordinates are measured, with errors. An extended Kalman filter follows each one. Its parameters, the three of
the equations and the sizes of pushes and errors, are those that make the measurements most likely: derivatives go
through all filters.
"""

from functools import partial
from types import SimpleNamespace

import torch

import compactla.torch as ct
from compactla.examples import pictures
from compactla.examples.beside import arguments, compare

NAMES = "sigma", "rho", "beta", "push", "error"
TRUE, GUESS = (10.0, 28.0, 8 / 3, 0.1, 1.0), (7.0, 20.0, 4.0, 0.5, 3.0)
THEIRS = SimpleNamespace(**vars(torch.linalg) | {"cholesky_solve": torch.cholesky_solve})
DT, SEEN = 0.04, 2


def step(linalg, state, parameters):
    """States (particles, 3) after a time step, and their derivatives by those before: by exponentials of Jacobians."""
    (x, y, z), (sigma, rho, beta, *_) = state.T, parameters
    one, zero = torch.ones_like(x), torch.zeros_like(x)
    rows = (
        (-sigma * one, sigma * one, zero, sigma * (y - x)),
        (rho - z, -one, -x, x * (rho - z) - y),
        (y, x, -beta * one, x * y - beta * z),
        (zero, zero, zero, zero),
    )
    E = linalg.matrix_exp(DT * torch.stack([torch.stack(row, -1) for row in rows], -2))
    return state + E[:, :3, 3], E[:, :3, :3]


def simulate(particles, steps, parameters):
    """States (steps, particles, 3) from random beginnings, and what is measured of them."""
    *_, push, error = parameters
    states = [10 * torch.randn(particles, 3) + torch.tensor([0.0, 0.0, 25.0])]
    for _ in range(steps + 25):
        moved, _ = step(THEIRS, states[-1], parameters)
        states.append(moved + push * torch.randn(particles, 3))
    states = torch.stack(states[-steps:])
    return states, states[..., :SEEN] + error * torch.randn(steps, particles, SEEN)


def follow(linalg, parameters, measured):
    """States after each measurement, as filters think, and minus the logarithm of their likelihood, on average."""
    *_, push, error = parameters
    x, P = torch.tensor([0.0, 0.0, 25.0]).repeat(measured.shape[1], 1), 100 * torch.eye(3)
    found, surprise = [], 0.0
    for z in measured:
        x, F = step(linalg, x, parameters)
        P = linalg.matmul(linalg.matmul(F, P), F.mT) + push**2 * torch.eye(3)
        L = linalg.cholesky(P[:, :SEEN, :SEEN] + error**2 * torch.eye(SEEN))
        y = (z - x[:, :SEEN]).unsqueeze(-1)
        K = linalg.cholesky_solve(P[:, :SEEN], L).mT
        x, P = x + linalg.matmul(K, y).squeeze(-1), P - linalg.matmul(K, P[:, :SEEN])
        white = linalg.solve_triangular(L, y, upper=False)
        surprise = surprise + L.diagonal(dim1=1, dim2=2).log().sum(1).mean() + white.square().sum((1, 2)).mean() / 2
        found.append(x)
    return torch.stack(found), surprise / len(measured)


def learn(linalg, measured, rounds):
    """Parameters in each round of Adam's method."""
    logarithms = torch.tensor(GUESS).log().requires_grad_()
    adam, history = torch.optim.Adam([logarithms], lr=0.1), []
    for _ in range(rounds):
        history.append(logarithms.detach().exp())
        adam.zero_grad()
        follow(linalg, logarithms.exp(), measured)[1].backward()
        adam.step()
    return torch.stack(history)


def main(argv=None):
    args = arguments(__doc__, argv, particles=200, rounds=50)
    torch.manual_seed(1963)
    torch.set_default_dtype(torch.float64)
    states, measured = simulate(args.particles, 20, torch.tensor(TRUE))
    ways = {"compactla.torch": partial(learn, ct, measured, 3), "torch.linalg": partial(learn, THEIRS, measured, 3)}
    ours, theirs = compare(ways, rounds=2).values()
    print(f"parameters differ by {(ours - theirs).abs().max():.0e}")
    history = learn(ct, measured, args.rounds)
    for word, first, last, true in zip(NAMES, GUESS, history[-1].tolist(), TRUE, strict=True):
        print(f"{word}: {first:.3g} at first, {last:.3g} learnt, {true:.3g} true")
    tracks = {"true": states, "at first": follow(ct, history[0], measured)[0]}
    tracks["learnt"], _ = follow(ct, history[-1], measured)
    pictures.torch_lorenz(args.plot, DT, tracks, dict(zip(NAMES, (history / torch.tensor(TRUE)).T, strict=True)))


if __name__ == "__main__":
    main()
