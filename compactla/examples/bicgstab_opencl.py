"""BiCGSTAB on an OpenCL device: ``python -m compactla.examples.bicgstab_opencl --plot bicgstab_opencl.png``.

Matrix, vectors, and the factors of the preconditioner along lines stay on the device. A few steps of pseudo-time,
(M + t diag(M)) x = rhs with ever smaller t, have new values there, which the preconditioner and the matrix that
`bicgstab` multiplies with take from the device.
"""

import argparse
from importlib.resources import files

import numpy as np
import pyopencl as cl
import pyopencl.array as cla
from scipy.sparse import bsr_array

from compactla import LinePreconditioner
from compactla.examples.beside import drawing
from compactla.krylov import SparseMatrix, bicgstab


def pseudo_time(queue, M, lines, rhs, shifts=(1.0, 0.1, 0.0)):
    """Solve (M + t diag(M)) x = rhs for every shift t; yields t, x and the report."""
    A = SparseMatrix(M, queue)
    P = LinePreconditioner(M, lines, queue=queue)
    data, b = A.data.copy(), cla.to_device(queue, rhs)
    diagonal = cla.to_device(queue, only_diagonal(M))
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
    name = "python -m compactla.examples.bicgstab_opencl"
    parser = argparse.ArgumentParser(prog=name, description=__doc__.splitlines()[0])
    parser.add_argument("matrix", nargs="?", default=files("compactla") / "data" / "sherman5_b3.npz", help=".npz file")
    parser.add_argument("--plot", metavar="FILE.png", help="draw how residuals fall")
    args = parser.parse_args(argv)
    with np.load(args.matrix) as system:
        M = bsr_array((system["data"], system["indices"], system["indptr"]))
        lines, rhs = system["lines"], system["rhs"]
    context = cl.create_some_context(interactive=False)
    queue = cl.CommandQueue(context)
    print(f"{M.shape[0]} unknowns on {queue.device.name.strip()}")
    histories = {}
    for t, x, report in pseudo_time(queue, M, lines, rhs):
        shifted = M.copy()
        shifted.data = M.data + t * only_diagonal(M)
        residual = np.linalg.norm(rhs - shifted @ x.get()) / np.linalg.norm(rhs)
        print(f"shift {t:4.1f}: {report.iterations:3d} steps, relative residual {residual:.1e}")
        histories[t] = report.history / report.history[0]
    if args.plot:
        plot(args.plot, histories)


def plot(path, histories):
    with drawing(path, columns=1) as (_, axes):
        for t, history in histories.items():
            axes.semilogy(history, label=f"t = {t:g}")
        axes.set(title="BiCGSTAB on a device", xlabel="steps", ylabel="relative residual")
        axes.grid(alpha=0.3)
        axes.legend()


if __name__ == "__main__":
    main()
