"""Spectral elements in three dimensions: ``python -m compactla.examples.spectral_elements --plot elements.png``.

The unknowns of an element are values at (p + 1)^3 Gauss-Lobatto points. Derivatives along its axes are products with
the matrix D of Lagrange's polynomials in one dimension, (D x I x I) u. The mass matrix of an element is M x M x M, and
its inverse M^-1 x M^-1 x M^-1. All of that is `kron_apply`, in one pass over the elements. The program takes
derivatives of a function, solves with mass matrices, and does the same with numpy.einsum.
"""

import argparse
from functools import partial

import numpy as np
from numpy.polynomial import Legendre, legendre

import compactla as cla
from compactla.examples.beside import compare, drawing
from compactla.gpu.devices import queue_on

DIRECTIONS = "xyz"


def points(p):
    """Gauss-Lobatto points from -1 to 1."""
    return np.concatenate([[-1.0], np.sort(Legendre.basis(p).deriv().roots().real), [1.0]])


def matrices(p):
    """Points, the matrix of derivatives, and the mass matrix, all of polynomials of degree p in one dimension."""
    x = points(p)
    V = legendre.legvander(x, p)
    slopes = np.stack([Legendre.basis(k).deriv()(x) for k in range(p + 1)], axis=1)
    norms = 2 / (2 * np.arange(p + 1) + 1)
    inverse = np.linalg.inv(V)
    return x, slopes @ inverse, inverse.T @ (norms[:, None] * inverse)


def elements(n, x):
    """Points of n^3 elements that fill the cube of 0 to 1 along each axis: (n^3, 1 + p) for x, y and z."""
    lines = (np.arange(n)[:, None] + (x + 1) / 2) / n
    index = np.stack(np.meshgrid(*[np.arange(n)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    return [lines[index[:, axis]] for axis in range(3)]


def function(x, y, z):
    return np.sin(3 * x) * np.cos(2 * y) * np.exp(z)


def gradient(x, y, z):
    along = 3 * np.cos(3 * x) * np.cos(2 * y), -2 * np.sin(3 * x) * np.sin(2 * y), np.sin(3 * x) * np.cos(2 * y)
    return [part * np.exp(z) for part in along]


def with_compactla(factors, u):
    return cla.kron_apply(factors, u)


def products(apply, cases, u):
    return [apply(factors, u) for factors in cases]


def with_einsum(factors, u):
    return np.einsum("il,jm,kn,plmn->pijk", *factors, u, optimize=True)


def on_device(queue, cases, u):
    """A way to compute products on a device, where the operands are before."""
    import pyopencl.array

    factors = [[pyopencl.array.to_device(queue, F) for F in case] for case in cases]
    v = pyopencl.array.to_device(queue, u)

    def products():
        results = [with_compactla(case, v) for case in factors]
        queue.finish()
        return results

    return products


def main(argv=None):
    name = "python -m compactla.examples.spectral_elements"
    parser = argparse.ArgumentParser(prog=name, description=__doc__.splitlines()[0])
    parser.add_argument("--elements", type=int, default=22, help="along each axis (default: 22, 10648 in all)")
    parser.add_argument("--degree", type=int, default=7, help="(default: 7)")
    parser.add_argument("--device", metavar="opencl[:NAME]", help="compute on an OpenCL device, too")
    parser.add_argument("--plot", metavar="FILE.png", help="draw errors of derivatives, and times")
    args = parser.parse_args(argv)
    # values of a function at the points of all elements
    x, D, M = matrices(args.degree)
    n, eye = args.elements, np.eye(args.degree + 1)
    X, Y, Z = elements(n, x)
    grid = X[:, :, None, None], Y[:, None, :, None], Z[:, None, None, :]
    u = function(*grid)
    # factors: a derivative along each axis, and inverses of mass matrices
    scaled = 2 * n * D
    cases = [[scaled if axis == k else eye for axis in range(3)] for k in range(3)]
    mass = M / (2 * n)
    inverse = np.linalg.inv(mass)
    tasks = {"gradient": cases, "mass solve": [[inverse] * 3]}
    right = cla.kron_apply([mass] * 3, u)
    times, found = {}, {}
    print(f"{len(u)} elements of {len(x)}^3 points")
    for task, factors in tasks.items():
        given = u if task == "gradient" else right
        ways = {"compactla": partial(products, with_compactla, factors, given)}
        ways["einsum"] = partial(products, with_einsum, factors, given)
        if args.device:
            ways[args.device] = on_device(queue_on(args.device, "--device"), factors, given)
        print(f"{task}:")
        found[task], times[task] = compare(ways)
        for there, here in zip(found[task].get(args.device, []), found[task]["compactla"], strict=False):
            print(f"{args.device}: {abs(there.get() - here).max():.1e} apart")
    # errors against the exact gradient
    pairs = zip(found["gradient"]["compactla"], gradient(*grid), strict=True)
    errors = [abs(ours - exact) for ours, exact in pairs]
    print(
        "derivatives are off by " + ", ".join(f"{e.max():.1e} ({d})" for e, d in zip(errors, DIRECTIONS, strict=True))
    )
    (solved,) = found["mass solve"]["compactla"]
    print(f"mass solve is off by {abs(solved - u).max():.1e}")
    if args.plot:
        plot(args.plot, times, errors)


def plot(path, times, errors):
    with drawing(path) as (_, left, right):
        libraries = [*times["gradient"]]
        width = 0.8 / len(libraries)
        for k, library in enumerate(libraries):
            heights = [1e3 * seconds[library] for seconds in times.values()]
            left.bar(np.arange(len(times)) + width * k, heights, width, label=library)
        left.set_xticks(np.arange(len(times)) + 0.4 - width / 2, [*times])
        left.set(title="all elements", ylabel="ms")
        left.legend()
        for error, direction in zip(errors, DIRECTIONS, strict=True):
            right.semilogy(np.sort(error.max(axis=(1, 2, 3))), label=f"along {direction}")
        right.set(title="derivatives", xlabel="elements, by error", ylabel="largest error")
        right.legend()


if __name__ == "__main__":
    main()
