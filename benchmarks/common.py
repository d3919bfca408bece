"""Shared parts of the benchmarks: devices, sizes, and the base classes of a routine's benchmarks.

What is timed, and on what, is in `compactla.bench.cases`.
"""

import abc
import functools
import json
import os
import subprocess
import sys
import time
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from asv_runner.benchmarks.mark import SkipNotImplemented

from compactla.bench import cases, kernels, timing, turns
from compactla.bench.timing import best, best_of_rounds, calls_of, in_turns, repetitions
from compactla.oracle import THRESHOLD

from . import cuda, mkl
from .baselines import peer
from .peers import PEERS, Peers

# The same everywhere, so that results of several machines fit into one page; what a machine lacks is skipped there.
CPU = ["numba:1", "numba:all"]
OPENCL = ["opencl:gpu", "opencl:cpu"]  # the first of each kind
OURS = CPU + OPENCL
NUMPY, SCIPY, MKL, CUDA = ["numpy"], ["scipy"], ["mkl:1"], ["cupy", "torch"]

BATCH, GPU_BYTES = 16384, 2**29  # matrices; of all operands, on a GPU
SLIDES = [3, 5, 10, 15]  # sizes of the SC17 slides
SIZES = [3, 5, 8, 9, 10, 15, 16, 24, 32]
DTYPES = ["float64", "float32"]
ROUNDS, SECONDS = 4, 0.005  # of each library that is measured in turns with others
TIMINGS = 50  # of a kernel in a loop of compiled code
BURSTS = 4  # measurements with pauses


def opencl_kinds():
    """The devices of `OPENCL` that this machine has, found by another process: drivers die when asv forks this one."""
    program = "import pyopencl as cl; print(*(cl.device_type.to_string(d.type) for p in cl.get_platforms()"
    listing = subprocess.run([sys.executable, "-c", f"{program} for d in p.get_devices()))"], capture_output=True)
    return [f"opencl:{kind}" for kind in ("gpu", "cpu") if kind.upper() in listing.stdout.decode()]


def installed():
    """The devices and libraries that are here, or those of them that the variable COMPACTLA_DEVICES lists."""
    found = {*CPU, *opencl_kinds(), *NUMPY, *SCIPY}
    if any(metadata.distributions(name="mkl")):
        found.update(MKL)
    if "opencl:gpu" in found and all(map(find_spec, CUDA)):
        found.update(CUDA)
    wanted = os.environ.get("COMPACTLA_DEVICES")
    if wanted is None:
        return found
    known = [*OURS, *NUMPY, *SCIPY, *MKL, *CUDA]
    if not set(wanted.split(",")) <= {*known}:
        raise ValueError(f"COMPACTLA_DEVICES is {wanted!r}, must be names of {', '.join(known)} with commas between")
    return found.intersection(wanted.split(","))


GPUS = ["opencl:gpu", *CUDA]
HERE = installed()


def peers(routine):
    """The libraries that have a routine with a row."""
    known = PEERS.get(routine, Peers()).libraries
    found = [library for library in NUMPY + SCIPY if any(name.startswith(library) for name in known)]
    return found + (MKL if mkl.has(routine) else []) + [library for library in CUDA if cuda.has(library, routine)]


def require(device):
    """Make asv skip a device that is not here."""
    if device not in HERE:
        raise SkipNotImplemented(f"no {device} here")


def open_queue(device, dtype="float32"):
    """A queue on an OpenCL device, or None for the CPU's own."""
    if device not in OPENCL:
        return None
    import pyopencl as cl

    kind = getattr(cl.device_type, device.removeprefix("opencl:").upper())
    found = next(d for p in cl.get_platforms() for d in p.get_devices() if d.type & kind)
    if np.dtype(dtype).char in "dD" and not found.double_fp_config:
        raise SkipNotImplemented(f"{found.name} has no fp64")
    context = cl.Context([found])
    queue = cl.CommandQueue(context)
    queue._context = context  # as compactla.gpu.devices.new_queue, which not all commits have that asv measures
    return queue


def threads_of(device):
    """The argument of calls: all is their default."""
    return 1 if device.endswith(":1") else None


