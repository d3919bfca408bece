"""Code on disk is what the sources say, and nobody else's; calls work where nothing can be written."""

import ast
import os
import shutil
from pathlib import Path

import numpy as np
import pyopencl as cl
import pytest

from compactla import gpu
from compactla.cpu import compile
from compactla.digests import MODULES, imported
from compactla.gpu import program as programs
from drivers import working_devices
from processes import ROOT, finish, python, start

pytestmark = pytest.mark.slow

# Calls routines without packing anything, and says where their kernels came from.
PROGRAM = """
import numpy as np
import compactla as cla
from compactla.cpu.compile import CodeOnDisk
assert cla.__file__.startswith({folder!r}), cla.__file__
found, load = [], CodeOnDisk.load_overload
def look(self, *signature):
    result = load(self, *signature)
    found.append(result is not None)
    return result
CodeOnDisk.load_overload = look
rng = np.random.default_rng(0)
a, b, c = rng.random((3, 2, 3, 3, 4))
A, B, C = cla.Pack(a), cla.Pack(b), cla.Pack(c)
cla.gemm(A, B, C)
assert np.allclose(c, np.einsum("pikv,pkjv->pijv", a, b), rtol=1e-14)
print("gemm", *found)
if {both}:
    found.clear()
    cla.getrfnp(A)
    print("getrfnp", *found)
"""
LOADED, COMPILED = "gemm True\n", "gemm False\n"
# The same for a function that is compiled for whatever it is called with: indices of 32 and 64 bits.
SYMBOLIC = """
import numpy as np
import scipy.sparse
from compactla.cpu import late
late.ENOUGH = 0
from compactla.lines import extraction as lines
M = scipy.sparse.eye_array(6, format="csr")
for index in (np.int32, np.int64):
    M.indptr, M.indices = M.indptr.astype(index), M.indices.astype(index)
    rows = np.array([[1], [0]])
    places = lines.Extraction(M, 3).find(rows, rows, -2)
    assert (places[0, range(3), range(3), 0] == [3, 4, 5]).all()
stats = lines._find_blocks.compiled.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


@pytest.fixture
def package(tmp_path):
    """A copy of the package, in a folder of its own."""
    unneeded = shutil.ignore_patterns("__pycache__", "data")
    shutil.copytree(ROOT / "compactla", tmp_path / "site" / "compactla", ignore=unneeded)
    for metadata in ("opencl", "pyproject.toml"):
        source, target = ROOT / metadata, tmp_path / "site" / metadata
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    return tmp_path / "site"


def gemm(package, cache, both=False, **environment):
    """The source of a new process's kernel of gemm; with `both` of getrfnp as well."""
    program = PROGRAM.format(folder=str(package), both=both)
    return python(program, package=package, NUMBA_CACHE_DIR=cache and str(cache), **environment)


def edit(file):
    with file.open("a") as source:
        source.write("\n")


