"""Weak scaling of the line preconditioner in PETSc: as many rows for each rank, on more and more ranks.

    python benchmarks/weak_scaling.py --ranks 1 2 4            # starts mpirun for each, pinned to cores
    mpirun -n 4 python benchmarks/weak_scaling.py              # a row of the table; under srun as well

Convection-diffusion of b quantities in a box of thin layers: lines go from bottom to top, and a rank owns whole ones.
A step is what a time step or one of Newton's takes: new values, factors of them, and GMRES to a residual of 1e-6.

Each rank has as many threads as are asked for, one by default, whatever the environment says; threads and lines in the
table are those of a rank. Times are those of the slowest rank, the median of five, after a first one: that compiles,
and its memory is new. By default a rank has 49,152 unknowns, then 196,608 and 786,432.
"""

import argparse
import itertools
import os
import subprocess
import sys

# PETSc's BLAS and NumPy's ask for these when they are loaded.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import numpy as np
import scipy.sparse

HEADER = """\
| ranks | threads | unknowns | lines | set up, ms | factor, ms | apply, ms | iterations | step, ms | efficiency |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", help="start mpirun for each of these numbers of ranks")
    parser.add_argument(
        "--mpirun", default="mpirun --bind-to core", help="what starts the ranks (default: %(default)s)"
    )
    parser.add_argument(
        "--lines",
        type=int,
        nargs="+",
        default=[16, 32, 64],
        help="a rank has the square of so many (default: 16 32 64)",
    )
    parser.add_argument("--length", type=int, default=64, help="block rows of a line (default: 64)")
    parser.add_argument("--block-size", type=int, default=3, help="(default: 3)")
    parser.add_argument("--threads", type=int, default=1, help="of each rank (default: 1)")
    args = parser.parse_args()
    if args.ranks is None:
        measure(args)
    else:
        start(args)


def start(args):
    """The table: a run of mpirun for each of its rows."""
    print(HEADER)
    sizes = ["--length", args.length, "--block-size", args.block_size, "--threads", args.threads]
    first: dict[int, float] = {}
    for lines, ranks in itertools.product(args.lines, args.ranks):
        command = [*args.mpirun.split(), "-n", ranks, sys.executable, __file__, "--lines", lines, *sizes]
        *cells, step = row(subprocess.run(list(map(str, command)), check=True, stdout=-1, text=True).stdout)
        efficiency = first.setdefault(lines, float(step)) / float(step)
        print("|", " | ".join([*cells, step, f"{efficiency:.0%}"]), "|", flush=True)


def row(output):
    """The cells of the row that a run has printed."""
    return next(line for line in output.splitlines() if line.startswith("|")).strip("| ").split(" | ")


def own_rows(rank, ranks, nx, ny, nz, b):
    """The rows of a rank, CSR with columns of the whole matrix: slabs of nx x ny columns of nz cells."""

    def difference(n, wind):
        return scipy.sparse.diags_array([-1.0 - wind, 2.0 + wind, -1.0], offsets=[-1, 0, 1], shape=(n, n), format="csr")

    def term(x, y, z):
        return scipy.sparse.kron(scipy.sparse.kron(x, y), z, format="csr")

    eye = scipy.sparse.eye_array
    slab = slice(rank * nx, (rank + 1) * nx)
    x, here = difference(ranks * nx, 0.5)[slab], eye(ranks * nx, format="csr")[slab]
    up, across = term(here, eye(ny), 100 * difference(nz, 0)), term(here, difference(ny, 0.3), eye(nz))
    return scipy.sparse.kron(up + across + term(x, eye(ny), eye(nz)), np.eye(b) + 0.2, format="csr")


def measure(args):
    """Measure one row of the table, for the ranks of this run."""
    os.environ["NUMBA_NUM_THREADS"] = str(args.threads)  # before compactla is imported
    from petsc4py import PETSc

    from compactla.cpu.threads.sharing import THREADS

    comm, b, side = PETSc.COMM_WORLD, args.block_size, args.lines[0]
    rows = own_rows(comm.rank, comm.size, side, side, args.length, b)
    parts = rows.indptr, rows.indices, rows.data
    A = PETSc.Mat().createAIJ(((rows.shape[0], None),) * 2, bsize=b, csr=parts, comm=comm)
    A.shift(10.0)
    x, rhs = A.createVecs()
    rhs.set(1.0)
    # GMRES with lines within each rank
    ksp = PETSc.KSP().create(comm)
    ksp.setOperators(A)
    ksp.setType("gmres")
    ksp.setPCSide(PETSc.PC.Side.RIGHT)
    ksp.setTolerances(rtol=1e-6)
    ksp.pc.setType("python")
    ksp.pc.setPythonType("compactla.petsc.LinePC")
    ksp.setFromOptions()

    def timed(call):
        """The median of the times of the slowest rank, in ms."""
        times = []
        for _ in range(5):
            comm.barrier()
            start = PETSc.Log.getTime()
            call()
            clock = PETSc.Vec().createWithArray(np.array([PETSc.Log.getTime() - start]), size=(1, None), comm=comm)
            times.append(clock.max()[1])
        return 1e3 * np.median(times)

    def factor():
        A.shift(0.1)
        ksp.pc.setUp()

    def step():
        factor()
        ksp.solve(rhs, x)

    step()  # compiles or loads kernels
    context = ksp.pc.getPythonContext()

    def set_up():
        context.P = None
        factor()

    # the parts of a step, then whole steps
    times = [timed(set_up), timed(factor), timed(lambda: ksp.pc.apply(rhs, x))]
    whole = timed(step)
    milliseconds = [f"{t:.3g}" for t in times]
    sizes = [comm.size, THREADS, A.getSize()[0], len(context.P.info)]
    cells = [*sizes, *milliseconds, ksp.getIterationNumber(), f"{whole:.4g}"]
    if not comm.rank:
        print("|", " | ".join(map(str, cells)), "|", flush=True)


if __name__ == "__main__":
    main()
