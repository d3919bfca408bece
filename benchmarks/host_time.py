"""What calls on few matrices cost the host: all functions of compactla.linalg for devices, and all routines on packs.

``python -m benchmarks.host_time`` prints a table of microseconds a call, for arrays of PyTorch, CuPy and pyopencl on an
NVIDIA GPU, and for PyTorch's own functions. The queue is empty before a burst of calls, and takes them all, so that
kernels are no part of it, except in calls that wait for the device. Where the device takes longer than the host, the
table has a call's time until the last has ended in brackets.
"""

import argparse
import functools
import inspect
import itertools
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import compactla as cla
from compactla import linalg, routine

from . import common

try:
    import torch
except ImportError:  # asv imports all files here
    torch = None
try:
    import cupy
except ImportError:
    cupy = None

COUNT, ORDERS, COLUMNS = 64, [4, 16], 4
LIBRARIES = ["torch", "cupy", "opencl"]
BURSTS, CALLS = 7, 40  # a queue of CUDA takes 1024 launches


class Library(NamedTuple):
    """A library of arrays on a device.

    Attributes
    ----------
    array : function
        An array there, of one of NumPy.
    finish : function
        Waits for the device.
    """

    array: Callable
    finish: Callable


def library(name):
    """A library by its name, which has to be installed."""
    if name == "torch":
        return Library(lambda x: torch.from_numpy(x).cuda(), torch.cuda.synchronize)
    if name == "cupy":
        return Library(cupy.asarray, cupy.cuda.runtime.deviceSynchronize)
    import pyopencl.array

    queue = common.open_queue("opencl:gpu")
    return Library(lambda x: pyopencl.array.to_device(queue, x), queue.finish)


def operands(n, dtype="float64"):
    """NumPy arrays of general, symmetric and triangular matrices, of their factors, and of right-hand sides."""
    rng = np.random.default_rng(n)
    a, b = rng.standard_normal((COUNT, n, n)), rng.standard_normal((COUNT, n, COLUMNS))
    definite = a @ a.swapaxes(1, 2) + np.eye(n)
    lu, piv = linalg.lu_factor(a)
    found = {"a": a, "b": b, "definite": definite, "lower": np.linalg.cholesky(definite), "lu": lu, "one": a[0].copy()}
    found = {name: x.astype(dtype) for name, x in (found | {"c": np.zeros_like(a)}).items()}
    return found | {"piv": piv, "info": np.zeros(COUNT, np.int32)}


# The arguments of functions, and what PyTorch has in their place.
FUNCTIONS: dict[str, tuple[Callable, str]] = {
    "matmul": (lambda a, **_: (a, a), "bmm"),
    "solve": (lambda a, b, **_: (a, b), "linalg.solve"),
    "inv": (lambda a, **_: (a,), "linalg.inv"),
    "det": (lambda a, **_: (a,), "linalg.det"),
    "slogdet": (lambda a, **_: (a,), "linalg.slogdet"),
    "lu_factor": (lambda a, **_: (a,), "linalg.lu_factor"),
    "lu_solve": (lambda lu, piv, b, **_: ((lu, piv), b), ""),
    "cholesky": (lambda definite, **_: (definite,), "linalg.cholesky"),
    "cho_factor": (lambda definite, **_: (definite,), ""),
    "cho_solve": (lambda lower, b, **_: ((lower, True), b), ""),
    "solve_triangular": (lambda lower, b, **_: (lower, b, 0, True), ""),
    "qr": (lambda a, **_: (a,), "linalg.qr"),
    "eigh": (lambda definite, **_: (definite,), "linalg.eigh"),
    "eigvalsh": (lambda definite, **_: (definite,), "linalg.eigvalsh"),
    "svd": (lambda a, **_: (a,), "linalg.svd"),
    "svdvals": (lambda a, **_: (a,), "linalg.svdvals"),
    "pinv": (lambda a, **_: (a,), "linalg.pinv"),
    "lstsq": (lambda a, b, **_: (a, b), "linalg.lstsq"),
}


