"""Results of asv on each machine: the newest value of every benchmark."""

from datetime import UTC, date, datetime
from itertools import product
from math import isfinite
from typing import NamedTuple

from compactla import routine

ROUTINES = {name: f"{name}.{name.capitalize()}" for name in routine.in_order()}  # benchmarks begin like this
# What compactla runs on, and what else does the same work there.
DEVICES = {"numba:1": "one thread", "numba:all": "all threads", "opencl:gpu": "GPU", "opencl:cpu": "OpenCL on the CPU"}
PEERS = {
    "numba:1": ["numpy", "scipy", "mkl:1"],
    "numba:all": [],
    "opencl:gpu": ["cupy", "torch"],
    "opencl:cpu": [],
}
# What functions of stacks were measured with, and what else computes them there.
STACKS = {"torch_linalg.OnGPU": ["torch", "cupy", "jax"], "cpu_table.OnCPU": ["numpy", "scipy", "torch", "jax", "mkl"]}
LEVELS = ["L1", "L2", "L3", "memory", "device"]
LOOPS = ["read", "copy", "streamed copy", "update", "axpy"]


def lines_of(device, b):
    """The number of lines in `benchmarks.blocktridiag`."""
    if device != "opencl:gpu":
        return 1024
    return 16384 if b <= 5 else 4096


class Run(NamedTuple):
    """Results of one commit, by the name of the benchmark and its parameters as asv writes them."""

    commit: str
    date: date
    values: dict[tuple[str, ...], float]

    def value(self, benchmark, *params):
        """A number, or None if there is none."""
        return self.values.get((benchmark, *map(repr, params)))

    def cell(self, text):
        """What a table says of this run: its commit follows in braces."""
        return text and f"{text}{{{self.commit}}}"


class Machine:
    """A machine, what asv knows about it, and its runs, those of the newest commit first."""

    def __init__(self, about, runs):
        self.name, self.about, self.runs = about["machine"], about, runs
        self.used = {}  # commits that values were taken from, and their dates

    def newest(self, benchmark, *params) -> Run:
        """The newest run with a value of this benchmark, or one without any."""
        for run in self.runs:
            if run.value(benchmark, *params) is not None:
                self.used[run.commit] = run.date
                return run
        return Run("", date.min, {})

    def value(self, benchmark, *params):
        return self.newest(benchmark, *params).value(benchmark, *params)

    def cell(self, text, benchmark, *params):
        """Text for the newest value, with the commit that `report_tables.dated` looks for, or nothing."""
        run = self.newest(benchmark, *params)
        value = run.value(benchmark, *params)
        return "" if value is None else run.cell(text(value))

    def stacks(self):
        """What the benchmarks of functions on stacks begin with, of those in `STACKS` that the machine has."""
        keys = {key[0] for run in self.runs for key in run.values}
        return next((name for name in STACKS if f"{name}.track_time_per_matrix" in keys), "")

    def stack(self, function, dtype, n):
        """The newest run of a function, and in it our time, the least of the others, the fraction, and its spread."""
        name = self.stacks()
        run = self.newest(f"{name}.track_time_per_matrix", "compactla", function, dtype, n)
        ours, *others = (
            run.value(f"{name}.track_time_per_matrix", library, function, dtype, n)
            for library in ("compactla", *STACKS[name])
        )
        reached = (
            run.value(f"{name}.track_fraction_{what}", "compactla", function, dtype, n)
            for what in ("of_bound", "spread")
        )
        return run, ours, min(filter(None, others), default=None), *reached

    def sizes(self, benchmark):
        """The orders of matrices, or sizes of blocks, that a benchmark has values for."""
        keys = (key for run in self.runs for key in run.values if key[0] == benchmark)
        return sorted({int(key[-1]) for key in keys if key[-1].isdigit()})


def read_machines(folder, since=date.min):
    """The machines with results in a folder of asv's, by name; results of older commits are left out."""
    from asv.machine import Machine as AsvMachine
    from asv.machine import iter_machine_files
    from asv.results import iter_results_for_machine
    from asv.util import load_json

    found = []
    for file in iter_machine_files(folder):
        about = load_json(file, AsvMachine.api_version)
        results = sorted(iter_results_for_machine(folder, about["machine"]), key=age, reverse=True)
        runs = [run for run in map(read_run, results) if run.date >= since]
        if runs:
            found.append(Machine(about, runs))
    return sorted(found, key=lambda machine: machine.name)


def age(results):
    return results.date, results.commit_hash, results.env_name


def read_run(results) -> Run:
    """The values of one of asv's files that are numbers: what was skipped or failed is NaN or None there."""
    values = {}
    for benchmark in results.get_all_result_keys():
        params = results.get_result_params(benchmark)
        measured = results.get_result_value(benchmark, params)
        for key, value in zip(product(*params), measured, strict=True):
            if value is not None and isfinite(value):
                values[benchmark, *key] = value
    return Run(results.commit_hash, datetime.fromtimestamp(results.date / 1000, UTC).date(), values)
