"""Clouds of points, turned onto each other: ``python -m compactla.examples.kabsch --plot kabsch.png``.

A molecule is seen in many frames of a simulation, turned, moved and shaken. Kabsch's method finds the rotation R that
brings the molecule closest to what is seen in a frame, by the singular values of the 3 x 3 covariance C:

    C = U diag(s) V^T,    R = U diag(1, 1, det(U V^T)) V^T

where the determinant keeps R from being a reflection, which is closer where points lie almost in a plane.
The program is written for numpy.linalg, on stacks, and runs with it and with compactla.linalg.
"""

import numpy as np

from compactla.examples import pictures
from compactla.examples.beside import arguments, beside_numpy


def frames(atoms, count, noise, rng):
    """A molecule, almost in a plane around the origin; frames; and rotations, which turn it to where it is there."""
    points = rng.uniform(-1, 1, (atoms, 3)) * np.array([5, 3, 0.1])
    points -= points.mean(axis=0)
    Q, _ = np.linalg.qr(rng.standard_normal((count, 3, 3)))
    turns = Q * np.sign(np.linalg.det(Q))[:, None, None]
    moved = points @ turns.swapaxes(1, 2) + 10 * rng.standard_normal((count, 1, 3))
    return points, moved + noise * rng.standard_normal(moved.shape), turns


def align(linalg, points, seen):
    """Rotations, how far points then are from each other, and which would be reflections."""
    seen = seen - seen.mean(axis=1, keepdims=True)
    U, s, Vh = linalg.svd(linalg.matmul(seen.swapaxes(1, 2), points))
    sign = linalg.det(linalg.matmul(U, Vh))
    U[:, :, 2] *= np.sign(sign)[:, None]
    s[:, 2] *= np.sign(sign)
    squares = (points**2).sum() + (seen**2).sum(axis=(1, 2)) - 2 * s.sum(axis=1)
    return linalg.matmul(U, Vh), np.sqrt(np.maximum(squares, 0) / len(points)), sign < 0


def main(argv=None):
    args = arguments(__doc__, argv, frames=50000, atoms=12, noise=0.2)
    points, seen, turns = frames(args.atoms, args.frames, args.noise, np.random.default_rng(1976))
    (R, distance, mirrored), theirs = beside_numpy(lambda linalg: align(linalg, points, seen))
    expected = args.noise * np.sqrt(3 - 6 / args.atoms)
    print(f"rotations differ by {abs(R - theirs[0]).max():.1e}")
    print(f"determinants of rotations are 1 to {abs(np.linalg.det(R) - 1).max():.1e}")
    print(f"{mirrored.sum()} frames would have been reflected")
    print(f"atoms are {np.sqrt((distance**2).mean()):.4f} apart, {expected:.4f} expected")
    off = np.degrees(2 * np.arcsin(np.minimum(np.linalg.norm(R - turns, axis=(1, 2)) / np.sqrt(8), 1)))
    pictures.kabsch(args.plot, off, distance, mirrored, expected)


if __name__ == "__main__":
    main()
