"""Checks of arguments: each refuses with a message that names the argument, what it is and what it must be."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from compactla.calls.launch import NOW, Launch, Recording, Unrecorded, limited
from compactla.overlap import has_repeats, is_same, share_memory
from compactla.types import Array, Events, Queue

CUDA_ARRAYS = "compactla.cuda.arrays"
_on_devices: dict[type, bool] = {np.ndarray: False}  # whether objects of a type are arrays on devices
DEVICES = "pyopencl.", "compactla.cuda."  # modules of arrays and queues on devices


def check_dtype(dtype: Any, name: str) -> np.dtype:
    try:
        dtype = np.dtype(dtype)
    except (TypeError, ValueError):
        raise TypeError(f"{name} is {dtype!r}, must be float32, float64, complex64 or complex128") from None
    if dtype.char not in "fdFD" or not dtype.isnative:
        raise TypeError(f"{name}: dtype is {dtype}, must be float32, float64, complex64 or complex128")
    return dtype


def check_size(size: Any, name: str) -> int:
    if not isinstance(size, int | np.integer) or isinstance(size, bool):
        raise TypeError(f"{name} is {size!r}, must be an integer")
    if size < 0:
        raise ValueError(f"{name} is {size}, must not be negative")
    return int(size)


def as_array(a: Any, name: str) -> np.ndarray:
    """`a` as a NumPy array."""
    if type(a) is np.ndarray:
        return a
    kind = type(a).__name__
    if is_device_array(a) or hasattr(a, "__cuda_array_interface__"):
        what = "an array" if stays(a) else f"a {type(a).__module__}.{kind}"
        raise TypeError(f"{name} is {what} on a device, must be copied to a NumPy array")
    check_unmasked(a, name)
    try:
        return np.asarray(a)
    except (TypeError, ValueError, RuntimeError) as error:  # the last of tensors
        refused = ValueError if isinstance(error, ValueError) else TypeError
        raise refused(f"{name} is a {kind}, must be an array: {error}") from None


def check_unmasked(a: Any, name: str, depth: int = 4) -> None:
    """Refuse a masked array, and lists of lists that hold one: NumPy drops the mask."""
    if isinstance(a, np.ma.MaskedArray):
        raise TypeError(f"{name} is a {type(a).__name__} with a mask, must have none: see numpy.ma.filled")
    if isinstance(a, list | tuple) and depth:
        for kind in set(map(type, a)):
            if issubclass(kind, list | tuple | np.ma.MaskedArray):
                for part in a:
                    check_unmasked(part, name, depth - 1)


def as_integers(a: Any, name: str) -> np.ndarray:
    """A copy of `a` in int64."""
    a = as_array(a, name)
    if a.size and a.dtype.kind not in "iu":
        raise TypeError(f"{name}: dtype is {a.dtype}, must be one of integers")
    if a.dtype.kind == "u" and a.max(initial=0) > np.iinfo(np.int64).max:
        raise ValueError(f"{name} has the entry {a.max()}, must have none of 2**63 and more")
    return np.array(a, np.int64, order="C")


def check_writable(path: Any, name: str) -> None:
    """Refuse the name of a file that cannot be written, before there is anything to write."""
    if not Path(path).absolute().parent.is_dir():
        raise ValueError(f"{name} is {path}, must be in a folder that exists")
    is_new = not os.path.lexists(path)
    try:
        with open(path, "ab"):
            pass
    except (OSError, ValueError) as error:
        raise ValueError(f"{name} is {path!r}, must be a file that can be written: {error}") from None
    if is_new:
        os.unlink(path)


def check_kind(a: Any, queue: Queue, name: str) -> None:
    """Refuse what is no array of the kind that lives where the queue is; None is the CPU."""
    if queue is not None and not is_device_array(a):
        raise TypeError(f"{name} is a {type(a).__name__}, must be an array on the device")
    if queue is None and type(a) is not np.ndarray:
        if not isinstance(a, np.ndarray):
            raise TypeError(f"{name} is a {type(a).__name__}, must be a NumPy array on the CPU")
        as_array(a, name)


def check_queue(queue: Any, name: str) -> None:
    if not (type(queue).__module__.startswith(DEVICES) and hasattr(queue, "device")):
        raise TypeError(f"{name} is {queue!r}, must be a pyopencl CommandQueue or a CUDA device")
    if type(queue).__module__.startswith("pyopencl") and not has_context(queue):
        must = "must be of a Context that is kept as long: queues of this driver do not keep theirs"
        raise ValueError(f"{name} has no context any more, {must}")


def has_context(queue) -> bool:
    """Whether the context of an OpenCL queue is still there."""
    from pyopencl import LogicError

    try:
        return queue.context is not None
    except LogicError:
        return False


def check_device_array(a: Array, queue: Queue, name: str) -> None:
    """Refuse a pyopencl Array that the queue cannot reach, or whose elements are between those of its buffer."""
    if a.queue is None:
        raise ValueError(f"{name} has no queue, must have one: see Array.with_queue")
    if a.queue.context != queue.context:
        other = "OpenCL context" if not stays(a) else "context"
        raise ValueError(f"{name} lives in another {other}, must live in the context of the queue")
    item = a.dtype.itemsize
    if a.offset % item:
        raise ValueError(f"{name} has offset {a.offset}, must have a multiple of the {item} bytes of an element")
    number = item // 2 if a.dtype.kind == "c" else item
    for stride in a.strides:  # any() takes longer
        if stride % number:
            raise ValueError(f"{name} has strides {a.strides}, must have multiples of the {number} bytes of a number")


def check_contiguous(a: Array, name: str) -> None:
    """Refuse an array that cannot be reshaped without a copy."""
    if not a.flags.c_contiguous:
        raise ValueError(f"{name} has strides {a.strides}, must be C-contiguous")


def check_whole(a: Array, queue: Queue, name: str) -> None:
    """Refuse a pyopencl Array that does not begin where its buffer does, or that the queue cannot reach."""
    check_device_array(a, queue, name)
    if a.offset and not stays(a):
        raise ValueError(f"{name} has offset {a.offset}, must begin where its buffer does: see Array.copy")


def check_info(info: Any, nm: int, queue: Queue, name: str) -> None:
    """Refuse what is no array for one integer of each matrix."""
    if queue is not None:
        if not is_device_array(info):
            raise TypeError(f"{name} is a {type(info).__name__}, must be an array on the device")
        check_whole(info, queue, name)
    elif type(info) is not np.ndarray:
        raise TypeError(f"{name} is a {type(info).__name__}, must be a NumPy array")
    if not is_writeable(info):
        raise ValueError(f"{name} is read-only, must be writeable")
    dtype = np.dtype(np.int64 if queue is None else np.int32)
    if info.dtype != dtype:
        raise TypeError(f"{name}: dtype is {info.dtype}, must be {dtype}")
    if info.shape != (nm,) or not info.flags.c_contiguous:
        raise ValueError(f"{name} has shape {info.shape} and strides {info.strides}, must be ({nm},) and contiguous")


def option(name: str, value: Any, allowed: Sequence) -> Any:
    """The option letter in upper case, or one of other values that are allowed."""
    if not isinstance(allowed, str):
        if isinstance(value, bool | np.bool_) and value in allowed:
            return bool(value)
    elif isinstance(value, str) and len(value) == 1:
        if value in allowed:
            return value
        if value.upper() in allowed:
            return value.upper()
    raise ValueError(f"{name} is {value!r}, must be one of {', '.join(map(repr, allowed))}")


def check_launch(
    threads: Any, wait_for: Events, queue: Queue, recorded: bool = False, default: int | None = None
) -> Launch:
    """The launch of a call: the maximum number of threads on the CPU, the events to wait for on a device.

    In place of `threads` there may be a `Recording` with them, for calls that can be `recorded`. If there is neither,
    `default` is the number of threads.
    """
    if type(threads) is Recording:
        plain = check_launch(threads.threads, wait_for, queue, default=default)
        threads.threads, threads.events = plain.threads, plain.events
        if not recorded:
            raise Unrecorded
        return threads
    if queue is None:
        if wait_for is not None:
            raise ValueError(f"wait_for is {wait_for!r}, must be None for data on the CPU")
        threads = default if threads is None else threads
        if threads is None:
            return NOW
        if not (type(threads) is int and threads > 0) and check_size(threads, "threads") < 1:
            raise ValueError(f"threads is {threads}, must be at least 1")
        return limited(threads)
    if threads is not None:
        raise ValueError(f"threads is {threads!r}, must be None for data on a device")
    if wait_for is None:
        return NOW
    if isinstance(queue, list):
        raise ValueError(f"wait_for is {wait_for!r}, must be None for several queues")
    from pyopencl import Event  # which is there, as there is a queue

    if type(queue).__module__.startswith("compactla"):
        raise ValueError(f"wait_for is {wait_for!r}, must be None for CUDA memory: streams keep the order")

    if not isinstance(wait_for, list | tuple) or not all(isinstance(event, Event) for event in wait_for):
        raise TypeError(f"wait_for is {wait_for!r}, must be a list of pyopencl Events")
    if any(event.context != queue.context for event in wait_for):
        raise ValueError("wait_for has events of another OpenCL context, must be of the context of the queue")
    return Launch(events=wait_for)


def is_device_array(a: Any) -> bool:
    """Whether `a` is a pyopencl Array, or one in CUDA memory, without importing pyopencl."""
    kind = type(a)
    found = _on_devices.get(kind)
    if found is None:
        found = _on_devices[kind] = kind.__module__.startswith(DEVICES) and hasattr(kind, "get")
    return found


def stays(a: Any) -> bool:
    """Whether a result stays on its device: in CUDA memory, for which nothing waits. Of pyopencl's a copy is made."""
    return type(a).__module__ == CUDA_ARRAYS


