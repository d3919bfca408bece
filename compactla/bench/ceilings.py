"""The ceilings of a machine, measured: multiply-adds in registers, and plain loops over memory.

A routine takes at least max(operations / peak, bytes / bandwidth). The bandwidth is that of the cache or memory that
its data fits in: it is measured on as many bytes, by as many threads.
"""

import functools
import platform
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
from llvmlite import ir

from compactla.bench.timing import REPEATS, best_of_rounds
from compactla.cpu import matrix
from compactla.cpu.arrays import empty
from compactla.cpu.compile import compiled_once
from compactla.cpu.emit.code import routine
from compactla.cpu.emit.machine import caches, machine
from compactla.cpu.emit.matrices import native_width
from compactla.cpu.threads.sharing import THREADS
from compactla.gpu.probe import widest

CHAINS = 10  # independent multiply-adds: they cover the latency of two units, and fit into 16 registers
DEVICE_ROUNDS = 64
GROUP = 16384  # floats that half of a device's loop has a multiple of, for work-groups of a good size in all vectors
UNROLL = 8  # vectors that a turn of a loop over memory takes
PASSES = 3  # over the loops: other work on the machine comes in bursts
# Plain loops over memory, and what they move, in units of the working set.
PATTERNS = {"read": 1.0, "copy": 1.0, "streamed copy": 1.0, "update": 2.0, "axpy": 1.5}


class Ceiling(NamedTuple):
    """What the machine does at most with a working set of so many bytes, measured: flop/s and bytes/s."""

    footprint: int
    level: str
    threads: int
    peak: float
    bandwidth: dict[str, float]


class Loop(NamedTuple):
    """Calls that make so many rounds of a loop, and the operations or bytes of a round."""

    rounds_of: Callable
    work: float


def peak(dtype=np.float64, queue=None, threads=None) -> float:
    """Flop/s of multiply-adds on numbers of a dtype, by that many threads (all by default) or by a device.

    Complex numbers are counted as the real ones that their parts are.
    """
    return _peak(np.finfo(dtype).dtype.char, queue, THREADS if threads is None else threads)


@functools.cache
def _peak(char, queue, threads):
    loop = peak_loop(char, queue, threads)
    return loop.work / best_of_rounds(loop.rounds_of, REPEATS * PASSES)


def peak_loop(char, queue, threads) -> Loop:
    """Multiply-adds in registers, on real numbers of a type."""
    if queue is not None:
        return device_peak(char, queue)
    dtype = np.dtype(char)
    V = native_width(dtype)
    kernel, x = multiply_adds(V), np.full((threads, CHAINS, 1, V), 0.5, dtype)
    return Loop(lambda rounds: in_threads(kernel, x, [rounds] * threads), 2 * x.size)


def bandwidth(nbytes, queue=None, threads=None) -> dict[str, float]:
    """Bytes per second that plain loops move in a working set of `nbytes` bytes, by the names in `PATTERNS`.

    What is much larger than all caches is measured on less.
    read: s += x; copy: y = x; streamed copy: the same with stores that go past the caches; update: x = a x + b;
    axpy: y += a x. Bytes that are read and bytes that are written count alike. A device copies and updates.
    """
    threads = THREADS if threads is None else threads
    return _bandwidth(within(nbytes, queue, threads), queue, threads)


def within(nbytes, queue, threads) -> int:
    """The working set that loops are measured on for so many bytes."""
    return min(nbytes, working_sets(threads, queue)[-1])


@functools.cache
def _bandwidth(nbytes, queue, threads):
    loops = memory_loops(nbytes, queue, threads)
    times = [[best_of_rounds(loop.rounds_of) for _, loop in loops] for _ in range(1 if queue else PASSES)]
    return fastest(loops, map(min, zip(*times, strict=True)))


def fastest(loops, times) -> dict[str, float]:
    """Bytes a second by name, of the fastest of each name, from the times of rounds of named loops."""
    found: dict[str, float] = {}
    for (name, loop), seconds in zip(loops, times, strict=True):
        found[name] = max(found.get(name, 0), loop.work / seconds)
    return found


