"""Which kernels and tunables are fastest on a device: ``python -m compactla tune``.

Every candidate of `choice` is compiled, in processes of their own, refused where the compiler's log shows arrays left
in memory, checked against NumPy, and timed on the device's clock. The best ones go to the user's cache, where `choice`
finds them.
"""

import contextlib
import functools
import json
import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np
import pyopencl as cl
import pyopencl.array

from compactla import blas, lapack
from compactla.blocktridiag import BlockTridiag
from compactla.gpu import choice, program, run
from compactla.gpu.devices import devices
from compactla.pack import Pack

SQUARES = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 16, 20, 24, 32)
BLOCKS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 16)
SIZES: dict[str, list[tuple[int, ...]]] = {
    "gemm": [(n, n, n) for n in SQUARES],
    "trsm": [(n, n) for n in SQUARES],
    "getrfnp": [(n, n) for n in SQUARES],
    "factor": [(b,) for b in BLOCKS],
    "factor_few": [(b,) for b in BLOCKS],
    "solve": [(b, nrhs) for b in BLOCKS for nrhs in (1, 8)],
    "solve_few": [(b, 1) for b in BLOCKS],
}
BYTES = {True: 2**30, False: 2**24}  # of the data that is worked on, on GPUs and on other devices
DISTINCT = 15  # packs of random numbers; the rest of a batch repeats them
BLOCKS_A_LINE, FEW_LINES = 128, 512
ROUNDS, WARM_UP = 10, 2
THRESHOLD = 30  # that LAPACK's tests hold scaled residuals against


class Result(NamedTuple):
    """What became of a candidate."""

    choice: dict
    seconds: float  # infinite where it was refused
    fraction: float  # bytes that must move in that time, as a fraction of what a copy moves
    remark: str
    log: str = ""  # registers and such, of compilers that say so


