"""Steps of sweeps along lines beside the solves, on a device; arguments as for `compactla.cpu.sweeps`."""

from compactla.calls.launch import NOW
from compactla.gpu.arrays import ordinary
from compactla.gpu.launch import launch_lanes


def residual(A, x, rhs, y, launch=NOW):
    multiply(A, x, rhs, y, launch)


def product(A, x, y, launch=NOW):
    multiply(A, x, y, y, launch, PRODUCT=1)


def multiply(A, x, rhs, y, launch, **defines):
    """y <- rhs - A x, or A x where `PRODUCT` is defined."""
    rows, b, nrhs = y.shape
    args = rows * b, b, nrhs, A.indptr, A.indices, A.data, ordinary(x), ordinary(rhs), ordinary(y)
    launch_lanes(y.queue, launch, "sweeps.cl", "residual", y.dtype, 1, (rows * b, nrhs), *args, **defines)


def damp(z, x, damping, launch=NOW):
    rows, b, nrhs = x.shape
    args = rows * b, b, nrhs, damping, ordinary(z), ordinary(x)
    launch_lanes(x.queue, launch, "sweeps.cl", "damp", x.dtype, 1, (rows * b, nrhs), *args)


def permute(order, x, y, back, launch=NOW):
    rows, b, nrhs = x.shape
    args = rows * b, b, nrhs, int(back), order, ordinary(x), ordinary(y)
    launch_lanes(x.queue, launch, "sweeps.cl", "permute", x.dtype, 1, (rows * b, nrhs), *args)
