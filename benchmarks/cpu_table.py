"""Functions and routines on the CPU, in one thread, in turns with NumPy, SciPy, PyTorch, JAX and compact MKL.

``python -m benchmarks.cpu_table --machine NAME`` prints a table, and adds it to asv's results of a machine for
`benchmarks.report`: nanoseconds for a matrix, the part of the bound that is reached with half the distance between its
quartiles, and how many times as long the others take. With ``--compile`` it calls everything once, which fills the
cache of kernels and needs no quiet machine. asv itself would take hours, as it starts a process for each number.
"""

import argparse
import functools
import os
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

# Libraries ask for these when they are loaded.
if __name__ == "__main__":  # asv imports all files of this folder into one process
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import numpy as np
import scipy.linalg
from asv_runner.benchmarks.mark import SkipNotImplemented

from compactla import linalg
from compactla.bench import cases, timing, turns
from compactla.oracle import THRESHOLD

from . import common
from .linalg import one_by_one
from .record import RESULTS, record_here
from .torch_linalg import DTYPES, ORDERS
from .torch_linalg_cases import CASES, COLUMNS, jax

try:
    import torch
except ImportError:
    torch = None

LIBRARIES = ["compactla", "numpy", "scipy", "torch", "jax", "mkl"]
PACKED = {f"{name}, packs": name for name in ("gemm", "trsm", "getrfnp", "potrf", "getrinp", "geqrf")}  # MKL's
# Iterations have no least number of operations: what comes before and after them counts, in units of n^3.
REDUCTIONS = {"eigh": 8 / 3, "eigvalsh": 4 / 3, "svd": 16 / 3, "svdvals": 8 / 3, "pinv": 22 / 3}
NUMBERS, MOST, LEAST = 2**17, 10_000, 32  # of a stack of matrices, and of these
ROUNDS, PATIENCE = 5, 0.05  # a call that takes longer than that has fewer rounds
CHECKED, LIMIT = 64, 1e4  # matrices, and their usual difference in units of the precision


class Function(NamedTuple):
    """A function on stacks: its operands, of general matrices and right-hand sides, and itself in each library."""

    operands: Callable[..., tuple]
    calls: dict[str, Callable[..., Any]]


def definite(a):
    n = a.shape[-1]
    return a @ a.swapaxes(1, 2) / n + np.eye(n, dtype=a.dtype)


def general(a, b):
    return (a,)


def tempered(a, b):
    """Matrices whose determinants do not overflow."""
    return (a / a.dtype.type(a.shape[-1] ** 0.5),)


def system(a, b):
    return a, b


def symmetric(a, b):
    return (a + a.swapaxes(1, 2),)


def with_lu(a, b):
    return *linalg.lu_factor(a, compute="same"), b


def with_factor(a, b):
    return linalg.cholesky(definite(a), compute="same"), b


def in_torch(function):
    """A function of PyTorch on the memory of arrays; None without PyTorch."""
    return torch and (lambda *arrays: function(*map(torch.from_numpy, arrays)))


def in_jax(name, arrays):
    """A function of JAX on arrays; it may use threads of its own."""
    compiled, given = jax.jit(CASES[name].calls["jax"]), [jax.numpy.asarray(x) for x in arrays]
    return lambda: jax.block_until_ready(compiled(*given))


def of_numpy(name, operands=general, torchs=None, theirs=None, **options):
    """A function that NumPy has, or one of its own in its place, and PyTorch's of the same name."""
    given = {"compute": "same"} | options if name != "matmul" else options
    calls = {"compactla": functools.partial(getattr(linalg, name), threads=1, **given)}
    calls["numpy"] = theirs or functools.partial(getattr(np.linalg, name), **options)
    calls["torch"] = in_torch(torchs or functools.partial(getattr(torch.linalg, name), **options)) if torch else None
    return Function(operands, calls)


def of_scipy(name, operands, ours, theirs, torchs):
    """A function that SciPy has, which takes factors and the like as a tuple."""
    return Function(operands, {"compactla": ours, "scipy": theirs, "torch": torch and in_torch(torchs)})


