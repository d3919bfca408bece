"""Lines in PETSc: ``python -m compactla.examples.petsc_wall --plot petsc_wall.png``.

The matrix is that of a step of `compactla.examples.hot_wall`, whose cells at the wall are hundreds of times as long as
they are high. PETSc's GMRES solves with it, preconditioned by `compactla.petsc.LinePC` and by PETSc's own point block
Jacobi and ILU(0). In programs with options of the command line, ``-pc_type python -pc_python_type
compactla.petsc.LinePC`` does the same. The example needs petsc4py.
"""

import argparse
import time

import numpy as np
from petsc4py import PETSc

from compactla.examples.beside import drawing
from compactla.examples.hot_wall import INFLOW, Channel
from compactla.petsc import LinePC


def precondition(pc, kind):
    """Make a PC one of the three."""
    if kind == "lines":
        pc.setType("python")
        pc.setPythonContext(LinePC(block_size=3))
    else:
        pc.setType({"point block Jacobi": "pbjacobi", "ILU(0)": "ilu"}[kind])


def solve(A, b, kind, rtol=1e-8):
    """Solve A x = b by GMRES: seconds, the norm of b - A x, and the norms of residuals that GMRES knows."""
    ksp, x = PETSc.KSP().create(A.comm), b.duplicate()
    ksp.setType("gmres")
    ksp.setPCSide(PETSc.PC.Side.RIGHT)
    ksp.setOperators(A)
    precondition(ksp.pc, kind)
    ksp.setTolerances(rtol=rtol, max_it=500)
    ksp.setConvergenceHistory(501)
    ksp.setUp()
    start = time.perf_counter()
    ksp.solve(b, x)
    seconds = time.perf_counter() - start
    return seconds, (b - A * x).norm(), ksp.getConvergenceHistory()


def main(argv=None):
    name = "python -m compactla.examples.petsc_wall"
    parser = argparse.ArgumentParser(prog=name, description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, nargs=2, default=(96, 64), metavar="N", help="along the wall and outwards")
    parser.add_argument("--dt", type=float, default=0.1, help="length of the step (default: 0.1)")
    parser.add_argument("--plot", metavar="FILE.png", help="draw how GMRES converges")
    args = parser.parse_args(argv)
    channel = Channel(*args.cells)
    q = np.tile(INFLOW, (args.cells[0] * args.cells[1], 1))
    M = channel.jacobian(q, args.dt).tocsr()
    A = PETSc.Mat().createAIJ(M.shape, bsize=3, csr=(M.indptr, M.indices, M.data), comm=PETSc.COMM_SELF)
    b = A.createVecLeft()
    b.setArray(-channel.residual(q, q, args.dt).ravel())
    print(f"{M.shape[0]} unknowns")
    histories = {}
    for kind in ("lines", "ILU(0)", "point block Jacobi"):
        seconds, residual, histories[kind] = solve(A, b, kind)
        count, relative = len(histories[kind]) - 1, residual / b.norm()
        print(f"{kind}: {count} iterations, {seconds:.2g} s, relative residual {relative:.1e}")
    if args.plot:
        plot(args.plot, histories)


def plot(path, histories):
    with drawing(path, columns=1) as (_, axes):
        for kind, history in histories.items():
            axes.semilogy(history / history[0], label=f"{kind}: {len(history) - 1} iterations")
        axes.set(title="GMRES in PETSc", xlabel="iterations", ylabel="relative residual")
        axes.grid(alpha=0.3)
        axes.legend()


if __name__ == "__main__":
    main()
