"""Three gigabytes of systems, made, solved and reduced in blocks by two workers of Dask.

`python -m benchmarks.dask_blocks`: each worker has one thread, and may hold three quarters of a gigabyte. In turns,
`compactla.linalg` and NumPy solve. Printed are the seconds of the whole, and how much of the workers' time the solves
take. With ``--machine NAME`` these join asv's results of a machine, for `benchmarks.report`.
"""

import argparse
import os
import time

# NumPy's BLAS asks for these when it is loaded; workers inherit them.
if __name__ == "__main__":  # asv imports all files of this folder into one process
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import numpy as np

from compactla import linalg

N, BLOCK, SIZE, LIMIT, WORKERS = 8, 2**17, 3 * 2**30, 3 * 2**28, 2
SOLVES = {"compactla": lambda a, b: linalg.solve(a, b, threads=1), "numpy": np.linalg.solve}
ROUNDS = 3


def clocked(a, b, library):
    """Solutions; the worker adds up how long they took."""
    from distributed import get_worker

    worker, start = get_worker(), time.perf_counter()
    x = SOLVES[library](a, b)
    worker.solving = getattr(worker, "solving", 0.0) + time.perf_counter() - start
    return x


def worst(a, b, x):
    """The largest error of a block of solutions, relative to what goes into it: of shape (1, 1, 1)."""
    error = abs(a @ x - b).max(axis=(1, 2))
    return (error / (abs(a).max(axis=(1, 2)) * abs(x).max(axis=(1, 2)) + 1)).max(keepdims=True)[:, None, None]


def measure(client, library):
    """Seconds, and the part of the workers' time in which systems are solved."""
    import dask.array as da

    a = da.random.default_rng(1).random((SIZE // (8 * N * N), N, N), chunks=(BLOCK, N, N)) - 0.5
    b = da.ones((len(a), N, 1), chunks=(BLOCK, N, 1))
    x = da.map_blocks(clocked, a, b, library, dtype=float, chunks=b.chunks)
    errors = da.map_blocks(worst, a, b, x, chunks=(1, 1, 1), dtype=float)
    client.run(lambda dask_worker: setattr(dask_worker, "solving", 0.0))
    start = time.perf_counter()
    assert errors.max().compute() < N * N * np.finfo(float).eps
    seconds = time.perf_counter() - start
    solving = client.run(lambda dask_worker: dask_worker.solving)
    return seconds, sum(solving.values()) / (WORKERS * seconds)


def main():
    from distributed import Client, LocalCluster

    from .record import record_here

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machine", metavar="NAME", help="add the results to those of this machine")
    args = parser.parse_args()
    a, b = np.eye(N)[None], np.ones((1, N, 1))
    linalg.solve(a, b, threads=1)  # compiles, or loads, what workers load then
    cluster = {"n_workers": WORKERS, "threads_per_worker": 1, "memory_limit": LIMIT, "dashboard_address": None}
    with LocalCluster(**cluster) as workers, Client(workers) as client:
        client.run(lambda: linalg.solve(a, b, threads=1))
        rounds = [{library: measure(client, library) for library in SOLVES} for _ in range(ROUNDS)]
    found = {library: np.median([times[library] for times in rounds], axis=0) for library in SOLVES}
    for library, (seconds, share) in found.items():
        print(f"{library}: {seconds:.3g} s, {share:.0%} of them in solves")
    if args.machine:
        values = {"track_seconds": lambda library: found[library][0], "track_share": lambda library: found[library][1]}
        record_here("dask_blocks.Blocks", [[*SOLVES]], values, args.machine)


if __name__ == "__main__":
    main()
