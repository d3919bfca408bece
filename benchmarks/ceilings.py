"""What a device can do at most, measured: multiply-adds in registers, and updates of memory in place."""

import functools
import time
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np

from compactla.cpu import matrix
from compactla.cpu.emit import routine

CHAINS = 10  # independent multiply-adds: they cover the latency of two units, and fit into 16 registers
CPU_ROUNDS, DEVICE_ROUNDS = 2_000_000, 2000
BYTES = 2**28  # that a measurement of the bandwidth moves at least


@routine
def multiply_add(code, x, rounds):
    """x[i] <- x[i] * x[0] + x[0], `rounds` times, in registers."""
    chains, factor = code.registers(x.vector, x.m), x[0, 0]
    for i in range(x.m):
        chains[i, 0] = x[i, 0]
    with code.loop(rounds):
        for i in range(x.m):
            chains[i, 0] = chains[i, 0].fma(factor, factor)
    for i in range(x.m):
        x[i, 0] = chains[i, 0]


@functools.cache
def multiply_adds(V):
    @numba.njit(nogil=True)
    def kernel(x):
        multiply_add(matrix(x, V, CHAINS, 1), CPU_ROUNDS)

    return kernel


@numba.njit(nogil=True)
def update(x, rounds):
    for _ in range(rounds):
        for i in range(x.size):
            x[i] = 0.5 * x[i] + 1.0


DEVICE_SOURCE = """
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
kernel void multiply_adds(global VECTOR *x, int rounds)
{
    VECTOR a[CHAINS], factor = x[get_global_id(0)];
    for (int i = 0; i < CHAINS; i++) a[i] = factor + i;
    for (int r = 0; r < rounds; r++) {
        #pragma unroll
        for (int i = 0; i < CHAINS; i++) a[i] = fma(a[i], factor, factor);
    }
    for (int i = 1; i < CHAINS; i++) a[0] += a[i];
    x[get_global_id(0)] = a[0];
}
kernel void update(global VECTOR *x)
{
    x[get_global_id(0)] = 0.5 * x[get_global_id(0)] + 1.0;
}
"""


def best(call, repeats=7):
    """Least time of `call`, in seconds."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def peak(queue=None, threads=None):
    """Double-precision flop/s of multiply-adds: of that many CPU threads (all by default), or of a device."""
    if queue is None:
        threads = threads or numba.get_num_threads()
        return max(register_peak(V, threads) for V in (2, 4, 8))  # the fastest has the width of a register
    kernels, lanes = device_kernels(queue)
    items = 4096 * queue.device.max_compute_units
    x = device_zeros(queue, items * lanes)

    def call():
        kernels["multiply_adds"](queue, (items,), None, x.data, np.int32(DEVICE_ROUNDS))
        queue.finish()

    return 2 * CHAINS * lanes * items * DEVICE_ROUNDS / best(call)


def register_peak(V, threads):
    kernel, x = multiply_adds(V), np.full((threads, CHAINS, 1, V), 0.5)
    with ThreadPoolExecutor(threads) as pool:
        return 2 * x.size * CPU_ROUNDS / best(lambda: list(pool.map(kernel, x)))


def bandwidth(nbytes, queue=None):
    """Bytes per second read and written when `nbytes` bytes are updated in place again and again."""
    rounds = -(-BYTES // nbytes)
    if queue is None:
        threads = numba.get_num_threads()
        x = np.zeros(-(-nbytes // 8))
        slabs = np.array_split(x, threads)
        with ThreadPoolExecutor(threads) as pool:
            return 2 * x.nbytes * rounds / best(lambda: list(pool.map(update, slabs, [rounds] * threads)))
    kernels, lanes = device_kernels(queue)
    items = -(-nbytes // (8 * lanes))
    x = device_zeros(queue, items * lanes)

    def call():
        for _ in range(rounds):
            kernels["update"](queue, (items,), None, x.data)
        queue.finish()

    return 2 * x.nbytes * rounds / best(call)


def device_zeros(queue, size):
    import pyopencl.array

    return pyopencl.array.zeros(queue, size, np.float64)


def device_kernels(queue):
    import pyopencl as cl

    lanes = max(queue.device.native_vector_width_double, 1)
    options = [f"-DVECTOR=double{lanes if lanes > 1 else ''}", f"-DCHAINS={CHAINS}"]
    program = cl.Program(queue.context, DEVICE_SOURCE).build(options)
    return {kernel.function_name: kernel for kernel in program.all_kernels()}, lanes
