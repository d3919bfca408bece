"""Spectral elements in three dimensions: ``python -m compactla.examples.spectral_elements --plot elements.png``.

The unknowns of an element are values at (p + 1)^3 Gauss-Lobatto points. Derivatives along its axes are products with
the matrix D of Lagrange's polynomials in one dimension, (D x I x I) u. The mass matrix of an element is M x M x M, and
its inverse M^-1 x M^-1 x M^-1. All of that is `kron_apply`, in one pass over the elements. The program takes
derivatives of a function, solves with mass matrices, and does the same with numpy.einsum.
"""

import argparse
import time

import numpy as np
from numpy.polynomial import Legendre, legendre

import compactla as cla
from compactla.cpu.threads.sharing import THREADS
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


def with_einsum(factors, u):
    return np.einsum("il,jm,kn,plmn->pijk", *factors, u, optimize=True)


def timed(apply, cases, u, queue=None, rounds=3):
    """Results, and the least time, of some products; on a device, where operands are before."""
    if queue is not None:
        import pyopencl.array

        u, *flat = (pyopencl.array.to_device(queue, a) for a in (u, *(F for factors in cases for F in factors)))
        cases = [flat[k : k + 3] for k in range(0, len(flat), 3)]
    results, seconds = [], []
    for _ in range(1 + rounds):
        start = time.perf_counter()
        results = [apply(factors, u) for factors in cases]
        if queue is not None:
            queue.finish()
        seconds.append(time.perf_counter() - start)
    return results, min(seconds[1:])


def main(argv=None):
    name = "python -m compactla.examples.spectral_elements"
    parser = argparse.ArgumentParser(prog=name, description=__doc__.splitlines()[0])
    parser.add_argument("--elements", type=int, default=22, help="along each axis (default: 22, 10648 in all)")
    parser.add_argument("--degree", type=int, default=7, help="(default: 7)")
    parser.add_argument("--device", metavar="opencl[:NAME]", help="compute on an OpenCL device, too")
    parser.add_argument("--plot", metavar="FILE.png", help="draw errors of derivatives, and times")
    args = parser.parse_args(argv)
    ways = [("compactla", with_compactla, None), ("einsum", with_einsum, None)]
    if args.device:
        ways.append((args.device, with_compactla, queue_on(args.device, "--device")))
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
    # times of all ways, and how far apart their results are
    times, found = {}, {}
    print(f"{len(u)} elements of {len(x)}^3 points")
    for task, factors in tasks.items():
        given = u if task == "gradient" else right
        for library, apply, queue in ways:
            found[task, library], times[task, library] = timed(apply, factors, given, queue)
        ours, theirs = times[task, "compactla"], times[task, "einsum"]
        print(f"{task}: compactla {ours:.3g} s on {THREADS} threads")
        print(f"{task}: einsum    {theirs:.3g} s, {theirs / ours:.1f} times as long")
        if args.device:
            pairs = zip(found[task, args.device], found[task, "compactla"], strict=True)
            apart = max(abs(there.get() - here).max() for there, here in pairs)
            print(f"{task}: {args.device} {times[task, args.device]:.3g} s, {apart:.1e} apart")
    # errors against the exact gradient
    pairs = zip(found["gradient", "compactla"], gradient(*grid), strict=True)
    errors = [abs(ours - exact) for ours, exact in pairs]
    print(
        "derivatives are off by " + ", ".join(f"{e.max():.1e} ({d})" for e, d in zip(errors, DIRECTIONS, strict=True))
    )
    (solved,) = found["mass solve", "compactla"]
    print(f"mass solve is off by {abs(solved - u).max():.1e}")
    if args.plot:
        plot(args.plot, times, errors)


def plot(path, times, errors):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    tasks = [*dict.fromkeys(task for task, _ in times)]
    libraries = [*dict.fromkeys(library for _, library in times)]
    width = 0.8 / len(libraries)
    for k, library in enumerate(libraries):
        heights = [1e3 * times[task, library] for task in tasks]
        left.bar(np.arange(len(tasks)) + width * k, heights, width, label=library)
    left.set_xticks(np.arange(len(tasks)) + 0.4 - width / 2, tasks)
    left.set(title="all elements", ylabel="ms")
    left.legend()
    for error, direction in zip(errors, DIRECTIONS, strict=True):
        largest = np.sort(error.max(axis=(1, 2, 3)))
        right.semilogy(largest, label=f"along {direction}")
    right.set(title="derivatives", xlabel="elements, by error", ylabel="largest error")
    right.legend()
    figure.savefig(path, dpi=120)
    print(f"plot: {path}")


if __name__ == "__main__":
    main()
