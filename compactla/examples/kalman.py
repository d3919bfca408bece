"""Thousands of objects, each tracked by a Kalman filter: ``python -m compactla.examples.kalman --plot kalman.png``.

Objects in a plane go on as they do, but for random pushes; a radar tells where they are, each time with an error whose
covariance R depends on where it looks. In every step a filter predicts the state x of each object, which is position,
velocity and maybe acceleration, and the covariance P of its error, and then updates them by what was measured:

    x <- F x,              P <- F P F^T + Q
    x <- x + K (z - H x),  P <- P - K H P,    K = P H^T inv(S),  S = H P H^T + R

The program is written for numpy.linalg, on stacks, and runs with it and with compactla.linalg.
"""

import argparse
import math

import numpy as np

from compactla.examples.beside import beside_numpy, drawing


def motion(states, dt=1.0, push=0.01):
    """F, Q and H of objects whose highest derivative is pushed by white noise, which are seen where they are."""
    order, eye = states // 2, np.eye(2)
    F = sum(np.eye(order, k=k) * dt**k / math.factorial(k) for k in range(order))
    power = np.arange(order)[::-1]
    own = push * dt ** (power + 0.5) / [math.factorial(k) for k in power]
    Q = np.outer(own, own) / (power[:, None] + power + 1)
    return np.kron(F, eye), np.kron(Q, eye), np.eye(2, states)


def radar(objects, rng, along=0.1, across=0.5):
    """Covariances of what is measured: of the distance, and across it."""
    angle = rng.uniform(0, 2 * np.pi, objects)
    turn = np.moveaxis(np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]), 2, 0)
    return turn * np.array([along**2, across**2]) @ turn.swapaxes(1, 2)


def simulate(F, Q, H, R, steps, rng):
    """Positions of objects and measurements, in each step, from the states that the filters start with."""
    push, error = np.linalg.cholesky(Q), np.linalg.cholesky(R)
    x = rng.standard_normal((len(R), len(F), 1))
    states, measured = [], []
    for _ in range(steps):
        x = F @ x + push @ rng.standard_normal(x.shape)
        states.append(x)
        measured.append(H @ x + error @ rng.standard_normal((len(R), 2, 1)))
    return np.array(states), np.array(measured)


def track(linalg, F, Q, H, R, measured):
    """States, the last covariances, and what innovations are on average, squared and normalized, in each step."""
    x, P = np.zeros((len(R), len(F), 1)), np.tile(np.eye(len(F)), (len(R), 1, 1))
    states, surprise = [], []
    for z in measured:
        x, P = linalg.matmul(F, x), linalg.matmul(linalg.matmul(F, P), F.T) + Q
        y, HP = z - linalg.matmul(H, x), linalg.matmul(H, P)
        S = linalg.matmul(HP, H.T) + R
        K = linalg.solve(S, HP).swapaxes(1, 2)
        x, P = x + linalg.matmul(K, y), P - linalg.matmul(K, HP)
        states.append(x)
        surprise.append(mean_square(y, linalg.solve(S, y)))
    return np.array(states), P, np.array(surprise)


def mean_square(x, y):
    """The mean of x^T y."""
    return (x * y).sum(axis=(1, 2)).mean()


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m compactla.examples.kalman", description=__doc__.splitlines()[0])
    parser.add_argument("--objects", type=int, default=20000, help="(default: 20000)")
    parser.add_argument("--steps", type=int, default=40, help="in time (default: 40)")
    parser.add_argument("--states", type=int, default=4, choices=(4, 6), help="without or with acceleration")
    parser.add_argument("--plot", metavar="FILE.png", help="draw some tracks, and how filters are surprised")
    args = parser.parse_args(argv)
    rng = np.random.default_rng(1960)
    F, Q, H = motion(args.states)
    R = radar(args.objects, rng)
    truth, measured = simulate(F, Q, H, R, args.steps, rng)
    print(f"{args.objects} objects of {args.states} states, {args.steps} steps")
    ours, theirs = beside_numpy(lambda linalg: track(linalg, F, Q, H, R, measured))
    states, P, surprise = ours
    error = truth - states
    off = [np.sqrt(2 * (e**2).mean()) for e in (truth[:, :, :2] - measured, error[:, :, :2])]
    missed = mean_square(error[-1], np.linalg.solve(P, error[-1]))
    print(f"they differ by {abs(states - theirs[0]).max() / abs(states).max():.1e} of the largest state")
    print(f"distance from the truth: measured {off[0]:.3f}, filtered {off[1]:.3f}")
    print(f"innovations squared over S: {surprise.mean():.3f}, 2 expected")
    print(f"errors squared over P: {missed:.3f}, {args.states} expected")
    if args.plot:
        plot(args.plot, truth, measured, states, surprise)


def plot(path, truth, measured, states, surprise, some=6):
    spread = 1.96 * 2 / math.sqrt(truth.shape[1])  # of the mean of so many squares of chi, of two degrees each
    with drawing(path) as (_, left, right):
        for x, style, name in ((truth, "k-", "true"), (measured, "r.", "measured"), (states, "b-", "filtered")):
            tracks = left.plot(x[:, :some, 0, 0], x[:, :some, 1, 0], style, linewidth=1, markersize=2)
            tracks[0].set_label(name)
        left.set(title=f"some of {truth.shape[1]} objects", xlabel="x", ylabel="y")
        left.legend()
        right.axhspan(2 - spread, 2 + spread, alpha=0.2, label="95% of consistent filters")
        right.plot(surprise, label="innovations squared over S")
        right.set(title="how filters are surprised", xlabel="step")
        right.legend()


if __name__ == "__main__":
    main()