class Problem:
    """A call of a routine, on a batch that fills the device: `start()` returns its event, `error()` is scaled."""

    def __init__(self, queue, size, dtype, vlen, nbytes):
        self.queue, self.size, self.dtype, self.vlen = queue, size, dtype, vlen
        self.rng = np.random.default_rng(0)
        self.npack = max(DISTINCT, self.packs(nbytes))
        self.saved: list[tuple] = []
        self.prepare()

    def packs(self, nbytes) -> int:
        return nbytes // (self.values() * self.dtype.itemsize * self.vlen)

    def random(self, *shape):
        a = self.rng.uniform(-1, 1, (DISTINCT, self.vlen, *shape))
        return (a + 1j * self.rng.uniform(-1, 1, a.shape) if self.dtype.kind == "c" else a).astype(self.dtype)

    def device_array(self, a, in_place=False):
        """Matrices (DISTINCT, V, ...) in the compact layout, repeated to `npack` packs."""
        lanes_last = np.moveaxis(a, 1, -1)
        if self.dtype.kind == "c":
            lanes_last = np.stack([lanes_last.real, lanes_last.imag], -2)
        one = np.ascontiguousarray(lanes_last)
        target = pyopencl.array.empty(self.queue, (self.npack, *one.shape[1:]), one.dtype)
        cl.enqueue_copy(self.queue, target.base_data, one)
        done, total = one.nbytes, target.nbytes
        while done < total:
            some = min(done, total - done)
            cl.enqueue_copy(self.queue, target.base_data, target.base_data, byte_count=some, dst_offset=done)
            done += some
        if in_place:
            self.saved.append((target, target.copy()))
        return target

    def pack(self, a, in_place=False):
        return Pack(self.device_array(a, in_place))

    def restore(self):
        for target, source in self.saved:
            cl.enqueue_copy(self.queue, target.base_data, source.base_data)
            target.events.clear()

    def host(self, array, p):
        """The matrices of pack p, (V, ...)"""
        a = run.download(array[p])
        a = a[..., 0, :] + 1j * a[..., 1, :] if self.dtype.kind == "c" else a
        return np.moveaxis(a, -1, 0).astype(np.result_type(self.dtype, np.float64))

    def error(self):
        """The largest scaled residual of the first, a middle and the last pack."""
        packs = {0, self.npack // 2, self.npack - 1}
        with np.errstate(all="ignore"):
            worst = max(float(np.nan_to_num(self.residual(p).max(), nan=np.inf)) for p in packs)
        return worst / np.finfo(self.dtype).eps

    def dominant(self, n, weight=2):
        return self.random(n, n) + (weight * n * np.eye(n)).astype(self.dtype)

    # what the routines below define
    values: Callable[[], int]
    moved: Callable[[], float]
    prepare: Callable[[], None]
    start: Callable[[], cl.Event]
    residual: Callable[[int], np.ndarray]


class Gemm(Problem):
    """C <- A B, or with `update` C <- C - A B"""

    update = False

    def values(self):
        m, n, k = self.size
        return m * k + k * n + m * n

    def moved(self):
        m, n, _ = self.size
        return (self.values() + m * n * self.update) * self.dtype.itemsize * self.vlen * self.npack

    def prepare(self):
        m, n, k = self.size
        self.a, self.b, self.c = self.random(m, k), self.random(k, n), self.random(m, n)
        self.A, self.B, self.C = self.pack(self.a), self.pack(self.b), self.pack(self.c, in_place=self.update)

    def start(self):
        blas.gemm(self.A, self.B, self.C, -1 if self.update else 1, 1 if self.update else 0)
        return self.C.data.events[-1]

    def residual(self, p):
        a, b, c = (x[p % DISTINCT].astype(np.result_type(self.dtype, np.float64)) for x in (self.a, self.b, self.c))
        expected = c - a @ b if self.update else a @ b
        return abs(self.host(self.C.data, p) - expected) / (abs(a) @ abs(b) + abs(c)) / (self.size[2] + 2)


class GemmUpdate(Gemm):
    update = True


class Trsm(Problem):
    """B <- inv(U) B, which has more to do than a unit triangle"""

    options = ("L", "U", "N", "N")  # side, uplo, trans, diag

    def values(self):
        n, r = self.size
        return n * n + n * r

    def moved(self):
        n, r = self.size
        unit = self.options[3] == "U"
        triangle = n * (n - 1) // 2 + n * (not unit)
        return (triangle + 2 * n * r - r * unit) * self.dtype.itemsize * self.vlen * self.npack

    def prepare(self):
        n, r = self.size
        self.a = self.random(n, n) / n + 2 * np.eye(n, dtype=self.dtype)
        self.b = self.random(n, r) if self.options[0] == "L" else self.random(r, n)
        self.A, self.B = self.pack(self.a), self.pack(self.b, in_place=True)

    def start(self):
        blas.trsm(self.A, self.B, *self.options)
        return self.B.data.events[-1]

    def residual(self, p):
        n, (side, uplo, trans, diag) = self.size[0], self.options
        a, b = (v[p % DISTINCT].astype(np.result_type(self.dtype, np.float64)) for v in (self.a, self.b))
        a = np.tril(a) if uplo == "L" else np.triu(a)
        if diag == "U":
            a[:, range(n), range(n)] = 1
        a = a if trans == "N" else a.swapaxes(-1, -2)
        x = self.host(self.B.data, p)
        if side == "R":
            a, b, x = a.swapaxes(-1, -2), b.swapaxes(-1, -2), x.swapaxes(-1, -2)
        return abs(a @ x - b) / (abs(a) @ abs(x) + abs(b)) / n


class Getrfnp(Problem):
    """A <- L\\U"""

    def values(self):
        return self.size[0] * self.size[1]

    def moved(self):
        m, n = self.size
        return ((2 * m * n - n) * self.dtype.itemsize + 4) * self.vlen * self.npack

    def prepare(self):
        m, n = self.size
        self.a = self.random(m, n) + (2 * max(m, n) * np.eye(m, n)).astype(self.dtype)
        self.A = self.pack(self.a, in_place=True)

    def start(self):
        assert not lapack.getrfnp(self.A).any()
        return self.A.data.events[-1]

    def residual(self, p):
        m, n = self.size
        lu, a = self.host(self.A.data, p), self.a[p % DISTINCT]
        lower = np.tril(lu, -1)[..., : min(m, n)] + np.eye(m, min(m, n))
        upper = np.triu(lu)[..., : min(m, n), :]
        return abs(lower @ upper - a) / (abs(lower) @ abs(upper)) / max(m, n)


class Factor(Problem):
    """Lines of blocks, factored; checked by a solve"""

    def values(self):
        return (3 * BLOCKS_A_LINE - 2) * self.size[0] ** 2

    def packs(self, nbytes):
        """On a GPU as many lines as keep it busy, since a line is a chain."""
        return super().packs(nbytes) if nbytes < BYTES[True] else (2**14 if self.size[0] <= 6 else 2**12) // self.vlen

    def moved(self):
        b, K = self.size[0], BLOCKS_A_LINE
        return ((5 * K - 4) * b * b * self.dtype.itemsize + 8) * self.vlen * self.npack

    def prepare(self):
        b, K = self.size[0], BLOCKS_A_LINE
        nrhs = self.size[1] if len(self.size) > 1 else 1
        self.blocks = [self.random(K - 1, b, b), self.random(K, b, b), self.random(K - 1, b, b)]
        self.blocks[1] += (6 * b * np.eye(b)).astype(self.dtype)
        packed = [self.device_array(a, in_place=True) for a in self.blocks]
        packed = [a.reshape(a.shape[0] * a.shape[1], *a.shape[2:]) for a in packed]
        lines = self.npack * self.vlen
        rows = np.arange(lines * K).reshape(self.npack, self.vlen, K).swapaxes(1, 2).reshape(-1, self.vlen)
        offset = np.arange(self.npack + 1) * K
        self.T = BlockTridiag.from_packed(*packed, offset, rows, lines, self.queue)
        some = self.rng.uniform(-1, 1, (DISTINCT * self.vlen * K, b, nrhs)).astype(self.dtype)
        self.rhs = pyopencl.array.empty(self.queue, (lines * K, b, nrhs), self.dtype)
        for start in range(0, self.rhs.nbytes, some.nbytes):
            count = min(some.nbytes, self.rhs.nbytes - start)
            cl.enqueue_copy(self.queue, self.rhs.base_data, some.view(np.uint8).reshape(-1)[:count], dst_offset=start)
        self.b, self.x = some.reshape(DISTINCT, self.vlen, K, b, nrhs), pyopencl.array.zeros_like(self.rhs)

    def restore(self):
        super().restore()
        self.T._work.clear()  # it fits the kernel that was chosen before

    def start(self):
        assert not self.T.refactor().any()
        return self.T.diag.events[-1]

    def error(self):
        self.T.solve_rows(self.rhs, self.x)
        return super().error()

    def residual(self, p):
        K, V, (b, nrhs) = BLOCKS_A_LINE, self.vlen, self.rhs.shape[1:]
        wide = np.result_type(self.dtype, np.float64)
        lower, diag, upper = (a[p % DISTINCT].astype(wide) for a in self.blocks)
        x = run.download(self.x[p * V * K : (p + 1) * V * K]).reshape(V, K, b, nrhs).astype(wide)
        r, scale = self.b[p % DISTINCT] - diag @ x, abs(diag) @ abs(x) + abs(self.b[p % DISTINCT])
        r[:, 1:] -= lower @ x[:, :-1]
        r[:, :-1] -= upper @ x[:, 1:]
        return abs(r) / scale / b


class Solve(Factor):
    """Lines of blocks, solved for right-hand sides"""

    def moved(self):
        b, nrhs = self.size
        K = BLOCKS_A_LINE
        values = (3 * K - 2) * b * b + 4 * K * b * nrhs
        return values * self.dtype.itemsize * self.vlen * self.npack

    def prepare(self):
        super().prepare()
        assert not self.T.refactor().any()
        self.saved.clear()

    def start(self):
        self.T.solve_rows(self.rhs, self.x)
        return self.x.events[-1]

    def error(self):
        return Problem.error(self)


class FactorFew(Factor):
    """Too few lines to fill the device"""

    def packs(self, nbytes):
        return max(1, FEW_LINES // self.vlen)


class SolveFew(Solve):
    packs = FactorFew.packs


PROBLEMS = {"gemm": Gemm, "trsm": Trsm, "getrfnp": Getrfnp}
PROBLEMS |= {"factor": Factor, "factor_few": FactorFew, "solve": Solve, "solve_few": SolveFew}


def left_in_memory(log: str) -> str:
    """What is wrong with a kernel by NVIDIA's build log: a stack frame beyond what was spilled from registers."""
    for frame, spilled in re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores", log):
        if int(frame) > int(spilled):
            return f"{frame} bytes of arrays left in memory"
    return ""


def median_seconds(problem) -> float:
    """Time of a call on the device's clock."""
    times = []
    for _ in range(WARM_UP + ROUNDS):
        problem.restore()
        event = problem.start()
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
            program = cl.Program(queue.context, source).build([f"-DGROUP={group}", f"-DVECTOR={vector}"])
            kernel = cl.Kernel(program, "copy")
            for _ in range(ROUNDS):
                event = kernel(queue, (nbytes // width,), (group,), a, b)
                event.wait()
                best = min(best, (event.profile.end - event.profile.start) * 1e-9)
    return 2 * nbytes / best


class Tuner:
    """Tries candidates on a device; use as a context manager."""

    def __init__(self, device, nbytes: int | None = None, builders: int | None = None):
        self.queue = cl.CommandQueue(cl.Context([device]), properties=cl.command_queue_properties.PROFILING_ENABLE)
        self.device = device
        gpu = bool(device.type & cl.device_type.GPU)
        self.nbytes = min(nbytes or BYTES[gpu], device.max_mem_alloc_size, device.global_mem_size // 8)
        self.copy = copy_bandwidth(self.queue, max(self.nbytes, 2**24))
        builders = min(os.cpu_count() or 1, 16) if builders is None else builders
        self.builders = None
        if gpu and builders:  # drivers get slow, and fail, with thousands of programs in a process
            self.builders = ProcessPoolExecutor(builders, get_context("spawn"), max_tasks_per_child=100)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.builders:
            self.builders.shutdown(cancel_futures=True)

    def candidates(self, routine, size, dtype, vlen) -> list[dict]:
        found: list[dict] = list(choice.candidates(self.device, routine, size, dtype, vlen))
        if not self.device.type & cl.device_type.GPU:
            if "few" not in routine and routine != "solve":
                return [{}, *found]
            if run.plan_factor(self.queue, size[0], dtype, vlen) is None:
                return [{}]
        return found

    def tune(self, routine, size, dtype, vlen=None, problem=None, candidates=None) -> Iterator[Result]:
        """Results of all candidates, as they come; the tables of `choice` are left with the best."""
        dtype = np.dtype(dtype)
        vlen = vlen or run.default_vlen(dtype, self.queue)
        problem = problem or PROBLEMS[routine]
        run.plans().clear()
        found = self.candidates(routine, size, dtype, vlen) if candidates is None else candidates
        where = devices().index(self.device)
        built = [
            self.builders.submit(attempt_small, where, problem, routine, size, dtype, vlen, candidate)
            if self.builders
            else None
            for candidate in found
        ]
        case = problem(self.queue, size, dtype, vlen, self.nbytes)
        best = Result({}, np.inf, 0.0, "")
        with counted_as(routine):
            for candidate, future in zip(found, built, strict=True):
                remark, log = future.result() if future else ("", "")
                result = attempt(case, routine, candidate, remark, self.copy)._replace(log=log)
                best = min(best, result, key=lambda r: r.seconds)
                yield result
        remember(self.device, routine, size, dtype, best.choice)
        program.forget()


@contextlib.contextmanager
def counted_as(routine):
    """While this lasts, any number of lines counts as few, or as many, as the name of the routine says."""
    few, run.FEW = run.FEW, 2**60 if routine.endswith("_few") else 0
    run.plans().clear()
    yield
    run.FEW = few
    run.plans().clear()


def remember(device, routine, size, dtype, candidate) -> None:
    """Make `choice` choose this from now on."""
    choice.results(device)[choice.key(routine, size, dtype)] = candidate
    run.plans().clear()


def attempt(case, routine, candidate, remark, copy) -> Result:
    """Check and time a candidate."""
    if remark:
        return Result(candidate, np.inf, 0.0, remark)
    remember(case.queue.device, routine, case.size, case.dtype, candidate)
    try:
        case.restore()
        case.start().wait()
        error = case.error()
        if not error < THRESHOLD:
            return Result(candidate, np.inf, 0.0, f"wrong: residual {error:.3g}")
        seconds = median_seconds(case)
    except (cl.Error, RuntimeError, AssertionError) as failure:
        return Result(candidate, np.inf, 0.0, str(failure).strip().split("\n")[0] or type(failure).__name__)
    return Result(candidate, seconds, case.moved() / seconds / copy, "")


@functools.cache
def builders_queue(where):
    """The one queue of a process that builds."""
    context = cl.Context([devices()[where]])
    return cl.CommandQueue(context, properties=cl.command_queue_properties.PROFILING_ENABLE)


def attempt_small(where, problem, routine, size, dtype, vlen, candidate) -> tuple[str, str]:
    """In a process that builds: compile a candidate and run it once. Returns what is wrong with it, and the log."""
    try:
        queue = builders_queue(where)
        remember(queue.device, routine, size, dtype, candidate)
        with counted_as(routine):
            problem(queue, size, dtype, vlen, 0).start().wait()
            logs = [resources(build_log(plan)) for plan in run.plans().values() if plan and plan.choice == candidate]
    except (cl.Error, RuntimeError, AssertionError) as failure:
        return str(failure).strip().split("\n")[0] or type(failure).__name__, ""
    if candidate and not logs:
        return "cannot run here", ""
    return left_in_memory("\n".join(logs)), "\n".join(logs)


def resources(log: str) -> str:
    """What NVIDIA's build log says of a kernel's registers and memory."""
    return ", ".join(re.findall(r"\d+ (?:registers|bytes stack frame, \d+ bytes spill stores)", log))


def build_log(plan) -> str:
    built = plan.kernel.get_info(cl.kernel_info.PROGRAM)
    devices = built.get_info(cl.program_info.DEVICES)
    return "".join(built.get_build_info(device, cl.program_build_info.LOG) for device in devices)


def save(device, found: dict[str, dict]) -> None:
    """Add results to the user's file for a device."""
    file = choice.user_file(device)
    try:
        results = json.loads(file.read_text())["results"]
    except (OSError, ValueError, KeyError):
        results = {}
    file.parent.mkdir(parents=True, exist_ok=True)
    about = {"device": device.name.strip(), "driver": device.driver_version, "results": results | found}
    new = file.with_suffix(f".{os.getpid()}")
    new.write_text(json.dumps(about, indent=1) + "\n")
    new.replace(file)


def tune_all(routines, name, dtypes, report=print) -> None:
    """Tune the first device whose name contains `name` for the usual sizes, and save what is found."""
    found = [device for device in devices() if name.lower() in device.name.lower()]
    if not found:
        raise ValueError(f"--device is {name!r}, must be part of a name among {[d.name.strip() for d in devices()]}")
    device = found[0]
    cases = [(r, size, np.dtype(t)) for r in routines for t in dtypes for size in SIZES[r]]
    with Tuner(device) as tuner:
        speed = f"a copy moves {tuner.copy / 1e9:.0f} GB/s"
        report(f"{device.name.strip()}: {speed}; results go to {choice.user_file(device)}")
        for count, (routine, size, dtype) in enumerate(cases, 1):
            results = list(tuner.tune(routine, size, dtype))
            where = f"{count}/{len(cases)}  {choice.key(routine, size, dtype)}"
            best = min(results, key=lambda r: r.seconds, default=None)
            if best is None or best.remark:
                report(f"{where}: none of {len(results)} candidates works{': ' + best.remark if best else ''}")
                continue
            save(device, {choice.key(routine, size, dtype): best.choice})
            speed = f"{best.seconds * 1e3:.4g} ms, {best.fraction:.2f} of a copy"
            report(f"{where}: {speed}; {describe(best.choice)}, of {len(results)}")


def describe(candidate) -> str:
    return " ".join(str(v) if k == "kernel" else f"{k}={v}" for k, v in candidate.items()) or "the kernel for any size"
