"""Lines in PETSc: ``python -m compactla.examples.petsc_wall --plot petsc_wall.png``.

The matrix is that of a step of `compactla.examples.hot_wall`, whose cells at the wall are hundreds of times as long as
they are high. PETSc's GMRES solves with it, preconditioned by `compactla.petsc.LinePC` and by PETSc's own point block
Jacobi and ILU(0). In programs with options of the command line, ``-pc_type python -pc_python_type
compactla.petsc.LinePC`` does the same. The example needs petsc4py.
"""

from functools import partial

from petsc4py import PETSc

from compactla.examples import pictures
from compactla.examples.beside import arguments, compare
from compactla.examples.channel import first_system
from compactla.petsc import LinePC


def solver(A, kind):
    """GMRES with one of the three preconditioners, set up."""
    ksp = PETSc.KSP().create(A.comm)
    ksp.setType("gmres")
    ksp.setPCSide(PETSc.PC.Side.RIGHT)
    ksp.setOperators(A)
    if kind == "lines":
        ksp.pc.setType("python")
        ksp.pc.setPythonContext(LinePC(block_size=3))
    else:
        ksp.pc.setType({"point block Jacobi": "pbjacobi", "ILU(0)": "ilu"}[kind])
    ksp.setTolerances(rtol=1e-8, max_it=500)
    ksp.setConvergenceHistory(501)
    ksp.setUp()
    return ksp


def main(argv=None):
    args = arguments(__doc__, argv, cells=(96, 64))
    M, rhs = first_system(*args.cells)
    M = M.tocsr()
    A = PETSc.Mat().createAIJ(M.shape, bsize=3, csr=(M.indptr, M.indices, M.data), comm=PETSc.COMM_SELF)
    b, x = A.createVecLeft(), A.createVecRight()
    b.setArray(rhs)
    solvers = {kind: solver(A, kind) for kind in ("lines", "ILU(0)", "point block Jacobi")}
    compare({kind: partial(ksp.solve, b, x) for kind, ksp in solvers.items()}, rounds=3)
    histories = {}
    for kind, ksp in solvers.items():
        ksp.setConvergenceHistory(501, reset=True)
        ksp.solve(b, x)
        histories[kind] = ksp.getConvergenceHistory()
        residual = (b - A * x).norm() / b.norm()
        print(f"{kind}: {len(histories[kind]) - 1} iterations, relative residual {residual:.1e}")
    pictures.residuals(args.plot, histories, "GMRES in PETSc")


if __name__ == "__main__":
    main()
