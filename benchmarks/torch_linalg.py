"""Functions of compactla.linalg on tensors on an NVIDIA GPU, in turns with those of PyTorch and of CuPy.

``python -m benchmarks.torch_linalg [seconds]`` prints the table: nanoseconds for a matrix, by the device's clock, and
how many times as long the others take, where they have the function and take matrices of that size.
"""

import contextlib
import sys
import time

from asv_runner.benchmarks.mark import SkipNotImplemented

from compactla import linalg

from . import common
from .cuda_clock import cuda_seconds

try:
    import torch
except ImportError:  # asv imports all files here
    torch = None
try:
    import cupy
except ImportError:
    cupy = None

LIBRARIES = ["compactla", "torch", "cupy"]
FUNCTIONS = ["solve", "inv", "cholesky", "eigh", "svd"]
STACKS = {3: 1_000_000, 8: 100_000, 16: 100_000, 32: 20_000}  # numbers of matrices, by their order
DTYPES = ["float64", "float32"]
ROUNDS, SECONDS, PATIENCE = 7, 0.01, 0.5  # of every library; a call that takes longer than that is not repeated
CHECKED = 100  # matrices


def operands(function, n, dtype):
    """Matrices as the function needs them, and for `solve` one right-hand side."""
    generator = torch.Generator("cuda").manual_seed(n)
    a = torch.randn(STACKS[n], n, n, dtype=getattr(torch, dtype), device="cuda", generator=generator)
    if function in ("cholesky", "eigh"):
        a = a @ a.mT + torch.eye(n, dtype=a.dtype, device="cuda")
    return (a, a[:, :, :1].clone()) if function == "solve" else (a,)


def calls(function, arrays):
    """Calls to be timed, by library: single precision is computed in single precision by all of them."""
    ours = {"on_error": "nan", "compute": "same"}
    theirs = {"full_matrices": False} if function == "svd" else {}
    mine = getattr(linalg, function)
    found = {"compactla": lambda: mine(*arrays, **ours, **theirs)}
    found["torch"] = lambda: getattr(torch.linalg, function)(*arrays, **theirs)
    if cupy and hasattr(cupy.linalg, function):
        same = [cupy.from_dlpack(x) for x in arrays]
        found["cupy"] = lambda: getattr(cupy.linalg, function)(*same, **theirs)
    return found


def residual(function, arrays, found):
    """Largest error of what the results of the first matrices give, by the largest number that should be there."""
    found = [torch.from_dlpack(x)[:CHECKED].double() for x in (found if isinstance(found, tuple) else (found,))]
    a, *others = (x[:CHECKED].double() for x in arrays)
    match function:
        case "solve":
            made, wanted = a @ found[0], others[0]
        case "inv":
            made, wanted = a @ found[0], torch.eye(a.shape[-1], dtype=a.dtype, device=a.device).expand_as(a)
        case "cholesky":
            made, wanted = found[0] @ found[0].mT, a
        case "eigh":
            made, wanted = found[1] * found[0].unsqueeze(-2) @ found[1].mT, a
        case _:
            made, wanted = found[0] * found[1].unsqueeze(-2) @ found[2], a
    scale = a.abs().amax((1, 2)) * (found[0].abs().amax((1, 2)) if function in ("solve", "inv") else 1)
    return float(((made - wanted).abs().amax((1, 2)) / scale).max())


def measure(function, n, dtype):
    """Nanoseconds for a matrix, by library: the least of what is measured in turns."""
    arrays = operands(function, n, dtype)
    limit, seconds = 1e4 * torch.finfo(arrays[0].dtype).eps, {}
    stream = torch.cuda.current_stream().cuda_stream
    with cupy.cuda.ExternalStream(stream) if cupy else contextlib.nullcontext():
        found = calls(function, arrays)
        for library, call in found.items():
            try:
                error = residual(function, arrays, call())
                seconds[library] = [cuda_seconds(call)]
            except (RuntimeError, ValueError, NotImplementedError):
                if library == "compactla":
                    raise
                continue  # refuses so many matrices, or so large ones
            assert error < limit, (library, function, n, dtype, error)
        for _ in range(ROUNDS):
            for library, times in seconds.items():
                if times[0] < PATIENCE:
                    times.append(cuda_seconds(found[library], max(1, int(SECONDS / min(times)))))
    return {library: 1e9 * min(times) / STACKS[n] for library, times in seconds.items()}


class OnGPU(common.Once):
    """A stack of matrices on a GPU."""

    params = (LIBRARIES, FUNCTIONS, DTYPES, list(STACKS))
    param_names = ("library", "function", "dtype", "n")

    def setup(self, library, *parameters):
        for needed in common.CUDA:
            common.require(needed)
        function, dtype, n = parameters
        self.measured = self.once((function, n, dtype), measure)
        if library not in self.measured:
            raise SkipNotImplemented(f"no {function} of such matrices in {library}")

    def track_time_per_matrix(self, library, *_):
        return common.rounded(self.measured[library])

    track_time_per_matrix.unit = "ns"


def main(limit=400.0):
    """Print the table; nothing more is begun after so many seconds."""
    end = time.monotonic() + limit
    print(torch.cuda.get_device_name())
    for dtype in DTYPES:
        for function in FUNCTIONS:
            for n in STACKS:
                if time.monotonic() > end:
                    print("out of time")
                    return
                try:
                    found = measure(function, n, dtype)
                except Exception as error:  # of one library, at one size
                    print(f"{dtype} {function:8} {n:2}: {type(error).__name__}: {error}", flush=True)
                    continue
                ours = found.pop("compactla")
                others = "  ".join(f"{library} {time / ours:6.1f} times" for library, time in found.items())
                print(f"{dtype} {function:8} {n:2}: {ours:9.2f} ns  {others}", flush=True)


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]))