def test_kernels_are_loaded_until_the_machine_or_a_setting_changes(package, tmp_path):
    cache = tmp_path / "cache"
    assert [gemm(package, cache) for _ in range(2)] == [COMPILED, LOADED]
    for other in ({"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}, {"NUMBA_OPT": "1"}):
        assert gemm(package, cache, **other) == COMPILED
    assert gemm(package, cache) == LOADED


def test_kernels_are_loaded_until_one_of_their_sources_changes(package, tmp_path):
    """An edit of a routine leaves the kernels of others as they are."""
    gemm(package, tmp_path / "cache", both=True)
    for source, writes in [
        ("cpu/kernels/gemm.py", "gemm"), ("cpu/kernels/trsm.py", "getrfnp"), ("cpu/kernels/blocktridiag.py", ""),
        ("cpu/emit/vectors.py", "gemm getrfnp"),
    ]:  # fmt: skip
        edit(package / "compactla" / source)
        expected = "".join(f"{name} {name not in writes.split()}\n" for name in ("gemm", "getrfnp"))
        assert gemm(package, tmp_path / "cache", both=True) == expected, source


# A kernel whose code a module writes that its key names.
WRITTEN = """
from compactla import view
from compactla.cpu.compile import compiled
def make(name):
    def kernel(lo, hi):
        pass
    return kernel
stats = compiled(make, (), "gemm", source="compactla.cpu.kernels.gemm").stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


def test_a_kernel_that_another_module_writes(package, tmp_path):
    """The key depends on that module, and on what both import."""
    file = package / "written.py"
    file.write_text(WRITTEN)
    options = {"package": package, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert python("import written", **options) == "0 1\n"
    for source, expected in [
        ("cpu/kernels/trsm.py", "1 0\n"), ("cpu/kernels/gemm.py", "0 1\n"), ("cpu/emit/prefetch.py", "0 1\n"),
        ("cpu/compile.py", "0 1\n"), ("../written.py", "0 1\n"),
    ]:  # fmt: skip
        edit(package / "compactla" / source)
        assert python("import written", **options) == expected, source
    file.write_text(WRITTEN.replace('kernels.gemm"', 'kernels.gem"'))
    with pytest.raises(AssertionError, match="KeyError"):
        python("import written", **options)


def test_a_source_that_changes_while_a_process_runs(package, tmp_path):
    """The process then compiles something else than the file says."""
    file = package / "compactla" / "cpu" / "kernels" / "gemm.py"
    change = f"with open({str(file)!r}, 'a') as file: file.write('\\n')\ncla.gemm("
    program = PROGRAM.format(folder=str(package), both=False).replace("cla.gemm(", change, 1)
    assert python(program, package=package, NUMBA_CACHE_DIR=str(tmp_path / "cache")) == COMPILED
    assert [gemm(package, tmp_path / "cache") for _ in range(2)] == [COMPILED, LOADED]


def test_all_imports_are_known():
    """The cache finds the imports of this package's files without parsing them."""
    for file in MODULES.values():
        names = set()
        for node in ast.walk(ast.parse(Path(file).read_text())):
            assert getattr(node, "level", 0) == 0, file
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                whole = ((f"{node.module}.{alias.name}", node.module) for alias in node.names)
                names |= {name if name in MODULES else module for name, module in whole}
        assert {MODULES[name] for name in names & {*MODULES}} == imported(file), file


NOTHING = "__kernel void nothing(__global int *a) {}"


def test_programs_are_built_anew_when_what_they_include_changes(tmp_path, monkeypatch):
    """Programs are built anew only then: drivers and pyopencl keep what they build by its source and options."""
    shutil.copytree(programs.SOURCES, tmp_path / "opencl")
    monkeypatch.setattr(programs, "SOURCES", tmp_path / "opencl")
    device = working_devices()[0]

    def options(source):
        built = gpu.build(cl.Context([device]), f"{source}\n{NOTHING}", np.float32)
        return built.get_build_info(device, cl.program_build_info.OPTIONS)

    named, any_file = '#define FILE "gemm.cl"\n#include FILE', "#ifdef ANY_FILE\n#include ANY_FILE\n#endif"
    sources = '#include "gemm.cl"', "  # include <trsm.cl>", named, any_file, ""
    for file, includes in [
        ("gemm.cl", (True, False, True, True, False)), ("trsm.cl", (False, True, False, True, False)),
        ("lane.h", (True, True, True, True, False)), ("pack.cl", (False, False, False, True, False)),
    ]:  # fmt: skip
        before = [options(source) for source in sources]
        edit(tmp_path / "opencl" / file)
        assert tuple(x != options(source) for x, source in zip(before, sources, strict=True)) == includes, file


def test_processes_that_start_at_once(package, tmp_path):
    cache = str(tmp_path / "cache")
    program = PROGRAM.format(folder=str(package), both=False)
    processes = [start(program, package=package, NUMBA_CACHE_DIR=cache) for _ in range(4)]
    for process in processes:
        finish(process)
    assert gemm(package, cache) == LOADED


def emptied(content):
    return b""


def flipped(content):
    return content[:-99] + bytes([content[-99] ^ 1]) + content[-98:]


def test_a_broken_cache(package, tmp_path):
    cache = tmp_path / "cache"
    options = {"package": package, "NUMBA_CACHE_DIR": str(cache)}
    assert python(SYMBOLIC, **options) == "0 2\n"
    assert python(SYMBOLIC, **options) == "2 0\n"
    files = find_files(cache)
    assert len(files) == 2  # one for each signature
    for spoil in (emptied, flipped):
        for file in files:
            file.write_bytes(spoil(file.read_bytes()))
        assert python(SYMBOLIC, **options) == "0 2\n", spoil
    assert python(SYMBOLIC, **options) == "2 0\n"


def test_a_mixed_up_cache(package, tmp_path):
    """Every file has another's content."""
    options = {"package": package, "NUMBA_CACHE_DIR": str(tmp_path)}
    assert python(SYMBOLIC, **options) == "0 2\n"
    one, other = find_files(tmp_path)
    content = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(content)
    assert python(SYMBOLIC, **options) == "0 2\n"


def find_files(cache):
    return list(cache.rglob("*_find_blocks*"))


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
    python("import compactla.lines.precond", package=package, NUMBA_CACHE_DIR=None, **nobody)


def test_a_folder_relative_to_where_the_process_begins(package, tmp_path):
    """Code is kept in one place also where the process goes elsewhere meanwhile."""
    begin, away = f"import os; os.chdir({str(tmp_path)!r})", "    os.chdir('/')\n"
    for expected in ("0 2\n", "2 0\n"):
        program = begin + SYMBOLIC.replace("stats =", away + "stats =")
        assert python(program, package=package, NUMBA_CACHE_DIR="a folder/of mine") == expected
    assert len(find_files(tmp_path / "a folder" / "of mine")) == 2


def test_a_full_disk(package, tmp_path):
    """Files may grow to no more than 2000 bytes."""
    pytest.importorskip("resource", reason="only Unix limits the size of files")
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))"
    for program, compiled in ((PROGRAM.format(folder=str(package), both=False), COMPILED), (SYMBOLIC, "0 2\n")):
        for _ in range(2):
            options = {
                "NUMBA_CACHE_DIR": str(tmp_path),
                "PYTHONDONTWRITEBYTECODE": "1",
            }  # nor does Python mind half of it
            assert python(limit + program, package=package, **options) == compiled
    assert not list(tmp_path.glob("cpu_*/*"))


