"""BiCGSTAB on an OpenCL device, preconditioned along lines: matrix, vectors and factors stay there.

    python -m compactla.examples.bicgstab_opencl [MATRIX.npz]

A few steps of pseudo-time, (M + t I) x = rhs with ever smaller t: each has new values on the device, which the
preconditioner takes from there, and so does the matrix that `bicgstab` multiplies with.
"""

import sys
from importlib.resources import files

import numpy as np
import pyopencl as cl
import pyopencl.array as cla
from scipy.sparse import bsr_array

from compactla import LinePreconditioner
from compactla.krylov import SparseMatrix, bicgstab


def pseudo_time(queue, M, lines, rhs, shifts=(1.0, 0.1, 0.0)):
    """Solve (M + t diag(M)) x = rhs for every shift t; yields t, x and the number of steps."""
    A = SparseMatrix(M, queue)
    P = LinePreconditioner(M, lines, queue=queue)
    data, b = A.data.copy(), cla.to_device(queue, rhs)
    diagonal = cla.to_device(queue, only_diagonal(M))
    for t in shifts:
        A.data = data + t * diagonal
        P.update(A.data)  # from the device: nothing of it passes through the host
        x, report = bicgstab(A, b, M=P, maxiter=500)
        if not report.converged:
            raise RuntimeError(f"no convergence in {report.iterations} steps")
        yield t, x, report.iterations


def only_diagonal(M):
    """The data of M with zeros everywhere off its diagonal."""
    b = M.blocksize[0]
    row = np.repeat(np.arange(M.shape[0] // b), np.diff(M.indptr))
    return M.data * ((row == M.indices)[:, None, None] & np.eye(b, dtype=bool))


def main(argv):
    path = argv[0] if argv else str(files("compactla") / "data" / "sherman5_b3.npz")
    with np.load(path) as system:
        M = bsr_array((system["data"], system["indices"], system["indptr"]))
        lines, rhs = system["lines"], system["rhs"]
    context = cl.create_some_context(interactive=False)
    queue = cl.CommandQueue(context)
    print(f"{M.shape[0]} unknowns on {queue.device.name.strip()}")
    for t, x, steps in pseudo_time(queue, M, lines, rhs):
        shifted = M.copy()
        shifted.data = M.data + t * only_diagonal(M)
        residual = np.linalg.norm(rhs - shifted @ x.get()) / np.linalg.norm(rhs)
        print(f"shift {t:4.1f}: {steps:3d} steps, relative residual {residual:.1e}")


if __name__ == "__main__":
    main(sys.argv[1:])
