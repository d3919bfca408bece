"""The modules that compute: those of `compactla.cpu`, or of the same names in `compactla.gpu`."""

import functools
import importlib
from typing import Any, Literal, overload

from compactla import protocols
from compactla.types import Queue


@functools.cache
def _module(on_host: bool, name: str) -> Any:
    return importlib.import_module(f"compactla.{'cpu' if on_host else 'gpu'}.{name}")


@overload
def backend(queue: Queue, name: Literal["arrays"] = "arrays") -> protocols.Arrays: ...
@overload
def backend(queue: Queue, name: Literal["run", "ordinary"]) -> protocols.Runs: ...
@overload
def backend(queue: Queue, name: Literal["kron"]) -> protocols.Kron: ...
@overload
def backend(queue: Queue, name: Literal["krylov"]) -> protocols.Krylov: ...
@overload
def backend(queue: Queue, name: Literal["lines"]) -> protocols.Lines: ...
@overload
def backend(queue: Queue, name: Literal["sparse"]) -> protocols.Sparse: ...
@overload
def backend(queue: Queue, name: Literal["storage"]) -> protocols.Storage: ...
@overload
def backend(queue: Queue, name: Literal["sweeps"]) -> protocols.Sweeps: ...
def backend(queue: Queue, name: str = "arrays") -> Any:
    """Module for where the data lives, of which `compactla.protocols` says what it has.

    The module of the CPU if the queue is None; pyopencl is not imported before there is a queue.
    """
    return _module(queue is None, name)


def device_module(name: str = "arrays") -> Any:
    """Module of `compactla.gpu`, for what devices alone do, or do in a way of their own."""
    return _module(False, name)


def device_name(queue: Queue) -> str:
    """The name of a device, or of several, for people."""
    if queue is None:
        return "cpu"
    if isinstance(queue, list):
        return " and ".join(map(device_name, queue))
    return queue.device.name.strip() if type(queue).__module__.startswith("pyopencl") else str(queue.device)
