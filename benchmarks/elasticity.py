"""Elasticity of a box of flat cells in PETSc, with preconditioners beside each other: lines, ILU(0), multigrid.

    python benchmarks/elasticity.py --ranks 1 2            # starts mpirun for each
    mpirun -n 2 python benchmarks/elasticity.py            # a table; under srun as well

Trilinear bricks, clamped at the bottom, under their weight; columns of nodes are whole on a rank. Times are the least
of several rounds, in each of which all preconditioners take their turns, of one thread on each rank.
"""

import argparse
import math
import os
import subprocess
import sys

if __name__ == "__main__":  # asv imports all files of this folder into one process
    os.environ.update(NUMBA_NUM_THREADS="1", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import numpy as np
import scipy.sparse

LINES = "-pc_type python -pc_python_type compactla.petsc.LinePC"
LEVELS = "-pc_type gamg -mg_levels_ksp_type richardson -mg_levels_ksp_max_it 1 -mg_levels_pc_type python"
CASES = {
    "ILU(0)": "-pc_type bjacobi -sub_pc_type ilu",
    "GAMG": "-pc_type gamg",
    "lines": LINES,
    "lines, symmetric": f"{LINES} -pc_line_scheme symmetric",
    "GAMG, lines, symmetric": (
        f"{LEVELS} -mg_levels_pc_python_type compactla.petsc.LinePC -mg_levels_pc_line_scheme symmetric"
    ),
}
POISSON = 0.3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", help="start mpirun for each of these numbers of ranks")
    parser.add_argument("--mpirun", default="mpirun", help="what starts the ranks, with its options (default: mpirun)")
    parser.add_argument("--nodes", type=int, nargs=3, default=[20, 20, 24], help="(default: 20 20 24)")
    parser.add_argument("--aspect", type=float, default=10.0, help="edge of a cell over its height (default: 10)")
    parser.add_argument("--rounds", type=int, default=3, help="(default: 3)")
    args = parser.parse_args()
    if args.ranks is None:
        measure(args)
        return
    for ranks in args.ranks:
        sizes = ["--nodes", *args.nodes, "--aspect", args.aspect, "--rounds", args.rounds]
        command = [*args.mpirun.split(), "-n", ranks, sys.executable, __file__, *sizes]
        subprocess.run(list(map(str, command)), check=True)


def stiffness(edges):
    """The matrix of a brick, (24, 24), of three displacements of a corner after those of another."""
    corners = np.indices((2, 2, 2)).reshape(3, 8).T
    elastic = np.diag([1 - 2 * POISSON] * 3 + [0.5 - POISSON] * 3)
    elastic[:3, :3] += POISSON
    points = 0.5 + np.array([-1, 1]) / np.sqrt(12)
    total = np.zeros((24, 24))
    for point in np.array(np.meshgrid(points, points, points)).reshape(3, 8).T:
        weights = np.where(corners, point, 1 - point)
        slopes = [(2 * corners[:, d] - 1) / edges[d] * np.delete(weights, d, 1).prod(1) for d in range(3)]
        strain = np.zeros((6, 8, 3))
        for d in range(3):
            e, f = (d + 1) % 3, (d + 2) % 3
            strain[d, :, d], strain[3 + d, :, e], strain[3 + d, :, f] = slopes[d], slopes[f], slopes[e]
        strain = strain.reshape(6, 24)
        total += strain.T @ elastic @ strain * np.prod(edges) / 8
    return total


def box(nx, ny, nz, aspect):
    """The matrix, CSR, of the nodes above the clamped ones, columns one after the other, and where these nodes are."""
    shape, edges = (nx, ny, nz + 1), np.array([1, 1, 1 / aspect])
    node = np.arange(math.prod(shape)).reshape(shape)
    inner = [(slice(0, n - 1), slice(1, n)) for n in shape]
    cells = np.stack([node[x, y, z].ravel() for x in inner[0] for y in inner[1] for z in inner[2]], 1)
    numbers = (3 * cells[:, :, None] + np.arange(3)).reshape(-1, 24)
    row, column = np.repeat(numbers, 24, 1).ravel(), np.tile(numbers, (1, 24)).ravel()
    M = scipy.sparse.coo_array((np.tile(stiffness(edges).ravel(), len(cells)), (row, column))).tocsr()
    free = node[:, :, 1:].ravel()
    unknowns = (3 * free[:, None] + np.arange(3)).ravel()
    return M[unknowns][:, unknowns].tocsr(), np.indices(shape).reshape(3, -1).T[free] * edges


def measure(args):
    """A row for each of `CASES`, of this run's ranks."""
    from petsc4py import PETSc

    comm, (nx, ny, nz) = PETSc.COMM_WORLD, args.nodes
    # the rows of this rank, whole columns of nodes, and the rigid body modes for GAMG
    M, places = box(nx, ny, nz, args.aspect)
    first, last = (nx * ny * (comm.rank + i) // comm.size * nz for i in (0, 1))
    own = M[3 * first : 3 * last]
    parts = own.indptr.astype(PETSc.IntType), own.indices.astype(PETSc.IntType), own.data
    A = PETSc.Mat().createAIJ(((own.shape[0], None),) * 2, bsize=3, csr=parts, comm=comm)
    A.setOption(PETSc.Mat.Option.SPD, True)
    x, rhs = A.createVecs()
    rhs.set(-1.0)
    coordinates = x.duplicate()
    coordinates.setBlockSize(3)
    coordinates.setArray(places[first:last].ravel())
    A.setNearNullSpace(PETSc.NullSpace().createRigidBody(coordinates))

    def timed(call):
        """Time of the slowest rank, in ms."""
        comm.barrier()
        start = PETSc.Log.getTime()
        call()
        clock = PETSc.Vec().createWithArray(np.array([PETSc.Log.getTime() - start]), size=(1, None), comm=comm)
        return 1e3 * clock.max()[1]

    best = {}
    for turn in range(1 + args.rounds):  # the first compiles or loads kernels
        for name, given in CASES.items():
            prefix = "".join(filter(str.isalnum, name)) + "_"
            # a solver with the options of the case
            options = PETSc.Options()
            options.prefixPush(prefix)
            options.insertString(f"-ksp_type cg -ksp_rtol 1e-8 {given}")
            options.prefixPop()
            ksp = PETSc.KSP().create(comm)
            ksp.setOptionsPrefix(prefix)
            ksp.setOperators(A)
            ksp.setFromOptions()
            # set-up and solution apart; the least sum of all rounds counts
            set_up = timed(lambda ksp=ksp: (ksp.setUp(), ksp.setUpOnBlocks()))
            solve = timed(lambda ksp=ksp: ksp.solve(rhs, x))
            assert ksp.getConvergedReason() > 0
            times = set_up + solve, set_up, solve, ksp.getIterationNumber()
            ksp.destroy()
            if turn:
                best[name] = min(best.get(name, times), times)
    if comm.rank:
        return
    print(f"\n{M.shape[0]} unknowns, aspect {args.aspect:g}, ranks: {comm.size}\n")
    print("| preconditioner | set up, ms | solve, ms | together, ms | iterations |\n| --- | --- | --- | --- | --- |")
    for name, (together, set_up, solve, iterations) in best.items():
        print(f"| {name} | {set_up:.3g} | {solve:.3g} | {together:.3g} | {iterations} |", flush=True)


if __name__ == "__main__":
    main()
