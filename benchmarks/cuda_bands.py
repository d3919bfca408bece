"""Systems with band matrices on an NVIDIA GPU, against the device's copy and cuSPARSE's batched solvers.

``python -m benchmarks.cuda_bands [seconds]`` prints, for systems in rows and for interleaved ones, microseconds of the
device's clock, and which part that is of the speed of a copy of what has to be read and written once. cuSPARSE takes
interleaved systems only, and overwrites its operands, which are renewed before every call, out of the time.
"""

import ctypes
import itertools
import re
import sys
import time
from pathlib import Path

import numpy as np
import pyopencl.array as cla

import compactla
from compactla.gpu import bands

from .cuda_clock import REPEATS, cuda_seconds, open_gpu, opencl_seconds

try:
    import cupy
except ImportError:  # asv imports all files here
    cupy = None

LETTERS = {"f": "S", "d": "D"}


class Cusparse:
    """cuSPARSE's interleaved batches: gtsv of three diagonals, by "thomas", "lu" or "qr", gpsv of five, by "qr"."""

    def __init__(self):
        self.handle = ctypes.c_void_p(cupy.cuda.device.get_cusparse_handle())  # which loads the library
        found = re.search(r"/\S*libcusparse\.so\S*", Path("/proc/self/maps").read_text())
        self.library = ctypes.CDLL(found.group())

    def solver(self, name, algorithm, arrays, n, count):
        """A call that solves for the last of the arrays, in place, and overwrites the others."""
        routine = f"cusparse{LETTERS[arrays[0].dtype.char]}{name}InterleavedBatch"
        size = ctypes.c_size_t()
        first = self.handle, ctypes.c_int(algorithm), ctypes.c_int(n)
        operands = *first, *(ctypes.c_void_p(a.data.ptr) for a in arrays), ctypes.c_int(count)
        self.call(f"{routine}_bufferSizeExt", *operands, ctypes.byref(size))
        room = cupy.empty(max(size.value, 1), cupy.uint8)
        return lambda: self.call(routine, *operands, ctypes.c_void_p(room.data.ptr))

    def call(self, name, *args):
        status = getattr(self.library, name)(*args)
        if status:
            raise RuntimeError(f"{name} returned {status}")


def of_cusparse(name, algorithm, diagonals, rhs):
    """Seconds of a call, and the solutions (n, count), which are checked by the caller."""
    given = [cupy.asarray(a) for a in (*diagonals, rhs)]
    arrays = [cupy.empty_like(a) for a in given]
    call = Cusparse().solver(name, algorithm, arrays, *rhs.shape)
    times = []
    for _ in range(REPEATS):
        for a, b in zip(arrays, given, strict=True):
            a[...] = b
        times.append(cuda_seconds(call))
    return min(times), cupy.asnumpy(arrays[-1])


class Case:
    """Diagonally dominant systems, in rows or interleaved; `numbers` are read and written for each unknown."""

    def __init__(self, queue, dtype, nsys, n, reach, interleaved):
        rng = np.random.default_rng(1)
        self.reach, self.shape, self.interleaved, self.queue = reach, (nsys, n), interleaved, queue
        few = rng.standard_normal((2 * reach + 2, 1000, n)).astype(dtype)
        few[reach] += 8
        self.few, self.numbers = few, 2 * reach + 3
        self.diagonals = [np.resize(a, (nsys, n)) for a in few]  # the last are right-hand sides

    def device(self, a):
        """A NumPy array of systems on the device."""
        if not self.interleaved:
            return cla.to_device(self.queue, np.ascontiguousarray(a))
        return cla.to_device(self.queue, np.ascontiguousarray(np.moveaxis(a, 0, -1)))

    def prepared(self, pivoting):
        """Matrices on the device, right-hand sides, and room for the solutions."""
        *diagonals, rhs = self.diagonals
        axis = 0 if self.interleaved else 1
        if self.reach == 1:
            lower, diag, upper = diagonals
            M = compactla.Tridiag(
                *(self.device(a) for a in (lower[:, 1:], diag, upper[:, :-1])), pivoting=pivoting, axis=axis
            )
        else:
            ab = np.stack(diagonals[::-1], 1)
            for t in range(-self.reach, self.reach + 1):  # columns of a diagonal of rows
                ab[:, self.reach - t] = np.roll(diagonals[t + self.reach], t, axis=1)
            given = self.device(ab)
            if self.interleaved:
                given = given.transpose((2, 0, 1))
            M = compactla.Banded((self.reach, self.reach), given, pivoting=pivoting)
        b = self.device(rhs)
        x = cla.empty(self.queue, b.shape, b.dtype)
        return M, b, x, {"axis": axis}

    def error(self, x):
        """The largest residual, in units of rounding, of the first systems."""
        if self.interleaved:
            x = x.T
        x, (*diagonals, rhs) = np.asarray(x[:1000], "d"), np.asarray(self.few, "d")
        n, y = x.shape[1], -rhs[: len(x)]
        for t, a in enumerate(diagonals, -self.reach):
            there = slice(max(0, -t), min(n, n - t))
            y[:, there] += a[: len(x), there] * x[:, max(0, t) : min(n, n + t)]
        return np.abs(y).max() / np.finfo(self.few.dtype).eps / 10


