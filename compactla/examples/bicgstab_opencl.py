"""BiCGSTAB on an OpenCL device: ``python -m compactla.examples.bicgstab_opencl --plot bicgstab_opencl.png``.

Matrix, vectors, and the factors of the preconditioner along lines stay on the device. A few steps of pseudo-time,
(M + t diag(M)) x = rhs with ever smaller t, have new values there, which the preconditioner and the matrix that
`bicgstab` multiplies with take from the device. The last system is also solved with its diagonal blocks alone.
"""

from functools import partial
from importlib.resources import files

import numpy as np
import pyopencl as cl
from pyopencl.array import to_device
from scipy.sparse import bsr_array

from compactla import LinePreconditioner
from compactla.examples import pictures
from compactla.examples.beside import arguments, compare
from compactla.krylov import SparseMatrix, bicgstab


def pseudo_time(queue, M, lines, rhs, shifts=(1.0, 0.1, 0.0)):
    """Solve (M + t diag(M)) x = rhs for every shift t; yields t, x and the report."""
    A, P = SparseMatrix(M, queue), LinePreconditioner(M, lines, queue=queue)
    data, b, diagonal = (to_device(queue, x) for x in (M.data, rhs, only_diagonal(M)))
    for t in shifts:
        A.data = data + t * diagonal
        P.update(A.data)  # from the device: nothing of it passes through the host
        x, report = bicgstab(A, b, M=P, maxiter=500, history=True)
        if not report.converged:
            raise RuntimeError(f"no convergence in {report.iterations} steps")
        yield t, x, report


def only_diagonal(M):
    """The data of M with zeros everywhere off its diagonal."""
    b = M.blocksize[0]
    row = np.repeat(np.arange(M.shape[0] // b), np.diff(M.indptr))
    return M.data * ((row == M.indices)[:, None, None] & np.eye(b, dtype=bool))


def main(argv=None):
    args = arguments(__doc__, argv)
    with np.load(files("compactla") / "data" / "sherman5_b3.npz") as system:
        M = bsr_array((system["data"], system["indices"], system["indptr"]))
        lines, rhs = system["lines"], system["rhs"]
    queue = cl.CommandQueue(cl.create_some_context(interactive=False))
    histories = {}
    for t, x, report in pseudo_time(queue, M, lines, rhs):
        shifted = bsr_array((M.data + t * only_diagonal(M), M.indices, M.indptr))
        residual = np.linalg.norm(rhs - shifted @ x.get()) / np.linalg.norm(rhs)
        print(f"shift {t:4.1f}: {report.iterations:3d} steps, relative residual {residual:.1e}")
        histories[f"t = {t:g}"] = report.history
    solve = partial(bicgstab, SparseMatrix(M, queue), to_device(queue, rhs), maxiter=500)
    parts = {"lines": lines, "diagonal blocks": np.arange(M.shape[0] // M.blocksize[0])[:, None]}
    ways = {name: partial(solve, M=LinePreconditioner(M, rows, queue=queue)) for name, rows in parts.items()}
    for name, (_, report) in compare(ways, rounds=3).items():
        print(f"{name}: {report.iterations} steps on {queue.device.name.strip()}")
    pictures.residuals(args.plot, histories, "BiCGSTAB on a device", "steps")


if __name__ == "__main__":
    main()
