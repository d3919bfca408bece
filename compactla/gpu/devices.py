"""Devices by their names, which are the same everywhere: ``cpu``, ``opencl``, ``opencl:NAME``.

"opencl" is the first OpenCL device that works, with NAME the first of those whose name contains that, in any case.
pyopencl is not imported for "cpu".
"""

import warnings
from typing import Any

from compactla.gpu.probe import fault
from compactla.types import Queue

OTHER_DRIVERS = "another driver is `pip install intel-opencl-rt`, or pocl-opencl-icd of a Linux distribution"


def devices() -> list:
    """All OpenCL devices of all platforms, GPUs first."""
    import pyopencl as cl

    try:
        platforms = cl.get_platforms()
    except cl.LogicError:  # there is no driver
        return []
    found = [device for platform in platforms for device in platform.get_devices()]
    return sorted(found, key=lambda device: not device.type & cl.device_type.GPU)


def named(text: str, option: str) -> list:
    """The OpenCL devices that a name stands for and that work, none for the CPU; `option` is what errors call it.

    A device whose driver fails at trial kernels is passed over with a warning.

    Raises
    ------
    ValueError
        If it is no such name, or no device has it.
    RuntimeError
        If there are no OpenCL devices, or the drivers of all that have the name fail.
    """
    kind, colon, name = str(text).partition(":")
    if text == "cpu":
        return []
    if kind != "opencl" or (colon and not name):
        raise ValueError(f"{option} is {text}, must be cpu, opencl or opencl:NAME")
    there = devices()
    if not there:
        raise RuntimeError("there is no OpenCL device: install the driver of a GPU, or PoCL for a CPU")
    found = [device for device in there if name.lower() in device.name.lower()]
    if not found:
        known = ", ".join(device.name.strip() for device in there)
        raise ValueError(f"{option} is {text}, must name one of the OpenCL devices: {known}")
    return working(found)


def working(found) -> list:
    """The OpenCL devices among some that work. A warning names the others; a RuntimeError, if none works."""
    faults = {device: fault(device) for device in found}
    works = [device for device, why in faults.items() if not why]
    if not works:
        raise RuntimeError(f"{'; '.join(faults.values())}; {OTHER_DRIVERS}")
    for why in filter(None, faults.values()):
        warnings.warn(f"{why}; {works[0].name.strip()} is taken", RuntimeWarning, stacklevel=2)
    return works


def new_queue(device: Any, properties: Any = 0) -> Queue:
    """A queue on an OpenCL device, in a context of its own, which it keeps: queues of some drivers do not."""
    import pyopencl as cl

    context = cl.Context([device])
    queue: Any = cl.CommandQueue(context, properties=properties)
    queue._compactla_context = context
    return queue


def queue_on(text: str, option: str, number: int = 0) -> Queue:
    """A queue on a device by its name, or None for the CPU.

    Of several OpenCL devices that have the name it is on that of this number, modulo how many there are. Errors are as
    of `named`.
    """
    found = named(text, option)
    return new_queue(found[number % len(found)]) if found else None
