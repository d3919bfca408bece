"""How a device runs a function on stacks of ordinary matrices.

In one launch where `fused` or `products` has a kernel, else as routines on packs, which `composed` puts together.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from compactla.checks import is_device_array
from compactla.gpu import composed
from compactla.gpu.arrays import download
from compactla.gpu.fused import fused
from compactla.gpu.ordinary import ordinary, pack
from compactla.gpu.products import products
from compactla.outputs import Integers
from compactla.view import REAL


def kernel(function, options, arrays, fit):
    """The `Fused` kernel, `Products`, or else `Composed` routines, for some arrays.

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
    one = fused(function, options, arrays, fit) or products(function, arrays, fit)
    return one or Composed(getattr(composed, function.name), function.inputs, fit, fit.number | options)


@dataclass(frozen=True)
class Composed:
    """Routines on packs for arrays of some types, shapes and strides.

    Attributes
    ----------
    compose : function
        One of `composed`.
    inputs : dict
        Sizes of the inputs, by name, as of `compactla.linalg.stacks.Stacked`.
    fit : compactla.linalg.stacks.Fit
        Sizes and types.
    keywords : dict
        Sizes and options, by name.
    """

    compose: Callable
    inputs: dict[str, str]
    fit: Any
    keywords: dict[str, Any]

    def run(self, arrays, wait):
        """Compute results, and integers that are not 0 for matrices that failed, or None."""
        packs: list[Any] = []
        lead, computed = self.fit.lead, self.fit.computed
        for (name, letters), a in zip(self.inputs.items(), arrays, strict=True):
            if letters == "11":
                packs.append(one_each(a, lead, computed))
            elif len(letters) == 3:
                packs.append(integers(a, lead, packs[0], name))
            else:
                packs.append(pack(a, lead, computed))
        found, failed = self.compose(*packs, **self.keywords)
        allocator = arrays[0].allocator
        results = [ordinary(x, *made, allocator) for x, made in zip(found, self.fit.made, strict=True)]
        return results, download(failed) if is_device_array(failed) else failed


def one_each(a, lead, dtype):
    """A NumPy array of numbers (..., 1, 1) as one for each matrix of a stack."""
    return np.broadcast_to(a[..., 0, 0], lead).astype(REAL[dtype.char]).reshape(-1)


def integers(a, lead, A, name):
    """An array of integers (..., k, 1) beside the packs of a stack; they are looked at."""
    k = a.shape[-2]
    return Integers.given(np.broadcast_to(a.get()[..., 0], (*lead, k)).reshape(A.nm, k), A, k, name)