# What others may do to a cache: its folder, or that one's, is theirs or anybody's to write.
OTHERS = {
    "sticky": lambda folder: folder.parent.chmod(0o1777),
    "anybody's": lambda folder: folder.chmod(0o777),
    "a group's": lambda folder: (os.chown(folder, -1, 12345), folder.chmod(0o775)),
    "another user's": lambda folder: os.chown(folder, 12345, -1),
}


@pytest.fixture
def as_root():
    """A skip for all but root, who alone can make files of others, as in a container."""
    return os.name == "posix" and os.geteuid() == 0


def test_folders_of_others(package, tmp_path, as_root):
    """Files in such folders are not run, and nothing is put there; one warning says so."""
    pytest.importorskip("pwd", reason="only Unix has such modes")
    program = "import warnings\nwarnings.showwarning = lambda message, *where: print(message)\n"
    program += "warnings.simplefilter('always')\n" + SYMBOLIC
    options = {"package": package, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert python(program, **options) == "0 2\n"
    (folder,) = (tmp_path / "cache").iterdir()
    before, modes = sorted(folder.iterdir()), [(path, path.stat()) for path in (folder, folder.parent)]
    for case, give in OTHERS.items():
        if "'s" in case and case != "anybody's" and not as_root:
            continue
        give(folder)
        output = python(program, **options)
        assert output.endswith("\n0 2\n"), output
        assert output.count("must be a folder that only you can write") == 1, output
        assert str(folder if case != "sticky" else folder.parent) in output
        assert sorted(folder.iterdir()) == before
        for path, status in modes:
            os.chown(path, status.st_uid, status.st_gid)
            path.chmod(status.st_mode)
    assert python(program, **options) == "2 0\n"


def test_a_file_of_others(package, tmp_path, as_root):
    """A file of another user is not run, even if its folder is safe by now."""
    if not as_root:
        return
    options = {"package": package, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert python(SYMBOLIC, **options) == "0 2\n"
    for file in find_files(tmp_path):
        os.chown(file, 12345, -1)
    assert python(SYMBOLIC, **options) == "0 2\n"


def test_a_package_that_everybody_can_write(package, tmp_path):
    """The package's own folder is passed over for the user's."""
    pytest.importorskip("pwd", reason="only Unix has such modes")
    (package / "compactla" / "cpu").chmod(0o777)
    user = {"HOME": str(tmp_path), "XDG_CACHE_HOME": None, "NUMBA_CACHE_DIR": None}
    assert [python(SYMBOLIC, package=package, **user) for _ in range(2)] == ["0 2\n", "2 0\n"]
    assert not (package / "compactla" / "cpu" / "__pycache__").exists() or not find_files(package)


def test_a_group_of_one(monkeypatch):
    """Folders that are made with umask 002 can be written by a group, which is the user's alone."""
    pwd = pytest.importorskip("pwd", reason="only Unix has such groups")
    grp = pytest.importorskip("grp", reason="only Unix has such groups")
    user = pwd.struct_passwd(("ada", "x", 1000, 1000, "", "/ada", "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: user)
    for name, group, members, private in [
        ("ada", 1000, [], True), ("ada", 1000, ["ada"], True), ("ada", 1000, ["ada", "bob"], False),
        ("staff", 1000, [], False), ("ada", 1001, [], False),
    ]:  # fmt: skip
        entry = grp.struct_group((name, "x", group, members))
        monkeypatch.setattr(grp, "getgrgid", {group: entry}.__getitem__)
        assert compile.is_private(group, 1000) == private


OF_USER = """
import numpy as np
from numba import njit

@njit(cache=True)
def twice(x):
    y = np.empty_like(x)
    y[:] = 2 * x
    return y
"""
AROUND = """
import sys
import numpy as np
from compactla.cpu.compile import compiled_once
sys.path.insert(0, {folder!r})
from of_user import twice

@compiled_once
def more(x):
    return twice(x) + 1

x = np.ones(3)
assert (more(x) == 3).all() and (twice(x) == 2).all()
print(sum(twice.stats.cache_hits.values()))
"""


def test_functions_of_users_within_ours(tmp_path):
    """They can be called from Python too, whether they were compiled there or loaded from disk."""
    (tmp_path / "of_user.py").write_text(OF_USER)
    program = AROUND.format(folder=str(tmp_path))
    assert [python(program, NUMBA_CACHE_DIR=str(tmp_path / "cache")).strip() for _ in range(2)] == ["0", "1"]
