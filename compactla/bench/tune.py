"""Search for the fastest kernels and tunables on a device: ``python -m compactla tune``.

Every candidate of `choices` is compiled, in processes of their own, refused where the compiler's log shows arrays left
in memory, checked against NumPy, and timed on the device's clock. The best ones go to the user's cache, where `choices`
finds them.
"""

import contextlib
import functools
import os
import re
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl

from compactla.bench.filling import BYTES, SOLVES, filling
from compactla.bench.progress import progress_bar
from compactla.gpu import launch, lines, program
from compactla.gpu.arrays import default_vlen
from compactla.gpu.devices import devices, named, new_queue
from compactla.gpu.tuning import choices
from compactla.oracle import THRESHOLD
from compactla.search import Choice
from compactla.types import Queue

ROUNDS, WARM_UP = 10, 2


class Trial(NamedTuple):
    """The result of a candidate."""

    choice: Choice
    seconds: float  # infinite where it was refused
    fraction: float  # bytes that must move in that time, as a fraction of what a copy moves
    remark: str
    log: str = ""  # registers and such, of compilers that say so


def left_in_memory(log: str) -> str:
    """A fault of a kernel in NVIDIA's build log: a stack frame beyond what was spilled from registers."""
    for frame, spilled in re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores", log):
        if int(frame) > int(spilled):
            return f"{frame} bytes of arrays left in memory"
    return ""


def median_seconds(case) -> float:
    """Time of a call on the device's clock."""
    times = []
    for _ in range(WARM_UP + ROUNDS):
        case.restore()
        event = case.start()
        event.wait()
        times.append((event.profile.end - event.profile.start) * 1e-9)
    return float(np.median(times[WARM_UP:]))


