"""How a device runs a function on stacks of ordinary matrices.

In one launch where `fused` or `products` has a kernel, else as routines on packs: see `compactla.linalg.composed`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from compactla.dtypes import REAL
from compactla.gpu.linalg.arrays import spread
from compactla.gpu.linalg.fused import fused
from compactla.gpu.linalg.products import products
from compactla.strides import in_stack
from compactla.types import Array


def kernel(function: Any, options: dict[str, Any], arrays: Sequence[Array], fit: Any) -> Any:
    """The `Fused` kernel or `DeviceProducts` for some arrays, or copies of them; None if there is neither.

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
    uneven = [type(a) is not np.ndarray and in_stack(a, fit.lead)[1] is None for a in arrays]
    if any(uneven):
        arrays = evened(arrays, uneven, fit.lead)
    found = fused(function, options, arrays, fit) or products(function, arrays, fit)
    return Evened(found, uneven) if found and any(uneven) else found


@dataclass(frozen=True)
class Evened:
    """A kernel for copies of stacks whose matrices are not evenly far apart.

    Attributes
    ----------
    kernel : Fused or DeviceProducts
        What reads the copies.
    uneven : list of bool
        Which arrays are copied.
    """

    kernel: Any
    uneven: list[bool]

    @property
    def fit(self) -> Any:
        """Sizes and types."""
        return self.kernel.fit

    def run(self, arrays, wait):
        """As of the kernel."""
        return self.kernel.run(evened(arrays, self.uneven, self.fit.lead), wait)


def evened(arrays, uneven, lead):
    """Arrays, of which some are copied to stacks of shape `lead`."""
    return [
        spread(a, (*lead, *a.shape[-2:]), in_stack(a, lead)[0], a.dtype) if copied else a
        for a, copied in zip(arrays, uneven, strict=True)
    ]
