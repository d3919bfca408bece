"""Steps of sweeps along lines beside the solves, on a device; arguments as for `compactla.cpu.sweeps`."""

from typing import Any

from compactla.calls.launch import NOW, Launch
from compactla.gpu.arrays import ordinary
from compactla.gpu.launch import launch_lanes
from compactla.types import Array


def residual(A: Any, x: Array, rhs: Array, y: Array, launch: Launch = NOW) -> None:
    multiply(A, x, rhs, y, launch)


def product(A: Any, x: Array, y: Array, launch: Launch = NOW) -> None:
    multiply(A, x, y, y, launch, PRODUCT=1)


def multiply(A, x, rhs, y, launch, **defines):
    """y <- rhs - A x, or A x where `PRODUCT` is defined."""
    rows, b, nrhs = y.shape
    args = rows * b, b, nrhs, A.indptr, A.indices, A.data, ordinary(x), ordinary(rhs), ordinary(y)
    launch_lanes(y.queue, launch, "sweeps.cl", "residual", y.dtype, 1, (rows * b, nrhs), *args, **defines)


def damp(z: Array, x: Array, damping: float, launch: Launch = NOW) -> None:
    rows, b, nrhs = x.shape
    args = rows * b, b, nrhs, damping, ordinary(z), ordinary(x)
    launch_lanes(x.queue, launch, "sweeps.cl", "damp", x.dtype, 1, (rows * b, nrhs), *args)


def permute(order: Array, x: Array, y: Array, back: bool, launch: Launch = NOW) -> None:
    rows, b, nrhs = x.shape if back else y.shape
    args = rows * b, b, nrhs, int(back), order, ordinary(x), ordinary(y)
    launch_lanes(x.queue, launch, "sweeps.cl", "permute", x.dtype, 1, (rows * b, nrhs), *args)