def calls(arrays):
    """Calls with arrays of one library, by name: functions, and routines on packs."""
    found = {}
    for name, (arguments, _) in FUNCTIONS.items():
        function, given = getattr(linalg, name), arguments(**arrays)
        found[name] = functools.partial(function, *given)
        if "on_error" in inspect.signature(function).parameters:
            found[f"{name}, nan"] = functools.partial(function, *given, on_error="nan")
    a, factors = arrays["a"], (arrays["one"], arrays["one"])
    A = cla.pack(a)
    found["kron_apply"] = functools.partial(cla.kron_apply, factors, a)
    found["kron_apply, out"] = functools.partial(cla.kron_apply, factors, a, cla.kron_apply(factors, a))
    found["gemm of arrays"] = functools.partial(cla.gemm, a, a, arrays["c"], beta=0)
    found["pack"], found["unpack"], found["copy"] = functools.partial(cla.pack, a), A.unpack, A.copy
    for row in map(routine.named, routine.in_order()):
        call = of_routine(row, A)
        found[row.name] = call
        for output in row.outputs:  # else calls wait for these in OpenCL
            if A.queue.__class__.__module__.startswith("pyopencl"):
                found[f"{row.name}, {output}"] = functools.partial(call, **{output: arrays["info"]})
    return found


def of_routine(row, A):
    """A call of a routine on identity matrices, which most routines leave as they are, where a pack is."""
    numbers, given = row.numbers([A.n] * len(row.letters)), {}
    for operand in row.inputs:
        rows, columns = (numbers[letter] for letter in operand.sizes)
        if operand.kind:
            given[operand.name] = cla.getrf(cla.Pack.identity(A.nm, rows, dtype=A.dtype, queue=A.queue))[0]
        else:
            given[operand.name] = cla.Pack.identity(A.nm, rows, columns, A.dtype, queue=A.queue)
    parameters = inspect.signature(row.function).parameters.items()
    scalars = {name: 0.5 for name, about in parameters if about.default is about.empty and name not in given}
    return functools.partial(row.function, **given, **scalars)


def torch_calls(arrays):
    """PyTorch's functions in their places."""
    found = {}
    for name, (arguments, theirs) in FUNCTIONS.items():
        if theirs:
            function = functools.reduce(getattr, theirs.split("."), torch)
            found[name] = functools.partial(function, *arguments(**arrays))
    return found


def microseconds(call, finish):
    """Time of a call on the host, and until the last of a burst of them has ended."""
    for _ in range(3):  # the third is made as all later ones
        call()
    host, whole = [], []
    for _ in range(BURSTS):
        finish()
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        host.append(time.perf_counter() - start)
        finish()
        whole.append(time.perf_counter() - start)
    return 1e6 * min(host) / CALLS, 1e6 * min(whole) / CALLS


class OnGPU:
    """Few matrices on a GPU."""

    params = (LIBRARIES, [*FUNCTIONS, *routine.in_order()], ORDERS)
    param_names = ("library", "function", "n")

    def setup(self, name, function, n):
        for needed in ["opencl:gpu"] if name == "opencl" else common.CUDA:
            common.require(needed)
        make = library(name)
        self.finish = make.finish
        self.call = calls({key: make.array(x) for key, x in operands(n).items()})[function]

    def track_host_time(self, *_):
        return common.rounded(microseconds(self.call, self.finish)[0])

    track_host_time.unit = "us"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="calls whose names have one of these in them")
    parser.add_argument("--libraries", nargs="+", default=LIBRARIES, choices=LIBRARIES)
    parser.add_argument("--orders", nargs="+", default=ORDERS, type=int, metavar="N")
    parser.add_argument("--once", action="store_true", help="make the calls, which compiles their kernels")
    options = parser.parse_args()
    columns = {}
    for name, n in itertools.product(options.libraries, options.orders):
        try:
            make = library(name)
        except (AttributeError, ImportError, StopIteration) as error:  # is not here
            print(f"no {name}: {error!r}")
            continue
        arrays = {key: make.array(x) for key, x in operands(n).items()}
        columns[f"{name} {n}"] = calls(arrays), make.finish
        if name == "torch":
            columns[f"its own {n}"] = torch_calls(arrays), make.finish
    width = max(map(len, columns))
    print(" " * 20, *(f"{name:>{width}}" for name in columns))
    for name in dict.fromkeys(name for found, _ in columns.values() for name in found):
        if options.only and not any(part in name for part in options.only):
            continue
        cells = [cell(found.get(name), finish, options.once) for found, finish in columns.values()]
        print(f"{name:20}", *(f"{text:>{width}}" for text in cells), flush=True)


def cell(call, finish, once):
    """Times of a call as text."""
    if call is None:
        return ""
    try:
        if once:
            call()
            return "made"
        host, whole = microseconds(call, finish)
    except Exception as error:  # of one function
        print(f"{call.func.__name__}: {error!r}"[:200])
        return "fails"
    return f"{host:.1f} ({whole:.0f})" if whole > 1.3 * host else f"{host:.1f}"


if __name__ == "__main__":
    main()
