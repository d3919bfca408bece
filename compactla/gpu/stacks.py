"""How a device runs a function on stacks of ordinary matrices.

In one launch where `fused` has a kernel, else as routines on packs, which `composed` puts together.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import pyopencl.array as cla

from compactla.checks import check_device_array, check_launch
from compactla.gpu import composed
from compactla.gpu.arrays import download, empty, upload
from compactla.gpu.fused import fused
from compactla.gpu.launch import plans
from compactla.gpu.ordinary import fill, ordinary, pack
from compactla.linalg import failures
from compactla.linalg.places import common_lead, common_type
from compactla.linalg.stacks import COMPUTED
from compactla.outputs import Integers
from compactla.view import REAL


class Plan(NamedTuple):
    """How arrays of some types, shapes and strides are computed: all None if they have no elements, or do not fit."""

    lead: Any = None  # the shape of the stack
    made: Any = None  # shapes and types of results
    computed: Any = None  # type
    fused: Any = None  # the kernel, if there is one


def run(function, arrays, options, on_error, compute, threads=None):
    """Results for pyopencl Arrays: the arguments are those of `compactla.linalg.stacks.Stacked`."""
    queue = arrays[0].queue
    for name, letters, a in zip(function.names, function.inputs, arrays, strict=False):
        if letters != "11":  # which are NumPy arrays
            check_device_array(a, queue, name)
    check_launch(threads, None, queue)
    known, key = plans(queue), (function, options, compute, *[(a.dtype, a.shape, a.strides) for a in arrays])
    plan = known.get(key)
    if plan is None:
        plan = known[key] = planned(function, arrays, options, compute)
    keywords = dict(zip(function.options, options, strict=True))
    if plan.lead is None:
        return without_elements(function, arrays, keywords, queue)
    allocator = arrays[0].allocator
    if plan.fused:
        results = [empty(shape, dtype, queue, allocator) for shape, dtype in plan.made]
        failed = plan.fused.run(arrays, results, wait=on_error == "raise")
    else:
        packs = []
        for name, a, letters in zip(function.names, arrays, function.inputs, strict=False):
            if letters == "11":
                packs.append(one_each(a, plan.lead, plan.computed))
            elif len(letters) == 3:
                packs.append(integers(a, plan.lead, packs[0], name))
            else:
                packs.append(pack(a, plan.lead, plan.computed))
        found, failed = getattr(composed, function.name)(*packs, **function.sizes(arrays), **keywords)
        results = [ordinary(x, *made, allocator) for x, made in zip(found, plan.made, strict=True)]
        failed = download(failed) if isinstance(failed, cla.Array) else failed
    if failed is not None and failed.any():
        settle(function, arrays, keywords, results, failed.reshape(plan.lead) != 0, on_error)
    return results


def one_each(a, lead, dtype):
    """A NumPy array of numbers (..., 1, 1) as one for each matrix of a stack."""
    return np.broadcast_to(a[..., 0, 0], lead).astype(REAL[dtype.char]).reshape(-1)


def integers(a, lead, A, name):
    """An array of integers (..., k, 1) beside the packs of a stack; they are looked at."""
    k = a.shape[-2]
    return Integers.given(np.broadcast_to(a.get()[..., 0], (*lead, k)).reshape(A.nm, k), A, k, name)


def planned(function, arrays, options, compute):
    """How arrays of these types, shapes and strides are computed."""
    if not hasattr(composed, function.name):
        raise TypeError(f"a is a pyopencl Array, must be a NumPy array: {function.name} runs on the CPU only")
    queue, dtypes = arrays[0].queue, [common_type(a.dtype) for a in arrays]
    for name, a, dtype in zip(function.names, arrays, dtypes, strict=False):
        if dtype is None:
            raise TypeError(f"{name}: dtype is {a.dtype}, must be real or complex of single or double precision")
    lead, number = common_lead(arrays), function.sizes(arrays)
    if lead is None or number is None or not math.prod(lead) or not min(number.values()):
        return Plan()
    numbers = zip(dtypes, function.inputs, strict=True)
    common = np.result_type(*(dtype for dtype, letters in numbers if letters != "11" and len(letters) < 3)).char
    computed, result = (common, common) if compute == "same" else COMPUTED[common]
    if REAL[computed].itemsize == 8 and "cl_khr_fp64" not in queue.device.extensions:
        what = "compute is 'double', must be 'same'" if result in "fF" else "dtype is double, must be single precision"
        raise ValueError(f"{what}: {queue.device.name.strip()} has no double")
    keywords = dict(zip(function.options, options, strict=True))
    one = fused(function, arrays, keywords, number, lead, np.dtype(computed), np.dtype(result))
    return Plan(lead, function.made(lead, number, result), np.dtype(computed), one)


def without_elements(function, arrays, keywords, queue):
    """What NumPy makes of shapes that do not fit together, or of arrays without elements, which it does not look at."""
    unread = [np.broadcast_to(np.zeros((), a.dtype), a.shape) for a in arrays]
    return [upload(np.asarray(x), queue) for x in failures.listed(function.numpy(*unread, **keywords))]


def settle(function, arrays, options, results, failed, on_error):
    """Refuse the first matrices that failed, or fill their results."""
    failed = failures.of_first(failed, arrays[0].shape[:-2])
    if on_error == "raise":
        message, first = function.message, tuple(map(int, np.argwhere(failed)[0]))
        if not message:
            message = failures.failure(function, arrays[0][first].get(), options)
        elif callable(message):
            message = message(*(x[first].get() for x in results))
        failures.complain(function, message, failed)
        return
    for output, x in zip(function.outputs, results, strict=True):
        flags = np.broadcast_to(failed, x.shape[: x.ndim - len(output.sizes)])
        if x.dtype.kind in "fc":
            fill(x, upload(flags.astype(np.int32), x.queue))
        else:
            x.set(np.where(flags, 0, x.get()))
