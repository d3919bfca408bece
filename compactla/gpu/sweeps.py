"""Steps of sweeps along lines beside the solves, on a device; arguments as for `compactla.cpu.sweeps`."""

from compactla.gpu.arrays import ordinary
from compactla.gpu.launch import launch_lanes


def residual(A, x, rhs, y, wait_for=(), **defines):
    rows, b, nrhs = y.shape
    args = rows * b, b, nrhs, A.indptr, A.indices, A.data, ordinary(x), ordinary(rhs), ordinary(y)
    launch_lanes(y.queue, wait_for, "sweeps.cl", "residual", y.dtype, 1, (rows * b, nrhs), *args, **defines)


def product(A, x, y, wait_for=()):
    residual(A, x, y, y, wait_for, PRODUCT=1)


def damp(z, x, damping, wait_for=()):
    rows, b, nrhs = x.shape
    args = rows * b, b, nrhs, damping, ordinary(z), ordinary(x)
    launch_lanes(x.queue, wait_for, "sweeps.cl", "damp", x.dtype, 1, (rows * b, nrhs), *args)


def permute(order, x, y, back, wait_for=()):
    rows, b, nrhs = x.shape
    args = rows * b, b, nrhs, int(back), order, ordinary(x), ordinary(y)
    launch_lanes(x.queue, wait_for, "sweeps.cl", "permute", x.dtype, 1, (rows * b, nrhs), *args)
