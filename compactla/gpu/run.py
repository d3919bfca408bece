"""How a device runs a routine: one launch of one kernel.

The names and arguments are those of `compactla.cpu.run`, but for `wait_for`, events, where that has `threads`; every
array is a pyopencl Array, index arrays and `info` of lines too. Nothing waits for a launch but `getrfnp` and
`download`, which return NumPy arrays.

Sizes up to `shapes.LARGEST`, in packs without gaps, have kernels that are compiled for them, in the shape that
`shapes` knows to be good; all others run one work-item for each lane.
"""

from dataclasses import replace

import numpy as np
import pyopencl as cl

from compactla.gpu.launch import (
    broadcast,
    download,
    empty,
    flatten,
    launch_lanes,
    launch_plan,
    ordinary,
    plan,
    plans,
    upload,
)
from compactla.view import REAL, View

__all__ = ["broadcast", "download", "empty", "upload"]  # of `launch`, under the names that `compactla.cpu.run` has too

UNIT, NONUNIT = 1, 0  # what trsm.cl calls diagonals


def default_vlen(dtype, queue) -> int:
    """Vector length that suits the device: a warp of a GPU, two 64-byte registers of a CPU."""
    if queue.device.type & cl.device_type.CPU:
        return 128 // REAL[dtype.char].itemsize
    return 32


def parts(scalar):
    return float(scalar.real), float(scalar.imag)


def pack(source, A: View, nm, period, unit, wait_for=()):
    lanes, size = A.npack * A.vlen, A.m * A.n
    if not move("pack", wait_for, A, ordinary(source), nm, period, float(unit)):
        args = lanes, nm, A.m, A.n, period, float(unit), ordinary(source), A
        launch_lanes(A.queue, wait_for, "pack.cl", "pack", A.dtype, A.vlen, (lanes, size), *args)


def unpack(A: View, nm, target, wait_for=()):
    if not move("unpack", wait_for, A, ordinary(target), nm):
        args = nm, A.m, A.n, A, ordinary(target)
        launch_lanes(A.queue, wait_for, "pack.cl", "unpack", A.dtype, A.vlen, (nm, A.m * A.n), *args)


