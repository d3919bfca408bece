"""Functions of compactla.linalg on tensors on an NVIDIA GPU, in turns with those of PyTorch, CuPy and JAX.

``python -m benchmarks.torch_linalg --save FILE`` prints a table: nanoseconds for a matrix, by the device's clock (those
of JAX by the host's), the fraction of the bound, and how many times as long the others take, where they have the
function and take matrices of that size. It writes the times as JSON; ``--record FILE --commit HASH`` makes a file of
asv's results of that, for `benchmarks.report`: asv itself would take hours, as it starts a process for each number.
"""

import argparse
import contextlib
import time
from itertools import product

from asv_runner.benchmarks.mark import SkipNotImplemented

from . import common
from .cuda_clock import cuda_seconds
from .record import record, save_or_record
from .torch_linalg_cases import CASES, cupy, jax, jnp, torch

LIBRARIES = ["compactla", "torch", "cupy", "jax"]
ORDERS = [2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128]
DTYPES = ["float64", "float32"]
NUMBERS, MOST = 2**25, 4_000_000  # of a stack of matrices, and of these
ITERATIVE, FEWER = {"eigh", "eigvalsh", "svd", "svdvals", "pinv", "lstsq"}, 8  # these have so many times fewer matrices
ROUNDS, SECONDS, PATIENCE = 3, 0.002, 0.05  # of every library; a call that takes longer than that is not repeated
FIRST = 8192  # rows of matrices that others are tried with, which get no more than they do in PATIENCE
CHECKED, LIMIT = 64, 30  # matrices, and their largest error in units of the precision


