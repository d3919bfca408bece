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
from compactla.cpu.lanes import KINDS, form
from compactla.cpu.pack import gather_batch, transfer_batch
from compactla.cpu.simd import native_width
from compactla.cpu.trsm import trsm_batch
from compactla.pack import REAL, View

# Numba's disk cache watches the file of a kernel only, so every kernel also depends on a digest of all of them.
SOURCES = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
DIGEST = int.from_bytes(hashlib.sha256(SOURCES).digest()[:7], "little")
# Sizes for which code is compiled that knows the size; larger ones share code.
STATIC = 16
# Multiply-adds, or elements moved, below which waking another thread costs more than it saves.
SERIAL = 500_000
INT, INTS = types.int64, types.int64[::1]


@functools.cache
def compiled(make, arguments, *key):
    """The kernel that the factory `make` returns for this key, compiled for these arguments after lo and hi."""
    signature = INT(INT, INT, *arguments)
    return njit(signature, cache=True, nogil=True, error_model="numpy")(make(*key, DIGEST))


@functools.cache
def pool():
    """Threads that help the calling one."""
    return ThreadPoolExecutor(max(numba.config.NUMBA_NUM_THREADS - 1, 1), "compactla")


os.register_at_fork(after_in_child=pool.cache_clear)


def share(kernel, count, cost, *args, work=None):
    """Call ``kernel(lo, hi, *args)`` for parts of range(count), in several threads if `cost` is worth it.

    A row of `work` for each thread, if given, comes as a last argument.
    """
    threads = min(numba.config.NUMBA_NUM_THREADS, count) if cost > SERIAL else 1
    last = [()] * threads if work is None else [(row.ctypes.data,) for row in work]
    if threads <= 1:
        if count:
            kernel(0, count, *args, *last[0])
        return
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


def matrix_form(A: View, conj=False, static=False):
    lanes = width(A.dtype, A.vlen)
    return form(A.dtype, lanes, A.m, A.n, (A.rs, A.cs), conj) if static else form(A.dtype, lanes, conj=conj)


def row_major(A: View):
    return A.cs == A.vlen * parts(A.dtype) and A.rs == A.n * A.cs


def place(A: View):
    return A.address, A.ps, A.rs, A.cs


def pack(source, A: View, nm, period, unit):
    _transfer(source, A, nm, period, unit, True)


def unpack(A: View, nm, target):
    _transfer(target, A, nm, 1, 0, False)


def _transfer(array, A, nm, period, unit, packing):
    real = REAL[A.dtype.char]
    kernel = compiled(transfer_batch, (*[INT] * 6, KINDS[real.char], *[INT] * 8), real.char, packing)
    address = array.__array_interface__["data"][0]
    sizes = A.vlen, nm, A.m, A.n, parts(A.dtype)
    cost = nm * A.m * A.n
    share(kernel, A.npack, cost, *sizes, period, real.type(unit), address, *array.strides, *place(A))


def gemm(A: View, B: View, C: View, alpha, beta, conja, conjb):
    m, n, k = C.m, C.n, A.n
    fixed = f"{int(alpha.real)} {int(beta.real)}" if (alpha, beta) in ((1, 0), (1, 1), (-1, 1)) else ""
    static = m == n == k <= STATIC and fixed and not (conja or conjb) and row_major(A) and row_major(B) and row_major(C)
    number = KINDS[C.dtype.char]
    forms = matrix_form(A, conja, static), matrix_form(B, conjb, static), matrix_form(C, False, static)
    arguments = (*[INT] * 4, number, number, *[INT] * 12)
    kernel = compiled(gemm_batch, arguments, fixed, *forms, width(C.dtype, C.vlen))
    cost = C.npack * C.vlen * m * n * max(k, 1)
    share(kernel, C.npack, cost, C.vlen, m, n, k, alpha, beta, *place(A), *place(B), *place(C))


