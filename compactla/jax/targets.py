"""How XLA knows our handlers: their addresses, and what they find of this process."""

import ctypes
import functools
import os
import threading

import jax
import llvmlite.binding
import numpy as np

from compactla.cpu.compile import INT
from compactla.cpu.threads import sharing
from compactla.cpu.threads.pool import c_address, server
from compactla.jax import frame, handler, plans
from compactla.overlap import address

NAME = "compactla"  # of the handlers, for XLA
STATE = np.zeros(handler.STATE, np.int64)
_lock = threading.Lock()


def make(given):
    """Make the plan of a call. Returns the address of an error, or None."""
    try:
        plans.make(frame.text(given.contents, handler.TEXT))
    except BaseException as problem:  # which would be lost here
        return frame.error(given.contents, f"compactla.jax: {problem!r}")
    return None


def refuse(given):
    """Make the error that a call has no memory."""
    return frame.error(given.contents, "compactla.jax: there is no memory for the work space of a call")


MADE, REFUSED = frame.HANDLER(make), frame.HANDLER(refuse)


def refresh():
    """Let the handler see the threads and the table of this process."""
    STATE[handler.MAKE], STATE[handler.REFUSE] = (ctypes.cast(f, ctypes.c_void_p).value for f in (MADE, REFUSED))
    STATE[handler.HELPERS], STATE[handler.BOXES] = len(sharing.boxes), address(sharing.boxes)
    STATE[handler.TABLE] = address(plans.table.words)


@functools.cache
def cpu_handler() -> int:
    """Address of the handler for CPUs, which is compiled now."""
    llvmlite.binding.add_symbol(handler.SYMBOL, address(STATE))
    STATE[handler.SERVER] = server()
    refresh()
    plans.table.published = refresh
    handler.handle.compile(INT(INT))
    return c_address(handler.handle)


def cuda_handler() -> int | None:
    """Address of the handler for CUDA GPUs, None where NVIDIA's bindings are not installed."""
    try:
        from compactla.jax import gpu
    except ImportError:
        return None
    return gpu.ADDRESS


HANDLERS = {"cpu": cpu_handler, "cuda": cuda_handler}


def register() -> None:
    """Tell XLA how to call kernels, for programs that were exported by another process.

    Functions do so when they are traced; what `jax.export` deserializes is not traced again.

    Examples
    --------
    >>> import compactla.jax
    >>> compactla.jax.register()
    """
    for platform in HANDLERS:
        is_registered(platform)


def is_registered(platform: str) -> bool:
    """Whether there is a handler for a platform, which XLA knows then."""
    with _lock:
        return _registered(platform)


@functools.cache
def _registered(platform):
    address = HANDLERS[platform]()
    if address is None:
        return False
    jax.ffi.register_ffi_target(NAME, jax.ffi.pycapsule(address), platform={"cpu": "cpu", "cuda": "CUDA"}[platform])
    jax.ffi.register_ffi_target_as_batch_partitionable(NAME)
    return True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=refresh)
