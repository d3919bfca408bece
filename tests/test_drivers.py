"""OpenCL drivers that fail: they are tried in a process of their own, and others are taken."""

import os
import sys
from types import SimpleNamespace

import numpy as np
import pyopencl as cl
import pytest

import compactla as cla
from cases import slow
from compactla.bench import command
from compactla.gpu import devices, probe
from drivers import working_devices

# How a driver's compiler fails: statements of a process in which it is simulated.
FAILURES = {
    "aborts": ("os.write(2, b'LLVM ERROR: Cannot select'); os.abort()", "process (SIGABRT: LLVM ERROR: Cannot select)"),
    "exits": ("os._exit(3)", "ends the process (exit status 3)"),
    "hangs": ("time.sleep(600)", "does not end within 20 seconds"),
    "refuses": ("raise cl.RuntimeError('no such type')", "fails with no such type"),
    "lies": ("cl.enqueue_copy = lambda *args: args[1].fill(-1)", "gives wrong numbers"),
}
DRIVER = """
import os, sys, time
import pyopencl as cl

build = cl.Program.build

def fail(self, options=(), **settings):
    if "-DVECTOR={kind}" in options:
        {statement}
    return build(self, options, **settings)

cl.Program.build = fail
"""


class Device:
    """A device that does not exist."""

    def __init__(self, name, **properties):
        self.name = name
        vars(self).update(properties)


@pytest.fixture
def failing(device, tmp_path, monkeypatch):
    """A function that has processes that are started from now on fail at a type; nothing is known of drivers."""

    def simulate(kind, statement=FAILURES["aborts"][0]):
        (tmp_path / "sitecustomize.py").write_text(DRIVER.format(kind=kind, statement=statement))
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))

    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(tmp_path / name))
    probe.passed.cache_clear()
    yield simulate
    probe.passed.cache_clear()


@pytest.fixture
def device():
    return working_devices()[0]


@pytest.mark.parametrize(
    ("statement", "words"), [slow(*case) if name == "hangs" else case for name, case in FAILURES.items()], ids=FAILURES
)
def test_failures_are_named(failing, device, statement, words, monkeypatch):
    if "sleep" in statement:
        monkeypatch.setattr(probe, "SECONDS", 20)
    failing("double2", statement)
    found = probe.faults(device, ["float", "double2", "float2"])
    assert found["float"] == found["float2"] == ""
    assert device.name.strip() in found["double2"] and words in found["double2"]
    assert found["double2"].endswith("at a kernel of type double2")


def test_what_worked_is_not_tried_again(failing, device):
    assert probe.faults(device, ["float"]) == {"float": ""}
    failing("float")
    assert probe.faults(device, ["float"]) == {"float": ""}


def test_nothing_is_known_without_a_process(failing, device, monkeypatch):
    failing("float")
    monkeypatch.setattr(sys, "executable", "")
    assert probe.fault(device) == ""


def test_a_device_that_fails_is_refused(failing, device):
    """A device that fails is refused even if the user has chosen it, before anything is built there."""
    failing("double")
    with pytest.raises(RuntimeError, match=r"ends the process \(SIGABRT: LLVM ERROR: Cannot select\) at a .* double;"):
        devices.queue_on("opencl:" + device.name.strip(), "device")
    context = cl.Context([device])
    with pytest.raises(RuntimeError, match=r"at a kernel of type double$"):
        cla.pack(np.ones((3, 2, 2)), queue=cl.CommandQueue(context))


def test_ceilings_of_a_driver_that_promises_too_much(monkeypatch, capsys):
    """The ceilings use vectors that its compiler can do, and a message says so."""
    monkeypatch.setattr(probe, "faults", lambda _, types: {kind: "fails" * (kind != "double2") for kind in types})
    assert probe.widest(Device("WIDE", native_vector_width_double=8), "double") == (2, "fails")
    found = {"double": (2, "it fails at double4"), "float": (4, "")}
    monkeypatch.setattr(command, "widest", lambda device, real: found[real])
    command.tell_vectors(SimpleNamespace(device=None), np.dtype("D"))
    assert capsys.readouterr().out == "vectors    it fails at double4: ceilings are measured in double2\n"


def test_the_next_driver_is_taken(monkeypatch):
    bad, good = Device("BAD GPU"), Device("GOOD GPU")
    monkeypatch.setattr(devices, "devices", lambda: [bad, good])
    monkeypatch.setattr(devices, "fault", {bad: "BAD GPU's driver fails", good: ""}.get)
    with pytest.warns(RuntimeWarning, match="BAD GPU's driver fails; GOOD GPU is taken"):
        assert devices.named("opencl", "device") == [good]
    assert devices.named("opencl:good", "device") == [good]
    with pytest.raises(RuntimeError, match=r"BAD GPU's driver fails; another driver is .*intel-opencl-rt"):
        devices.named("opencl:bad", "device")