def copy_bandwidth(queue, nbytes=2**29) -> float:
    """Bytes a second that the best of some copy kernels reads and writes."""
    source = """
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void copy(__global const VECTOR *restrict a, __global VECTOR *restrict b) { b[get_global_id(0)] = a[get_global_id(0)]; }
"""
    zeros = np.zeros(nbytes // 8)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    a, b = (cl.Buffer(queue.context, flags, hostbuf=zeros) for _ in range(2))
    best = np.inf
    for vector, width in (("double", 8), ("double2", 16), ("double4", 32)):
        for group in (128, 256, 512):
            kernel = cl.Kernel(program.build(queue.context, source, np.float64, GROUP=group, VECTOR=vector), "copy")
            for _ in range(ROUNDS):
                event = kernel(queue, (nbytes // width,), (group,), a, b)
                event.wait()
                best = min(best, (event.profile.end - event.profile.start) * 1e-9)
    return 2 * nbytes / best


class Tuner:
    """Tries candidates on a device; use as a context manager."""

    def __init__(self, device, nbytes: int | None = None, builders: int | None = None):
        self.queue = new_queue(device, cl.command_queue_properties.PROFILING_ENABLE)
        self.device = device
        gpu = bool(device.type & cl.device_type.GPU)
        self.nbytes = min(nbytes or BYTES[gpu], device.max_mem_alloc_size, device.global_mem_size // 8)
        self.copy = copy_bandwidth(self.queue, max(self.nbytes, 2**24))
        builders = min(os.cpu_count() or 1, 16) if builders is None else builders
        self.builders = None
        if gpu and builders:  # drivers get slow, and fail, with thousands of programs in a process
            context = get_context("spawn")
            self.builders = ProcessPoolExecutor(builders, context, leave_interrupts, max_tasks_per_child=100)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.builders:
            self.builders.shutdown(cancel_futures=True)

    def candidates(self, routine, size, dtype, vlen) -> list[Choice]:
        found = list(choices.candidates(self.device, choices.searches()[routine], size, dtype, vlen))
        if choices.is_cpu(self.device):  # without barriers, which it pays for
            return [{}, *(candidate for candidate in found if str(candidate["kernel"]).endswith("_item"))]
        return found

    def tune(self, routine, size, dtype, vlen=None, candidates=None, storage="") -> Iterator[Trial]:
        """Results of all candidates, as they come; the tables of `choices` are left with the best."""
        dtype = np.dtype(dtype)
        vlen = vlen or default_vlen(dtype, self.queue)
        launch.plans(self.queue).known.clear()
        found = self.candidates(routine, size, dtype, vlen) if candidates is None else candidates
        where = devices().index(self.device)
        built = [
            self.builders.submit(attempt_small, where, routine, size, dtype, vlen, candidate, storage)
            if self.builders
            else None
            for candidate in found
        ]
        case = filling(routine, self.queue, size, dtype, vlen, self.nbytes, storage)
        best = Trial({}, np.inf, 0.0, "")
        with counted_as(self.queue, routine):
            for candidate, future in zip(found, built, strict=True):
                remark, log = future.result() if future else ("", "")
                remember(self.queue, routine, size, dtype, candidate, storage)
                result = attempt(case, candidate, remark, self.copy)._replace(log=log)
                best = min(best, result, key=lambda r: r.seconds)
                yield result
        remember(self.queue, routine, size, dtype, best.choice, storage)
        program.forget(self.queue)


@contextlib.contextmanager
def counted_as(queue: Queue, routine: str) -> Iterator[None]:
    """Any number of lines counts as few, or as many, as the name of the routine says, while this lasts."""
    few, lines.FEW = lines.FEW, 2**60 if routine.endswith("_few") else 0
    launch.plans(queue).known.clear()
    try:
        yield
    finally:
        lines.FEW = few
        launch.plans(queue).known.clear()


def remember(queue, routine, size, dtype, candidate, storage="") -> None:
    """Make `choices` choose this from now on."""
    found, key = choices.results(queue.device), choices.key(routine, size, dtype, storage)
    found[routine][key] = candidate
    found.origins.pop(key, None)
    launch.plans(queue).known.clear()


def attempt(case, candidate, remark, copy) -> Trial:
    """Check and time a candidate, which was remembered."""
    if remark:
        return Trial(candidate, np.inf, 0.0, remark)
    try:
        error = case.residual()
        if not error < THRESHOLD:
            return Trial(candidate, np.inf, 0.0, f"wrong: residual {error:.3g}")
        seconds = median_seconds(case)
    except (cl.Error, RuntimeError) as failure:
        return Trial(candidate, np.inf, 0.0, str(failure).strip().split("\n")[0] or type(failure).__name__)
    return Trial(candidate, seconds, case.nbytes / seconds / copy, "")


@functools.cache
def builders_queue(where):
    """The one queue of a process that builds."""
    return new_queue(devices()[where], cl.command_queue_properties.PROFILING_ENABLE)


def leave_interrupts() -> None:
    """In a process that builds: Ctrl-C is for the one that waits for it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def attempt_small(where, routine, size, dtype, vlen, candidate, storage) -> tuple[str, str]:
    """In a process that builds: compile a candidate and run it once. Returns what is wrong with it, and the log."""
    try:
        queue = builders_queue(where)
        remember(queue, routine, size, dtype, candidate, storage)
        with counted_as(queue, routine):
            filling(routine, queue, size, dtype, vlen, 0, storage).start().wait()
            made = [plan for plan in launch.plans(queue).known.values() if plan and plan.choice == candidate]
            logs = [resources(program.build_log(plan.kernel.get_info(cl.kernel_info.PROGRAM))) for plan in made]
    except (cl.Error, RuntimeError, ArithmeticError) as failure:
        return str(failure).strip().split("\n")[0] or type(failure).__name__, ""
    if candidate and not logs:
        return "cannot run here", ""
    return left_in_memory("\n".join(logs)), "\n".join(logs)


def resources(log: str) -> str:
    """The registers and memory of a kernel in NVIDIA's build log."""
    return ", ".join(re.findall(r"\d+ (?:registers|bytes stack frame, \d+ bytes spill stores)", log))


def save(device, found: dict[str, Choice]) -> None:
    """Add results to the user's file for a device, in which old ones are left out."""
    file = choices.user_file(device)
    file.parent.mkdir(parents=True, exist_ok=True)
    content, known = choices.read(file), dict[str, Choice]()
    for name in choices.searches():
        if choices.is_current(content, name):
            known |= choices.of_name(content, name)
    choices.write(file, {"device": device.name.strip(), "driver": device.driver_version}, known | found)


def tune_all(routine: str | None, device: Any, dtypes: Sequence, storage: str = "") -> None:
    """Tune a device, by its name, for the usual sizes of a routine, or of all, and save what is found.

    With `storage` solves are tuned, with factors that are stored in that type.
    """
    names = [*choices.searches()]
    if routine not in (None, *names):
        raise ValueError(f"ROUTINE is {routine}, must be one of {', '.join(names)}")
    routines = [name for name in names if routine in (None, name) and (name in SOLVES or not storage)]
    if not routines:
        raise ValueError(f"--storage is {storage}, must be left out for {routine}, which is no solve")
    found = named(device, "--device")
    if not found:
        raise ValueError(f"--device is {device}, must be cpu, opencl or opencl:NAME")
    device = found[0]
    cases = [(r, size, np.dtype(t)) for r in routines for t in dtypes for size in choices.searches()[r].sizes]
    with Tuner(device) as tuner, progress_bar(len(cases), routine) as bar:
        speed = f"a copy moves {tuner.copy / 1e9:.0f} GB/s"
        bar.write(f"{device.name.strip()}: {speed}; results go to {choices.user_file(device)}")
        for count, (routine, size, dtype) in enumerate(cases, 1):
            results = list(tuner.tune(routine, size, dtype, storage=storage))
            where = f"{count}/{len(cases)}  {choices.key(routine, size, dtype, storage)}"
            best = min(results, key=lambda r: r.seconds, default=None)
            if best is None or best.remark:
                bar.write(f"{where}: none of {len(results)} candidates works{': ' + best.remark if best else ''}")
            else:
                save(device, {choices.key(routine, size, dtype, storage): best.choice})
                speed = f"{best.seconds * 1e3:.4g} ms, {best.fraction:.2f} of a copy"
                bar.write(f"{where}: {speed}; {describe(best.choice)}, of {len(results)}")
            bar.update()


def describe(candidate: dict[str, Any]) -> str:
    return " ".join(str(v) if k == "kernel" else f"{k}={v}" for k, v in candidate.items()) or "the kernel for any size"