def move(routine, wait_for, A: View, other: View, nm, *padding) -> bool:
    """Run a kernel that moves through local memory, unless the device has no use for it."""
    queue, lanes, size = A.queue, A.npack * A.vlen, (A.m, A.n)
    if lanes * A.m * A.n == 0:
        return False
    flat = A.n == 1 or A.m == 1 or (A.rs == A.n * A.cs and other.rs == A.n * other.cs)
    if A.n == 1 and A.m > 1:  # elements are rows
        A, other = replace(A, cs=A.rs), replace(other, cs=other.rs)
    along = abs(other.ps) < min(abs(other.rs), abs(other.cs))
    arrays, values = flatten((nm, *size, *padding, *((other, A) if padding else (A, other))))
    key = routine, A.dtype.char, A.vlen, size, flat, along
    known = plans(queue)
    if key not in known:
        known[key] = plan(queue, routine, size, A.dtype, A.vlen, values, FLAT=int(flat), ALONG=int(along))
    if known[key] is None:
        return False
    runs = -(-size[0] * size[1] // known[key].choice["ELEMENTS"])
    launch_plan(queue, wait_for, known[key], lanes, arrays, values, runs)
    return True


def gemm(A: View, B: View, C: View, alpha, beta, conja, conjb, wait_for=()):
    queue, lanes = C.queue, C.npack * C.vlen
    if lanes * C.m * C.n == 0:
        return
    key = ("gemm", C.dtype.char, C.vlen, C.m, C.n, A.n, A.rs, A.cs, B.rs, B.cs, C.rs, C.cs,
           conja, conjb, alpha == 1, beta == 0)  # fmt: skip
    known = plans(queue)
    if key not in known:
        known[key] = plan_gemm(queue, A, B, C, conja, conjb, alpha, beta)
    if known[key] is None or alpha == 0:
        sizes = C.m, C.n, A.n
        args = lanes, lanes, *sizes, *parts(alpha), *parts(beta), A, int(conja), B, int(conjb), C, 0
        launch_lanes(queue, wait_for, "gemm.cl", "gemm_batch", C.dtype, C.vlen, (lanes, 1), *args, GEMM_BATCH=1)
    else:
        values = (lanes, lanes, *parts(alpha), *parts(beta), A.buffer.base_data, A.address, A.ps,
                  B.buffer.base_data, B.address, B.ps, C.buffer.base_data, C.address, C.ps)  # fmt: skip
        launch_plan(queue, wait_for, known[key], lanes, (A.buffer, B.buffer, C.buffer), values)


def plan_gemm(queue, A, B, C, conja, conjb, alpha, beta):
    if not (A.layout.strides and B.layout.strides and C.layout.strides):
        return None
    types = 0, 0, 0.0, 0.0, 0.0, 0.0, None, 0, 0, None, 0, 0, None, 0, 0
    return plan(queue, "gemm", (C.m, C.n, A.n), C.dtype, C.vlen, types, M=C.m, N=C.n, K=A.n,
                ARS=A.rs, ACS=A.cs, BRS=B.rs, BCS=B.cs, CRS=C.rs, CCS=C.cs,
                ACONJ=int(conja), BCONJ=int(conjb), ALPHA=int(alpha != 1), BETA=int(beta != 0))  # fmt: skip


def trsm(A: View, B: View, alpha, conj, unit, wait_for=()):
    queue, lanes = B.queue, B.npack * B.vlen
    if lanes * B.m * B.n == 0:
        return
    key = "trsm", B.dtype.char, B.vlen, B.m, B.n, A.rs, A.cs, B.rs, B.cs, conj, unit, alpha == 1
    known = plans(queue)
    if key not in known:
        known[key] = plan_trsm(queue, A, B, alpha, conj, unit)
    if known[key] is None or alpha == 0:
        args = lanes, lanes, B.m, B.n, int(unit), *parts(alpha), A, int(conj), B, 0
        launch_lanes(queue, wait_for, "trsm.cl", "trsm_batch", B.dtype, B.vlen, (lanes, 1), *args, TRSM_BATCH=1)
    else:
        values = (lanes, lanes, *parts(alpha), A.buffer.base_data, A.address, A.ps,
                  B.buffer.base_data, B.address, B.ps)  # fmt: skip
        launch_plan(queue, wait_for, known[key], lanes, (A.buffer, B.buffer), values)


def plan_trsm(queue, A, B, alpha, conj, unit):
    if not (A.layout.strides and B.layout.strides):
        return None
    types = 0, 0, 0.0, 0.0, None, 0, 0, None, 0, 0
    return plan(queue, "trsm", (B.m, B.n), B.dtype, B.vlen, types, M=B.m, N=B.n,
                ARS=f"({A.rs})", ACS=f"({A.cs})", BRS=f"({B.rs})", BCS=f"({B.cs})",
                ACONJ=int(conj), DIAG=UNIT if unit else NONUNIT, ALPHA=int(alpha != 1))  # fmt: skip


def getrfnp(A: View, nm, wait_for=()) -> np.ndarray:
    """Factor in place; waits for the result, to return `info`."""
    if A.npack * A.m * A.n == 0:
        return np.zeros(nm, np.int64)
    info = empty((nm,), np.int32, A.queue)
    factor_packs(A, nm, info, wait_for)
    return download(info).astype(np.int64)


def factor_packs(A: View, nm, info, wait_for=()) -> None:
    """Factor in place, and write `info`, a device array of int32."""
    queue, lanes = A.queue, A.npack * A.vlen
    key = "getrfnp", A.dtype.char, A.vlen, A.m, A.n, A.rs, A.cs
    known = plans(queue)
    if key not in known:
        known[key] = plan_getrfnp(queue, A)
    if known[key] is None:
        args = lanes, nm, A.m, A.n, A, 0, info
        launch_lanes(queue, wait_for, "getrfnp.cl", "getrfnp_batch", A.dtype, A.vlen, (lanes, 1), *args,
                     GETRFNP_BATCH=1)  # fmt: skip
    else:
        values = lanes, nm, A.buffer.base_data, A.address, A.ps, info.data
        launch_plan(queue, wait_for, known[key], lanes, (A.buffer, info), values)


def plan_getrfnp(queue, A):
    if not A.layout.strides:
        return None
    types = 0, 0, None, 0, 0, None
    return plan(queue, "getrfnp", (A.m, A.n), A.dtype, A.vlen, types, M=A.m, N=A.n, ARS=A.rs, ACS=A.cs)


def gather_blocks(source, index, target, wait_for=()):
    _gather("gather_blocks", source, index, target, wait_for)


def gather_values(source, index, target, wait_for=()):
    _gather("gather_values", source, index, target, wait_for)


def _gather(name, source, index, target, wait_for):
    slots, b, vlen = target.shape[0], target.shape[1], target.shape[-1]
    lanes = slots * vlen
    args = lanes, b, source, index, target
    launch_lanes(target.queue, wait_for, "pack.cl", name, source.dtype, vlen, (lanes, b * b), *args)
