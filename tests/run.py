"""Set up everything that the tests need and run them: `python3 tests/run.py [--all] [--driver X] [pytest's arguments]`.

Without `--all` tests that are marked as slow are left out: more types and sizes of what others show as well, watched
pivots and smaller types in lines, other programs, broken caches and machines, and all shapes of kernels. Most run with
NUMBA_OPT=0, since compiling takes most of their time; those that are marked as optimized run in a second process, with
code as users have it.

Needs Python 3.11 and pip. Makes the virtual environment .venv in the repository root, installs compactla
there (editable, with the test dependencies), and gets an OpenCL driver if the machine has none that works, or the one
that `--driver` names: PoCL from `pypi`, Intel's runtime (`intel`, from PyPI too) or PoCL from the Linux distribution
(`apt`); `installed` allows only what is there. With `--driver none` there are only tests that say `numba`, of the CPU.
Where Debian's packages can be installed, it gets PETSc too, for Debian's own Python, in .venv/petsc.
"""

import argparse
import hashlib
import importlib.util
import json
import math
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
PETSC = VENV / "petsc"
DURATIONS = VENV / "durations"
NO_TESTS = 5  # what pytest exits with if none is chosen
MEMORY = 2**31  # bytes that a process of the tests may take
APT = threading.Lock()  # one at a time installs


def succeeds(*command, env=None):
    return subprocess.run(command, cwd=ROOT, env=env).returncode == 0


def pip(*arguments):
    return succeeds(PYTHON, "-m", "pip", "--quiet", *arguments)


def has_device(environment):
    """Whether an OpenCL device works under these environment variables; says what is wrong with others."""
    return succeeds(PYTHON, ROOT / "tests" / "drivers.py", env=environment)


def require(purpose, *command):
    if not succeeds(*command):
        sys.exit(f"tests/run.py: {purpose} failed: {' '.join(map(str, command))}")


def make_environment():
    """Make .venv and install the project there, unless that was done for this very pyproject.toml."""
    stamp = VENV / "stamp"
    state = f"{sys.version} {ROOT} {hashlib.sha256((ROOT / 'pyproject.toml').read_bytes()).hexdigest()}"
    if stamp.is_file() and stamp.read_text() == state:
        return
    print(f"Setting up {VENV}: a minute or more, once", flush=True)
    # Linux distributions may leave out ensurepip: without it, the pip that is here installs into .venv.
    venv = (sys.executable, "-m", "venv", "--clear", VENV)
    if importlib.util.find_spec("ensurepip") and succeeds(*venv):
        pip = [PYTHON, "-m", "pip"]
    else:
        require("making a virtual environment", *venv, "--without-pip")
        pip = [sys.executable, "-m", "pip", "--python", PYTHON]
    require("getting a recent pip", *pip, "install", "--quiet", "--upgrade", "pip>=25.1")
    project = ("--editable", ROOT, "--group", "test")
    require("installing compactla", PYTHON, "-m", "pip", "install", "--quiet", *project)
    stamp.write_text(state)


def apt_install(package):
    """Whether the Linux distribution has the package and this user may install it."""
    if not shutil.which("apt-get") or os.geteuid() != 0:
        return False
    apt = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with APT:
        succeeds("apt-get", "update", "--quiet", env=apt)
        return succeeds("apt-get", "install", "--quiet", "--yes", "--no-install-recommends", package, env=apt)


def driver_of_machine():
    """Environment variables for the drivers that are there."""
    return dict(os.environ)


def driver_from_pypi():
    """PoCL from PyPI, which pyopencl finds: only .venv learns of it."""
    if not pip("install", "pyopencl[pocl]"):
        return None
    if not has_device(os.environ):  # nor may it be in the way of others
        pip("uninstall", "--yes", "pocl-binary-distribution")
        return None
    return dict(os.environ)


def driver_of_intel():
    """Intel's runtime from PyPI, which works on processors of other makers too; only .venv learns of it."""
    windows = os.name == "nt"
    library = VENV / ("Library/bin/intelocl64.dll" if windows else "lib/libintelocl.so")
    if not library.is_file() and not pip("install", "intel-opencl-rt", "intel-cmplr-lib-rt"):
        return None
    return {**os.environ, "OCL_ICD_FILENAMES" if windows else "OCL_ICD_VENDORS": str(library)}


def driver_from_apt():
    """PoCL from the Linux distribution."""
    if not apt_install("pocl-opencl-icd"):
        return None
    return {**os.environ, "OCL_ICD_VENDORS": "/etc/OpenCL/vendors"}


DRIVERS = {"installed": driver_of_machine, "pypi": driver_from_pypi, "intel": driver_of_intel, "apt": driver_from_apt}


def opencl_environment(names):
    """Environment variables under which an OpenCL device works; the first of these sources of drivers that has one."""
    for name in names:
        environment = DRIVERS[name]()
        if environment and has_device(environment):
            return environment
    sys.exit(f"tests/run.py: no OpenCL driver works here, from none of these: {', '.join(names)}")


def get_petsc():
    """Whether there is a petsc4py, for Debian's Python."""
    return (PETSC / "stamp").is_file() or apt_install("python3-petsc4py")


