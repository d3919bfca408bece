"""Other systems and processors than this one: integers of Windows, registers of others, and factors from there."""

import pickle
import platform
import re

import llvmlite.binding as llvm
import numpy as np
import pyopencl as cl
import pytest

import factors
from compactla.cpu.compile import CodeOnDisk
from compactla.cpu.emit import machine
from compactla.gpu import probe, program
from compactla.gpu.tuning.choices import is_cpu
from drivers import working_devices
from processes import python

X86 = platform.machine() in ("x86_64", "AMD64")
OF_ARM = {("aarch64-unknown-linux-gnu", "neoverse-n1", "+neon"), ("arm64-apple-darwin23.0.0", "apple-m1", "")}
# Registers, and whether there are conversions of 16 bits, by names and features.
OF_X86 = {
    ("x86-64", ""): ((16, 16), False), ("sandybridge", ""): ((32, 16), False), ("haswell", ""): ((32, 16), True),
    ("x86-64", "+avx"): ((32, 16), False), ("haswell", "-avx,-f16c"): ((16, 16), False),
    ("skylake-avx512", ""): ((64, 32), True), ("skylake-avx512", "-avx512f"): ((32, 16), True),
}  # fmt: skip


def asked(monkeypatch, triple, name, features):
    """The features that are known of a processor."""
    monkeypatch.setattr(machine, "target", lambda: (triple, name, {*features.split(",")}))
    machine.assembly.cache_clear()
    found = machine.machine.__wrapped__(), machine.has_half.__wrapped__()
    machine.assembly.cache_clear()
    return found


def test_what_a_processor_has(monkeypatch):
    """A processor has what its name implies, too: features are not listed everywhere, or left out on purpose."""
    (triple, *_) = machine.target()
    for about in OF_ARM:
        assert asked(monkeypatch, *about) == ((16, 32), True), about
    for about, expected in OF_X86.items() if X86 else ():
        assert asked(monkeypatch, triple, *about) == expected, about


def test_names_of_files():
    """Functions in others have names that no file has on Windows."""
    name, _ = CodeOnDisk(lambda: None, ()).identify("signature")
    assert re.fullmatch(r"[\w.]+\.test_names_of_files\.locals\.lambda\.[\w.]+", name), name


def test_programs_are_kept_for_a_processor(monkeypatch):
    """Devices of several kinds of them may have one name."""
    context, found = cl.Context(working_devices()[:1]), set()
    for name in ("znver3", "znver4"):
        monkeypatch.setattr(llvm, "get_host_cpu_name", lambda name=name: name)
        probe.processor.cache_clear()
        found.add(" ".join(program.build_options(context, np.dtype(np.float32), 4, {})))
    probe.processor.cache_clear()
    assert len(found) == 1 + is_cpu(context.devices[0])


WINDOWS = """
import windows_integers
import numpy as np
import compactla as cla
from cases import dominant, lines, random
from compactla import krylov, linalg
from compactla.cpu.threads import sharing
from factors import check, problems
from systems import convection_diffusion

rng = np.random.default_rng(0)
for least in (sharing.GRAIN, 1):  # for one thread, and for two
    sharing.GRAIN = least
    for name, problem in problems(rng).items():
        check(name, *problem)
    a, b = dominant(rng, 301, 3, 3, np.float64), random(rng, (301, 3, 3), np.float64)
    A, B, C = cla.pack(a), cla.pack(b), cla.Pack.zeros(301, 3, 3)
    cla.gemm(A, B, C)
    assert np.allclose(C.unpack(), a @ b)
    assert np.allclose(linalg.solve(a, b), np.linalg.solve(a, b))
    assert np.allclose(cla.kron_apply([a[0], b[0]], a), np.einsum("ij,kl,njl->nik", a[0], b[0], a))
    x, report = krylov.gmres(A, b[:, 0], M=krylov.ILU0(A), rtol=1e-12)
    assert report.converged.all() and np.allclose(np.einsum("nij,nj->ni", a, x), b[:, 0])
M, columns = convection_diffusion(4, 9, 2)
found = cla.find_lines(M)
assert sorted(map(len, found)) == [9] * 4
x, report = krylov.gmres(M, M @ np.ones(72), M=cla.LinePreconditioner(M, found), rtol=1e-12)
assert np.allclose(x, 1)
"""


@pytest.mark.slow
def test_integers_of_32_bits():
    """Integers are those of NumPy 1 on Windows, if no type is asked for."""
    python(WINDOWS, NUMBA_NUM_THREADS="2")


THERE = """
import pickle
import numpy as np
from compactla.cpu.emit.matrices import native_width
from factors import check, problems
with open({given!r}, "rb") as file:
    for name, problem in pickle.load(file).items():
        check(name, *problem)
with open({own!r}, "wb") as file:
    pickle.dump(problems(np.random.default_rng(0)), file)
print(native_width(np.dtype(np.float64)))
"""


@pytest.mark.slow
def test_factors_of_other_processors(rng, tmp_path):
    """Processes on several share a cache, and send factors to each other."""
    given, own = tmp_path / "given", tmp_path / "own"
    given.write_bytes(pickle.dumps(factors.problems(rng)))
    program = THERE.format(given=str(given), own=str(own))
    width = python(program, NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="")
    for name, problem in pickle.loads(own.read_bytes()).items():
        factors.check(name, *problem)
        if name == "Tridiag":
            problem[0].factor()
            factors.check(name, *problem)
    assert not X86 or int(width) == 2
