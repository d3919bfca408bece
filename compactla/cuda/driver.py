"""Calls of the CUDA driver, by NVIDIA's Python bindings. Pointers, streams and events are plain integers."""

import contextlib
import ctypes
import functools
from typing import Any

import numpy as np

try:
    from cuda.bindings import driver as cu
except ImportError:
    raise ImportError(
        "arrays in CUDA memory need NVIDIA's bindings: pip install cuda-bindings nvidia-cuda-nvrtc"
    ) from None

ATTRIBUTES = {
    "major": "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR",
    "minor": "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR",
    "units": "CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT",
    "group": "CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK",
    "local": "CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK",
    "room": "CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
}
# Errors of a thread in which no context, or one of another device, is current.
NO_CONTEXT = {cu.CUresult.CUDA_ERROR_INVALID_CONTEXT, cu.CUresult.CUDA_ERROR_INVALID_HANDLE}
WORD = 4  # bytes of an integer
SUCCESS = cu.CUresult.CUDA_SUCCESS


def checked(function, *args):
    """The result of a call; a RuntimeError with the driver's words if it failed."""
    error, *results = function(*args)
    if error != SUCCESS:
        _, text = cu.cuGetErrorString(error)
        raise RuntimeError(f"{function.__name__}: {text.decode() if text else error}")
    return results[0] if results else None


@functools.cache
def _context(index):
    """The primary context of a device, which all libraries share."""
    checked(cu.cuInit, 0)
    return checked(cu.cuDevicePrimaryCtxRetain, checked(cu.cuDeviceGet, index))


class Current:
    """The context of a device is the current one while this lasts; `contextlib.contextmanager` would take longer."""

    def __init__(self, index):
        self.index = index

    def __enter__(self):
        checked(cu.cuCtxPushCurrent, _context(self.index))

    def __exit__(self, *error):
        checked(cu.cuCtxPopCurrent)


def describe(index) -> dict:
    """The name, the bytes of memory and the `ATTRIBUTES` of a device."""
    _context(index)
    device = checked(cu.cuDeviceGet, index)
    found = {
        name: checked(cu.cuDeviceGetAttribute, getattr(cu.CUdevice_attribute, attribute), device)
        for name, attribute in ATTRIBUTES.items()
    }
    name = checked(cu.cuDeviceGetName, 256, device).split(b"\0")[0].decode()
    version = checked(cu.cuDriverGetVersion)
    return found | {"name": name, "memory": checked(cu.cuDeviceTotalMem, device), "version": str(version)}


def load(index, code: bytes):
    """A module of compiled code."""
    with Current(index):
        return checked(cu.cuModuleLoadData, code)


def function(index, module, name, room=0):
    """A kernel of a module, which launches may provide with so many bytes of local memory."""
    with Current(index):
        found = checked(cu.cuModuleGetFunction, module, name.encode())
        if room:
            attribute = cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            checked(cu.cuFuncSetAttribute, found, attribute, room)
        return found


def launch(
    index: int,
    function: Any,
    grid: tuple[int, int],
    group: tuple[int, int],
    stream: int,
    parameters: int,
    room: int = 0,
) -> None:
    """Start a kernel; `parameters` is the address of those of its arguments, `room` bytes of local memory."""
    args = function, grid[0], grid[1], 1, group[0], group[1], 1, room, stream, parameters, 0
    (error,) = cu.cuLaunchKernel(*args)
    if error is not SUCCESS:
        with Current(index) if error in NO_CONTEXT else contextlib.nullcontext():
            checked(cu.cuLaunchKernel, *args)


def is_capturing(index, stream) -> bool:
    """Whether a stream records a graph instead of working."""
    with Current(index):
        return checked(cu.cuStreamIsCapturing, stream) != cu.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE


def write(index, target, array: np.ndarray, stream) -> None:
    """Copy a contiguous NumPy array to an address."""
    with Current(index):
        checked(cu.cuMemcpyHtoDAsync, target, array.ctypes.data, array.nbytes, stream)


def read(index, source, array: np.ndarray, stream) -> None:
    """Fill a contiguous NumPy array with the bytes at an address; waits for the stream."""
    with Current(index):
        checked(cu.cuMemcpyDtoHAsync, array.ctypes.data, source, array.nbytes, stream)
        checked(cu.cuStreamSynchronize, stream)


def copy(index: int, target: int, source: int, nbytes: int, stream: int) -> None:
    """Copy bytes on a device."""
    with Current(index):
        checked(cu.cuMemcpyDtoDAsync, target, source, nbytes, stream)


def fill(index, target, word: int, count, stream) -> None:
    """Set words of 4 bytes."""
    with Current(index):
        checked(cu.cuMemsetD32Async, target, word, count, stream)


def device_of(address: int) -> int:
    """The index of the device in whose memory an address is."""
    attribute = cu.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    checked(cu.cuInit, 0)
    return int(checked(cu.cuPointerGetAttribute, attribute, address))


def allocate(index: int, nbytes: int, stream: int) -> int:
    """Memory that a stream may use from now on."""
    with Current(index):
        return int(checked(cu.cuMemAllocAsync, nbytes, stream))


def free(index: int, address: int, stream: int) -> None:
    """Give memory back when a stream has done all that was started."""
    with Current(index):
        checked(cu.cuMemFreeAsync, address, stream)


def synchronize(index, stream) -> None:
    """Wait for a stream."""
    (error,) = cu.cuStreamSynchronize(stream)
    if error is not SUCCESS:
        with Current(index) if error in NO_CONTEXT else contextlib.nullcontext():
            checked(cu.cuStreamSynchronize, stream)


class Word:
    """An integer of 4 bytes in memory of the host, at an address that kernels may write to.

    Attributes
    ----------
    address : int
        That address.
    """

    def __init__(self, index):
        flags = cu.CU_MEMHOSTALLOC_PORTABLE | cu.CU_MEMHOSTALLOC_DEVICEMAP
        with Current(index):
            here = checked(cu.cuMemHostAlloc, WORD, flags)
            self.address = int(checked(cu.cuMemHostGetDevicePointer, here, 0))
        self._index, self._number = index, ctypes.c_int32.from_address(here)
        self._number.value = 0

    def take(self, stream) -> int:
        """Its value, when a stream has done all that was started; it is zero then."""
        synchronize(self._index, stream)
        found, self._number.value = self._number.value, 0
        return found


def mark(index, stream) -> int:
    """An event that is over when all work of a stream until now is."""
    with Current(index):
        event = checked(cu.cuEventCreate, int(cu.CUevent_flags.CU_EVENT_DISABLE_TIMING))
        checked(cu.cuEventRecord, event, stream)
    return event


def follow(index, stream, first) -> None:
    """Let a stream wait for all work of another until now."""
    with Current(index):
        event = mark(index, first)
        checked(cu.cuStreamWaitEvent, stream, event, 0)
        checked(cu.cuEventDestroy, event)  # when it is over


def is_over(index, event) -> bool:
    """Whether an event is over, which is forgotten then."""
    with Current(index):
        (error,) = cu.cuEventQuery(event)
        if error == cu.CUresult.CUDA_ERROR_NOT_READY:
            return False
        checked(cu.cuEventDestroy, event)
    return True
