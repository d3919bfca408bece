"""``python -m compactla explain``."""

import re

import numpy as np
import pytest

from cases import exhaustive
from compactla.__main__ import main
from compactla.cli.explain import OTHERS
from compactla.cpu.emit.machine import target
from compactla.gpu import override
from compactla.gpu.devices import new_queue
from compactla.gpu.tuning import choices
from compactla.routine import names
from drivers import working_devices
from rows import MODELS

VLEN = 3  # no test compiles for it in this process


def explain(capsys, *args):
    """What the command prints: the lines of each word, and all of it."""
    main(["explain", *map(str, args)])
    out, err = capsys.readouterr()
    assert err == ""
    found, word = {}, ""
    for line in out.split("\n\n#")[0].splitlines():
        word = line[:11].strip() or word
        found.setdefault(word, []).append(line[11:])
    return {word: "\n".join(lines) for word, lines in found.items()}, out


def test_a_routine_on_the_cpu(capsys):
    found, out = explain(capsys, "gemm", "--n", 4, "--vlen", VLEN, "--beta", 0, "--ir", "--asm")
    assert found["routine"].startswith("gemm: Matrix products") and "float64 (compactla" in found["routine"]
    assert re.search(r"C  4 x 4 \(mn\), written, not read$", found["operands"], re.MULTILINE)
    assert "128 flops and 384 bytes of a matrix" in found["bound"]
    assert found["kernel"].endswith("gemm.py, compiled for these sizes")
    assert "V = 3" in found["vectors"] and "vectors, in registers" in found["tiles"]
    assert found["threads"].startswith("1: 342 packs of") and found["prefetch"].startswith("no, not above ")
    assert "gemm" in found["compiled"] and ".ll\n; ModuleID" in out and target()[0] in out and ".globl" in out


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (["gemm", "--n", 4, "--m", 5], "sizes are not equal, or 1"),
        (["gels", "--n", 10], "sizes are above 8"),
        (["getrs", "--n", 33, "--nrhs", 1, "--nm", 3], "sizes are above 32"),
    ],
)
def test_sizes_that_are_not_compiled_in(capsys, args, reason):
    found, _ = explain(capsys, *args, "--vlen", VLEN)
    assert found["kernel"].endswith(f"for any size: {reason}")
    assert found["prefetch"].startswith("no, not where sizes are unknown")


def test_large_batches(capsys):
    """Results go past the caches, and threads share the packs."""
    found, _ = explain(capsys, "axpy", "--n", 3, "--nm", 199999, "--vlen", VLEN, "--threads", 1)
    assert found["prefetch"].startswith("yes, above ") and found["threads"].startswith("1: 66667 packs")
    assert "ahead" in found["compiled"]


@pytest.mark.parametrize("name", [name if name in MODELS else exhaustive(name) for name in names()])
def test_every_routine(capsys, name):
    found, _ = explain(capsys, name, "--n", 2, "--vlen", VLEN, "--dtype", "s")
    assert "compactla.cpu.run" in found["compiled"] and name in found["compiled"]


on_devices = pytest.mark.parametrize("device", working_devices(), ids=lambda device: "opencl")


@on_devices
def test_a_routine_on_a_device(capsys, monkeypatch, device):
    monkeypatch.setattr("compactla.bench.command.queue_on", lambda *args: new_queue(device))
    choice = {"kernel": "gemm_item", "GROUP": 24}
    key = choices.key("gemm", (3, 3, 3), np.dtype("f"))
    monkeypatch.setitem(choices.results(device)["gemm"], key, choice)
    args = "gemm", "--n", 3, "--dtype", "s", "--device", "opencl", "--source"
    found, out = explain(capsys, *args)
    assert found["choice"].startswith("gemm_item GROUP=24\n'gemm float32 3 3 3' in ")
    assert found["kernel"].startswith("gemm_item in opencl/gemm.cl\nwork-groups of 24 work-items")
    assert "#define GROUP 24\n" in out and '#include "gemm.cl"' in out and found["compiled"].startswith("gemm")
    with override(new_queue(device), "gemm", choice | {"GROUP": 8}):
        assert explain(capsys, *args)[0]["choice"] == "gemm_item GROUP=8\nan override"
    with override(new_queue(device), "gemm", {}):
        assert "kernels for any size in opencl/gemm.cl; V = " in explain(capsys, *args)[0]["kernel"]
    found, _ = explain(capsys, "gemm", "--n", 33, "--nm", 5, "--device", "opencl")
    assert found["choice"].endswith("kernels for known sizes are for 1 to 32")


@pytest.mark.slow
@on_devices
@pytest.mark.parametrize("name", [exhaustive(name) if name != "solve" else name for name in OTHERS])
def test_what_is_no_routine(capsys, monkeypatch, device, name):
    monkeypatch.setattr("compactla.bench.command.queue_on", lambda *args: new_queue(device))
    monkeypatch.setattr("compactla.bench.filling.BLOCKS_A_LINE", 3)
    found, _ = explain(capsys, name, "--n", 2)
    assert found["choice"] and found["kernel"] and found["compiled"]


def test_all_names_can_be_explained():
    assert {*names(), *OTHERS} == {*choices.searches()}
    for name, letters in OTHERS.items():
        assert {len(letters)} == {len(size) for size in choices.searches()[name].sizes}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "NAME"),
        (["abacus"], "invalid choice: 'abacus'"),
        (["gemm", "--n", 0], "argument --n: 0 must be positive"),
        (["gemm", "--transa", "X"], "argument --transa: invalid choice: 'X'"),
        (["gemm", "--vlen", 10**9], "vlen is 1000000000, must be from 1 to"),
        (["gemm", "--source"], "--source is for devices"),
        (["gemm", "--device", "abacus"], "--device is abacus, must be cpu, opencl or opencl:NAME"),
        (
            ["solve", "--device", "cpu"],
            "--device is cpu, must be opencl or opencl:NAME: the CPU has no kernels for solve",
        ),
        (["gemm", "--device", "opencl", "--ir"], "--ir is for --device cpu"),
    ],
)
def test_errors_are_one_sentence(capsys, args, message):
    with pytest.raises(SystemExit) as exit:
        main(["explain", *map(str, args)])
    err = capsys.readouterr().err
    assert exit.value.code == 2 and message in err and err.count("\n") == 1
