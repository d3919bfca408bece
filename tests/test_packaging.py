"""The wheel holds what it must, works from where it is installed, and imports lightly."""

import os
import re
import runpy
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
KERNELS = sorted(path.name for path in (ROOT / "opencl").iterdir())
IMPORT_SECONDS = 2.0


def python(*arguments, cwd, path=""):
    """The output of a fresh interpreter that looks for modules in `path` first."""
    command = [sys.executable, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(path)}
    run = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment)
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """The folder of the wheel and the source distribution, freshly built."""
    folder = tmp_path_factory.mktemp("dist")
    python("-m", "hatchling", "build", "--directory", folder, cwd=ROOT)
    return folder


@pytest.fixture(scope="module")
def installed(dist, tmp_path_factory):
    """A folder that holds compactla as the wheel installs it, and nothing else."""
    folder = tmp_path_factory.mktemp("site")
    (wheel,) = dist.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


def test_the_wheel_holds_every_file(installed):
    package = installed / "compactla"
    assert sorted(path.name for path in (package / "opencl").iterdir()) == KERNELS
    tracked = {path.relative_to(ROOT) for path in (ROOT / "compactla").rglob("*.py")}
    tracked |= {path.relative_to(ROOT) for path in (ROOT / "compactla").rglob("*.md")}
    tracked |= {Path("compactla/py.typed"), Path("compactla/data/sherman5_b3.npz")}
    assert {path for path in tracked if not (installed / path).is_file()} == set()


def test_the_source_distribution_holds_every_file(dist):
    (archive,) = dist.glob("*.tar.gz")
    with tarfile.open(archive) as content:
        names = {name.partition("/")[2] for name in content.getnames()}
    wanted = {"pyproject.toml", "README.md", "LICENSE", "asv.conf.json", "compactla/py.typed"}
    wanted |= {f"opencl/{name}" for name in KERNELS}
    for folder in ("compactla", "tests", "benchmarks"):
        wanted |= {str(path.relative_to(ROOT)) for path in (ROOT / folder).rglob("*.py")}
    assert wanted - names == set()


def test_what_pypi_shows_leads_somewhere(dist):
    """No link is relative to the repository, and the version is that of the changes."""
    (wheel,) = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as content:
        (name,) = (name for name in content.namelist() if name.endswith("/METADATA"))
        metadata = content.read(name).decode()
    version = re.search(r"^Version: (.*)$", metadata, re.MULTILINE)[1]
    newest = re.search(r"^## (\S+)", (ROOT / "compactla" / "CHANGELOG.md").read_text(), re.MULTILINE)[1].rstrip(",")
    assert version == newest and "# compactla\n" in metadata
    assert set(re.findall(r"\]\((?!https://)([^)]*)\)", metadata)) == set() and "<!--" not in metadata


def test_links_of_the_description():
    """They lead to the tag of the version, and name files where it is not known where the repository is."""
    described = runpy.run_path(str(ROOT / ".site" / "description.py"))["described"]
    text = "<!-- report: x -->\n\n![A plot](a/b.svg)\n[page](c/README.md#d), [out](https://e.org)\n"
    at = "https://home"
    linked = f"![A plot]({at}/raw/v1.0/a/b.svg)\n[page]({at}/blob/v1.0/c/README.md#d), [out](https://e.org)\n"
    assert described(text, at, "1.0") == linked
    assert described(text, None, "1.0") == "Picture: A plot (`a/b.svg`).\npage (`c/README.md`), [out](https://e.org)\n"


def test_the_installed_package_finds_its_kernels(installed, tmp_path):
    program = f"""
import compactla
from compactla.gpu import program
assert compactla.__file__.startswith({str(installed)!r}), compactla.__file__
print(*sorted(path.name for path in program.SOURCES.iterdir()))
print(program.SOURCES)
"""
    kernels, sources = python("-c", program, cwd=tmp_path, path=installed).splitlines()
    assert kernels.split() == KERNELS
    assert Path(sources) == installed / "compactla" / "opencl"


def test_importing_is_light(installed, tmp_path):
    program = """
import sys, time
start = time.perf_counter()
import compactla
print(time.perf_counter() - start)
print(*sorted({"scipy", "pyopencl", "matplotlib", "torch", "tqdm"} & set(sys.modules)))
"""
    runs = [python("-c", program, cwd=tmp_path, path=installed).split("\n") for _ in range(3)]
    assert runs[0][1] == ""
    assert min(float(seconds) for seconds, *_ in runs) < IMPORT_SECONDS


def test_all_names_are_listed():
    """All names are listed before any of them is looked up: some are imported late."""
    program = "import compactla; print({*compactla.__all__} <= {*dir(compactla)}, 'Pack' in dir(compactla))"
    assert python("-c", program, cwd=ROOT, path=ROOT).split() == ["True", "True"]
