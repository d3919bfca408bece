"""Arrays on the CPU: memory for packs, and what moves matrices and blocks into them and back."""

import functools
import math

import numpy as np

from compactla.cpu.choice import parts
from compactla.cpu.kernel import INT, INTS, compiled
from compactla.cpu.kernels.pack import (
    gather_batch,
    lanes_at_once,
    ordered,
    planned,
    planned_past,
    transfer_batch,
    unpack_past_batch,
)
from compactla.cpu.parallel import share
from compactla.cpu.simd import native_width
from compactla.overlap import address
from compactla.view import REAL, View

# Bytes from which on packs are stored past the caches.
PAST = 32 << 20


def default_vlen(dtype, queue):
    return native_width(dtype)


def empty(shape, dtype, queue):
    """Uninitialised array, aligned to a cache line."""
    dtype = np.dtype(dtype)
    memory = np.empty(math.prod(shape) * dtype.itemsize + 64, np.uint8)
    start = -address(memory) % 64
    return memory[start : memory.size - 64 + start].view(dtype).reshape(shape)


def upload(a, queue):
    return a


def download(a):
    return a


def reshaped(a, shape):
    return a.reshape(shape)


def broadcast(matrix, nm, queue):
    return np.broadcast_to(matrix, (nm, *matrix.shape))


def pack(source, A: View, nm, period, unit, threads=None):
    _transfer(source, A, nm, "pack", threads)
    unused = -nm % A.vlen
    if unused:
        lanes = A.buffer[-1, ..., A.vlen - unused :]
        lanes[...] = unused_lanes(A.dtype, A.m, A.n, period, unit)


@functools.lru_cache(64)
def unused_lanes(dtype, m, n, period, unit):
    """A lane of each vector of a pack: `unit` where i % period == j, else 0."""
    matrix = np.where(np.arange(m)[:, None] % period == np.arange(n), dtype.type(unit), dtype.type(0))
    return matrix.view(REAL[dtype.char]).reshape(m, n, *[2][: parts(dtype) - 1], 1)


def unpack(A: View, nm, target, threads=None):
    _transfer(target, A, nm, "unpack", threads)


def _transfer(array, A, nm, direction, threads):
    cost = nm * A.m * A.n
    if not cost:
        return
    real, size = REAL[A.dtype.char], A.dtype.itemsize
    lanes = lanes_at_once(real, A.vlen)
    places = A.address, A.ps * real.itemsize, A.rs * real.itemsize, A.cs * real.itemsize
    shape = A.vlen, A.m, A.n, *array.strides, *places[2:], size
    past = cost * size > PAST
    plan = planned_past(*shape) if past and direction == "unpack" else None
    if plan:
        kernel = unpack_past_kernel(A.dtype.char, lanes)
    else:
        vector = lanes * real.itemsize
        past = past and direction == "pack" and vector >= 16 and not any(x % vector for x in places)
        plan = planned(*shape, lanes)
        kernel = transfer_kernel(A.dtype.char, lanes, direction, past)
    share(kernel, cost, (0, A.npack, A.vlen, nm, address(array), array.strides[0], *plan, A.address, A.ps), threads)


TRANSFER = (*[INT] * 4, INTS, *[INT] * 7)


@functools.cache
def transfer_kernel(char, lanes, direction, past):
    return compiled(transfer_batch, TRANSFER, char, lanes, direction, past)


@functools.cache
def unpack_past_kernel(char, lanes):
    return compiled(unpack_past_batch, TRANSFER, char, lanes)


def gather_blocks(source, index, target, threads=None):
    b, V = target.shape[1], target.shape[-1]
    size = source.itemsize
    order, _ = ordered(1, b * b, 0, size, 0, V * size, size)
    missing = missing_blocks(source.dtype, b)
    places = index.reshape(-1), order, b * b, address(target)
    kernel = gather_kernel(source.dtype.char, lanes_at_once(target.dtype, V))
    args = 0, len(index), V, address(source), b * b * size, address(missing), *places
    share(kernel, target.size, args, threads)


def gather_values(source, index, target, threads=None):
    """As blocks of a single number."""
    V = target.shape[-1]
    gather_blocks(source, index.reshape(-1, V), target.reshape(-1, 1, 1, *target.shape[3:]), threads)


@functools.cache
def missing_blocks(dtype, b):
    """The numbers for the places -1 and -2."""
    return np.stack([np.zeros((b, b), dtype), np.eye(b, dtype=dtype)])


@functools.cache
def gather_kernel(char, lanes):
    return compiled(gather_batch, (*[INT] * 4, INTS, INTS, INT, INT), char, lanes)
