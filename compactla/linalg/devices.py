"""Calls of functions on stacks with arrays on a device."""

import numpy as np

from compactla.backends import backend, device_module
from compactla.calls.plans import UNKNOWN, signature
from compactla.checks import check_device_array, check_launch, stays
from compactla.foreign import hand_back, inner_calls
from compactla.linalg import failures
from compactla.linalg.arguments import common_type


def run(function, arrays, options, on_error, compute, threads):
    """Results for pyopencl Arrays, as of `compactla.linalg.stacks.Stacked`."""
    queue = arrays[0].queue
    for (name, letters), a in zip(function.inputs.items(), arrays, strict=True):
        if letters != "11":  # which are NumPy arrays
            check_device_array(a, queue, name)
    check_launch(threads, None, queue)
    kept = device_module("launch").plans(queue)
    key = function, options, compute, signature(arrays)
    kernel = kept.known.get(key, UNKNOWN)
    if kernel is UNKNOWN:
        kernel = kept.add(key, planned(function, arrays, options, compute))
    if kernel is None:
        return without_elements(function, arrays, options, queue)
    with inner_calls():
        results, failed = kernel.run(arrays, wait=function.fails and on_error == "raise")
    if failed is not None and failed.any():
        failed = function.failure.named(failed.reshape(kernel.fit.lead) != 0, arrays[0].shape[:-2])
        failures.finish(function, arrays, options, results, failed, on_error)
    return hand_back(results)


def planned(function, arrays, options, compute):
    """The kernel for arrays of these types, shapes and strides; None if they are empty, or do not fit together."""
    types = [common_type(a.dtype) for a in arrays]
    for name, a, dtype in zip(function.inputs, arrays, types, strict=True):
        if dtype is None:
            raise TypeError(f"{name}: dtype is {a.dtype}, must be real or complex of single or double precision")
    fit = function.fit(arrays, types, compute)
    if fit is None:
        return None
    keywords = dict(zip(function.options, options, strict=True))
    kernel = device_module("linalg.stacks").kernel(function, keywords, arrays, fit)
    if kernel is None:
        from compactla.linalg import composed  # which imports the modules for devices

        compose = getattr(composed, function.name)
        kernel = composed.Composed(compose, function.inputs, fit, fit.number | keywords)
        if stays(arrays[0]):
            kernel = arrays[0].queue.larger(function, kernel)
    return kernel


def without_elements(function, arrays, options, queue):
    """NumPy's results for arrays without elements, or its error for shapes that do not fit together."""
    unread = [np.broadcast_to(np.zeros((), a.dtype), a.shape) for a in arrays]
    found, _ = failures.attempt(function, unread, options)
    return hand_back([backend(queue).upload(np.asarray(x), queue) for x in found])
