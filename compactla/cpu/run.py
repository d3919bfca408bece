"""How the CPU runs a routine: one compiled kernel for each specialisation, its packs shared out over threads."""

import functools
import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba
import numpy as np
from numba import njit, types

from compactla.cpu.blocktridiag import factor_batch, solve_batch
from compactla.cpu.gemm import gemm_batch
from compactla.cpu.getrf import getrf_batch
from compactla.cpu.lanes import form
from compactla.cpu.pack import (
    gather_batch,
    lanes_at_once,
    ordered,
    planned,
    planned_past,
    transfer_batch,
    unpack_past_batch,
)
from compactla.cpu.simd import native_width
from compactla.cpu.trsm import trsm_batch
from compactla.pack import REAL, View, packed_dtype


def digest(text: bytes) -> int:
    return int.from_bytes(hashlib.sha256(text).digest()[:7], "little")


# Numba's disk cache watches the file of a kernel only, so every kernel also depends on a digest of all of them.
DIGEST = digest(b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))))
# The calling thread is one of them; the environment variable NUMBA_NUM_THREADS sets how many there are.
THREADS: int = vars(numba.config)["NUMBA_NUM_THREADS"]
# Sizes for which code is compiled that knows the size; larger ones share code.
STATIC = 16
# Bytes from which packs are stored past the caches, as no cache holds all of them.
PAST = 32 << 20
# Multiply-adds, or elements moved, below which waking another thread costs more than it saves.
SERIAL = 500_000
# The pairs alpha, beta that are compiled into gemm.
FIXED = {(1, 0): "1 0", (1, 1): "1 1", (-1, 1): "-1 1"}
SCALAR = {"f": types.float64, "c": types.complex128}
INT, INTS = types.int64, types.int64[::1]


def compiled(make, arguments, *key):
    """The kernel that the factory `make` returns for this key, compiled for these arguments after lo and hi.

    It returns what identifies it: the files of Numba's cache can be mixed up by processes that write them at once.
    """
    identity = digest(repr((make.__name__, key, DIGEST)).encode())
    signature = INT(INT, INT, *arguments)
    nothing = [np.zeros(1, np.int64) if kind is INTS else kind(0) for kind in arguments]
    for cache in (True, False):
        kernel = njit(signature, cache=cache, nogil=True, error_model="numpy")(make(*key, identity))
        if kernel(0, 0, *nothing) == identity:
            break
    return kernel


@functools.cache
def pool():
    """Threads that help the calling one."""
    return ThreadPoolExecutor(max(THREADS - 1, 1), "compactla")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=pool.cache_clear)


