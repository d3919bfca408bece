"""How a device runs a function on stacks of ordinary matrices.

In one launch where `fused` or `products` has a kernel, else as routines on packs: see `compactla.linalg.composed`.
"""

from collections.abc import Sequence
from typing import Any

from compactla.dtypes import REAL
from compactla.gpu.linalg.fused import fused
from compactla.gpu.linalg.products import products
from compactla.types import Array


def kernel(function: Any, options: dict[str, Any], arrays: Sequence[Array], fit: Any) -> Any:
    """The `Fused` kernel or `DeviceProducts` for some arrays; None if there is neither.

    Parameters
    ----------
    function : compactla.linalg.stacks.Stacked
        Function to be computed.
    options : dict
        Values of its options, by name.
    arrays : list of pyopencl.array.Array
        The inputs; numbers are NumPy arrays.
    fit : compactla.linalg.stacks.Fit
        Sizes and types.
    """
    device, computed = arrays[0].queue.device, fit.computed
    if REAL[computed.char].itemsize == 8 and "cl_khr_fp64" not in device.extensions:
        single = fit.common.char in "fF"
        wrong = "compute is 'double', must be 'same'" if single else "dtype is double, must be single precision"
        raise ValueError(f"{wrong}: {device.name.strip()} has no double")
    return fused(function, options, arrays, fit) or products(function, arrays, fit)
