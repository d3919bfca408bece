"""How kernels are compiled: what is left of them in memory, and of the process they are compiled in."""

import gc
import itertools

from compactla.cpu.compile import INT, compiled
from compactla.cpu.emit.code import routine

counts = itertools.count(1)


@routine
def nothing(code):
    """No work."""


def made():
    """A kernel that there was none of before."""
    return compiled(batch, (INT,), next(counts))


def batch(count):
    def kernel(lo, hi, x):
        for _ in range(lo, hi):
            nothing()

    return kernel


def test_only_machine_code_is_kept(monkeypatch):
    monkeypatch.setattr("compactla.cpu.compile.place", lambda: None)  # not read from disk
    kernel = made()
    (found,) = kernel.overloads.values()
    library = found.library
    bodies = [[str(x) for block in f.blocks for x in block.instructions] for f in library._final_module.functions]
    assert bodies and all([x.strip() for x in body] == ["ret void"] for body in bodies)
    assert library.get_pointer_to_function(found.fndesc.llvm_func_name)
    assert kernel(0, 3, 0) is None and kernel.entry(0, 3, 0) is None


def test_garbage_is_collected_as_before(monkeypatch):
    monkeypatch.setattr("compactla.cpu.compile.place", lambda: None)
    assert gc.isenabled()
    made()
    assert gc.isenabled()
    gc.disable()
    try:
        made()
        assert not gc.isenabled()
    finally:
        gc.enable()
