"""Devices and queues: the names that pyopencl has for them, where the memory is that of a library of CUDA arrays."""

import numpy as np
import pyopencl as cl

from compactla.cuda import arrays, driver, functions


class Flag:
    """An integer in memory of the host, which kernels reach: see `compactla.gpu.arrays.Flag`."""

    def __init__(self, queue):
        self._word = driver.Word(queue.device.index)
        self.array = arrays.Array(queue, (1,), np.int32, data=arrays.Memory(0, self), offset=self._word.address)

    def is_set(self):
        """Whether a kernel set it that was launched before in the current stream; waits for it. It is zero then."""
        return self._word.take(self.array.queue.stream)


class Platform:
    """The platform of all CUDA devices."""

    name = "NVIDIA CUDA"


class Device:
    """A GPU, with the names that `pyopencl.Device` has for its properties."""

    type = cl.device_type.GPU
    platform = Platform()
    extensions = "cl_khr_fp64"
    double_fp_config = cl.device_fp_config.DENORM

    def __init__(self, index):
        about = driver.describe(index)
        self.index, self.name, self.driver_version = index, about["name"], about["version"]
        self.arch = f"sm_{about['major']}{about['minor']}"
        self.max_compute_units, self.max_work_group_size = about["units"], about["group"]
        self.local_mem_size, self.global_mem_size = about["local"], about["memory"]
        self.room = about["room"]  # of local memory, where launches provide it

    def __repr__(self):
        return f"cuda:{self.index} ({self.name})"


class Queue:
    """The memory and the current stream that a library has on a device; `Library.queue` makes one for each.

    Attributes
    ----------
    library : compactla.cuda.libraries.Library
        Library that allocates, and says which stream is the current one.
    device : Device
        The device.
    context : Queue
        What arrays of one call must have in common: the queue itself.
    packs : compactla.repeats.cuda.CudaPacks or None
        What makes calls with packs here again, once it was asked for.
    """

    properties = 0  # work is done in order

    def __init__(self, library, index):
        self.library, self.device, self.context, self.packs = library, Device(index), self, None

    @property
    def stream(self) -> int:
        """The library's current stream."""
        return self.library.stream(self.device.index)

    @property
    def is_capturing(self) -> bool:
        """Whether that stream records a graph instead of working."""
        return driver.is_capturing(self.device.index, self.stream)

    def empty(self, shape, dtype):
        """A new array."""
        return arrays.empty(self, shape, dtype)

    def upload(self, values):
        """A copy of a NumPy array."""
        return arrays.uploaded(self, values)

    def flag(self):
        """An integer of the host that kernels may set."""
        return Flag(self)

    @property
    def multiplies(self) -> bool:
        """Whether the library multiplies larger matrices for `larger`."""
        return self.library.name in functions.KINDS

    def larger(self, function, composed):
        """What computes a function on stacks that routines on packs are composed for: they, or the library."""
        return functions.borrowed(function, composed, self)

    def finish(self):
        """Wait for all that was started in the current stream."""
        driver.synchronize(self.device.index, self.stream)

    def __repr__(self):
        return f"<{self.library.name} on {self.device!r}>"

    def __reduce__(self):
        return self.library.named_queue, (self.library.name, self.device.index)
