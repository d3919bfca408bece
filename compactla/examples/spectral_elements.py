"""Spectral elements in three dimensions: ``python -m compactla.examples.spectral_elements --plot elements.png``.

The unknowns of an element are values at (p + 1)^3 Gauss-Lobatto points. Derivatives along its axes are products with
the matrix D of Lagrange's polynomials in one dimension, (D x I x I) u. The mass matrix of an element is M x M x M, and
its inverse M^-1 x M^-1 x M^-1. All of that is `kron_apply`, in one pass over the elements. The program takes
derivatives of an exponential, solves with mass matrices, and does the same with numpy.einsum.
"""

from functools import partial

import numpy as np
from numpy.polynomial import Legendre, legendre

import compactla as cla
from compactla.examples import pictures
from compactla.examples.beside import arguments, compare


def matrices(p):
    """Points, the matrix of derivatives, and the mass matrix, all of polynomials of degree p in one dimension."""
    x = np.concatenate([[-1.0], np.sort(Legendre.basis(p).deriv().roots().real), [1.0]])  # Gauss-Lobatto
    inverse = np.linalg.inv(legendre.legvander(x, p))
    slopes = np.stack([Legendre.basis(k).deriv()(x) for k in range(p + 1)], axis=1)
    return x, slopes @ inverse, inverse.T @ ((2 / (2 * np.arange(p + 1) + 1))[:, None] * inverse)


def grid(n, x):
    """Coordinates in n^3 elements that fill the cube of 0 to 1, to be broadcast against each other."""
    lines = (np.arange(n)[:, None] + (x + 1) / 2) / n
    index = np.indices((n, n, n)).reshape(3, -1)
    shapes = (-1, len(x), 1, 1), (-1, 1, len(x), 1), (-1, 1, 1, len(x))
    return [lines[i].reshape(shape) for i, shape in zip(index, shapes, strict=True)]


def both(cases, u):
    """Products with each of some factors, by `kron_apply` in turns with einsum."""
    print("one product:" if len(cases) == 1 else f"{len(cases)} products:")
    einsum = partial(np.einsum, "il,jm,kn,plmn->pijk", optimize=True)
    ways = {"kron_apply": lambda: [cla.kron_apply(factors, u) for factors in cases]}
    ways |= {"einsum": lambda: [einsum(*factors, u) for factors in cases]}
    ours, theirs = compare(ways).values()
    print(f"they are {max(abs(x - y).max() for x, y in zip(ours, theirs, strict=True)):.0e} apart")
    return ours


def main(argv=None):
    args = arguments(__doc__, argv, elements=22, degree=7)
    x, D, M = matrices(args.degree)
    n, eye, slope = args.elements, np.eye(args.degree + 1), np.array([1.0, -2.0, 1.5])
    u = np.exp(sum(k * along for k, along in zip(slope, grid(n, x), strict=True)))
    print(f"{len(u)} elements of {len(x)}^3 points")
    slopes = both([[2 * n * D if axis == k else eye for axis in range(3)] for k in range(3)], u)
    errors = [abs(found - k * u) for found, k in zip(slopes, slope, strict=True)]
    print("derivatives are off by {:.1e} (x), {:.1e} (y), {:.1e} (z)".format(*(error.max() for error in errors)))
    mass = M / (2 * n)
    (solved,) = both([[np.linalg.inv(mass)] * 3], cla.kron_apply([mass] * 3, u))
    print(f"mass solve is off by {abs(solved - u).max():.1e}")
    pictures.spectral_elements(args.plot, errors)


if __name__ == "__main__":
    main()