def trsm(A: View, B: View, alpha, conj, unit):
    static = A.m == B.n <= STATIC and alpha == 1 and not conj and row_major(A) and row_major(B)
    forms = matrix_form(A, conj, static), matrix_form(B, False, static)
    arguments = (INT, INT, INT, KINDS[B.dtype.char], *[INT] * 8)
    options = "U" if unit else "N", "1" if alpha == 1 else ""
    kernel = compiled(trsm_batch, arguments, *options, *forms, width(B.dtype, B.vlen))
    cost = B.npack * B.vlen * B.m * B.m * B.n
    share(kernel, B.npack, cost, B.vlen, B.m, B.n, alpha, *place(A), *place(B))


def getrfnp(A: View, nm):
    static = A.m == A.n <= STATIC and row_major(A)
    kernel = compiled(getrf_batch, (*[INT] * 7, INTS), matrix_form(A, False, static), width(A.dtype, A.vlen))
    info = np.zeros(A.npack * A.vlen, np.int64)
    cost = nm * A.m * A.n * min(A.m, A.n)
    share(kernel, A.npack, cost, A.vlen, A.m, A.n, *place(A), info)
    return info[:nm]


def _block(diag):
    """Form, and V, b, elements of a slot, row and column stride, of the b x b blocks of lines."""
    b, V = diag.shape[1], diag.shape[-1]
    column = V * (diag.ndim - 3)
    dtype = diag.dtype if diag.ndim == 4 else np.result_type(diag.dtype, np.complex64)
    known = (b, b, (b * column, column)) if b <= STATIC else ()
    return dtype, form(dtype, width(dtype, V), *known), (V, b, b * b * column, b * column, column)


def factor_lines(lower, diag, upper, offset, info):
    dtype, block, sizes = _block(diag)
    kernel = compiled(factor_batch, (*[INT] * 8, INTS, INTS), block, width(dtype, diag.shape[-1]))
    address = [array.ctypes.data for array in (lower, diag, upper)]
    share(kernel, len(offset) - 1, 4 * diag.size * diag.shape[1], *sizes, *address, offset, info)


def solve_lines(lower, diag, upper, offset, rows, rhs, x, work):
    dtype, block, sizes = _block(diag)
    lanes, b, nrhs = width(dtype, diag.shape[-1]), diag.shape[1], rhs.shape[2]
    step = parts(dtype) * lanes
    known = (b, nrhs, (nrhs * step, step)) if b <= STATIC and nrhs <= STATIC // 2 else ()
    column = form(dtype, lanes, *known)
    arguments = (*[INT] * 10, INTS, INTS, INT, INT, INT)
    kernel = compiled(solve_batch, arguments, REAL[dtype.char].char, block, column, lanes)
    factors = [array.ctypes.data for array in (lower, diag, upper)]
    vectors = offset, rows.reshape(-1), rhs.ctypes.data, x.ctypes.data
    cost = 4 * diag.size * nrhs
    share(kernel, len(offset) - 1, cost, *sizes, nrhs, parts(dtype), *factors, *vectors, work=work)


def work_lines(diag, offset, nrhs):
    """Room for the x of one pack of lines, for each thread."""
    longest = int(np.diff(offset).max(initial=0))
    dtype = _block(diag)[0]
    size = longest * diag.shape[1] * nrhs * parts(dtype) * width(dtype, diag.shape[-1])
    return empty((numba.config.NUMBA_NUM_THREADS, size), diag.dtype, None)


def gather_blocks(source, index, target):
    b = target.shape[1]
    _gather(source, index, target, b * b, b, 1, index.shape[1], 0, 0)


def gather_values(source, index, target):
    b, V = target.shape[1], target.shape[-1]
    _gather(source, index, target, 1, 0, 0, b * b * V, b * V, V)


def _gather(source, index, target, scale, si, sj, xs, xi, xj):
    real = target.dtype.char
    kernel = compiled(gather_batch, (INT, INT, INT, KINDS[real], *[INT] * 4, INTS, *[INT] * 4), real)
    b, V = target.shape[1], target.shape[-1]
    sizes = V, b, target.ndim - 3, target.dtype.type(1)
    places = index.reshape(-1), xs, xi, xj, target.ctypes.data
    share(kernel, target.shape[0], target.size, *sizes, source.ctypes.data, scale, si, sj, *places)
