"""Weak scaling of the line preconditioner in PETSc: as many rows for each rank, on more and more ranks.

    python -m benchmarks.weak_scaling --ranks 1 2 4            # starts mpirun for each, pinned to cores
    mpirun -n 4 python benchmarks/weak_scaling.py              # one of these runs, as JSON; under srun as well

Convection-diffusion of b quantities in a box of thin layers: lines go from bottom to top, and a rank owns whole ones.
A step is what a time step or one of Newton's takes: new values, factors of them, and GMRES to a residual of 1e-6.

Each rank has as many threads as are asked for, one by default, whatever the environment says. Times are those of the
slowest rank, in ms: the median of five, after a first one, which compiles, and whose memory is new. By default a rank
has 49,152 unknowns, then 196,608 and 786,432. Two ranks also measure what they take to exchange vectors and to sum.
With ``--machine NAME`` all that joins asv's results of a machine, and `benchmarks.report` makes tables of it.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys

# PETSc's BLAS and NumPy's ask for these when they are loaded.
if __name__ == "__main__":  # asv imports all files of this folder into one process
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import numpy as np
import scipy.sparse

PARTS = ["set_up", "factor", "apply", "step"]  # of a step, and all of it
CALLS = 100  # in each time of a network


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", help="start mpirun for each of these numbers of ranks")
    parser.add_argument(
        "--mpirun", default="mpirun --bind-to core", help="what starts the ranks (default: %(default)s)"
    )
    parser.add_argument("--python", default=sys.executable, help="that has petsc4py (default: this one)")
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
    parser.add_argument("--machine", metavar="NAME", help="add the results to those of this machine")
    args = parser.parse_args()
    if args.ranks is None:
        measure(args)
    else:
        start(args)


def start(args):
    """Run mpirun for each size and number of ranks; print the times, and the time on the first ranks over each."""
    found, first = {}, {}
    sizes = ["--length", args.length, "--block-size", args.block_size, "--threads", args.threads]
    for lines, ranks in itertools.product(args.lines, args.ranks):
        command = [*args.mpirun.split(), "-n", ranks, args.python, __file__, "--lines", lines, *sizes]
        run = json.loads(subprocess.run(list(map(str, command)), check=True, stdout=-1, text=True).stdout)
        found[ranks, lines, args.length, args.block_size] = run
        efficiency = first.setdefault(lines, run["step"]) / run["step"]
        print(run, f"efficiency: {efficiency:.0%}", flush=True)
    if args.machine:
        recorded(found, args.machine)


def recorded(found, machine):
    """Add what was measured to asv's results of a machine, for the commit that is checked out."""
    from .record import record_here

    params = [sorted(set(column)) for column in zip(*found, strict=True)]
    names = dict.fromkeys(name for run in found.values() for name in run)
    values = {f"track_{name}": lambda *key, name=name: found.get(key, {}).get(name) for name in names}
    record_here("weak_scaling.Lines", params, values, machine)


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
    """Measure one size, on the ranks of this run."""
    os.environ["NUMBA_NUM_THREADS"] = str(args.threads)  # before compactla is imported
    from petsc4py import PETSc

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

    calls = [set_up, factor, lambda: ksp.pc.apply(rhs, x), step]
    times = [slowest(call, comm) for call in calls]
    found = dict(zip(PARTS, (1e3 * np.median(t) for t in times), strict=True))
    found["spread"] = np.diff(np.quantile(times[-1], [0.25, 0.75]))[0] / 2 * 1e3
    found["iterations"] = ksp.getIterationNumber()
    if comm.size == 2:
        found |= network(comm, side * args.length * b)
    if not comm.rank:
        print(json.dumps({name: float(f"{value:.4g}") for name, value in found.items()}), flush=True)


def slowest(call, comm):
    """Five times of the slowest rank, in seconds."""
    from petsc4py import PETSc

    times = []
    for _ in range(5):
        comm.barrier()
        start = PETSc.Log.getTime()
        call()
        clock = PETSc.Vec().createWithArray(np.array([PETSc.Log.getTime() - start]), size=(1, None), comm=comm)
        times.append(clock.max()[1])
    return times


def network(comm, n):
    """What it takes two ranks to exchange a number, to exchange `n`, and to sum one of each, in us."""
    from petsc4py import PETSc

    def us(call, comm):
        def calls():
            for _ in range(CALLS):
                call()

        return 1e6 * np.median(slowest(calls, comm)) / CALLS

    def exchange(n):
        mine, theirs = PETSc.Vec().createMPI((n, None), comm=comm), PETSc.Vec().createSeq(n)
        first = n * (1 - comm.rank)
        scatter = PETSc.Scatter().create(mine, PETSc.IS().createStride(n, first), theirs, PETSc.IS().createStride(n))
        return us(lambda: scatter.scatter(mine, theirs), comm)

    def dot(comm):
        x = PETSc.Vec().createMPI((1, None), comm=comm)
        return us(lambda: x.dot(x), PETSc.COMM_WORLD)

    alone = dot(PETSc.COMM_SELF)
    return {"exchange_of_one": exchange(1), "exchange": exchange(n), "reduction": dot(comm) - alone}


if __name__ == "__main__":
    main()