def batch(device, dtype, n):
    """The number of matrices: enough to keep a GPU busy, else that of the SC17 slides."""
    return GPU_BYTES // (3 * n * n * np.dtype(dtype).itemsize) if device in GPUS else BATCH


def bounded_by(device):
    """The device whose ceilings bound this device or library."""
    if device in CUDA:
        return "opencl:gpu"
    return device if device in OURS else "numba:1"


def rounded(x):
    """Four digits: what is tracked is read by people."""
    return float(f"{x:.4g}")


def beside(rounds_of, case, *where, **options):
    """A call that does the work of a case, in turns with its ceilings: see `compactla.bench.turns`."""
    return turns.in_turns(rounds_of, turns.Work.of(case), *where, **options)


def repeated(call):
    """Least time of a call that is repeated for a while."""
    return best(call, timing.SECONDS, 5)


def least(measure):
    """Least result of a measurement that is made a few times with pauses, since other work comes in bursts."""
    found = [measure()]
    for _ in range(BURSTS - 1):
        time.sleep(timing.PAUSE)
        found.append(measure())
    return min(found)


def summary(turns, fraction):
    """The result of a measurement: the least time, a fraction and its spread."""
    return {"seconds": min(turns.seconds), "fraction": fraction.median, "spread": fraction.spread}


class Benchmark:
    """A benchmark of asv."""

    version = "4"
    timeout = 300


class OfCase(abc.ABC):
    """A benchmark of a case. asv leaves out the classes that name none."""

    @property
    @abc.abstractmethod
    def make(self) -> type[cases.Case]:
        """The class of `compactla.bench.cases`."""


class Once(Benchmark):
    """Several benchmarks that share one measurement."""

    def setup_cache(self):
        """Make asv run these benchmarks in one folder, as it does if this is defined."""

    def once(self, parameters, measure):
        """The dict that `measure` returns, called once in a run, whose benchmarks work in one folder."""
        file = Path(f"{type(self).__name__} {parameters}.json")
        if not file.exists():
            file.write_text(json.dumps(measure(*parameters), default=float))
        return json.loads(file.read_text())


class InTurns(Once, abc.ABC):
    """Libraries that do the same work, one call after the other, in one thread."""

    def setup(self, library, *parameters):
        self.measured = self.once(parameters, self.measure)
        if library not in self.measured:
            raise SkipNotImplemented(f"no {library} here")

    @abc.abstractmethod
    def prepare(self, *parameters):
        """Calls to be timed, by library, for results that were compared; and how many matrices each has."""

    def measure(self, *parameters):
        """Nanoseconds for a matrix, by library: the least of what is measured in turns."""
        found, nm = self.prepare(*parameters)
        times = in_turns([functools.partial(processor_seconds, call) for call in found.values()], ROUNDS)
        return {library: 1e9 * min(seconds) / nm for library, seconds in zip(found, times, strict=True)}

    def track_time_per_matrix(self, library, *_):
        return rounded(self.measured[library])

    track_time_per_matrix.unit = "ns"


def processor_seconds(call):
    """Seconds of the processor that a call takes: other work on a machine adds less to them than to a clock's."""
    start, calls = time.process_time(), 0
    while not calls or time.process_time() - start < SECONDS:
        call()
        calls += 1
    return (time.process_time() - start) / calls


class OnDevices(Once, OfCase):
    """A case on devices and, beside them, in other libraries."""

    params = (OURS, DTYPES, SIZES)
    param_names = ("device", "dtype", "n")

    def prepare(self, device, dtype, n):
        """Make the case, as `self.case`, see that it is right, and return what is timed."""
        require(device)
        self.case = self.open(device, dtype, n)
        if device in OURS:
            run, residual = self.case.run, self.case.residual()
        elif device in CUDA:
            run, check = cuda.call(device, self.case)
            residual = check()
        else:
            found = peer(self.case, device.partition(":")[0])
            run, residual = found.call, found.residual()
        assert residual < THRESHOLD, residual
        return run

    def open(self, device, dtype, n):
        queue = open_queue(device, dtype)
        self.context = queue and queue.context  # some drivers let go of one that only its queue knows
        return self.make(n, batch(device, dtype, n), dtype, queue, threads_of(device))


