"""BiCGSTAB on an OpenCL device, preconditioned along lines: matrix, vectors and factors stay there.

    python -m compactla.examples.bicgstab_opencl [MATRIX.npz]

A few steps of pseudo-time, (M + t I) x = rhs with ever smaller t: each has new values on the device, which the
preconditioner takes from there. The sparse product is a kernel of one's own; vectors are pyopencl Arrays, whose sums
need the package Mako.
"""

import sys
from importlib.resources import files

import numpy as np
import pyopencl as cl
import pyopencl.array as cla
from scipy.sparse import bsr_array

from compactla import LinePreconditioner

PRODUCT = """
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
/* y <- M x for a matrix in BSR form, one work-item a row */
__kernel void product(__global const double *data, __global const int *indices, __global const int *indptr,
                      __global const double *x, __global double *y)
{
    const int row = get_global_id(0), block = row / B, i = row % B;
    double sum = 0;
    for (int k = indptr[block]; k < indptr[block + 1]; k++)
        for (int j = 0; j < B; j++) sum += data[(k * B + i) * B + j] * x[indices[k] * B + j];
    y[row] = sum;
}
"""


class DeviceMatrix:
    """A BSR matrix on a device."""

    def __init__(self, queue, M):
        self.queue, self.shape = queue, M.shape
        self.data = cla.to_device(queue, M.data)
        self.indices, self.indptr = (cla.to_device(queue, a.astype(np.int32)) for a in (M.indices, M.indptr))
        self.kernel = cl.Kernel(cl.Program(queue.context, PRODUCT).build([f"-DB={M.blocksize[0]}"]), "product")

    def __matmul__(self, x):
        y = cla.empty_like(x)
        arrays = self.data, self.indices, self.indptr, x, y
        event = self.kernel(
            self.queue, self.shape[:1], None, *(a.data for a in arrays), wait_for=[e for a in arrays for e in a.events]
        )
        y.add_event(event)
        return y


def bicgstab(M, b, P, rtol=1e-8, most=500):
    """Solve M x = b with right preconditioning (van der Vorst 1992); returns x and the number of steps."""

    def dot(x, y):
        return float(cla.dot(x, y).get())

    x, r = cla.zeros_like(b), b.copy()
    shadow, p, rho, goal = b.copy(), b.copy(), dot(b, b), rtol**2 * dot(b, b)
    y, z = cla.empty_like(b), cla.empty_like(b)
    for step in range(1, most + 1):
        P.solve(p, out=y)
        v = M @ y
        alpha = rho / dot(shadow, v)
        s = r - alpha * v
        P.solve(s, out=z)
        t = M @ z
        omega = dot(t, s) / dot(t, t)
        x += alpha * y + omega * z
        r = s - omega * t
        if dot(r, r) <= goal:
            return x, step
        rho, before = dot(shadow, r), rho
        p = r + (rho / before) * (alpha / omega) * (p - omega * v)
    raise RuntimeError(f"no convergence in {most} steps")


def pseudo_time(queue, M, lines, rhs, shifts=(1.0, 0.1, 0.0)):
    """Solve (M + t diag(M)) x = rhs for every shift t; yields t, x and the number of steps."""
    A = DeviceMatrix(queue, M)
    P = LinePreconditioner(M, lines, queue=queue)
    data, b = A.data.copy(), cla.to_device(queue, rhs)
    diagonal = cla.to_device(queue, only_diagonal(M))
    for t in shifts:
        A.data = data + t * diagonal
        P.update(A.data)  # from the device: nothing of it passes through the host
        yield t, *bicgstab(A, b, P)


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
