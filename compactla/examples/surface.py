"""Curvatures of a surface from points, for NumPy: ``python -m compactla run --report -m compactla.examples.surface``.

Points are measured on a torus. For each one, eigenvectors of the covariance of its neighbours span the plane that
touches the surface, and a quadratic fit over this plane has the curvatures. The program knows nothing of compactla: run
by ``python`` alone, NumPy computes all of its stacks.
"""

import argparse
import time

import numpy as np
from scipy.spatial import cKDTree

NEAR, RING, TUBE, NOISE = 24, 2.0, 0.8, 1e-4


def torus(number, rng):
    """Points, and the product of both curvatures of the torus there."""
    along, around = rng.uniform(0, 2 * np.pi, (2, number))
    out = RING + TUBE * np.cos(around)
    points = np.stack([out * np.cos(along), out * np.sin(along), TUBE * np.sin(around)], 1)
    return points + NOISE * rng.standard_normal(points.shape), np.cos(around) / (TUBE * out)


def frames(near):
    """Three directions for each point, (points, 3, 3): the first column is normal to the surface."""
    centred = near - near.mean(1, keepdims=True)
    _, directions = np.linalg.eigh(centred.swapaxes(1, 2) @ centred)
    return directions


def curvatures(near, directions):
    """Both curvatures at each point, (points, 2), of a quadratic function of least squares."""
    height, u, v = np.moveaxis(near @ directions, 2, 0)
    terms = np.stack([u * u / 2, u * v, v * v / 2, u, v], 2)
    moments, right = terms.swapaxes(1, 2) @ terms, terms.swapaxes(1, 2) @ height[:, :, None]
    uu, uv, vv, *_ = np.linalg.solve(moments, right)[:, :, 0].T
    return np.linalg.eigvalsh(np.stack([np.stack([uu, uv], 1), np.stack([uv, vv], 1)], 2))


def main(argv=None):
    name = "python -m compactla run --report -m compactla.examples.surface"
    parser = argparse.ArgumentParser(prog=name, description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=50000, help="(default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="of which the last is timed (default: %(default)s)")
    parser.add_argument("--plot", metavar="FILE.png", help="draw the points, and the curvatures that were found")
    args = parser.parse_args(argv)
    points, true = torus(args.points, np.random.default_rng(1827))
    _, neighbours = cKDTree(points).query(points, NEAR + 1)
    near = points[neighbours[:, 1:]] - points[:, None]
    for _ in range(args.rounds):
        start = time.perf_counter()
        directions = frames(near)
        found = curvatures(near, directions).prod(1)
        seconds = time.perf_counter() - start
    print(f"{args.points} points, {NEAR} neighbours each: {seconds:.3g} s for frames and curvatures")
    print(f"Gaussian curvature: median error {np.median(abs(found - true)):.2g}, largest value {true.max():.2g}")
    if args.plot:
        plot(args.plot, points, true, found)


def plot(path, points, true, found):
    from matplotlib.figure import Figure

    figure, front, largest = Figure(figsize=(9, 4), layout="constrained"), points[:, 2] > 0, abs(true).max()
    left, right = figure.subplots(1, 2)
    shown = left.scatter(*points[front, :2].T, 1, found[front], cmap="coolwarm", vmin=-largest, vmax=largest)
    left.set(title="Gaussian curvature from points", aspect="equal")
    figure.colorbar(shown, ax=left)
    right.plot(true, found, ",")
    right.set(title="found over true", xlabel="true", ylim=(-1.1 * largest, 1.5 * true.max()))
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
