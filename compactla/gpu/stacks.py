"""How a device runs a function on stacks of ordinary matrices: as routines on packs, which `composed` puts together."""

import math

import numpy as np
import pyopencl.array as cla

from compactla.checks import check_device_array, check_launch
from compactla.gpu import composed
from compactla.gpu.arrays import download, upload
from compactla.gpu.ordinary import fill, ordinary, pack
from compactla.linalg import failures
from compactla.linalg.places import common_lead, common_type
from compactla.linalg.stacks import COMPUTED, choose
from compactla.view import REAL


def run(function, arrays, options, on_error, compute, threads=None):
    """Results for pyopencl Arrays: the arguments are those of `compactla.linalg.stacks.Stacked`."""
    choose("compute", compute, ("double", "same"))
    form = getattr(composed, function.name, None)
    if form is None:
        raise TypeError(f"a is a pyopencl Array, must be a NumPy array: {function.name} runs on the CPU only")
    queue, dtypes = arrays[0].queue, []
    for name, a in zip(function.names, arrays, strict=False):
        check_device_array(a, queue, name)
        dtypes.append(common_type(a.dtype))
        if dtypes[-1] is None:
            raise TypeError(f"{name}: dtype is {a.dtype}, must be real or complex of single or double precision")
    check_launch(threads, None, queue)
    lead, number = common_lead(arrays), function.sizes(arrays)
    keywords = dict(zip(function.options, options, strict=True))
    if lead is None or number is None or not math.prod(lead) or not min(number.values()):
        return without_elements(function, arrays, keywords, queue)
    common = np.result_type(*dtypes).char
    computed, result = (common, common) if compute == "same" else COMPUTED[common]
    if REAL[computed].itemsize == 8 and "cl_khr_fp64" not in queue.device.extensions:
        what = "compute is 'double', must be 'same'" if result in "fF" else "dtype is double, must be single precision"
        raise ValueError(f"{what}: {queue.device.name.strip()} has no double")
    found, failed = form(*(pack(a, lead, np.dtype(computed)) for a in arrays), **keywords)
    results = []
    for x, (shape, dtype) in zip(found, function.made(lead, number, result), strict=True):
        results.append(ordinary(x, shape, dtype, arrays[0].allocator))
    if failed is not None:
        failed = download(failed) if isinstance(failed, cla.Array) else failed
        if failed.any():
            settle(function, arrays, results, failed.reshape(lead) != 0, on_error)
    return results


def without_elements(function, arrays, keywords, queue):
    """What NumPy makes of shapes that do not fit together, or of arrays without elements, which it does not look at."""
    unread = [np.broadcast_to(np.zeros((), a.dtype), a.shape) for a in arrays]
    return [upload(np.asarray(x), queue) for x in failures.listed(function.numpy(*unread, **keywords))]


def settle(function, arrays, results, failed, on_error):
    """Refuse the first matrices that failed, or fill their results."""
    failed = failures.of_first(failed, arrays[0].shape[:-2])
    if on_error == "raise":
        raise failures.refusal(function.message, failed)
    for output, x in zip(function.outputs, results, strict=True):
        flags = np.broadcast_to(failed, x.shape[: x.ndim - len(output.sizes)])
        fill(x, upload(flags.astype(np.int32), x.queue))
