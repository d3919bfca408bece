"""LU factorization that leaves `info` on the device."""

import numpy as np

from compactla.blas import check_output, check_packs
from compactla.checks import check_launch, check_whole, is_device_array
from compactla.gpu import run


def getrfnp(A, info, wait_for=None):
    """As `compactla.getrfnp`, but does not wait for the device.

    Parameters
    ----------
    A : Pack
        nm matrices on a device; overwritten by their factors.
    info : (nm,) pyopencl.array.Array of int32
        Contiguous, at the beginning of its buffer. Is given, for each matrix, 0 or 1 + the index of the first pivot
        that is exactly zero.
    wait_for : list of pyopencl.Event, optional
        What the device waits for first, as for `compactla.gemm`.

    Returns
    -------
    pyopencl.array.Array
        `info`, whose `events` end with that of the factorization.

    Raises
    ------
    TypeError, ValueError
        If A does not live on a device or is read-only, `info` is no such array in the same context, or `wait_for` is
        no list of events.
    """
    check_packs(A=A)
    check_output("A", A.view)
    if A.queue is None:
        raise TypeError("A lives on the cpu, must live on an OpenCL device: see Pack.to")
    if not is_device_array(info):
        raise TypeError(f"info is a {type(info).__name__}, must be a pyopencl Array")
    check_whole(info, A.queue, "info")
    if info.dtype != np.int32:
        raise TypeError(f"info: dtype is {info.dtype}, must be int32")
    if info.shape != (A.nm,) or not info.flags.c_contiguous:
        raise ValueError(f"info has shape {info.shape}, must be ({A.nm},) and contiguous")
    launch = check_launch(None, wait_for, A.queue)
    if A.nm * A.m * A.n == 0:
        info.fill(0)
    else:
        run.factor_packs(A.view, A.nm, info, launch)
    return info