def is_writeable(a: Array) -> bool:
    """Whether an array can be written to, which pyopencl's always can."""
    return getattr(a.flags, "writeable", True)


def check_written(name: str, a: Array, read: dict[str, Any], same: Sequence[str] = ()) -> None:
    """Refuse an array that is read-only, whose elements overlap, or that shares memory with what is read meanwhile.

    Parameters
    ----------
    name : str
        What messages call the array `a`, which may live anywhere.
    read : dict
        By their names, the arrays that are read.
    same : sequence of str
        Those of them that `a` may be itself, each element in its place.
    """
    if not is_writeable(a):
        raise ValueError(f"{name} is read-only, must be writeable")
    if has_repeats(a):
        raise ValueError(f"{name} has strides {a.strides}, must have memory of its own for every element")
    for other, b in read.items():
        may_be = other in same
        if (may_be and a is b) or not share_memory(a, b):
            continue
        if not may_be:
            raise ValueError(f"{name} shares memory with {other}, must not: it is written while {other} is read")
        if not is_same(a, b):
            raise ValueError(f"{name} shares memory with {other}, must be the same or apart from it")


def on_host(a: Array) -> np.ndarray:
    """A NumPy array, of one or of an array on a device, which is waited for."""
    return a if isinstance(a, np.ndarray) else a.get()
