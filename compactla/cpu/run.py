"""How the CPU runs a routine: one compiled kernel for each specialisation, its packs shared out over threads."""

import functools
import math

import numpy as np
from numba import types

from compactla.cpu.kernel import INT, INTS, compiled
from compactla.cpu.kernels.gemm import gemm_batch
from compactla.cpu.kernels.getrfnp import getrf_batch
from compactla.cpu.kernels.pack import (
    gather_batch,
    lanes_at_once,
    ordered,
    planned,
    planned_past,
    transfer_batch,
    unpack_past_batch,
)
from compactla.cpu.kernels.trsm import trsm_batch
from compactla.cpu.lanes import form
from compactla.cpu.parallel import share
from compactla.cpu.simd import native_width
from compactla.overlap import address
from compactla.view import REAL, Layout, View

# Sizes for which code is compiled that knows the size; larger ones share code.
STATIC = 32
# Bytes that are moved in the time of a vector operation, where they come from a cache that is not next to the core.
MOVED = 32
# Bytes of operands from which on they are fetched ahead, and results are written past the caches.
FAR = 8_000_000
# Bytes from which on packs are stored past the caches.
PAST = 32 << 20
# The pairs alpha, beta that are compiled into gemm.
FIXED = {(1, 0): "1 0", (1, 1): "1 1", (-1, 1): "-1 1"}
SCALAR = {"f": types.float64, "c": types.complex128}


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


def broadcast(matrix, nm, queue):
    return np.broadcast_to(matrix, (nm, *matrix.shape))


def width(dtype, vlen):
    """Lanes to compute with at a time: a divisor of the vector length that fits a register."""
    native = native_width(dtype)
    return vlen if vlen <= native else next(w for w in range(native, 0, -1) if vlen % w == 0)


def parts(dtype):
    return 2 if dtype.kind == "c" else 1


def known_form(A: Layout, known, conj=False, stored=""):
    """Form of a matrix of which all is known, or nothing but the type."""
    m, n, strides = (A.m, A.n, A.strides) if known else (None, None, (None, None))
    return form(A.dtype, width(A.dtype, A.vlen), m, n, strides, conj, stored)


def nbytes(A: Layout):
    """Bytes of the matrices of a pack."""
    return A.m * A.n * A.vlen * A.dtype.itemsize


def is_aligned(A: View):
    """Whether all vectors of a batch of contiguous matrices are aligned."""
    item = REAL[A.dtype.char].itemsize
    register = width(A.dtype, A.vlen) * item
    return register & (register - 1) == 0 and A.address % register == 0 and A.ps * item % register == 0


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


def operations(A: Layout, count, moved=0):
    """Vector operations as long as `count` multiply-adds of each matrix of a pack, or as moving so many bytes."""
    return max(A.vlen / width(A.dtype, A.vlen) * parts(A.dtype) ** 2 * count, moved / MOVED)


def gemm(A: View, B: View, C: View, alpha, beta, conja, conjb, threads=None):
    key = A.layout, B.layout, C.layout, FIXED.get((alpha, beta), ""), conja, conjb
    kernel, cost, size = gemm_choice(*key)
    if C.npack * size > FAR:
        kernel, *_ = gemm_choice(*key, "stream" if beta == 0 and is_aligned(C) else "far")
    args = 0, C.npack, C.vlen, C.m, C.n, A.n, alpha, beta, *A.place, *B.place, *C.place
    share(kernel, C.npack * cost, args, threads)


@functools.cache
def gemm_choice(A: Layout, B: Layout, C: Layout, fixed, conja, conjb, far=""):
    """The kernel, what it costs for a pack, and the bytes of a pack if fetching them ahead is a choice."""
    m, n, k = C.m, C.n, A.n
    known = bool(m == n == k <= STATIC and fixed and A.strides and B.strides and C.strides)
    kernel = gemm_kernel(known_form(A, known, conja), known_form(B, known, conjb), known_form(C, known), fixed, far)
    size = nbytes(A) + nbytes(B) + nbytes(C)
    return kernel, operations(C, m * n * max(k, 1), size + nbytes(C)), known * size


@functools.cache
def gemm_kernel(A, B, C, fixed, far):
    scalar = SCALAR[np.dtype(C[0]).kind]
    return compiled(gemm_batch, (*[INT] * 4, scalar, scalar, *[INT] * 12), A, B, C, fixed, far)


def trsm(A: View, B: View, alpha, conj, unit, threads=None):
    key = A.layout, B.layout, conj, unit
    kernel, cost, size = trsm_choice(*key)
    if B.npack * size > FAR:
        kernel, *_ = trsm_choice(*key, "far")
    share(kernel, B.npack * cost, (0, B.npack, B.vlen, B.m, B.n, alpha, *A.place, *B.place), threads)


@functools.cache
def trsm_choice(A: Layout, B: Layout, conj, unit, far=""):
    """The kernel, what it costs for a pack, and the bytes of a pack if fetching them ahead is a choice."""
    known = bool(B.m == B.n <= STATIC and A.strides and B.strides)
    kernel = trsm_kernel(known_form(A, known, conj), known_form(B, known), "U" if unit else "N", far)
    return kernel, operations(B, B.m * B.m * B.n / 2, nbytes(A) / 2 + 2 * nbytes(B)), known * (nbytes(A) + nbytes(B))


@functools.cache
def trsm_kernel(A, B, diag, far):
    return compiled(trsm_batch, (INT, INT, INT, SCALAR[np.dtype(B[0]).kind], *[INT] * 8), A, B, diag, far)


def getrfnp(A: View, nm, threads=None):
    kernel, cost, size = getrf_choice(A.layout)
    if A.npack * size > FAR:
        kernel, *_ = getrf_choice(A.layout, "far")
    info = np.zeros(A.npack * A.vlen, np.int64)
    share(kernel, A.npack * cost, (0, A.npack, A.vlen, A.m, A.n, *A.place, info), threads)
    return info[:nm]


@functools.cache
def getrf_choice(A: Layout, far=""):
    """The kernel, what it costs for a pack, and the bytes of a pack if fetching them ahead is a choice."""
    known = bool(A.m == A.n <= STATIC and A.strides)
    kernel = getrf_kernel(known_form(A, known), far)
    return kernel, operations(A, A.m * A.n * min(A.m, A.n) / 2, 2 * nbytes(A)), known * nbytes(A)


@functools.cache
def getrf_kernel(A, far):
    return compiled(getrf_batch, (*[INT] * 7, INTS), A, far)


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
    """What stands for the places -1 and -2."""
    return np.stack([np.zeros((b, b), dtype), np.eye(b, dtype=dtype)])


@functools.cache
def gather_kernel(char, lanes):
    return compiled(gather_batch, (*[INT] * 4, INTS, INTS, INT, INT), char, lanes)