def make_petsc_environment():
    """Make .venv/petsc, of Debian's Python with its petsc4py, which is for the NumPy that comes with it."""
    debian = "/usr/bin/python3"
    next_numpy = (debian, "-c", "import numpy; print(int(numpy.__version__[0]) + 1)")
    numpy = f"numpy<{subprocess.run(next_numpy, stdout=subprocess.PIPE, text=True).stdout.strip()}"
    venv = (debian, "-m", "venv", "--clear", "--system-site-packages", "--without-pip", PETSC)
    return succeeds(*venv) and pip("--python", PETSC / "bin" / "python", "install", "--editable", ROOT, numpy, "pytest")


def petsc_environment(package):
    """Environment variables with which tests/test_petsc.py finds petsc4py, if the package can be had: a future."""
    stamp = PETSC / "stamp"
    if not stamp.is_file():
        print(f"Setting up {PETSC}: a minute, once", flush=True)
        if not (package.result() and make_petsc_environment()):
            print("PETSc is not tested: that takes Debian or a relative, its python3-petsc4py, and root", flush=True)
            return {}
        stamp.touch()
    # Debian's petsc4py looks for PETSc where only the package for developers puts it.
    folders = sorted(Path("/usr/lib/petscdir").glob("petsc*/*-real"))
    return {"PETSC_PYTHON": str(PETSC / "bin" / "python"), "PETSC_DIR": str(folders[-1])} if folders else {}


def share_driver():
    """Give .venv/petsc the driver from PyPI that .venv has, of which only that learns."""
    here, there = (any(folder.glob("lib/python*/site-packages/pocl_binary_distribution")) for folder in (VENV, PETSC))
    if here and not there and (PETSC / "stamp").is_file():
        pip("--python", PETSC / "bin" / "python", "install", "pyopencl[pocl]")


def has_torch():
    """Whether PyTorch is there, which tests/test_torch_operators.py needs; it is too large for .venv: see .ci/torch."""
    return succeeds(PYTHON, "-c", "import importlib.util, sys; sys.exit(not importlib.util.find_spec('torch'))")


def memory():
    """Bytes of memory that are free here, or infinity where the system does not say."""
    limits = ("/proc/meminfo", r"MemAvailable: *(\d+) kB", 1024), ("/sys/fs/cgroup/memory.max", r"(\d+)", 1)
    known = [(re.search(number, Path(file).read_text()), unit) for file, number, unit in limits if Path(file).is_file()]
    return min((int(found[1]) * unit for found, unit in known if found), default=math.inf)


def processes():
    """The number of processes that run the tests: one for each core, as far as memory allows."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(max(1, min(cores, memory() // MEMORY)))


def durations():
    """Seconds that runs without failures took, by their arguments."""
    return json.loads(DURATIONS.read_text()) if DURATIONS.is_file() else {}


def expected(arguments):
    """The time that tests will take: that of the last run, or the usual one."""
    seconds = durations().get(" ".join(arguments))
    if seconds is not None:
        return f"{seconds // 60} min {seconds % 60} s the last time"
    if not arguments:
        return "5 to 10 minutes on two cores, most of which is compiling; later runs are faster"
    return "hours on two cores" if arguments == ["--all"] else "for such arguments it is not known how long they take"


def files_with(mark):
    """The files of the tests that use a mark: to collect all takes each process ten seconds."""
    return [str(file) for file in sorted(ROOT.glob("tests/test_*.py")) if f"mark.{mark}" in file.read_text()]


def main():
    if sys.version_info < (3, 11):
        sys.exit(f"tests/run.py: compactla needs Python 3.11 or later, this is {sys.version.split()[0]}")
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("-m", default="")
    parser.add_argument("--driver", choices=[*DRIVERS, "none"])
    options, arguments = parser.parse_known_args()
    with ThreadPoolExecutor() as beside:
        package = beside.submit(get_petsc)
        make_environment()
        petsc = beside.submit(petsc_environment, package)
        if options.driver == "none":
            environment, arguments = dict(os.environ), ["-k", "numba", *arguments]
        else:
            environment = opencl_environment([options.driver] if options.driver else DRIVERS)
    environment |= petsc.result()
    share_driver()
    if not has_torch():
        print("Operators for PyTorch are not tested: .ci/torch brings 200 MB, and tests them", flush=True)
    codes, tier = set(), "" if options.all else "not slow and not exhaustive"
    start = time.perf_counter()
    print(f"Running the tests, in two parts: {expected(sys.argv[1:])}. Failures are named when they happen", flush=True)
    all_files = not any((ROOT / argument.partition("::")[0]).exists() for argument in arguments)
    parts = ("not optimized", {"NUMBA_OPT": "0"}, []), ("optimized", {}, files_with("optimized") if all_files else [])
    for marked, settings, files in parts:
        if marked == "optimized" and "not optimized" in options.m:
            continue
        chosen = " and ".join(f"({m})" for m in (marked, tier, options.m) if m)
        pytest = (PYTHON, "-m", "pytest", f"--numprocesses={processes()}", "-m", chosen, *arguments, *files)
        codes.add(subprocess.run(pytest, cwd=ROOT, env=settings | environment).returncode)
    failed = codes - {0, NO_TESTS}
    if not failed:
        DURATIONS.write_text(json.dumps(durations() | {" ".join(sys.argv[1:]): round(time.perf_counter() - start)}))
    sys.exit(failed.pop() if failed else min(codes))


if __name__ == "__main__":
    main()