class Latency(OnDevices):
    """The time of one call from Python to its end."""

    params = (OURS, DTYPES, SLIDES)
    repeat = (5, 20, 2.0)
    run = None

    def setup(self, *parameters):
        self.run = self.run or self.prepare(*parameters)  # asv repeats the setup before every call

    def time_call(self, *_):
        self.run()


class Traffic(OnDevices):
    """Bytes moved in a time, in two units."""

    def setup(self, *parameters):
        require(bounded_by(parameters[0]))
        self.measured = self.once(parameters, self.measure)

    def measure(self, device, dtype, *sizes):
        run, bound = self.prepare(device, dtype, *sizes), bounded_by(device)
        calls = calls_of(self.case) if device in OURS else repetitions(run)
        queue = self.case.queue or open_queue(bound, dtype)  # a case in CUDA has none
        self.context = queue and queue.context
        measured = beside(calls, self.case, queue, threads_of(bound))
        return summary(measured, measured.of_bound) | {"flops": self.case.flops, "nbytes": self.case.nbytes}

    def track_bandwidth(self, *_):
        return rounded(self.measured["nbytes"] / self.measured["seconds"] / 1e9)

    track_bandwidth.unit = "GB/s"

    def track_fraction_of_bound(self, *_):
        """Part of the speed that memory and arithmetic allow in the same seconds"""
        return rounded(self.measured["fraction"])

    track_fraction_of_bound.unit = "of the bound"

    def track_fraction_spread(self, *_):
        """Half the distance between its quartiles"""
        return rounded(self.measured["spread"])

    track_fraction_spread.unit = "of the bound"


class Speed(Traffic):
    """Bytes and operations in a time."""

    def track_gflops(self, *_):
        return rounded(self.measured["flops"] / self.measured["seconds"] / 1e9)

    track_gflops.unit = "GFlop/s"


class InCache(Once, OfCase):
    """A kernel on 64 matrices, in a loop of compiled code and in one thread, against the peak of multiply-adds."""

    params = (["numba:1", "mkl:1"], DTYPES, SIZES)
    param_names = ("device", "dtype", "n")

    def setup(self, device, dtype, n):
        require(device)
        require(bounded_by(device))
        self.measured = self.once((device, dtype, n), self.measure)

    def measure(self, device, dtype, n):
        case = self.make(n, cases.IN_CACHE, dtype)
        if device == "numba:1":
            residual, rounds_of = case.residual(), kernels.rounds_of(case)
        else:
            _, rounds_of, check = mkl.fastest_in_cache(case, mkl.load())
            residual = check()
        assert residual < THRESHOLD, residual
        measured = beside(rounds_of, case, threads=1, parts=BURSTS)
        return summary(measured, measured.of_peak)

    def track_time_per_matrix(self, *_):
        return rounded(1e9 * self.measured["seconds"] / cases.IN_CACHE)

    track_time_per_matrix.unit = "ns"

    def track_fraction_of_peak(self, *_):
        return rounded(self.measured["fraction"])

    track_fraction_of_peak.unit = "of the peak"

    def track_fraction_spread(self, *_):
        """Half the distance between its quartiles"""
        return rounded(self.measured["spread"])

    track_fraction_spread.unit = "of the peak"


class Overhead(Benchmark, OfCase):
    """Cost of a call from Python, and of a prepared one, beside their kernel, for one pack of 3 x 3 matrices."""

    def setup(self):
        self.case = self.make(3, 1)
        self.rounds_of = kernels.rounds_of(self.case)

    def overhead(self, called):
        calls = 200

        def call():
            for _ in range(calls):
                called()

        return rounded(1e6 * least(lambda: repeated(call) / calls - best_of_rounds(self.rounds_of, TIMINGS)))

    def track_overhead(self):
        return self.overhead(self.case.call)

    track_overhead.unit = "us"

    def track_prepared_overhead(self):
        return self.overhead(self.case.prepared())

    track_prepared_overhead.unit = "us"
