"""Thousands of objects, each tracked by a Kalman filter: ``python -m compactla.examples.kalman --plot kalman.png``.

Objects in a plane go on as they do, but for random pushes; a radar tells where they are, each time with an error whose
covariance R depends on where it looks. In every step a filter predicts the state x of each object, which is position
and velocity, and the covariance P of its error, and then updates them by what was measured:

    x <- F x,              P <- F P F^T + Q
    x <- x + K (z - H x),  P <- P - K H P,    K = P H^T inv(S),  S = H P H^T + R

The program is written for numpy.linalg, on stacks, and runs with it and with compactla.linalg.
"""

import numpy as np

from compactla.examples import pictures
from compactla.examples.beside import arguments, beside_numpy

F = np.kron([[1.0, 1.0], [0.0, 1.0]], np.eye(2))  # a step of positions and velocities
Q = 0.01 * np.kron([[1 / 3, 1 / 2], [1 / 2, 1.0]], np.eye(2))  # white noise pushes velocities
H = np.eye(2, 4)


def radar(objects, rng, along=0.1, across=0.5):
    """Covariances of what is measured: of the distance, and across it."""
    angle = rng.uniform(0, 2 * np.pi, objects)
    turn = np.moveaxis(np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]), 2, 0)
    return turn * np.array([along**2, across**2]) @ turn.swapaxes(1, 2)


def simulate(R, steps, rng):
    """Positions of objects and measurements, in each step, from the states that the filters start with."""
    push, error = np.linalg.cholesky(Q), np.linalg.cholesky(R)
    states, measured = [rng.standard_normal((len(R), 4, 1))], []
    for _ in range(steps):
        states.append(F @ states[-1] + push @ rng.standard_normal((len(R), 4, 1)))
        measured.append(H @ states[-1] + error @ rng.standard_normal((len(R), 2, 1)))
    return np.array(states[1:]), np.array(measured)


def track(linalg, R, measured):
    """States, the last covariances, and what innovations are on average, squared and normalized, in each step."""
    x, P = np.zeros((len(R), 4, 1)), np.tile(np.eye(4), (len(R), 1, 1))
    states, surprise = [], []
    for z in measured:
        x, P = linalg.matmul(F, x), linalg.matmul(linalg.matmul(F, P), F.T) + Q
        y, HP = z - linalg.matmul(H, x), linalg.matmul(H, P)
        S = linalg.matmul(HP, H.T) + R
        K = linalg.solve(S, HP).swapaxes(1, 2)
        x, P = x + linalg.matmul(K, y), P - linalg.matmul(K, HP)
        states.append(x)
        surprise.append((y * linalg.solve(S, y)).sum(axis=1).mean())
    return np.array(states), P, np.array(surprise)


def main(argv=None):
    args = arguments(__doc__, argv, objects=20000, steps=40)
    rng = np.random.default_rng(1960)
    R = radar(args.objects, rng)
    truth, measured = simulate(R, args.steps, rng)
    (states, P, surprise), theirs = beside_numpy(lambda linalg: track(linalg, R, measured))
    error = truth - states
    off = [np.sqrt(2 * (e**2).mean()) for e in (truth[:, :, :2] - measured, error[:, :, :2])]
    missed = (error[-1] * np.linalg.solve(P, error[-1])).sum(axis=1).mean()
    print(f"they differ by {abs(states - theirs[0]).max() / abs(states).max():.1e} of the largest state")
    print(f"distance from the truth: measured {off[0]:.3f}, filtered {off[1]:.3f}")
    print(f"innovations squared over S: {surprise.mean():.3f}, 2 expected")
    print(f"errors squared over P: {missed:.3f}, 4 expected")
    pictures.kalman(args.plot, truth, measured, states, surprise)


if __name__ == "__main__":
    main()