FUNCTIONS = {
    "solve, 1 column": of_numpy("solve", system),
    f"solve, {COLUMNS} columns": of_numpy("solve", system),
    "inv": of_numpy("inv"),
    **{name: of_numpy(name, tempered) for name in ("det", "slogdet")},
    "lu_factor": of_scipy(
        "lu_factor",
        general,
        functools.partial(linalg.lu_factor, threads=1, compute="same"),
        functools.partial(scipy.linalg.lu_factor, check_finite=False),
        lambda a: torch.linalg.lu_factor(a),  # which counts pivots from 1
    ),
    "lu_solve": of_scipy(
        "lu_solve",
        with_lu,
        lambda lu, piv, b: linalg.lu_solve((lu, piv), b, threads=1, compute="same"),
        lambda lu, piv, b: scipy.linalg.lu_solve((lu, piv), b, check_finite=False),
        lambda lu, piv, b: torch.linalg.lu_solve(lu, piv.int() + 1, b),
    ),
    "cholesky": of_numpy("cholesky", lambda a, b: (definite(a),)),
    "cho_solve": of_scipy(
        "cho_solve",
        with_factor,
        lambda c, b: linalg.cho_solve((c, True), b, threads=1, compute="same"),
        lambda c, b: scipy.linalg.cho_solve((c, True), b, check_finite=False),
        lambda c, b: torch.cholesky_solve(b, c),
    ),
    "solve_triangular": of_scipy(
        "solve_triangular",
        with_factor,
        functools.partial(linalg.solve_triangular, lower=True, threads=1, compute="same"),
        functools.partial(scipy.linalg.solve_triangular, lower=True, check_finite=False),
        lambda c, b: torch.linalg.solve_triangular(c, b, upper=False),
    ),
    "qr": of_numpy("qr"),
    **{name: of_numpy(name, symmetric) for name in ("eigh", "eigvalsh")},
    "svd": of_numpy("svd", full_matrices=False),
    **{name: of_numpy(name) for name in ("svdvals", "pinv")},
    "lstsq": of_numpy("lstsq", system, torchs=lambda a, b: torch.linalg.lstsq(a, b)[:1], theirs=one_by_one),
    "matmul": of_numpy("matmul", lambda a, b: (a, a.swapaxes(1, 2).copy())),
    f"matmul, {COLUMNS} columns": of_numpy("matmul", system),
}


class Measured(NamedTuple):
    """Calls by library, how many matrices each takes, and what the first one does."""

    calls: dict[str, Callable[[], Any]]
    nm: int
    work: turns.Work


