"""Code that COMPACTLA_DUMP asks for."""

import numpy as np
import pyopencl as cl
import pytest

from compactla import dump
from compactla.cpu.compile import compiled_once
from compactla.cuda.compile import compile, cuda_source, options
from compactla.gpu import build
from drivers import working_devices


def added():
    """A function that is compiled anew, or comes from the cache."""

    def add(x):
        return x + 1.5

    return compiled_once(add, "of these tests")


def test_code_is_seen_although_it_is_in_the_cache(tmp_path, monkeypatch):
    added()(1.0)
    with dump.collected() as inner, dump.collected() as outer:
        assert added()(1.0) == 2.5
    assert inner == outer and len(inner) == 1
    (code,) = inner
    assert "add" in code.name and code.key == "of these tests" and {*code.texts} == {"ll", "s"}
    assert not dump.is_wanted()
    monkeypatch.setenv("COMPACTLA_DUMP", str(tmp_path / "new" / "folder"))
    added()(1.0)
    files = sorted((tmp_path / "new" / "folder").iterdir())
    assert [file.suffix for file in files] == [".ll", ".s"] and "define " in files[0].read_text()
    (tmp_path / "file").touch()
    monkeypatch.setenv("COMPACTLA_DUMP", str(tmp_path / "file"))
    with pytest.raises(ValueError, match=r"COMPACTLA_DUMP is '.*file', must be a folder that can be written: "):
        added()(1.0)


@pytest.mark.parametrize("device", working_devices(), ids=lambda device: "opencl")
def test_programs_are_seen(tmp_path, monkeypatch, device):
    monkeypatch.setenv("COMPACTLA_DUMP", str(tmp_path))
    context = cl.Context([device])
    build(context, '#include "axpy.cl"\n', np.float32, 8, M=2)
    (file,) = tmp_path.glob("axpy.*.cl")
    assert "#define CLA_VLEN 8\n" in file.read_text() and "#define M 2\n" in file.read_text()
    with pytest.raises(RuntimeError):
        build(context, "nonsense", np.float32)
    (log,) = tmp_path.glob("program.*.log")
    assert "nonsense" in log.read_text() or "error" in log.read_text()


def test_programs_of_cuda_are_seen():
    pytest.importorskip("cuda.bindings.nvrtc")
    macros = {"AXPY_ITEM": 1, "M": 3, "N": 3, "GROUP": 32, "XRS": 3, "XCS": 1, "YRS": 3, "YCS": 1}
    source, given = cuda_source('#include "axpy.cl"\n'), options(np.dtype(np.float32), 8, macros, "sm_90")
    with dump.collected() as found:
        cubin = compile(source, given)
    (code,) = found
    assert code.texts["cubin"] == cubin
    assert code.name == "axpy" and {*code.texts} == {"cu", "ptx", "log", "cubin"}
    assert b"registers" in code.texts["log"] and b".target sm_90" in code.texts["ptx"]
