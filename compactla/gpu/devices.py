"""The OpenCL devices of this machine."""

import pyopencl as cl


def devices() -> list[cl.Device]:
    """All devices of all platforms, GPUs first."""
    try:
        platforms = cl.get_platforms()
    except cl.LogicError:  # there is no driver
        return []
    found = [device for platform in platforms for device in platform.get_devices()]
    return sorted(found, key=lambda device: not device.type & cl.device_type.GPU)


def first_queue(number: int = 0) -> cl.CommandQueue:
    """A queue of the first device, or of that number, modulo how many there are; RuntimeError if there is none."""
    found = devices()
    if not found:
        raise RuntimeError("there is no OpenCL device: install the driver of a GPU, or PoCL for a CPU")
    context = cl.Context([found[number % len(found)]])
    return cl.CommandQueue(context)
