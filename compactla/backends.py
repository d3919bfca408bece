"""The modules that compute: those of `compactla.cpu`, or of the same names in `compactla.gpu`."""

import functools
import importlib


@functools.cache
def _module(name):
    return importlib.import_module(name)


def backend(queue, name="arrays"):
    """Module for where the data lives; pyopencl is not imported before there is a queue."""
    return _module(f"compactla.cpu.{name}" if queue is None else f"compactla.gpu.{name}")


def device_name(queue) -> str:
    """The name of a device, or of several, for people."""
    if queue is None:
        return "cpu"
    if isinstance(queue, list):
        return " and ".join(map(device_name, queue))
    return queue.device.name.strip() if type(queue).__module__.startswith("pyopencl") else str(queue.device)