def memory_loops(nbytes, queue, threads, like="") -> list[tuple[str, Loop]]:
    """Loops over a working set of so many bytes with their names, those of which end in `like`, or all if none does.

    Of a device they are in the longest vectors that its driver compiles (0) and in those of four floats.
    """
    known = PATTERNS if queue is None else ("copy", "update")
    names = [name for name in known if name.endswith(like)] or known
    if queue is not None:
        x = device_zeros(queue, -(-nbytes // (8 * GROUP)) * 2 * GROUP, "f")
        return [(name, device_sweep(name, x, queue, lanes)) for name in names for lanes in (0, 4)]
    V = native_width(np.dtype(np.float64))
    rows = max(nbytes // (threads * UNROLL * V * 8), 2)
    slabs = empty((threads, rows, UNROLL, V), np.float64, None)
    slabs[...] = 1
    return [(name, sweep_loop(name, slabs)) for name in names]


def sweep_loop(pattern, slabs) -> Loop:
    """A loop over all slabs, each thread over its own."""
    kernel, half = memory_loop(pattern), slabs.shape[1] // 2
    whole = pattern in ("read", "update")
    parts = [(slab, slab) if whole else (slab[:half], slab[half : 2 * half]) for slab in slabs]
    covered = 1 if whole else 2 * half / slabs.shape[1]
    totals = np.zeros((len(slabs), 1, *slabs.shape[2:]))

    def sweeps(rounds):
        return in_threads(kernel, *zip(*parts, strict=True), totals, [rounds] * len(slabs))

    return Loop(sweeps, PATTERNS[pattern] * slabs.nbytes * covered)


def in_threads(kernel, *columns):
    """A call that runs the kernel on each row of arguments, in as many threads."""
    rows = list(zip(*columns, strict=True))
    if len(rows) == 1:
        return lambda: kernel(*rows[0])
    workers = ThreadPoolExecutor(len(rows))
    return lambda: list(workers.map(lambda row: kernel(*row), rows))


def repeat(code, x, rounds, step):
    """x[i] <- ``step(x[i], x[0])``, `rounds` times, in registers."""
    values, first = code.registers(x.vector, x.m), x[0, 0]
    for i in range(x.m):
        values[i, 0] = x[i, 0]
    with code.loop(rounds.index(code)):
        for i in range(x.m):
            values[i, 0] = step(values[i, 0], first)
    for i in range(x.m):
        x[i, 0] = values[i, 0]


@routine
def chains(code, x, rounds):
    """x[i] <- x[i] * x[0] + x[0], `rounds` times, in registers."""
    repeat(code, x, rounds, lambda value, first: value.fma(first, first))


@functools.cache
def multiply_adds(V):
    def kernel(x, rounds):
        chains(matrix(x, V, CHAINS, 1), rounds)

    return compiled_once(kernel, V)


@routine
def quotients(code, x, rounds):
    """x[i] <- x[0] / x[i], `rounds` times, in registers."""
    repeat(code, x, rounds, lambda value, first: first / value)


@functools.cache
def divisions(V):
    def kernel(x, rounds):
        quotients(matrix(x, V, CHAINS, 1), rounds)

    return compiled_once(kernel, V)


@routine
def sweep(code, x, y, total, pattern):
    """One loop over the rows of x, and of y, as `bandwidth` describes it."""
    half, one = (code.zero(x.vector).constant(value) for value in (0.5, 1))
    sums = code.registers(x.vector, 1, x.n)
    columns = range(x.n if pattern == "read" else 0)
    for j in columns:
        sums[0, j] = total[0, j]
    with code.loop(x.m) as i:
        for j in range(x.n):
            if pattern == "read":
                sums[0, j] = sums[0, j] + x[i, j]
            elif pattern == "update":
                x[i, j] = half.fma(x[i, j], one)
            elif pattern == "axpy":
                y[i, j] = half.fma(x[i, j], y[i, j])
            else:
                y[i, j] = x[i, j]
            if pattern == "streamed copy":
                store = code.builder.block.instructions[-1]
                store.align = machine()[0]
                store.set_metadata("nontemporal", code.builder.module.add_metadata([ir.IntType(32)(1)]))
    for j in columns:
        total[0, j] = sums[0, j]


@functools.cache
def memory_loop(pattern):
    V = native_width(np.dtype(np.float64))

    def kernel(x, y, total, rounds):
        X, Y, T = matrix(x, V, None, UNROLL), matrix(y, V, None, UNROLL), matrix(total[0:1], V, None, UNROLL)
        for _ in range(rounds):
            sweep(X, Y, T, pattern)

    return compiled_once(kernel, V, pattern)


def processor() -> str:
    """The name of the processor."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for text in cpuinfo.read_text().splitlines():
            if text.startswith("model name"):
                return text.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def level(nbytes, threads, queue=None) -> str:
    """Name of the first cache that a working set of so many bytes fits in, shared out over threads, or "memory"."""
    if queue is not None:
        return "device"
    for name, (size, cores) in caches().items():
        if nbytes <= size * -(-threads // cores):
            return name
    return "memory"


def working_sets(threads, queue=None) -> list[int]:
    """Bytes that half fill each cache, four times the largest, and sizes between them, at most four times apart.

    Of a device: what its caches do not hold.
    """
    if queue is not None:
        return [512 << 20]  # launches take longer than what a GPU's caches hold
    known = {"L1": (32 << 10, 1), "L2": (512 << 10, 1), "L3": (32 << 20, THREADS), **caches()}
    sizes = [size * -(-threads // cores) for size, cores in known.values()]
    wanted = [*(size // 2 for size in sizes), max(4 * sizes[-1], 256 << 20)]
    found = wanted[:1]
    for size in wanted[1:]:
        while 4 * found[-1] < size:
            found.append(4 * found[-1])
        found.append(size)
    return found


def roofs(dtype, queue=None, threads=None) -> list[Ceiling]:
    """The ceilings of a device, or of threads of the CPU (all by default): of each of its caches and of its memory."""
    threads = 0 if queue is not None else THREADS if threads is None else threads
    found = []
    for nbytes in working_sets(threads, queue):
        rates = peak(dtype, queue, threads), bandwidth(nbytes, queue, threads)
        found.append(Ceiling(nbytes, level(nbytes, threads, queue), threads, *rates))
    return found


DEVICE_SOURCE = """
#if DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
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
kernel void update(global VECTOR *x, ulong middle)
{
    x[get_global_id(0)] = (REAL)0.5 * x[get_global_id(0)] + 1;
}
kernel void copy(global VECTOR *x, ulong middle)
{
    x[get_global_id(0) + middle] = x[get_global_id(0)];
}
"""


def device_peak(char, queue) -> Loop:
    kernels, lanes = device_kernels(queue, char)
    items = 4096 * queue.device.max_compute_units
    x = device_zeros(queue, items * lanes, char)

    def rounds_of(rounds):
        def call():
            kernels["multiply_adds"](queue, (items,), None, x.data, np.int32(DEVICE_ROUNDS * rounds))
            queue.finish()

        return call

    return Loop(rounds_of, 2 * CHAINS * lanes * items * DEVICE_ROUNDS)


def device_sweep(pattern, x, queue, lanes) -> Loop:
    """A loop in vectors of so many floats, or in the longest that the driver compiles (0)."""
    kernels, lanes = device_kernels(queue, "f", lanes)
    middle = x.size // (2 * lanes)
    items = 2 * middle if pattern == "update" else middle

    def rounds_of(rounds):
        def call():
            for _ in range(rounds):
                kernels[pattern](queue, (items,), None, x.data, np.uint64(middle))
            queue.finish()

        return call

    return Loop(rounds_of, PATTERNS[pattern] * x.nbytes)


def device_zeros(queue, size, char):
    import pyopencl.array

    return pyopencl.array.zeros(queue, size, np.dtype(char))


@functools.cache
def device_kernels(queue, char, lanes=0):
    """The kernels of `DEVICE_SOURCE` for real numbers of a type, and how many of them they take at a time."""
    import pyopencl as cl

    real = "double" if char == "d" else "float"
    lanes = lanes or widest(queue.device, real)[0]
    vector = f"{real}{lanes if lanes > 1 else ''}"
    options = [f"-DREAL={real}", f"-DVECTOR={vector}", f"-DDOUBLE={int(char == 'd')}", f"-DCHAINS={CHAINS}"]
    program = cl.Program(queue.context, DEVICE_SOURCE).build(options)
    return {name: cl.Kernel(program, name) for name in ("multiply_adds", "update", "copy")}, lanes
