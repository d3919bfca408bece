"""Kernels on disk are those that the sources say, whoever writes there, and calls work where nothing can be written."""

import ast
import shutil

import pytest

from compactla.cpu.kernel import SOURCES
from processes import ROOT, finish, python, start

# Multiplies matrices without packing them, and says where the kernel came from.
PROGRAM = """
import numpy as np
import compactla as cla
from compactla.cpu import run
assert cla.__file__.startswith({folder!r}), cla.__file__
rng = np.random.default_rng(0)
a, b, c = rng.random((3, 2, 3, 3, 4))
A, B, C = cla.Pack(a), cla.Pack(b), cla.Pack(c)
cla.gemm(A, B, C)
assert np.allclose(c, np.einsum("pikv,pkjv->pijv", a, b), rtol=1e-14)
kernel, *_ = run.gemm_choice(A.view.layout, B.view.layout, C.view.layout, "1 0", False, False)
stats = kernel.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""
LOADED, COMPILED = "1 0\n", "0 1\n"


@pytest.fixture
def package(tmp_path):
    """A copy of the package, in a folder of its own."""
    unneeded = shutil.ignore_patterns("__pycache__", "data")
    shutil.copytree(ROOT / "compactla", tmp_path / "site" / "compactla", ignore=unneeded)
    for metadata in ("opencl", "pyproject.toml"):
        source, target = ROOT / metadata, tmp_path / "site" / metadata
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    return tmp_path / "site"


def gemm(package, cache, **environment):
    """Where a new process has its kernel from."""
    program = PROGRAM.format(folder=str(package))
    return python(program, package=package, NUMBA_CACHE_DIR=cache and str(cache), **environment)


def test_kernels_are_loaded_until_a_source_changes(package, tmp_path):
    cache = tmp_path / "cache"
    assert gemm(package, cache) == COMPILED
    assert gemm(package, cache) == LOADED
    for source in ("view.py", "cpu/emit.py"):
        with (package / "compactla" / source).open("a") as file:
            file.write("\n# changed\n")
        assert gemm(package, cache) == COMPILED, source
    assert gemm(package, cache, NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="") == COMPILED
    assert gemm(package, cache) == LOADED


def test_all_sources_of_kernels_are_known():
    """What the files that write kernels import of the package is among the files that the cache watches."""
    known = {path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".") for path in SOURCES}
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            module = node.module if isinstance(node, ast.ImportFrom) else None
            assert not module or not module.startswith("compactla.") or module in known | {"compactla.cpu"}, path


def test_processes_that_start_at_once(package, tmp_path):
    cache = str(tmp_path / "cache")
    program = PROGRAM.format(folder=str(package))
    processes = [start(program, package=package, NUMBA_CACHE_DIR=cache) for _ in range(4)]
    for process in processes:
        finish(process)
    assert gemm(package, cache) == LOADED


def test_a_broken_cache(package, tmp_path):
    cache = tmp_path / "cache"
    assert gemm(package, cache) == COMPILED
    for suffix in (".nbc", ".nbi"):
        for file in cache.rglob(f"*{suffix}"):
            file.write_bytes(file.read_bytes()[:-9])
        assert gemm(package, cache) == COMPILED


def test_a_package_that_cannot_be_written(package, tmp_path):
    """Files stand where folders would have to be: not even root can write there."""
    for folder in (package / "compactla", package / "compactla" / "cpu"):
        (folder / "__pycache__").write_text("in the way")
    home, nowhere = tmp_path / "home", tmp_path / "nowhere"
    home.mkdir()
    nowhere.write_text("in the way")
    user = {"HOME": str(home), "XDG_CACHE_HOME": None}
    assert [gemm(package, None, **user) for _ in range(2)] == [COMPILED, LOADED]
    nobody = {"HOME": str(nowhere), "XDG_CACHE_HOME": str(nowhere), "LOCALAPPDATA": str(nowhere)}
    assert gemm(package, None, **nobody) == COMPILED
    python("import compactla.precond", package=package, NUMBA_CACHE_DIR=None, **nobody)


def test_a_full_disk(package, tmp_path):
    """Files may grow to no more than 2000 bytes."""
    pytest.importorskip("resource", reason="only Unix limits the size of files")
    program = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))"
    program += PROGRAM.format(folder=str(package))
    for _ in range(2):
        assert python(program, package=package, NUMBA_CACHE_DIR=str(tmp_path / "cache")) == COMPILED