def share(kernel, count, cost, *args, work=None):
    """Call ``kernel(lo, hi, *args)`` for parts of range(count), in several threads if `cost` is worth it.

    A row of `work` for each thread, if given, comes as a last argument.
    """
    threads = min(THREADS, count) if cost > SERIAL else 1
    if threads <= 1 and work is None:
        if count:
            kernel(0, count, *args)
        return
    last = [()] * threads if work is None else [(row.ctypes.data,) for row in work]
    bounds = [count * t // threads for t in range(threads + 1)]
    helpers = [pool().submit(kernel, bounds[t], bounds[t + 1], *args, *last[t]) for t in range(1, threads)]
    kernel(bounds[0], bounds[1], *args, *last[0])
    for helper in helpers:
        helper.result()


def default_vlen(dtype, queue):
    return native_width(dtype)


def empty(shape, dtype, queue):
    """Uninitialised array, aligned to a cache line."""
    dtype = np.dtype(dtype)
    memory = np.empty(int(np.prod(shape, dtype=np.int64)) * dtype.itemsize + 64, np.uint8)
    start = -memory.ctypes.data % 64
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


def square(size, dtype, vlen):
    """Form of a contiguous matrix of known size, or of any matrix if `size` is 0."""
    if not size:
        return form(dtype, width(dtype, vlen))
    column = vlen * parts(dtype)
    return form(dtype, width(dtype, vlen), size, size, (size * column, column))


def place(A: View):
    return A[1], A[5], A[6], A[7]


def pack(source, A: View, nm, period, unit):
    _transfer(source, A, nm, "pack")
    unused = -nm % A.vlen
    if unused:
        lanes = A.buffer[-1, ..., A.vlen - unused :]
        lanes[...] = unused_lanes(A.dtype, A.m, A.n, period, unit)


@functools.lru_cache(64)
def unused_lanes(dtype, m, n, period, unit):
    """A lane of each vector of a pack: `unit` where i % period == j, else 0."""
    matrix = np.where(np.arange(m)[:, None] % period == np.arange(n), dtype.type(unit), dtype.type(0))
    return matrix.view(REAL[dtype.char]).reshape(m, n, *[2][: parts(dtype) - 1], 1)


def unpack(A: View, nm, target):
    _transfer(target, A, nm, "unpack")


def _transfer(array, A, nm, direction):
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
    address = array.__array_interface__["data"][0]
    share(kernel, A.npack, cost, A.vlen, nm, address, array.strides[0], *plan, A.address, A.ps)


TRANSFER = (*[INT] * 4, INTS, *[INT] * 7)


@functools.cache
def transfer_kernel(char, lanes, direction, past):
    return compiled(transfer_batch, TRANSFER, char, lanes, direction, past)


@functools.cache
def unpack_past_kernel(char, lanes):
    return compiled(unpack_past_batch, TRANSFER, char, lanes)


def gemm(A: View, B: View, C: View, alpha, beta, conja, conjb):
    m, n, k = C.m, C.n, A.n
    fixed = FIXED.get((alpha, beta), "")
    known = m == n == k <= STATIC and fixed and A.row_major and B.row_major and C.row_major and not (conja or conjb)
    kernel = gemm_kernel(C.dtype, C.vlen, fixed, conja, conjb, n if known else 0)
    cost = C.npack * C.vlen * m * n * max(k, 1)
    share(kernel, C.npack, cost, C.vlen, m, n, k, alpha, beta, *place(A), *place(B), *place(C))


@functools.cache
def gemm_kernel(dtype, vlen, fixed, conja, conjb, size):
    C = square(size, dtype, vlen)
    A, B = (C + " conj" if conj else C for conj in (conja, conjb))
    arguments = (*[INT] * 4, SCALAR[dtype.kind], SCALAR[dtype.kind], *[INT] * 12)
    return compiled(gemm_batch, arguments, fixed, A, B, C, width(dtype, vlen))


def trsm(A: View, B: View, alpha, conj, unit):
    known = B.m == B.n <= STATIC and A.row_major and B.row_major and not conj
    kernel = trsm_kernel(B.dtype, B.vlen, "U" if unit else "N", conj, B.n if known else 0)
    cost = B.npack * B.vlen * B.m * B.m * B.n
    share(kernel, B.npack, cost, B.vlen, B.m, B.n, alpha, *place(A), *place(B))


@functools.cache
def trsm_kernel(dtype, vlen, diag, conj, size):
    B = square(size, dtype, vlen)
    arguments = (INT, INT, INT, SCALAR[dtype.kind], *[INT] * 8)
    return compiled(trsm_batch, arguments, diag, B + " conj" if conj else B, B, width(dtype, vlen))


def getrfnp(A: View, nm):
    known = A.m == A.n <= STATIC and A.row_major
    kernel = getrf_kernel(A.dtype, A.vlen, A.n if known else 0)
    info = np.zeros(A.npack * A.vlen, np.int64)
    cost = nm * A.m * A.n * min(A.m, A.n)
    share(kernel, A.npack, cost, A.vlen, A.m, A.n, *place(A), info)
    return info[:nm]


@functools.cache
def getrf_kernel(dtype, vlen, size):
    return compiled(getrf_batch, (*[INT] * 7, INTS), square(size, dtype, vlen), width(dtype, vlen))


def line_sizes(diag):
    """V, b, and the real numbers in a slot, from row to row, and from column to column."""
    b, V = diag.shape[1], diag.shape[-1]
    column = V * (diag.ndim - 3)
    return V, b, b * b * column, b * column, column


def factor_lines(lower, diag, upper, offset, info):
    dtype, vlen = packed_dtype(diag), diag.shape[-1]
    b = diag.shape[1]
    kernel = factor_kernel(dtype, vlen, b if b <= STATIC else 0)
    blocks = [array.ctypes.data for array in (lower, diag, upper)]
    share(kernel, len(offset) - 1, 4 * diag.size * b, *line_sizes(diag), *blocks, offset, info)


@functools.cache
def factor_kernel(dtype, vlen, b):
    return compiled(factor_batch, (*[INT] * 8, INTS, INTS), square(b, dtype, vlen), width(dtype, vlen))


def solve_lines(lower, diag, upper, offset, rows, rhs, x, work):
    dtype, vlen = packed_dtype(diag), diag.shape[-1]
    b, nrhs = rhs.shape[1:]
    kernel = solve_kernel(dtype, vlen, b if b <= STATIC else 0, nrhs if nrhs <= STATIC // 2 else 0)
    blocks = [array.ctypes.data for array in (lower, diag, upper)]
    vectors = offset, rows.reshape(-1), rhs.ctypes.data, x.ctypes.data
    cost = 4 * diag.size * nrhs
    share(kernel, len(offset) - 1, cost, *line_sizes(diag), nrhs, parts(dtype), *blocks, *vectors, work=work)


@functools.cache
def solve_kernel(dtype, vlen, b, nrhs):
    lanes = width(dtype, vlen)
    step = parts(dtype) * lanes
    column = form(dtype, lanes, b, nrhs, (nrhs * step, step)) if b and nrhs else form(dtype, lanes)
    arguments = (*[INT] * 10, INTS, INTS, INT, INT, INT)
    return compiled(solve_batch, arguments, REAL[dtype.char].char, square(b, dtype, vlen), column, lanes)


def work_lines(diag, offset, nrhs):
    """Room for the x of one pack of lines, for each thread."""
    longest = int(np.diff(offset).max(initial=0))
    dtype, vlen = packed_dtype(diag), diag.shape[-1]
    size = longest * diag.shape[1] * nrhs * parts(dtype) * width(dtype, vlen)
    return empty((THREADS, size), diag.dtype, None)


def gather_blocks(source, index, target):
    b, V = target.shape[1], target.shape[-1]
    size = source.itemsize
    order, _ = ordered(1, b * b, 0, size, 0, V * size, size)
    missing = missing_blocks(source.dtype, b)
    places = index.reshape(-1), order, b * b, target.ctypes.data
    kernel = gather_kernel(source.dtype.char, lanes_at_once(target.dtype, V))
    share(kernel, len(index), target.size, V, source.ctypes.data, b * b * size, missing.ctypes.data, *places)


def gather_values(source, index, target):
    """As blocks of a single number."""
    V = target.shape[-1]
    gather_blocks(source, index.reshape(-1, V), target.reshape(-1, 1, 1, *target.shape[3:]))


@functools.cache
def missing_blocks(dtype, b):
    """What stands for the places -1 and -2."""
    return np.stack([np.zeros((b, b), dtype), np.eye(b, dtype=dtype)])


@functools.cache
def gather_kernel(char, lanes):
    return compiled(gather_batch, (*[INT] * 4, INTS, INTS, INT, INT), char, lanes)