def ours(case, speed, pivoting):
    """Lines of the table for one-shot solves and solves with factors."""
    M, b, x, where = case.prepared(pivoting)
    for kept in False, True:
        if kept:
            M.factor()
        seconds = opencl_seconds(lambda: M.solve(b, out=x, **where).events[-1])
        bound = case.numbers * b.nbytes / speed
        label = f"{'kept' if kept else 'once'}{' pivoting' if pivoting else ''}"
        yield label, seconds, bound / seconds, case.error(x.get())


def peers(case, speed):
    """Lines of the table for cuSPARSE, whose first and last couplings must be zero."""
    *diagonals, rhs = (np.ascontiguousarray(a.T) for a in case.diagonals)
    for t, a in enumerate(diagonals, -case.reach):
        a[: max(0, -t)] = 0
        a[len(a) - max(0, t) :] = 0
    algorithms = {"thomas": 0, "lu": 1, "qr": 2} if case.reach == 1 else {"qr": 0}
    for label, algorithm in algorithms.items():
        seconds, x = of_cusparse("gtsv" if case.reach == 1 else "gpsv", algorithm, diagonals, rhs)
        yield f"cuSPARSE {label}", seconds, case.numbers * rhs.nbytes / speed / seconds, case.error(x)


def sweep(case, speed):
    """Time solves with factors and without, for shapes of teams: bytes of a member, and work-items of a group."""
    M, b, x, where = case.prepared(False)
    names = "DEEP", "GROUP", "NEIGHBOURS"
    kept = [getattr(bands, name) for name in names]
    for factored in False, True:
        if factored:
            M.factor()
        found = []
        for shape in itertools.product((32, 64, 128), (32, 64, 128, 256), (64, 128) if case.interleaved else (64,)):
            for name, value in zip(names, shape, strict=True):
                setattr(bands, name, value)
            seconds = opencl_seconds(lambda: M.solve(b, out=x, **where).events[-1])
            found.append(f"{'/'.join(map(str, shape))}:{100 * case.numbers * b.nbytes / speed / seconds:.0f}%")
        yield " ".join(found)
    for name, value in zip(names, kept, strict=True):
        setattr(bands, name, value)


def main(limit=100.0):
    """Print the table; nothing more is begun after so many seconds."""
    end = time.monotonic() + limit
    queue, speed = open_gpu()
    sizes = (("d", 100_000, 128, 1), ("d", 10_000, 128, 1), ("f", 100_000, 128, 1), ("d", 50_000, 256, 2))
    sizes += (("d", 2_000, 4096, 1),)
    for dtype, nsys, n, reach in sizes:
        for interleaved in False, True:
            if time.monotonic() > end:
                print("out of time")
                return
            case = Case(queue, dtype, nsys, n, reach, interleaved)
            print(f"{dtype} {nsys} x {n}, {2 * reach + 1} diagonals, {'interleaved' if interleaved else 'rows'}")
            lines = [ours(case, speed, False), ours(case, speed, True), *([peers(case, speed)] if interleaved else [])]
            for line in lines:
                try:
                    for label, seconds, part, error in line:
                        print(f"  {label:18s}{seconds * 1e6:9.1f} us {100 * part:4.0f}% error {error:.1f}", flush=True)
                except Exception as trouble:  # one that fails shouldn't cost the others
                    print(f"  {type(trouble).__name__}: {str(trouble)[:200]}", flush=True)
            if nsys == 100_000:
                for line in sweep(case, speed):
                    print("  bytes/work-items/bytes of neighbours:", line, flush=True)


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