def count(function, n):
    """Number of matrices."""
    return min(NUMBERS // (n * n * (FEWER if function in ITERATIVE else 1)), MOST)


def operands(case, function, n, dtype):
    """Operands of a case."""
    generator = torch.Generator("cuda").manual_seed(n)
    shape, settings = (count(function, n), n), {"dtype": getattr(torch, dtype), "device": "cuda"}
    a = torch.randn(*shape, n, generator=generator, **settings)
    return case.make(a, torch.randn(*shape, min(case.columns, n), generator=generator, **settings))


def converted(library, arrays):
    """Tensors as arrays of a library, of the same memory."""
    if library == "cupy":
        return [cupy.from_dlpack(x) for x in arrays]
    return [jnp.from_dlpack(x) for x in arrays] if library == "jax" else arrays


def host_seconds(call, times=1):
    """Time of a call, of so many in a row, by the host's clock, until the last has ended."""
    start = time.perf_counter()
    for _ in range(times - 1):
        call()
    jax.block_until_ready(call())
    return (time.perf_counter() - start) / times


def residual(case, arrays, found):
    """Error of the results of the first matrices, in units of their precision."""
    found = [torch.from_dlpack(x)[:CHECKED] for x in (found if isinstance(found, tuple | list) else (found,))]
    epsilon = torch.finfo(next(x.dtype for x in found if x.dtype.is_floating_point)).eps
    checked = [x.double() if x.dtype.is_floating_point else x for x in (*(x[:CHECKED] for x in arrays), *found)]
    return case.error(*checked) / epsilon


def measure(function, n, dtype, libraries=LIBRARIES):
    """Nanoseconds for a matrix, by library: the least of what is measured in turns."""
    case = CASES[function]
    arrays, timed = operands(case, function, n, dtype), {}
    for library in libraries:
        if case.calls[library] is None:
            continue
        try:
            timed[library] = prepared(library, case, arrays)
        except (
            Exception
        ) as failure:  # refuses so many matrices, or so large ones; CuPy and JAX have errors of their own
            if library == "compactla":
                raise
            print(f"{library} {function} {n} {dtype}: {type(failure).__name__}: {failure}"[:160], flush=True)
    seconds = {library: [clock(call)] for library, (call, clock, _) in timed.items()}
    for _ in range(ROUNDS):
        for library, (call, clock, _) in timed.items():
            if min(seconds[library]) < PATIENCE:
                seconds[library].append(clock(call, max(1, int(SECONDS / min(seconds[library])))))
    return {library: 1e9 * min(seconds[library]) / number for library, (_, _, number) in timed.items()}


def prepared(library, case, arrays):
    """A call whose results were checked, its clock, and its number of matrices."""
    run, clock, number = case.calls[library], cuda_seconds, len(arrays[0])
    if library == "jax":
        run, clock = jax.jit(run), host_seconds
    elif library != "compactla":
        first = max(FIRST // arrays[0].shape[-1], CHECKED)
        few = converted(library, [x[:first] for x in arrays])
        run(*few)
        number = min(number, max(first, int(PATIENCE / cuda_seconds(lambda: run(*few)) * first)))
    given = converted(library, [x[:number] for x in arrays])
    error = residual(case, arrays, run(*given))
    if not error < LIMIT:
        raise AssertionError(f"the error is {error:.3g} units of the precision")
    return lambda: run(*given), clock, number


def ceilings():
    """Bytes a second of a copy, and operations a second of a large product, by dtype."""
    a = torch.randn(2**27, dtype=torch.float32, device="cuda")
    b = torch.empty_like(a)
    found = {"copy": 2 * a.nbytes / min(cuda_seconds(lambda: b.copy_(a), 10) for _ in range(ROUNDS))}
    for dtype in DTYPES:
        x = torch.randn(8192, 8192, dtype=getattr(torch, dtype), device="cuda")
        found[dtype] = 2 * 8192**3 / min(cuda_seconds(lambda x=x: x @ x, 2) for _ in range(ROUNDS))
    return found


def bound(function, n, dtype, ceiling):
    """Least nanoseconds for a matrix."""
    case, item = CASES[function], {"float64": 8, "float32": 4}[dtype]
    return 1e9 * max(case.numbers(n) * item / ceiling["copy"], case.flops(n) / ceiling[dtype])


class OnGPU(common.Once):
    """A stack of matrices on a GPU."""

    params = (LIBRARIES, [*CASES], DTYPES, ORDERS)
    param_names = ("library", "function", "dtype", "n")

    def setup(self, library, *parameters):
        for needed in common.CUDA:
            common.require(needed)
        function, dtype, n = parameters
        self.measured = self.once((function, n, dtype), measured)
        if library not in self.measured["ns"]:
            raise SkipNotImplemented(f"no {function} of such matrices in {library}")

    def track_time_per_matrix(self, library, *_):
        return common.rounded(self.measured["ns"][library])

    track_time_per_matrix.unit = "ns"

    def track_fraction_of_bound(self, library, *_):
        """Least time for the bytes and operations of a function, as part of the time that it takes"""
        return common.rounded(self.measured["bound"] / self.measured["ns"][library])

    track_fraction_of_bound.unit = "of the bound"


def measured(function, n, dtype, ceiling=None, libraries=LIBRARIES):
    """Nanoseconds for a matrix by library, and the bound."""
    return {"ns": measure(function, n, dtype, libraries), "bound": bound(function, n, dtype, ceiling or ceilings())}


def table(end, functions, orders, in_jax):
    """Print what is measured, and return it, by function, dtype and order; nothing more is begun after `end`."""
    print(torch.cuda.get_device_name())
    ceiling, found = ceilings(), {}
    print({name: f"{speed:.3g}" for name, speed in ceiling.items()})
    for n, function, dtype in product(orders, functions, DTYPES):
        if time.monotonic() > end:
            print("out of time")
            break
        with torch_stream():
            try:
                times = measured(function, n, dtype, ceiling, LIBRARIES if n in in_jax else LIBRARIES[:-1])
            except Exception as error:  # of one function, at one size
                print(f"{dtype} {function:16} {n:3}: {type(error).__name__}: {error}"[:200], flush=True)
                continue
        found[f"{function}|{dtype}|{n}"] = times
        mine = times["ns"]["compactla"]
        others = "  ".join(f"{name} {ns / mine:6.2f}" for name, ns in times["ns"].items() if name != "compactla")
        print(f"{dtype} {function:16} {n:3}: {mine:9.2f} ns {times['bound'] / mine:5.0%}  {others}", flush=True)
        torch.cuda.empty_cache()
    return found


def torch_stream():
    """PyTorch's current stream as CuPy's."""
    stream = torch.cuda.current_stream().cuda_stream
    return cupy.cuda.ExternalStream(stream) if cupy else contextlib.nullcontext()


def recorded(found, commit, machine, python):
    """Write a file of asv's results."""

    def value(of):
        def number(library, function, dtype, n):
            times = found.get(f"{function}|{dtype}|{n}")
            return of(times, library) if times and library in times["ns"] else None

        return number

    values = {"track_time_per_matrix": value(lambda times, library: times["ns"][library])}
    values["track_fraction_of_bound"] = value(lambda times, library: times["bound"] / times["ns"][library])
    record("torch_linalg.OnGPU", OnGPU.params, values, commit, machine, python)


def measured_table(options):
    """What is found, printed as a table."""
    if jax:
        jax.config.update("jax_enable_x64", True)
    return table(time.monotonic() + options.seconds, options.functions, options.orders, options.jax)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=400, help="nothing more is begun after so many")
    parser.add_argument("--functions", nargs="+", default=[*CASES], choices=[*CASES], metavar="FUNCTION")
    parser.add_argument("--orders", nargs="+", default=ORDERS, type=int, metavar="N")
    parser.add_argument("--jax", nargs="*", default=ORDERS, type=int, metavar="N", help="orders that JAX is timed with")
    save_or_record(parser, measured_table, recorded)


if __name__ == "__main__":
    main()
