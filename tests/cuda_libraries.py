"""The libraries of arrays in CUDA memory that tests are run with: those that are there, or a stand-in elsewhere."""

import importlib.util
import os

import numpy as np

from compactla.gpu.tuning import choices
from drivers import working_devices

REAL = "torch", "cupy", "jax"
FOUND = "COMPACTLA_CUDA_LIBRARIES"  # an environment variable, for the processes of a test run
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # whichever process imports JAX, and when


def available():
    """Names of the libraries. Only the first process of a run looks for them: each would keep memory of the GPU."""
    if FOUND not in os.environ:
        found = [name for name in REAL if importlib.util.find_spec(name) and has_device(name)]
        os.environ[FOUND] = " ".join(found)
    return os.environ[FOUND].split()


def has_device(name):
    if name == "torch":
        import torch

        return torch.cuda.is_available()
    if name == "cupy":
        import cupy

        return cupy.cuda.is_available()
    import jax

    return any(device.platform == "gpu" for device in jax.devices())


class StandIn:
    """The stand-in, on an OpenCL device that is a CPU, if there is one."""

    name, writes = "stand-in", True

    def __init__(self, monkeypatch):
        import cuda_standin

        self.module, found = cuda_standin, working_devices()
        self.machine = cuda_standin.install(monkeypatch, next(filter(choices.is_cpu, found), found[0]))
        self.kind = cuda_standin.Tensor
        self.device = self.array(np.zeros(1))

    def array(self, a):
        """A copy of an array of NumPy, contiguous."""
        return self.module.of(self.machine, a)

    def numpy(self, x):
        """A copy in NumPy of an array of the library."""
        return x.numpy()


class Torch:
    name, writes = "torch", True

    def __init__(self, monkeypatch):
        import torch

        self.kind, self.device, self.array = torch.Tensor, torch.device("cuda"), torch.tensor
        self.array = lambda a: torch.from_numpy(np.ascontiguousarray(a)).cuda()

    def numpy(self, x):
        return x.cpu().numpy()


class CuPy:
    name, writes = "cupy", True

    def __init__(self, monkeypatch):
        import cupy

        self.kind, self.device = cupy.ndarray, cupy.cuda.Device(0)
        self.array, self.numpy = (lambda a: cupy.asarray(np.ascontiguousarray(a))), cupy.asnumpy


class JAX:
    name, writes = "jax", False  # what is given is never written to

    def __init__(self, monkeypatch):
        import jax

        jax.config.update("jax_enable_x64", True)
        self.kind, self.device = jax.Array, jax.devices()[0]
        self.array, self.numpy = jax.numpy.asarray, np.asarray


LIBRARIES = {"stand-in": StandIn, "torch": Torch, "cupy": CuPy, "jax": JAX}