def count(n):
    """Number of matrices: they fit into the last cache."""
    return max(min(NUMBERS // (n * n), MOST), LEAST)


def on_stacks(name, n, dtype, with_jax=True):
    """A function, whose results are compared with those of the others."""
    case, function, nm = CASES[name], FUNCTIONS[name], count(n)
    rng = np.random.default_rng(n)
    a, b = (rng.standard_normal((nm, n, columns)).astype(dtype) for columns in (n, min(case.columns, n)))
    arrays = function.operands(a, b)
    calls = {library: functools.partial(call, *arrays) for library, call in function.calls.items() if call}
    if with_jax and jax and CASES[name].calls["jax"]:
        calls["jax"] = in_jax(name, arrays)
    ours = as_arrays(calls["compactla"]())
    for library, call in calls.items():
        found = as_arrays(call())
        if (name, library) == ("lu_factor", "torch"):
            found[1] = found[1] - 1
        off = max(map(difference, ours, found))
        if not off < LIMIT * np.finfo(dtype).eps:
            raise AssertionError(f"{library} differs by {off:.3g}")
    nbytes = int(case.numbers(n) * nm * np.dtype(dtype).itemsize)
    flops = REDUCTIONS[name] * n**3 if name in REDUCTIONS else case.flops(n)
    return Measured(calls, nm, turns.Work(flops * nm, nbytes, nbytes, "", np.dtype(dtype)))


def as_arrays(found):
    return [np.asarray(x)[:CHECKED] for x in (found if isinstance(found, tuple | list) else (found,))]


def difference(x, y):
    """What is usual among matrices: some are nearly singular. Signs of vectors do not count."""
    of_matrices = tuple(range(1, x.ndim))
    scale = abs(x).max(of_matrices, initial=0).astype(float).clip(1e-300)
    return np.median(abs(abs(x) - abs(y)).max(of_matrices, initial=0) / scale)


def on_packs(name, n, dtype):
    """A routine on packs, beside MKL's."""
    case = cases.Dense(PACKED[name], n, count(n), dtype, None, 1)
    calls = {"compactla": case.call}
    assert case.residual() < THRESHOLD
    if "mkl:1" in common.HERE:
        found = common.peer(case, "mkl")
        if found.residual() < THRESHOLD:  # MKL's trsm is wrong in some of its formats
            calls["mkl"] = found.call
    return Measured(calls, case.nm, turns.Work.of(case)._replace(loop=""))


def measure(name, n, dtype, with_jax=True):
    """Nanoseconds for a matrix, by library, and the part of the bound that is reached, with its spread.

    The bound is that of the fastest of all loops over so many bytes.
    """
    calls, nm, work = prepared(name, n, dtype, with_jax)
    clocks = [functools.partial(common.processor_seconds, call) for call in calls.values()]
    slow = max(timing.best(call, least=1) for call in calls.values()) > PATIENCE
    times = timing.in_turns(clocks, 2 if slow else ROUNDS)
    reached = turns.in_turns(timing.repetitions(calls["compactla"]), work, threads=1, rounds=ROUNDS).of_bound
    ns = {library: 1e9 * min(seconds) / nm for library, seconds in zip(calls, times, strict=True)}
    return {"ns": ns, "fraction": reached.median, "spread": reached.spread}


def prepared(name, n, dtype, with_jax=True):
    return on_packs(name, n, dtype) if name in PACKED else on_stacks(name, n, dtype, with_jax)


class OnCPU(common.Once):
    """A stack of matrices, or packs, in one thread of a CPU."""

    params = (LIBRARIES, [*FUNCTIONS, *PACKED], DTYPES, ORDERS)
    param_names = ("library", "function", "dtype", "n")

    def setup(self, library, *parameters):
        common.require("numba:1")
        function, dtype, n = parameters
        self.measured = self.once((function, n, dtype), measure)
        if library not in self.measured["ns"]:
            raise SkipNotImplemented(f"no {function} in {library}")

    def track_time_per_matrix(self, library, *_):
        return common.rounded(self.measured["ns"][library])

    track_time_per_matrix.unit = "ns"

    def of_ours(self, library, what):
        if library != "compactla":
            raise SkipNotImplemented("the bound is that of compactla")
        return common.rounded(self.measured[what])

    def track_fraction_of_bound(self, library, *_):
        """Part of the speed that memory and arithmetic allow in the same seconds"""
        return self.of_ours(library, "fraction")

    track_fraction_of_bound.unit = "of the bound"

    def track_fraction_spread(self, library, *_):
        """Half the distance between its quartiles"""
        return self.of_ours(library, "spread")

    track_fraction_spread.unit = "of the bound"


def table(end, functions, orders, of_jax):
    """Print what is measured, and return it, by function, dtype and order; nothing more is begun after `end`."""
    found = {}
    for n, name, dtype in product(orders, functions, DTYPES):
        if time.monotonic() > end:
            print(f"out of time at n = {n}")
            break
        try:
            found[name, dtype, n] = times = measure(name, n, dtype, n in of_jax)
        except Exception as error:  # of one function, at one size
            print(f"{dtype} {name:18} {n:3}: {type(error).__name__}: {error}"[:200], flush=True)
            continue
        mine, reached = times["ns"]["compactla"], f"{times['fraction']:5.0%} +- {times['spread']:.0%}"
        others = "  ".join(
            f"{library} {ns / mine:.2f}" for library, ns in times["ns"].items() if library != "compactla"
        )
        print(f"{dtype} {name:18} {n:3}: {mine:10.1f} ns {reached}  {others}", flush=True)
    return found


def recorded(found, machine, folder):
    """Add what was measured to asv's results of a machine, for the commit that is checked out."""

    def time_of(library, *key):
        return found[key]["ns"].get(library) if key in found else None

    def of_ours(what):
        return lambda library, *key: found[key][what] if key in found and library == "compactla" else None

    values = {"track_time_per_matrix": time_of, "track_fraction_of_bound": of_ours("fraction")}
    values["track_fraction_spread"] = of_ours("spread")
    record_here("cpu_table.OnCPU", OnCPU.params, values, machine, folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    every = [*FUNCTIONS, *PACKED]
    parser.add_argument("--functions", nargs="+", default=every, choices=every, metavar="FUNCTION")
    parser.add_argument("--orders", nargs="+", default=ORDERS, type=int, metavar="N")
    parser.add_argument("--jax", nargs="*", default=ORDERS, type=int, metavar="N", help="orders that JAX is timed with")
    parser.add_argument("--seconds", type=float, default=840, help="nothing more is begun after so many (default: 840)")
    parser.add_argument("--compile", action="store_true", help="call everything once, and measure nothing")
    parser.add_argument("--machine", metavar="NAME", help="add the results to those of this machine")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER")
    options = parser.parse_args()
    if torch:
        torch.set_num_threads(1)
    if jax:
        jax.config.update("jax_enable_x64", True)
    if options.compile:
        for n, name, dtype in product(options.orders, options.functions, DTYPES):
            prepared(name, n, dtype, with_jax=False)
        return
    found = table(time.monotonic() + options.seconds, options.functions, options.orders, options.jax)
    if options.machine:
        recorded(found, options.machine, options.results)


if __name__ == "__main__":
    main()
