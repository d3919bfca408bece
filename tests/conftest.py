"""Every test that takes `queue` runs on the CPU (`-k numba`) and on every OpenCL device (`-k opencl`)."""

import gc
import importlib.util
import os
from itertools import product

import hypothesis
import numpy as np
import pytest

import drivers
from cases import DTYPES, slow
from compactla.gpu import program
from compactla.gpu.devices import new_queue
from compactla.gpu.tuning import choices
from cuda_libraries import available

DEVICES = drivers.working_devices()
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")  # of JAX, before it is asked for GPUs
collect_ignore = [] if importlib.util.find_spec("cuda") else ["test_cuda.py"]  # there are no bindings for macOS

# Sizes are compiled for: the same examples in every run find their kernels in the cache.
hypothesis.settings.register_profile("compactla", deadline=None, max_examples=15, derandomize=True, database=None)
hypothesis.settings.load_profile("compactla")


def pytest_configure(config):
    if not DEVICES and "numba" not in config.option.keyword:
        found = "no OpenCL device works here: `python3 tests/run.py` gets a driver and runs the tests"
        raise pytest.UsageError(f"{found}, `-k numba` those of the CPU alone")
    if available() and config.getoption("dist", None) == "load":
        config.option.dist = "loadgroup"
    # A size that is known has kernels for all options of a routine: CPUs, which compile slowly, are tested with one.
    for device, name in product(filter(choices.is_cpu, DEVICES), choices.searches()):
        results = choices.results(device)[name]
        for key in [key for key in results if "3" not in key.split()]:
            del results[key]
    config.pluginmanager.register(Failures(config.pluginmanager))


class Failures:
    """Names each failure when it happens, also among the dots of several processes."""

    def __init__(self, plugins):
        self.plugins = plugins

    def pytest_runtest_logreport(self, report):
        terminal = self.plugins.get_plugin("terminalreporter")
        if report.failed and terminal is not None:
            reason = getattr(getattr(report.longrepr, "reprcrash", None), "message", "").partition("\n")[0]
            terminal.write("\n")
            terminal.write_line(f"FAILED {report.nodeid}: {reason}"[:200], red=True)


SECOND = {"s", "z", "float32", "complex128"}  # types of the other precision than those that are tried always


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark tests by their parameters; where no device works, leave out those that need one.

    What is slow in a module that is slow as a whole is exhaustive, and what is slow of second types. Tests with a
    library of CUDA arrays run in one process for each library, which take gigabytes.
    """
    items[:] = [item for item in items if DEVICES or "elsewhere" not in item.fixturenames]
    for item in items:
        slow = [*item.iter_markers("slow")]
        parameters = item.callspec.id.split("-") if hasattr(item, "callspec") else []
        if library := {*available()}.intersection(["torch" if name == "cuda" else name for name in parameters]):
            item.add_marker(pytest.mark.xdist_group(*library))
        if len(slow) > 1 or (slow and SECOND.intersection(parameters)):
            item.add_marker(pytest.mark.exhaustive)


@pytest.fixture(scope="session", params=[None, *DEVICES], ids=["numba", *(f"opencl{i}" for i in range(len(DEVICES)))])
def queue(request):
    """The place of packs: None, the CPU, or a queue of an OpenCL device."""
    return request.param and new_queue(request.param)


@pytest.fixture(scope="module")
def elsewhere():
    """A queue that shares memory with none of the others."""
    return new_queue(DEVICES[0])


# One real and one complex type, one of each precision, are tried always.
@pytest.fixture(params=[slow(kind) if char in "sz" else kind for char, kind in DTYPES.items()], ids=DTYPES)
def dtype(request):
    return np.dtype(request.param)


@pytest.fixture
def unoptimized(monkeypatch):
    """Kernels of GPUs, with loops unrolled, are not optimized: that takes drivers of CPUs most of the time."""
    usual = program.build_options
    found = drivers.unoptimized(*DEVICES)
    monkeypatch.setattr(program, "build_options", lambda *given: [*found, *usual(*given)])


@pytest.fixture
def collect():
    """`gc.collect` of what the test has made: among all that is there it takes a second."""
    gc.freeze()
    yield gc.collect
    gc.unfreeze()


@pytest.fixture
def rng():
    return np.random.default_rng(20171112)
